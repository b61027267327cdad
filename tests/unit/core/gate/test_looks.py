"""Every look gives plain data that another process could have given, and takes nothing.

Not covered: what views make of them (tests/unit/views, tests/unit/app).
"""

import inspect
import pickle
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from rgd.core.backlog.model import QuotaType
from rgd.core.backlog.quota import Blocked
from rgd.core.buckets.decision import Level, Request
from rgd.core.buckets.level import BucketSettings
from rgd.core.buckets.levels import LimitKey
from rgd.core.gate import looks
from rgd.core.gate.local import LocalGate
from rgd.core.leases.model import LeaseRequest
from rgd.core.policies.model import (
    Attachments,
    BacklogAction,
    Group,
    Limit,
    Limits,
    LocalLimit,
    TopicSplit,
)
from rgd.core.policies.snapshot import PolicySnapshot
from rgd.core.units import NS_PER_MS, Kind, Nanos, Pair
from tests.unit.core.values import NAMESPACE, TOPIC, key, ms, rates

SETTINGS = BucketSettings(250 * NS_PER_MS, 10_000, 1000)
HELD = f"{TOPIC}-held"
PARTITION = f"{TOPIC}-partition-0"
READ = Request(Kind.DISPATCH, 20, namespace=NAMESPACE, topic=PARTITION, subscription="audit")
NOW = ms(3000)
#: Most bytes of an answer: a third of a millisecond's work, pickled.
ANSWER_BYTES_MAX = 60_000


@pytest.fixture
def gate() -> LocalGate:
    """A gate with something of everything: used groups and limits, leases, a blocked topic, throttled reads."""
    gate = LocalGate(SETTINGS, lambda group, kind, _now: (7, group.rates(kind)))
    both = Limit(rates(100, 1000), rates(100))
    groups = {
        "gold": Group("gold", both, soft_ppm=500_000, topic_split=TopicSplit.EVEN),
        "shadow": Group("shadow", both, shadow=True),
        "idle": Group("idle", both),
    }
    attachments = Attachments(namespaces={NAMESPACE: "gold"}, topics={TOPIC: "shadow"})
    limits = Limits(
        broker=LocalLimit(publish=rates(10_000)),
        topic_subscriptions={TOPIC: LocalLimit(dispatch=rates(20))},
    )
    gate.set_policies(PolicySnapshot(groups, attachments, limits), ms(0))
    answer = gate.leases.open(
        LeaseRequest((Kind.PUBLISH, None, NAMESPACE, TOPIC, None), Pair(5000, 5000)), "one", ms(10)
    )
    assert answer is not None
    for at in range(20, 2500, 50):
        gate.acquire(Request(messages=20, namespace=NAMESPACE, topic=TOPIC), ms(at))
        gate.acquire(READ, ms(at))
        gate.acquire(Request(Kind.DISPATCH, namespace="other/ns"), ms(at))
    gate.block(HELD, Blocked(QuotaType.SIZE, BacklogAction.REFUSE, Nanos(0), ms(9000)))
    gate.acquire(Request(messages=3, namespace=NAMESPACE, topic=HELD), ms(2600))
    return gate


#: What each look is asked with besides the gate.
ASKED: dict[Callable[..., Any], tuple[Any, ...]] = {
    looks.groups: ([key(), key("shadow"), key("idle"), key("unknown")],),
    looks.name: (
        READ,
        [LimitKey(Kind.DISPATCH, Level.SUBSCRIPTION, PARTITION, "audit")],
        [key(kind=Kind.DISPATCH), key("idle")],
        NOW,
    ),
    looks.names_asked: (),
    looks.throttled_names: (PARTITION,),
    looks.throttled: ([(PARTITION, "audit"), (PARTITION, "other")], NOW),
    looks.throttled_others: (NOW,),
    looks.throttled_partitions: (TOPIC, NOW),
    looks.subscriptions_read: (),
    looks.blocks: (),
    looks.blocked_topics: (20,),
    looks.blocked_requests: (),
    looks.leases: (),
    looks.leased: (),
    looks.ungoverned: (),
    looks.page_of: (looks.names_asked, 0),
}


def test_every_look_is_asked_here() -> None:
    takes_a_gate = {
        look
        for name, look in inspect.getmembers(looks, inspect.isfunction)
        if not name.startswith("_")
        and next(iter(inspect.get_annotations(look).values()), None) is LocalGate
    }
    assert takes_a_gate == ASKED.keys()


@pytest.mark.parametrize("look", ASKED, ids=lambda look: look.__name__)
def test_a_look_may_be_asked_from_another_process(
    look: Callable[..., Any], gate: LocalGate
) -> None:
    asked = pickle.loads(pickle.dumps((look, ASKED[look])))
    before = gate.resolved_total, [*gate.news.touched]
    answer = gate.ask(look, *ASKED[look])
    assert answer, "an empty answer shows nothing"
    packed = pickle.dumps(answer)
    assert len(packed) < ANSWER_BYTES_MAX
    come = pickle.loads(packed)
    assert (come, type(come)) == (answer, type(answer))
    assert gate.ask(asked[0], *asked[1]) == answer
    assert (gate.resolved_total, [*gate.news.touched]) == before


def test_however_many_subscriptions_are_throttled_each_answer_is_small(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    gate = LocalGate(SETTINGS)
    ask, sizes = gate.ask, list[int]()

    def weighed(look: Callable[..., Any], *args: Any) -> Any:
        answer = ask(look, *args)
        sizes.append(len(pickle.dumps(answer)))
        return answer

    monkeypatch.setattr(gate, "ask", weighed)
    names = [(f"{TOPIC}-partition-{number}", "audit") for number in range(5000)]
    for name in [*names, *((TOPIC, f"s{number}") for number in range(5000))]:
        gate.throttled.count(name, 1, 1, 1, 1, NOW)
    assert len([*looks.all_throttled(gate, NOW, TOPIC)]) == 5000
    partitions = looks.listed(gate, partial(looks.throttled_partitions, topic=TOPIC, now=NOW))
    assert {*partitions} == {topic for topic, _ in names}
    assert max(sizes) < ANSWER_BYTES_MAX
