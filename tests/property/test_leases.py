"""Leases under any sequence of calls: nothing is granted twice, and every bound of a bucket holds.

Laws: what was taken of a level less what went back is at most its depth + the integral of its rate +
one request, whatever callers claim, repeat or forget, while shares change and the namespace moves
between groups; a lease is given back once; what leases of a level want and hold is the sum of the
live ones.
Not covered: how large a lease is (tests/unit/core/leases).
"""

from collections import Counter
from dataclasses import dataclass, field

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from rgd.core.buckets.bucket import PICO
from rgd.core.buckets.decision import Decision, Name, Request
from rgd.core.buckets.level import BucketSettings
from rgd.core.leases.leases import Leases
from rgd.core.leases.model import LeaseAnswer, LeaseRequest, Renewal, UnknownLease
from rgd.core.policies.model import (
    Attachments,
    Group,
    Limit,
    Limits,
    LocalLimit,
    Rate,
    Rates,
    TopicSplit,
)
from rgd.core.policies.snapshot import PolicySnapshot
from rgd.core.units import MILLI, NS_PER_MS, NS_PER_S, Kind, Nanos, Pair
from tests.support.limiter_alone import LimiterAlone, whole

SETTINGS = BucketSettings(burst_ns=250 * NS_PER_MS, request_max_ms=10_000, round_ms=1000)
NAMESPACE = "acme/orders"
TOPICS = ("persistent://acme/orders/eu", "persistent://acme/orders/us")
IDS = ["one", "two"]

RATE = st.none() | st.integers(0, 2000 * MILLI)
RATES = st.builds(Rates, RATE, RATE)
AMOUNTS = st.builds(Pair, st.integers(0, 300), st.integers(0, 300))
WANTS = st.builds(Pair, st.integers(0, 3000 * MILLI), st.integers(0, 3000 * MILLI))
NAMES: st.SearchStrategy[Name] = st.builds(
    lambda kind, topic: (kind, None, NAMESPACE, topic, "s" if kind is Kind.DISPATCH else None),
    st.sampled_from(Kind),
    st.sampled_from(TOPICS),
)


@dataclass(frozen=True)
class Policies:
    """The limits in force; `group` is the one that the namespace is attached to."""

    group: str
    group_rates: Rates
    broker: Rates
    topic: Rates
    split: TopicSplit
    shadow: bool

    def snapshot(self) -> PolicySnapshot:
        limit = Limit(self.group_rates, self.group_rates)
        groups = {
            name: Group(name, limit, topic_split=self.split, shadow=self.shadow) for name in "ab"
        }
        return PolicySnapshot(
            groups,
            Attachments(namespaces={NAMESPACE: self.group}),
            Limits(
                broker=LocalLimit(self.broker, self.broker),
                topics={TOPICS[0]: LocalLimit(self.topic, self.topic)},
            ),
        )


POLICIES = st.builds(
    Policies,
    st.sampled_from("ab"),
    RATES,
    RATES,
    RATES,
    st.sampled_from((TopicSplit.SHARED, TopicSplit.SHARED, TopicSplit.EVEN)),
    st.booleans(),
)


@dataclass
class Account:
    """What one level may have granted at most, in tokens, and what it granted less what went back."""

    rates: Rates
    room: list[int] = field(default_factory=list)
    net: list[int] = field(default_factory=lambda: [0, 0])
    largest: list[int] = field(default_factory=lambda: [0, 0])

    def __post_init__(self) -> None:
        self.room = [(rate or 0) * SETTINGS.burst_ns for rate in both(self.rates)]

    def change(self, rates: Rates) -> None:
        """Other rates: no free burst, but a limit that is new begins with a full bucket."""
        before, self.rates = both(self.rates), rates
        for at, (old, new) in enumerate(zip(before, both(rates), strict=True)):
            # The bucket of a limit is made, full, when it is first used.
            is_unused = not self.net[at] and not self.largest[at]
            if is_unused or (old is None) is not (new is None):
                self.room[at] = (new or 0) * SETTINGS.burst_ns
                self.net[at] = self.largest[at] = 0

    def flow(self, elapsed_ns: int) -> None:
        for at, rate in enumerate(both(self.rates)):
            self.room[at] += (rate or 0) * elapsed_ns

    def take(self, amount: Pair) -> None:
        for at, units in enumerate(amount):
            self.net[at] += units
            self.largest[at] = max(self.largest[at], units)

    def give_back(self, amount: Pair) -> None:
        for at, units in enumerate(amount):
            self.net[at] -= units

    def check(self, spare: int) -> None:
        for at, rate in enumerate(both(self.rates)):
            if rate is not None:
                assert self.net[at] * PICO <= self.room[at] + (self.largest[at] + spare) * PICO


def both(rates: Rates) -> tuple[Rate, Rate]:
    return rates.messages, rates.bytes


class World:
    """A limiter with its leases, and an account of each level."""

    def __init__(self, policies: Policies) -> None:
        self.limiter = LimiterAlone(SETTINGS, whole)
        self.leases = Leases(self.limiter)
        self.now = 0
        self.policies = policies
        self.accounts: dict[tuple[Kind, str], Account] = {}
        self.put(policies)

    def put(self, policies: Policies) -> None:
        before, self.policies = self.policies, policies
        self.limiter.set_policies(policies.snapshot(), Nanos(self.now))
        while self.limiter.is_behind:
            self.limiter.work(Nanos(self.now))
        for (kind, where), account in [*self.accounts.items()]:
            if where in "ab" and before.shadow is not policies.shadow:
                # A shadow grants whatever is asked.
                del self.accounts[kind, where]
            else:
                account.change(self.rates_of(where))

    def rates_of(self, where: str) -> Rates:
        of = {"broker": self.policies.broker, "topic": self.policies.topic}
        return of.get(where, self.policies.group_rates)

    def accounts_of(self, name: Name) -> list[Account]:
        kind, topic = name[0], name[3]
        wheres = ["broker", self.policies.group, *(["topic"] if topic == TOPICS[0] else [])]
        return [
            self.accounts.setdefault((kind, where), Account(self.rates_of(where)))
            for where in wheres
        ]

    def pass_time(self, elapsed_ns: int) -> None:
        self.now += elapsed_ns
        for account in self.accounts.values():
            account.flow(elapsed_ns)

    def took(self, name: Name, amount: Pair) -> None:
        for account in self.accounts_of(name):
            account.take(amount)

    def returned(self, name: Name, amount: Pair) -> None:
        for account in self.accounts_of(name):
            account.give_back(amount)

    def check(self) -> None:
        for (_, where), account in self.accounts.items():
            if where in "ab" and self.policies.shadow:
                continue
            is_split = where in "ab" and self.policies.split is not TopicSplit.SHARED
            account.check(len(TOPICS) if is_split else 0)
        table = self.leases.table
        live = list(table)
        for level, load in table.loads.items():
            of_level = [(one, want) for one in live for at, want in one.counted if at is level]
            assert load.leases == len(of_level) > 0
            assert load.wants.messages == sum(want.messages for _, want in of_level)
            assert load.held.messages == sum(one.held.messages for one, _ in of_level)
            assert load.held.bytes == sum(one.held.bytes for one, _ in of_level)


STEPS = st.one_of(
    st.tuples(st.just("wait"), st.integers(0, NS_PER_S)),
    st.tuples(st.just("wait"), st.integers(0, 100 * NS_PER_MS)),
    st.tuples(st.just("open"), st.sampled_from(IDS), NAMES, WANTS, st.integers(0, 3 * NS_PER_S)),
    st.tuples(st.just("renew"), st.sampled_from(IDS), AMOUNTS, st.none() | WANTS),
    st.tuples(st.just("release"), st.sampled_from(IDS), AMOUNTS),
    st.tuples(st.just("acquire"), NAMES, AMOUNTS, st.booleans()),
    st.tuples(st.just("settle"), NAMES, AMOUNTS),
    st.tuples(st.just("policies"), POLICIES),
)


@dataclass
class Held:
    """What a lease may give back at most, and to which group."""

    name: Name
    group: str
    amount: Pair


class Driver:
    """Carries steps out, and keeps what each lease may give back."""

    def __init__(self, policies: Policies) -> None:
        self.world = World(policies)
        self.held: dict[str, Held] = {}
        #: What was granted to each name but by leases, and not given back.
        self.unsettled: Counter[tuple[Name, int]] = Counter()

    @property
    def now(self) -> Nanos:
        return Nanos(self.world.now)

    def wait(self, elapsed_ns: int) -> None:
        self.world.pass_time(elapsed_ns)

    def policies(self, policies: Policies) -> None:
        self.world.put(policies)

    def open(self, lease_id: str, name: Name, wants: Pair, ttl_ns: int) -> None:
        # An id is used once, also while its lease has expired and is still to be removed.
        if lease_id in self.held or lease_id in {one.lease_id for one in self.world.leases.table}:
            return
        request = LeaseRequest(name, wants, ttl_ns)
        answer = self.world.leases.open(request, lease_id, self.now)
        if isinstance(answer, LeaseAnswer):
            self._took(lease_id, name, Pair(), answer)
        else:
            assert isinstance(answer, Decision)
            assert not answer.granted

    def renew(self, lease_id: str, left: Pair, wants: Pair | None) -> None:
        try:
            answer = self.world.leases.renew(lease_id, Renewal(left, wants), self.now)
        except UnknownLease:
            self.held.pop(lease_id, None)
            return
        held = self.held[lease_id]
        if held.group != self.world.policies.group:
            left = Pair()
        least = Pair(*map(min, zip(left, held.amount, strict=True)))
        assert isinstance(answer, LeaseAnswer)
        self._took(lease_id, held.name, least, answer)

    def _took(self, lease_id: str, name: Name, left: Pair, answer: LeaseAnswer) -> None:
        more = Pair(answer.messages or 0, answer.bytes or 0)
        held = Pair(left.messages + more.messages, left.bytes + more.bytes)
        self.held[lease_id] = Held(name, self.world.policies.group, held)
        self.world.took(name, more)

    def release(self, lease_id: str, left: Pair) -> None:
        held = self.held.pop(lease_id, None)
        try:
            back = self.world.leases.release(lease_id, left, self.now)
        except UnknownLease:
            return
        assert held is not None, "a lease ended twice"
        if held.group != self.world.policies.group:
            assert back == Pair()
        assert back.messages <= min(left.messages, held.amount.messages)
        assert back.bytes <= min(left.bytes, held.amount.bytes)
        self.world.returned(held.name, back)

    def acquire(self, name: Name, amount: Pair, partial: bool) -> None:
        kind, group, namespace, topic, subscription = name
        request = Request(kind, *amount, group, namespace, topic, subscription, partial=partial)
        answer = self.world.limiter.acquire(request, self.now)
        if isinstance(answer, Decision) and answer.granted:
            self.world.took(name, Pair(answer.messages, answer.bytes))
            self.unsettled[name, 0] += answer.messages
            self.unsettled[name, 1] += answer.bytes

    def settle(self, name: Name, amount: Pair) -> None:
        back = self.world.limiter.settle(name, amount, self.now)
        for at, units in enumerate(back):
            self.unsettled[name, at] -= units
            assert self.unsettled[name, at] >= 0, "what a lease took was settled"
        self.world.returned(name, back)


@pytest.mark.slow
@settings(
    max_examples=max(150, settings().max_examples),
    # To explain a failure takes minutes.
    phases=[phase for phase in Phase if phase is not Phase.explain],
)
@given(policies=POLICIES, steps=st.lists(STEPS, min_size=10, max_size=40))
def test_whatever_callers_do_leases_keep_every_bound(
    policies: Policies, steps: list[tuple[object, ...]]
) -> None:
    driver = Driver(policies)
    for what, *given_to in steps:
        getattr(driver, str(what))(*given_to)
        driver.world.check()
