"""Why a name is limited: each level as the core has it, and no trace of having looked.

Not covered: how names come in (tests/integration/http/test_faults.py), words (tests/unit/cli/test_why.py),
counting itself (tests/unit/core/buckets/test_recent_refusals.py).
"""

from dataclasses import replace
from random import Random
from typing import Any

import pytest

from rgd.core.buckets.decision import Answer, Request
from rgd.core.policies.model import (
    Attachments,
    Group,
    Limit,
    Limits,
    LocalLimit,
    SharePolicyName,
    TopicSplit,
)
from rgd.core.policies.snapshot import PolicySnapshot
from rgd.core.units import Kind
from rgd.views.explain import explain
from rgd.views.model import ExplainView, LevelView, LimitedByView, RefusedView, ScopeView
from tests.unit.core.broker.desk import Desk
from tests.unit.core.values import NAMESPACE, TOPIC, ms, rates

NOW = 2100
PARTITION = f"{TOPIC}-partition-3"
NAME = Request(namespace=NAMESPACE, topic=TOPIC)
EVERYTHING = PolicySnapshot(
    {
        "of-topic": Group("of-topic", Limit(rates(400, 4000)), policy=SharePolicyName.STEAL),
        "of-both": Group("of-both", Limit(rates(100))),
    },
    Attachments({"acme": "of-both"}, {NAMESPACE: "of-both"}, {TOPIC: "of-topic"}),
    Limits(
        broker=LocalLimit(publish=rates(10_000)),
        namespaces={NAMESPACE: LocalLimit(publish=rates(80))},
        topic_subscriptions={TOPIC: LocalLimit(publish=rates(size=40))},
    ),
)


def desk(snapshot: PolicySnapshot, **settings: Any) -> Desk:
    """A broker alone that believes its map, with these policies."""
    made = Desk(**settings)
    made.go_live()
    made.change(snapshot, NOW)
    return made


def ask(at: Desk, request: Request, times: int = 1) -> list[Answer]:
    return [at.broker.limiter.acquire(request, ms(NOW)) for _ in range(times)]


def why(at: Desk, name: Request = NAME, now: float = NOW) -> ExplainView:
    return explain(at.broker, name, ms(now))


def only(view: ExplainView) -> LevelView:
    [level] = view.levels
    return level


def gold(**group: Any) -> PolicySnapshot:
    """A namespace in one group of 100 messages a second."""
    return PolicySnapshot(
        {"gold": Group("gold", Limit(rates(100)), **group)},
        Attachments(namespaces={NAMESPACE: "gold"}),
    )


def test_an_attachment_to_no_group_limits_nothing_and_is_reported() -> None:
    snapshot = PolicySnapshot(attach=Attachments(namespaces={NAMESPACE: "gone"}))
    view = why(desk(snapshot))
    assert not view.governed
    [missing] = view.missing_groups
    assert (missing.group, missing.set_at) == ("gone", ScopeView("namespace", NAMESPACE))


def test_a_group_in_use_has_a_share_tokens_and_a_depth() -> None:
    at = desk(gold())
    ask(at, Request(messages=10, namespace=NAMESPACE))
    level = only(why(at))
    assert level.in_use
    told = level.messages
    assert (told.quota, told.share, told.depth, told.tokens) == (100, 100, 25, 15)
    assert level.bytes.quota is None
    assert level.bytes.tokens is None
    assert (level.state, level.policy, level.topic_split) == ("live", "max-min", "shared")
    # Ten milliseconds later there is one token more.
    assert only(why(at, now=NOW + 10)).messages.tokens == 16


def test_the_limit_that_cut_most_is_named_with_its_dimension() -> None:
    at = desk(EVERYTHING)
    ask(at, NAME._replace(messages=1, bytes=900))
    ask(at, NAME._replace(messages=1, bytes=900, attempt=2), times=3)
    ask(at, NAME._replace(messages=20, bytes=0), times=2)
    view = why(at)
    assert view.limited_by == LimitedByView("resource_group", "of-topic", "bytes")
    by_group = view.levels[1].refused_last_minute
    assert by_group.by_bytes == RefusedView(requests=3, retries=3, messages=3, bytes=2700)
    assert by_group.by_messages == RefusedView(0, 0, 0, 0)
    by_topic = view.levels[3].refused_last_minute
    assert by_topic.by_messages.requests == 2
    assert by_topic.by_messages.messages == 40


def test_asking_makes_nothing() -> None:
    at = desk(EVERYTHING)
    limiter, index = at.broker.limiter, at.broker.index
    why(at, NAME._replace(subscription="audit"))
    why(at, NAME._replace(kind=Kind.DISPATCH))
    assert [*limiter.states(), *limiter.limits(), *limiter.names_asked()] == []
    assert limiter.resolved_total == 0
    assert (len(index), limiter.news.unreported, limiter.ungoverned_total) == (0, [], 0)


@pytest.mark.parametrize("split", list(TopicSplit))
def test_answers_are_the_same_whether_or_not_somebody_asks_why(split: TopicSplit) -> None:
    """The same load on two brokers, one of which is asked why all the time."""
    snapshot = replace(
        EVERYTHING,
        groups={
            name: replace(group, topic_split=split) for name, group in EVERYTHING.groups.items()
        },
    )
    quiet, asked = desk(snapshot), desk(snapshot)
    dice = Random(7)
    for step in range(400):
        now = ms(NOW + 3 * step)
        request = NAME._replace(
            topic=dice.choice([TOPIC, TOPIC + "2", PARTITION]),
            messages=dice.randrange(6),
            bytes=dice.randrange(90),
            partial=dice.random() < 0.3,
        )
        why(asked, dice.choice([request, NAME]), now=NOW + 3 * step)
        answers = [one.broker.limiter.acquire(request, now) for one in (quiet, asked)]
        assert answers[0] == answers[1]
        if step % 50 == 49:
            for one in (quiet, asked):
                one.broker.limiter.end_round(now)
