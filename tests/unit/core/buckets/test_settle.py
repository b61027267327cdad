"""Settling: what was granted and not used goes back, what was used beyond it is charged.

Not covered: any sequence of reads and settlements (tests/property/test_dispatch.py), and HTTP
(tests/integration/http/test_settle.py).
"""

import pytest

from rgd.core.buckets.decision import Decision, Level, Name, Request, Together
from rgd.core.buckets.level import LevelState
from rgd.core.buckets.levels import LimitKey
from rgd.core.buckets.limiter import Limiter
from rgd.core.buckets.unsettled import RECENT_NS
from rgd.core.policies.model import Attachments, Group, Limit, Limits, LocalLimit, TopicSplit
from rgd.core.policies.snapshot import PolicySnapshot
from rgd.core.units import Dimension, Kind, Nanos, Pair
from tests.support.limiter_alone import numbered
from tests.unit.core.broker.rounds_house import House
from tests.unit.core.values import BUCKETS, NAMESPACE, TOPIC, key, ms, rates

START = Nanos(0)
RATE = rates(400, 4000)
NAME: Name = (Kind.DISPATCH, None, NAMESPACE, TOPIC, "audit")


def limiter(*, blocked: bool = False, split: TopicSplit | None = None) -> Limiter:
    """A name with the same limit at the broker and at its group."""
    made = Limiter(BUCKETS, numbered(lambda one, kind, _: one.rates(kind)))
    gold = Group("gold", Limit(RATE, RATE), blocked=blocked, topic_split=split)
    attached, limits = Attachments(namespaces={NAMESPACE: "gold"}), Limits(LocalLimit(RATE, RATE))
    made.set_policies(PolicySnapshot({"gold": gold}, attached, limits), START)
    return made


def ask(
    one: Limiter, messages: int, size: int = 0, *, now: Nanos = START, name: Name = NAME
) -> Pair:
    kind, group, namespace, topic, subscription = name
    partial = kind is Kind.DISPATCH
    answer = one.acquire(
        Request(kind, messages, size, group, namespace, topic, subscription, partial=partial), now
    )
    assert isinstance(answer, Decision)
    return Pair(answer.messages, answer.bytes)


def levels(one: Limiter) -> list[LevelState]:
    found = one.limit(LimitKey(Kind.DISPATCH, Level.BROKER)), one.state(key("gold", Kind.DISPATCH))
    return [level for level in found if level is not None]


@pytest.mark.parametrize(("after", "back"), [(2 * RECENT_NS - 1, 30), (2 * RECENT_NS, 0)])
def test_a_grant_can_be_given_back_for_a_while(after: int, back: int) -> None:
    one = limiter()
    ask(one, 30)
    assert one.settle(NAME, Pair(30), Nanos(after)) == Pair(back)


def test_older_grants_go_back_first_and_newer_ones_stay() -> None:
    one = limiter()
    ask(one, 30)
    later = Nanos(RECENT_NS)
    ask(one, 20, now=later)
    assert one.settle(NAME, Pair(40), later) == Pair(40)
    assert one.settle(NAME, Pair(40), Nanos(2 * RECENT_NS)) == Pair(10)


@pytest.mark.parametrize("way", ["alone", "part", "together"])
def test_the_first_settlement_of_a_name_can_give_back_its_last_grant(way: str) -> None:
    one = limiter()
    name: Name = (Kind.PUBLISH, None, NAMESPACE, TOPIC, None)
    ask(one, 40, 400, name=name)
    if way == "together":
        asked = Together(name)
        asked.messages, asked.bytes = 30, 300
        assert one.grant_together([asked], START)
    else:
        one.acquire(Request(Kind.PUBLISH, 30, 300, None, *name[2:], partial=way == "part"), START)
    late = Nanos(RECENT_NS - 1)
    assert one.settle(name, Pair(40, 400), late) == Pair(30, 300)
    assert ask(one, 30, 300, now=late, name=name) == Pair(30, 300)


def test_debt_after_the_fact_is_at_most_that_of_the_largest_request() -> None:
    one = limiter()
    ask(one, 100)
    most = 10 * 400
    assert one.settle(NAME, Pair(-(10**12)), START) == Pair(-most)
    assert one.settle(NAME, Pair(-1), START) == Pair()
    assert levels(one)[1].wait(1, 0, START)[0] == 10_003


def test_a_blocked_group_gets_no_debt() -> None:
    one = limiter(blocked=True)
    assert one.settle(NAME, Pair(-(2**63) + 1, -(2**63) + 1), START) == Pair()
    assert not levels(one)[1].owes(START)


def test_a_topics_part_and_its_whole_group_get_it_back() -> None:
    one = limiter(split=TopicSplit.EVEN)
    ask(one, 100, 1000)
    assert one.settle(NAME, Pair(60, 600), START) == Pair(60, 600)
    left = [[level.remaining(of, START) for of in Dimension] for level in levels(one)]
    assert left == [[60, 600]] * 2
    assert ask(one, 100, 1000) == Pair(60, 600)


# What peers and the log learn.

ASKED: Name = (Kind.PUBLISH, "gold", None, TOPIC, None)


def overasked(house: House, reads: int, *, at: float, attempt: int, asked: int = 100) -> None:
    """Read far more than a bucket has, use one of what was granted, and give the rest back."""
    for number in range(reads):
        now = ms(at + 100 * number)
        answer = house.limiter.acquire(
            Request(messages=asked, group="gold", topic=TOPIC, partial=True, attempt=attempt), now
        )
        assert isinstance(answer, Decision)
        assert answer.messages < asked
        house.limiter.settle(ASKED, Pair(answer.messages - 1), now)
        house.rounds.tick(now)


@pytest.mark.parametrize("attempt", [0, 1])
def test_what_was_refused_to_a_reader_that_gives_back_is_no_demand(attempt: int) -> None:
    house = House()
    # Publishing counts grants from its first settlement on.
    overasked(house, 1, at=0, attempt=attempt)
    house.end(1000)
    overasked(house, 10, at=1000, attempt=attempt)
    (row,) = house.end(2000)
    logged = house.logged().usage
    # One message in a hundred milliseconds.
    assert logged.admitted == logged.wanted == Pair(10_000)
    assert row.wanted.messages < 12_000
