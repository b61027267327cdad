"""`retry_after_ms` is true: who asks again then, is granted, if nobody took it meanwhile and no rate fell.

And it is not longer than needed: a millisecond earlier the same request is refused. For every level, kind and
dimension, whole requests and parts, debts, divided shares, and leases.
Not covered: rate 0, where nothing is promised; a low share, where the wait is half a round at most (that callers get their
share by it: tests/simulation/test_sharing.py); backlogs, whose check may go on blocking.
"""

from dataclasses import dataclass

from hypothesis import assume, event, given
from hypothesis import strategies as st

from rgd.core.buckets.decision import Decision, Request
from rgd.core.buckets.level import BucketSettings
from rgd.core.buckets.limiter import Limiter
from rgd.core.leases.leases import Leases
from rgd.core.leases.model import LeaseAnswer, LeaseRequest
from rgd.core.policies.model import Attachments, Group, Limit, Limits, LocalLimit, Rates, TopicSplit
from rgd.core.policies.snapshot import PolicySnapshot
from rgd.core.units import MILLI, NS_PER_MS, Kind, Nanos, Pair
from tests.support.limiter_alone import numbered

SETTINGS = BucketSettings(burst_ns=250 * NS_PER_MS, request_max_ms=10_000, round_ms=1000)
NAMESPACE = "acme/orders"
TOPICS = ("persistent://acme/orders/eu", "persistent://acme/orders/us")

RATE = st.none() | st.integers(1, 3000) | st.integers(1, 500 * MILLI)
LIMITS = st.builds(Rates, RATE, RATE)
AMOUNTS = st.sampled_from((0, 1, 1, 20)) | st.integers(0, 400)
GAPS = st.sampled_from((0, 1, NS_PER_MS)) | st.integers(0, 400 * NS_PER_MS)


@dataclass(frozen=True)
class House:
    """The limits of all levels; the same for both kinds."""

    broker: Rates
    groups: tuple[Rates, Rates, Rates]
    topic: Rates
    subscription: Rates
    split: TopicSplit

    def limiter(self) -> Limiter:
        names = ("topic", "space", "tenant")
        groups = {
            name: Group(name, Limit(rates, rates), topic_split=self.split)
            for name, rates in zip(names, self.groups, strict=True)
        }
        local = [LocalLimit(of, of) for of in (self.broker, self.topic, self.subscription)]
        made = Limiter(SETTINGS, numbered(lambda group, kind, _: group.rates(kind)))
        made.set_policies(
            PolicySnapshot(
                groups,
                Attachments({"acme": "tenant"}, {NAMESPACE: "space"}, {TOPICS[0]: "topic"}),
                Limits(
                    broker=local[0],
                    namespaces={NAMESPACE: local[1]},
                    namespace_subscriptions={NAMESPACE: local[2]},
                ),
            ),
            Nanos(0),
        )
        return made


HOUSES = st.builds(
    House,
    LIMITS,
    st.tuples(LIMITS, LIMITS, LIMITS),
    LIMITS,
    LIMITS,
    st.sampled_from((TopicSplit.SHARED, TopicSplit.SHARED, TopicSplit.EVEN)),
)
REQUESTS = st.builds(
    Request,
    kind=st.sampled_from(Kind),
    messages=AMOUNTS,
    bytes=AMOUNTS,
    group=st.none(),
    namespace=st.just(NAMESPACE),
    topic=st.none() | st.sampled_from(TOPICS),
    subscription=st.sampled_from((None, "s")),
    partial=st.booleans(),
    attempt=st.integers(0, 2),
    held=st.just(Pair()),
)
ASKS = st.lists(st.tuples(REQUESTS, GAPS), min_size=1, max_size=12)


def answers(limiter: Limiter, asks: list[tuple[Request, int]]) -> tuple[Nanos, Request, Decision]:
    """Ask until something is refused; the moment, the request and its answer."""
    now = 0
    for request, gap_ns in asks:
        now += gap_ns
        for _ in range(2):
            answer = limiter.acquire(request, Nanos(now))
            if isinstance(answer, Decision) and not answer.granted and answer.retry_after_ms:
                return Nanos(now), request, answer
    assume(False)
    raise AssertionError


@given(HOUSES, ASKS)
def test_asking_when_told_to_is_granted_and_a_millisecond_earlier_it_is_not(
    house: House, asks: list[tuple[Request, int]]
) -> None:
    limiter = house.limiter()
    now, request, refused = answers(limiter, asks)
    event(f"{refused.limited_by}, {refused.dimension}")
    wait_ns = refused.retry_after_ms * NS_PER_MS
    again = limiter.acquire(request, Nanos(now + wait_ns))
    assert isinstance(again, Decision)
    assert again.granted, refused
    early = house.limiter()
    assert answers(early, asks)[2] == refused
    answer = early.acquire(request, Nanos(now + wait_ns - NS_PER_MS))
    assert isinstance(answer, Decision)
    assert not answer.granted


@given(HOUSES, ASKS, st.builds(Pair, st.integers(0, 10**6), st.integers(0, 10**6)))
def test_a_lease_that_was_refused_is_granted_when_told(
    house: House, asks: list[tuple[Request, int]], wants: Pair
) -> None:
    limiter, now = house.limiter(), 0
    leases = Leases(limiter)
    for request, gap_ns in asks:
        now += gap_ns
        limiter.acquire(request, Nanos(now))
    last = asks[-1][0]
    name = (last.kind, None, NAMESPACE, last.topic, last.subscription)
    asked = LeaseRequest(name, wants)
    refused = leases.open(asked, "a", Nanos(now))
    assume(isinstance(refused, Decision) and not refused.granted)
    assert isinstance(refused, Decision)
    then = Nanos(now + refused.retry_after_ms * NS_PER_MS)
    assert isinstance(leases.open(asked, "b", then), LeaseAnswer)
