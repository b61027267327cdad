"""Readers that share limits, and give back what they did not read, in whatever order.

Laws: readers that ask at the same time never get more together than there was at any limit that they
share (Pulsar's #8599 and #25061); what a limit granted, less what went back, stays within the bound of
its bucket; nobody gives back more than he got; and the totals that peers and the log see never fall,
and end at what was used.
Not covered: one settlement by itself (tests/unit/core/buckets/test_settle.py).
"""

from collections import Counter
from dataclasses import dataclass

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from rgd.core.buckets.bucket import PICO
from rgd.core.buckets.decision import Decision, Level, Name, Request
from rgd.core.buckets.level import BucketSettings, LevelState
from rgd.core.buckets.levels import LimitKey
from rgd.core.buckets.limiter import Limiter
from rgd.core.demand.table import Measured
from rgd.core.policies.model import (
    Attachments,
    Group,
    GroupKey,
    Limit,
    Limits,
    LocalLimit,
    Rates,
    TopicSplit,
)
from rgd.core.policies.snapshot import PolicySnapshot
from rgd.core.units import NS_PER_MS, NS_PER_S, Kind, Nanos, Pair, to_milli
from tests.support.limiter_alone import numbered
from tests.support.meters import ONLY, Rows

SETTINGS = BucketSettings(burst_ns=250 * NS_PER_MS, request_max_ms=10_000, round_ms=1000)
NAMESPACE = "acme/orders"
TOPICS = [f"persistent://{NAMESPACE}/{topic}" for topic in ("eu", "us")]
NAMES: list[Name] = [
    (Kind.DISPATCH, None, NAMESPACE, topic, subscription)
    for topic in TOPICS
    for subscription in ("audit", "billing")
]

amounts = st.integers(0, 400)
some_rates = st.builds(
    Rates,
    st.none() | st.integers(0, 2000).map(to_milli),
    st.none() | st.integers(0, 2000).map(to_milli),
)


@st.composite
def limiters(draw: st.DrawFn) -> Limiter:
    """A broker's limit, a group's, a topic's and a subscription's, each perhaps unlimited."""
    made = Limiter(SETTINGS, numbered(lambda group, kind, _: group.rates(kind)))
    group = Group("gold", Limit(dispatch=draw(some_rates)), topic_split=draw(splits))
    limits = [LocalLimit(dispatch=draw(some_rates)) for _ in range(3)]
    policies = PolicySnapshot(
        {"gold": group},
        Attachments(namespaces={NAMESPACE: "gold"}),
        Limits(
            broker=limits[0],
            topics={TOPICS[0]: limits[1]},
            subscriptions={(TOPICS[0], "audit"): limits[2]},
        ),
    )
    made.set_policies(policies, Nanos(0))
    for name in NAMES:
        ask(made, name, Pair(), Nanos(0))
    return made


splits = st.sampled_from([TopicSplit.SHARED, TopicSplit.EVEN])


def ask(one: Limiter, name: Name, amount: Pair, now: Nanos, *, partial: bool = True) -> Pair:
    kind, group, namespace, topic, subscription = name
    request = Request(kind, *amount, group, namespace, topic, subscription, partial=partial)
    answer = one.acquire(request, now)
    if not isinstance(answer, Decision) or not answer.granted:
        return Pair()
    return Pair(answer.messages, answer.bytes)


def shared(one: Limiter) -> dict[str, tuple[LevelState, set[Name]]]:
    """Every limit there is, and the names that are under it."""
    kind, of_topic = Kind.DISPATCH, set(NAMES[:2])
    found = {
        "broker": (one.limit(LimitKey(kind, Level.BROKER)), set(NAMES)),
        "group": (one.state(GroupKey("gold", kind)), set(NAMES)),
        "topic": (one.limit(LimitKey(kind, Level.TOPIC, TOPICS[0])), of_topic),
        "subscription": (
            one.limit(LimitKey(kind, Level.SUBSCRIPTION, TOPICS[0], "audit")),
            {NAMES[0]},
        ),
    }
    return {at: (level, names) for at, (level, names) in found.items() if level is not None}


@dataclass(frozen=True)
class Step:
    """A read, and what its reader says later that it did not use."""

    name: Name
    asked: Pair
    partial: bool
    unused: Pair
    gap_ns: int


steps = st.lists(
    st.builds(
        Step,
        name=st.sampled_from(NAMES),
        asked=st.builds(Pair, amounts, amounts),
        partial=st.booleans(),
        unused=st.builds(Pair, st.integers(0, 2000), st.integers(0, 2000)),
        gap_ns=st.integers(0, NS_PER_S),
    ),
    max_size=30,
)


@given(one=limiters(), steps=steps)
def test_what_was_granted_less_what_went_back_is_within_every_bound(
    one: Limiter, steps: list[Step]
) -> None:
    limits, now = shared(one), 0
    granted: Counter[tuple[Name, int]] = Counter()
    back: Counter[tuple[Name, int]] = Counter()
    largest = [0, 0]
    for step in steps:
        now += step.gap_ns
        for dimension, units in enumerate(
            ask(one, step.name, step.asked, Nanos(now), partial=step.partial)
        ):
            granted[step.name, dimension] += units
            largest[dimension] = max(largest[dimension], units)
        for dimension, units in enumerate(one.settle(step.name, step.unused, Nanos(now))):
            assert 0 <= units <= step.unused[dimension]
            back[step.name, dimension] += units
            assert back[step.name, dimension] <= granted[step.name, dimension]
        for at, (level, names) in limits.items():
            for dimension, rate in enumerate((level.share.messages, level.share.bytes)):
                if rate is None:
                    continue
                net = sum(granted[name, dimension] - back[name, dimension] for name in names)
                requests = len(TOPICS) if at == "group" else 1
                most = rate * (SETTINGS.burst_ns + now) + requests * largest[dimension] * PICO
                assert net * PICO <= most
                depth = (level.messages_depth, level.bytes_depth)[dimension]
                assert (level.messages_tokens, level.bytes_tokens)[dimension] <= depth


happenings = st.lists(
    st.tuples(
        st.sampled_from(["grant", "return", "refuse", "retract", "tick", "measure", "round"]),
        st.integers(0, 50),
    ),
    max_size=40,
)


class Seen:
    """The counters of one group, as peers and the log see them."""

    def __init__(self) -> None:
        self._rows, self.now = Rows(), 0
        self.counters = self._rows.add(Nanos(0))
        self.table = self._rows.table()
        self.total = self.granted = self.returned = self.refused = 0

    def happen(self, what: str, units: int) -> None:
        self.now += 60 * NS_PER_MS
        if what == "grant":
            self.counters.admit(units, 0, 1, None, Nanos(self.now))
            self.granted += units
        elif what == "return":
            units = min(units, self.granted - self.returned)
            self.counters.give_back(units, 0)
            self.returned += units
        elif what == "refuse":
            self.counters.refuse(Pair(units), 1, None, 10, Nanos(self.now))
            self.refused += units
        elif what == "retract":
            units = min(units, self.refused)
            self.counters.retract(units, 0, 1)
            self.refused -= units
        elif what == "tick":
            self.table.tick(self._rows.news.collect(1))
        elif what == "measure":
            check_rates(self.table.measure(ONLY, self.now))
        else:
            self.close()

    def close(self) -> None:
        closed = self.table.close(ONLY, np.array([True]), self.now)
        assert closed is not None
        total = int(closed.admitted_total[0, 0])
        assert total >= self.total
        assert min(closed.admitted[0, 0], closed.refused[0, 0]) >= 0
        check_rates(closed.measured)
        # What was returned after its grant was reported is left out of later rounds.
        assert total == max(self.total, self.granted - self.returned)
        self.total = total


def check_rates(measured: Measured) -> None:
    assert measured.seen.offered[0, 0] >= 0
    assert measured.admitted[0, 0] >= 0


@given(happenings)
@example([("grant", 1), ("tick", 0), ("grant", 0), ("return", 1), ("tick", 0), ("measure", 0)])
@example([("grant", 2), ("tick", 0), ("return", 1), ("round", 0)])
@example([("refuse", 2), ("round", 0), ("retract", 1), ("round", 0)])
def test_what_peers_and_the_log_see_never_falls_and_ends_at_what_was_used(
    happenings: list[tuple[str, int]],
) -> None:
    seen = Seen()
    for what, units in happenings:
        seen.happen(what, units)
    # Whatever went back is left out once as much was granted again.
    seen.happen("grant", seen.returned)
    seen.happen("round", 0)
    assert seen.total == seen.granted - seen.returned
