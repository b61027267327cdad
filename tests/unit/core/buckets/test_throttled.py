"""PIP-406's counters: which levels throttled a subscription's dispatch, how often, how much, how long.

Not covered: what the answers say (test_limiter.py), and metrics and stats made of the counters.
"""

from collections.abc import Iterator
from itertools import product
from typing import NamedTuple

import pytest

from rgd.core.bounds import BucketBounds
from rgd.core.buckets.decision import Decision, Request
from rgd.core.buckets.levels import LimitKey
from rgd.core.buckets.limiter import Limiter
from rgd.core.buckets.throttled import DISPATCH_LEVELS, IDLE_NS, OTHER, Throttled, ThrottledTable
from rgd.core.policies.model import Attachments, Group, Limit, Limits, LocalLimit, Rates
from rgd.core.policies.snapshot import PolicySnapshot
from rgd.core.units import MILLI, Dimension, Kind, Nanos
from tests.support.limiter_alone import numbered
from tests.support.there import there
from tests.unit.core.values import BUCKETS, NAMESPACE, TOPIC, key

START = Nanos(0)
NAME = "audit"
READ = 100
MESSAGES, BYTES = Dimension.MESSAGES, Dimension.BYTES
BROKER, GROUP, BY_TOPIC, BY_SUBSCRIPTION = DISPATCH_LEVELS


class Has(NamedTuple):
    """What the bucket of each level has at the start; None is unlimited."""

    broker: int | None = None
    group: int | None = None
    topic: int | None = None
    subscription: int | None = None


NONE = Has()
#: What each bucket has room for: more than a read, which a full bucket would grant by debt.
DEPTH = 1000


def rate(amount: int | None) -> int | None:
    """The rate at which a bucket of a quarter of a second has room for `DEPTH`."""
    return None if amount is None else 4 * DEPTH * MILLI


def rates(messages: int | None, size: int | None) -> Rates:
    return Rates(rate(messages), rate(size))


def limiter(messages: Has = NONE, size: Has = NONE) -> Limiter:
    broker, group, topic, subscription = map(rates, messages, size)
    made = Limiter(BUCKETS, numbered(lambda one, kind, _: one.rates(kind)))
    gold = Group("gold", Limit(dispatch=group))
    made.set_policies(
        PolicySnapshot(
            {"gold": gold},
            Attachments(namespaces={NAMESPACE: "gold"}),
            Limits(
                broker=LocalLimit(dispatch=broker),
                topics={TOPIC: LocalLimit(dispatch=topic)},
                subscriptions={(TOPIC, NAME): LocalLimit(dispatch=subscription)},
            ),
        ),
        START,
    )
    read(made, 0)
    levels = [
        made.limit(LimitKey(Kind.DISPATCH, BROKER)),
        made.state(key("gold", Kind.DISPATCH)),
        made.limit(LimitKey(Kind.DISPATCH, BY_TOPIC, topic=TOPIC)),
        made.limit(LimitKey(Kind.DISPATCH, BY_SUBSCRIPTION, topic=TOPIC, subscription=NAME)),
    ]
    for level, has_messages, has_bytes in zip(levels, messages, size, strict=True):
        if level is not None:
            level.take(DEPTH - (has_messages or 0), DEPTH - (has_bytes or 0))
    return made


def read(
    one: Limiter,
    messages: int = READ,
    size: int = 0,
    *,
    partial: bool = True,
    subscription: str | None = NAME,
    kind: Kind = Kind.DISPATCH,
) -> Decision:
    answer = one.acquire(
        Request(
            kind=kind,
            messages=messages,
            bytes=size,
            namespace=NAMESPACE,
            topic=TOPIC,
            subscription=subscription,
            partial=partial,
        ),
        START,
    )
    assert isinstance(answer, Decision)
    return answer


def counted(one: Limiter) -> Throttled | None:
    return one.throttled.of(TOPIC, NAME, START)


#: Absent, nothing at all, below, at and above what is read.
AMOUNTS = (None, 0, 40, 50, 60, READ, 120)


def combinations() -> Iterator[tuple[Has, Has]]:
    """Every combination of messages, each with another one of bytes."""
    every = [Has(*amounts) for amounts in product(AMOUNTS, repeat=4)]
    for number, messages in enumerate(every):
        yield messages, every[(number * 997 + 101) % len(every)]


def lowered_by(has: Has) -> tuple[int, ...]:
    """The oracle: PIP-406's rule for one dimension, word for word."""
    left, events = READ, []
    for amount in has:
        before = left
        if amount is not None:
            left = min(left, amount)
        events.append(1 if left < before else 0)
    return tuple(events)


@pytest.mark.parametrize("partial", [True, False], ids=["part", "whole"])
@pytest.mark.slow
def test_exactly_the_levels_that_lower_a_read_count_whatever_limits_there_are(
    *, partial: bool
) -> None:
    wrong = []
    for messages, size in combinations():
        one = limiter(messages, size)
        read(one, READ, READ, partial=partial)
        expected = (lowered_by(messages), lowered_by(size))
        found = counted(one)
        events = ((0,) * 4,) * 2 if found is None else (found.messages_events, found.bytes_events)
        if events != expected:
            wrong.append((messages, size, events, expected))
    assert not wrong, f"{len(wrong)} combinations, the first: {wrong[0]}"


def test_a_granted_read_and_a_read_without_a_subscription_count_nothing() -> None:
    one = limiter(Has(topic=50))
    read(one, 50)
    read(one, subscription=None)
    read(one, kind=Kind.PUBLISH)
    assert len(one.throttled) == 0


@pytest.mark.parametrize("others", [0, 9])
def test_a_subscription_is_forgotten_once_nothing_throttled_it_for_an_hour(others: int) -> None:
    table = ThrottledTable(BucketBounds(throttled_max=others + 1))
    for name in (*(f"other-{number}" for number in range(others)), NAME):
        table.count((TOPIC, name), 1, 5, 0, 0, START)
    assert table.of(TOPIC, NAME, Nanos(IDLE_NS)) is not None
    late = Nanos(IDLE_NS + 1)
    assert table.of(TOPIC, NAME, late) is None
    table.count((TOPIC, NAME), 1, 2, 0, 0, late)
    found = there(table.of(TOPIC, NAME, late))
    assert (found.messages, found.messages_events) == (2, (1, 0, 0, 0))
    # As for any new one, some others were looked at.
    assert (table.other(late), len(table)) == (None, max(1, others - 3))


def test_subscriptions_beyond_the_maximum_are_counted_together() -> None:
    table = ThrottledTable(BucketBounds(throttled_max=2))
    assert table.other(START) is None
    for name in ("a", "b", "c", "d", "c"):
        table.count((TOPIC, name), 1, 5, 0, 0, START)
    assert table.names(TOPIC) == [(TOPIC, "a"), (TOPIC, "b")]
    other = there(table.other(START))
    assert (other.topic, other.subscription) == (OTHER, OTHER)
    assert (other.messages_events, other.messages) == ((3, 0, 0, 0), 15)
