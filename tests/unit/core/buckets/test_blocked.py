"""Publishing to a topic whose backlog exceeds its quota. Not when a topic is blocked (core/backlog)."""

import pytest

from rgd.core.backlog.model import QuotaType
from rgd.core.backlog.quota import Blocked
from rgd.core.buckets.decision import Decision, Level, Name, OverBacklog, Request, Together
from rgd.core.buckets.limiter import Limiter
from rgd.core.policies.model import Attachments, BacklogAction, Group, Limit
from rgd.core.policies.snapshot import PolicySnapshot
from rgd.core.units import Dimension, Kind, Pair
from tests.unit.core.values import BUCKETS, NAMESPACE, TOPIC, key, ms, rates

HELD = Blocked(QuotaType.SIZE, BacklogAction.HOLD, ms(30_000), ms(60_000))
REFUSED = Blocked(QuotaType.TIME, BacklogAction.REFUSE, ms(0), ms(60_000))
ASKED = Request(messages=2, bytes=50, namespace=NAMESPACE, topic=TOPIC)
LEVELS = tuple(Level)


@pytest.fixture
def limiter() -> Limiter:
    limiter = Limiter(BUCKETS, lambda group, kind, _: group.rates(kind))
    groups = {"gold": Group("gold", Limit(rates(100), rates(100)))}
    attach = Attachments(namespaces={NAMESPACE: "gold"})
    limiter.set_policies(PolicySnapshot(groups, attach), ms(0))
    return limiter


def is_granted(limiter: Limiter, asked: Request = ASKED) -> bool:
    answer = limiter.acquire(asked, ms(1))
    return isinstance(answer, Decision) and answer.granted


@pytest.mark.parametrize(
    ("why", "at", "expected"),
    [
        pytest.param(HELD, 1000, OverBacklog(QuotaType.SIZE, True, 59_000), id="held"),
        pytest.param(HELD, 30_000, OverBacklog(QuotaType.SIZE, False, 30_000), id="long"),
        pytest.param(REFUSED, 59_999.5, OverBacklog(QuotaType.TIME, False, 100), id="refused"),
    ],
)
def test_a_block_is_answered_until_the_next_check(
    limiter: Limiter, why: Blocked, at: float, expected: OverBacklog
) -> None:
    assert is_granted(limiter)
    limiter.block(TOPIC, why)
    assert limiter.acquire(ASKED, ms(at)) == expected


def test_the_end_of_a_block_counts_at_once(limiter: Limiter) -> None:
    limiter.block(TOPIC, REFUSED)
    assert not is_granted(limiter)
    limiter.block(TOPIC, None)
    assert is_granted(limiter)
    assert len(limiter.blocked) == 0


@pytest.mark.parametrize(
    "asked",
    [
        pytest.param(ASKED._replace(group="gold"), id="its group is named"),
        pytest.param(ASKED._replace(subscription="s"), id="a subscription is named"),
        pytest.param(ASKED._replace(messages=0, bytes=0), id="of nothing"),
        pytest.param(ASKED._replace(messages=1 << 62), id="of too much"),
        pytest.param(ASKED._replace(partial=True), id="of a part"),
    ],
)
def test_whatever_way_a_topic_is_asked_for_it_is_blocked(limiter: Limiter, asked: Request) -> None:
    limiter.acquire(asked, ms(0))
    limiter.block(TOPIC, REFUSED)
    assert isinstance(limiter.acquire(asked, ms(1)), OverBacklog)
    limiter.block(TOPIC, None)
    assert not isinstance(limiter.acquire(asked, ms(2)), OverBacklog)


@pytest.mark.parametrize(
    "asked",
    [
        pytest.param(ASKED._replace(kind=Kind.DISPATCH), id="consuming"),
        pytest.param(ASKED._replace(topic=TOPIC + "2"), id="another topic"),
        pytest.param(ASKED._replace(topic=None), id="the namespace"),
    ],
)
def test_nothing_else_is_blocked(limiter: Limiter, asked: Request) -> None:
    limiter.block(TOPIC, REFUSED)
    assert is_granted(limiter, asked)


def test_a_blocked_request_is_demand_of_no_group(limiter: Limiter) -> None:
    is_granted(limiter)
    state = limiter.state(key())
    assert state is not None
    counters = state.counters
    before = counters.requests, counters.refused_messages, state.messages_tokens
    limiter.block(TOPIC, HELD)
    limiter.acquire(ASKED._replace(held=Pair(7, 7)), ms(1))
    assert (counters.requests, counters.refused_messages, state.messages_tokens) == before
    assert not counters.held
    assert state.refused[Level.BACKLOG, Dimension.MESSAGES] == 2
    assert state.refused[Level.BACKLOG, Dimension.BYTES] == 50
    assert limiter.blocked.requests == {(QuotaType.SIZE, True): 1}
    assert state.take_refused()[LEVELS.index(Level.BACKLOG)] == 2


def test_what_was_refused_lately_is_known_while_it_is_blocked(limiter: Limiter) -> None:
    limiter.block(TOPIC, HELD)
    assert limiter.blocked.recent(TOPIC) is None
    limiter.acquire(ASKED, ms(1))
    recent = limiter.blocked.recent(TOPIC)
    assert recent is not None
    assert recent.total(Dimension.BYTES, ms(2))[:3] == (1, 0, 2)
    limiter.block(TOPIC, None)
    assert limiter.blocked.recent(TOPIC) is None


def test_many_are_never_granted_together_with_a_blocked_one(limiter: Limiter) -> None:
    def together(topic: str) -> Together:
        name: Name = Kind.PUBLISH, None, NAMESPACE, topic, None
        one = Together(name)
        one.count = 1
        return one

    for topic in (TOPIC, TOPIC + "2"):
        is_granted(limiter, ASKED._replace(topic=topic))
    assert limiter.grant_together([together(TOPIC), together(TOPIC + "2")], ms(1))
    limiter.block(TOPIC, HELD)
    is_granted(limiter)
    assert not limiter.grant_together([together(TOPIC + "2"), together(TOPIC)], ms(1))


def test_new_policies_keep_a_block(limiter: Limiter) -> None:
    limiter.block(TOPIC, HELD)
    is_granted(limiter, ASKED._replace(subscription="s"))
    limiter.set_policies(PolicySnapshot(), ms(1))
    assert isinstance(limiter.acquire(ASKED, ms(2)), OverBacklog)
    while limiter.is_behind:
        limiter.work(ms(3))
