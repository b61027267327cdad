"""The chain of levels: all or nothing, each group once, whatever is asked in which order.

Not covered: one bucket by itself (test_bucket.py), and where shares come from.
"""

from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from rgd.core.buckets.decision import Decision, Level, Request, TooLarge
from rgd.core.buckets.level import BucketSettings
from rgd.core.buckets.limiter import Limiter
from rgd.core.policies.model import Attachments, Group, GroupKey, Limit, Limits, LocalLimit, Rates
from rgd.core.policies.snapshot import PolicySnapshot
from rgd.core.units import NS_PER_MS, NS_PER_S, Dimension, Kind, Nanos, to_milli
from tests.support.limiter_alone import numbered
from tests.support.there import there

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


@given(snapshot=snapshots(), asks=ASKS)
def test_asking_again_after_retry_after_succeeds(snapshot: PolicySnapshot, asks: list[Ask]) -> None:
    limiter, now = full_limiter(snapshot), 0
    for ask in asks:
        request = Request(
            messages=ask.messages,
            bytes=ask.bytes,
            namespace=NAMESPACE,
            topic=TOPIC,
            partial=ask.partial,
        )
        answer = limiter.acquire(request, Nanos(now))
        if isinstance(answer, Decision) and not answer.granted:
            now += answer.retry_after_ms * NS_PER_MS
            again = limiter.acquire(request, Nanos(now))
            assert isinstance(again, Decision)
            assert again.granted


@given(messages=st.integers(1, 100))
def test_a_group_that_is_attached_three_times_is_charged_once(messages: int) -> None:
    gold = Group("gold", Limit(Rates(to_milli(1000))))
    snapshot = PolicySnapshot(
        {"gold": gold}, Attachments({"acme": "gold"}, {NAMESPACE: "gold"}, {TOPIC: "gold"})
    )
    limiter = full_limiter(snapshot)
    limiter.acquire(Request(messages=messages, namespace=NAMESPACE, topic=TOPIC), Nanos(0))
    state = there(limiter.state(GroupKey("gold", Kind.PUBLISH)))
    assert state.remaining(Dimension.MESSAGES, Nanos(0)) == 250 - messages


def test_the_most_stringent_level_is_named() -> None:
    snapshot = PolicySnapshot(
        {"gold": Group("gold", Limit(Rates(to_milli(100))))},
        Attachments(namespaces={NAMESPACE: "gold"}),
        Limits(topics={TOPIC: LocalLimit(Rates(to_milli(10)))}),
    )
    limiter = full_limiter(snapshot)
    request = Request(messages=10, namespace=NAMESPACE, topic=TOPIC)
    assert limiter.acquire(request, Nanos(0)).granted  # type: ignore[union-attr]
    refused = limiter.acquire(request, Nanos(0))
    assert isinstance(refused, Decision)
    assert (refused.limited_by, refused.dimension) == (Level.TOPIC, Dimension.MESSAGES)
    assert refused.group is None


def test_a_shadow_group_counts_and_refuses_nothing() -> None:
    snapshot = PolicySnapshot(
        {"gold": Group("gold", Limit(Rates(to_milli(10))), shadow=True)},
        Attachments(namespaces={NAMESPACE: "gold"}),
    )
    limiter = full_limiter(snapshot)
    for _ in range(10):
        answer = limiter.acquire(Request(messages=5, namespace=NAMESPACE), Nanos(0))
        assert isinstance(answer, Decision)
        assert answer.granted
    state = there(limiter.state(GroupKey("gold", Kind.PUBLISH)))
    # One was granted from the full bucket, on debt; nine would have been refused.
    assert state.shadow_refused.messages == 45


def test_a_request_above_ten_seconds_of_the_quota_is_too_large() -> None:
    snapshot = PolicySnapshot(
        {"gold": Group("gold", Limit(Rates(to_milli(10))))},
        Attachments(namespaces={NAMESPACE: "gold"}),
    )
    limiter = full_limiter(snapshot)
    assert limiter.acquire(Request(messages=101, namespace=NAMESPACE), Nanos(0)) == TooLarge(
        Level.RESOURCE_GROUP, "gold", Dimension.MESSAGES, 100
    )
    whole = limiter.acquire(Request(messages=100, namespace=NAMESPACE), Nanos(0))
    assert isinstance(whole, Decision)
    assert whole.granted


def test_a_blocked_group_refuses_and_says_one_round() -> None:
    snapshot = PolicySnapshot(
        {"gold": Group("gold", blocked=True)}, Attachments(namespaces={NAMESPACE: "gold"})
    )
    answer = full_limiter(snapshot).acquire(Request(namespace=NAMESPACE), Nanos(0))
    assert isinstance(answer, Decision)
    assert not answer.granted
    assert answer.retry_after_ms == SETTINGS.round_ms


def test_a_name_that_nobody_attached_is_granted_and_counted() -> None:
    limiter = full_limiter(PolicySnapshot())
    answer = limiter.acquire(Request(messages=7, namespace=NAMESPACE), Nanos(0))
    assert answer == Decision(granted=True, messages=7, bytes=0, governed=False)
    assert limiter.ungoverned_total == 2


def tokens(limiter: Limiter, now: int) -> list[int]:
    return [
        state.tokens(dimension, Nanos(now)) or 0
        for state in limiter.states()
        for dimension in Dimension
    ]
