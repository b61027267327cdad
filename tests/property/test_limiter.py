"""The chain of levels: all or nothing, each group once, whatever is asked in which order.

Not covered: one bucket by itself (test_bucket.py), and where shares come from.
"""

from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from rgd.core.buckets.decision import Decision, Request
from rgd.core.buckets.level import BucketSettings
from rgd.core.buckets.limiter import Limiter
from rgd.core.policies.model import Attachments, Group, Limit, Limits, LocalLimit, Rates
from rgd.core.policies.snapshot import PolicySnapshot
from rgd.core.units import NS_PER_MS, NS_PER_S, Dimension, Nanos, to_milli
from tests.support.limiter_alone import numbered

SETTINGS = BucketSettings(burst_ns=250 * NS_PER_MS, request_max_ms=10_000, round_ms=1000)
NAMESPACE = "acme/orders"
TOPIC = "persistent://acme/orders/eu"
RATES = st.none() | st.integers(1, 2000)


@st.composite
def some_rates(draw: st.DrawFn) -> Rates:
    def rate() -> int | None:
        units = draw(RATES)
        return None if units is None else to_milli(units)

    return Rates(rate(), rate())


@st.composite
def snapshots(draw: st.DrawFn) -> PolicySnapshot:
    groups = {name: Group(name, Limit(draw(some_rates()))) for name in ("gold", "trial")}
    names = st.none() | st.sampled_from(["gold", "trial"])
    attached = [draw(names) for _ in range(3)]
    return PolicySnapshot(
        groups,
        Attachments(
            *(
                {} if group is None else {name: group}
                for name, group in zip(("acme", NAMESPACE, TOPIC), attached, strict=True)
            )
        ),
        Limits(
            broker=LocalLimit(draw(some_rates())), topics={TOPIC: LocalLimit(draw(some_rates()))}
        ),
    )


@dataclass(frozen=True)
class Ask:
    messages: int
    bytes: int
    partial: bool
    gap_ns: int


ASKS = st.lists(
    st.builds(
        Ask,
        messages=st.integers(0, 500),
        bytes=st.integers(0, 500),
        partial=st.booleans(),
        gap_ns=st.integers(0, NS_PER_S),
    ),
    max_size=40,
)


def full_limiter(snapshot: PolicySnapshot) -> Limiter:
    limiter = Limiter(SETTINGS, numbered(lambda group, kind, _: group.rates(kind)))
    limiter.set_policies(snapshot, Nanos(0))
    # Buckets are made when a name is first asked for.
    limiter.acquire(Request(messages=0, namespace=NAMESPACE, topic=TOPIC), Nanos(0))
    return limiter


@given(snapshot=snapshots(), asks=ASKS)
def test_no_level_grants_more_than_its_own_bound(snapshot: PolicySnapshot, asks: list[Ask]) -> None:
    limiter, now = full_limiter(snapshot), 0
    granted = {Dimension.MESSAGES: 0, Dimension.BYTES: 0}
    largest = {Dimension.MESSAGES: 0, Dimension.BYTES: 0}
    for ask in asks:
        now += ask.gap_ns
        request = Request(
            messages=ask.messages,
            bytes=ask.bytes,
            namespace=NAMESPACE,
            topic=TOPIC,
            partial=ask.partial,
        )
        answer = limiter.acquire(request, Nanos(now))
        if not isinstance(answer, Decision) or not answer.granted:
            continue
        if not ask.partial:
            assert (answer.messages, answer.bytes) == (ask.messages, ask.bytes)
        assert answer.messages <= ask.messages
        assert answer.bytes <= ask.bytes
        for dimension, units in (
            (Dimension.MESSAGES, answer.messages),
            (Dimension.BYTES, answer.bytes),
        ):
            granted[dimension] += units
            largest[dimension] = max(largest[dimension], units)
    everything = [snapshot.limits.broker.publish, snapshot.limits.topics[TOPIC].publish]
    everything += [group.quota.publish for group in snapshot.groups_of(NAMESPACE, TOPIC)]
    for limit in everything:
        assert limit is not None
        for dimension in Dimension:
            rate = limit.of(dimension)
            if rate is not None:
                most = rate * (SETTINGS.burst_ns + now) / (1000 * NS_PER_S) + largest[dimension]
                assert granted[dimension] <= most


@given(snapshot=snapshots(), asks=ASKS)
def test_what_is_refused_takes_nothing_from_any_bucket(
    snapshot: PolicySnapshot, asks: list[Ask]
) -> None:
    limiter, now = full_limiter(snapshot), 0
    for ask in asks:
        now += ask.gap_ns
        request = Request(messages=ask.messages, bytes=ask.bytes, namespace=NAMESPACE, topic=TOPIC)
        before = tokens(limiter, now)
        answer = limiter.acquire(request, Nanos(now))
        if not isinstance(answer, Decision) or not answer.granted:
            assert tokens(limiter, now) == before


def tokens(limiter: Limiter, now: int) -> list[int]:
    return [
        state.tokens(dimension, Nanos(now)) or 0
        for state in limiter.states()
        for dimension in Dimension
    ]
