"""A token bucket under any interleaving of takes, waits and changes of rate.

The law is design 2's: granted <= depth + the integral of the rate + one request.
Not covered: pairs of buckets and levels, which test_limiter.py covers.
"""

from hypothesis import given
from hypothesis import strategies as st

from rgd.core.buckets.bucket import PICO, TokenBucket
from rgd.core.units import MILLI, NS_PER_MS, NS_PER_S, Nanos

RATES = st.integers(0, 5_000 * MILLI) | st.integers(0, 10**13)
COSTS = st.integers(1, 10_000) | st.integers(1, 10**9)
GAPS_NS = st.integers(0, 3 * NS_PER_S)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("take"), COSTS),
        st.tuples(st.just("part"), COSTS),
        st.tuples(st.just("rate"), RATES),
        st.tuples(st.just("wait"), GAPS_NS),
    ),
    max_size=60,
)


@given(rate=RATES, burst_ms=st.integers(0, 2000), steps=STEPS)
def test_bucket_grants_at_most_depth_plus_integral_plus_one_request(
    rate: int, burst_ms: int, steps: list[tuple[str, int]]
) -> None:
    burst_ns = burst_ms * NS_PER_MS
    bucket = TokenBucket(rate, burst_ns, Nanos(0))
    now, granted, integral, largest = 0, 0, rate * burst_ns, 0
    for step, amount in steps:
        if step == "wait":
            now += amount
            integral += rate * amount
        elif step == "rate":
            rate = amount
            bucket.set_rate(rate, burst_ns, Nanos(now))
        else:
            part = bucket.available(Nanos(now)) if step == "part" else amount
            cost = min(amount, part) * PICO
            if cost and bucket.admits(cost, Nanos(now)):
                bucket.take(cost)
                granted += cost
                largest = max(largest, cost)
        assert granted <= integral + largest


@given(
    rate=st.integers(1, 10**10),
    burst_ms=st.integers(0, 1000),
    costs=st.lists(COSTS, min_size=1, max_size=10),
)
def test_asking_again_after_the_wait_succeeds_and_not_before(
    rate: int, burst_ms: int, costs: list[int]
) -> None:
    bucket, now = TokenBucket(rate, burst_ms * NS_PER_MS, Nanos(0)), 0
    for cost in costs:
        wait = bucket.wait_ns(cost * PICO, Nanos(now))
        assert wait is not None
        if wait > 0:
            assert not bucket.admits(cost * PICO, Nanos(now + wait - 1))
        now += wait
        assert bucket.admits(cost * PICO, Nanos(now))
        bucket.take(cost * PICO)


@given(cost=COSTS, waited=GAPS_NS)
def test_a_bucket_without_rate_never_grants(cost: int, waited: int) -> None:
    bucket = TokenBucket(0, NS_PER_S, Nanos(0))
    assert not bucket.admits(cost * PICO, Nanos(waited))
    assert bucket.available(Nanos(waited)) == 0
    assert bucket.wait_ns(cost * PICO, Nanos(waited)) is None


@given(rate=st.integers(1, 10**10), raised=st.integers(1, 10**10), cost=COSTS)
def test_a_raise_gives_no_burst_and_keeps_the_debt(rate: int, raised: int, cost: int) -> None:
    bucket = TokenBucket(rate, 250 * NS_PER_MS, Nanos(0))
    bucket.take(cost * PICO)
    before = bucket.tokens(Nanos(0))
    bucket.set_rate(max(rate, raised), 250 * NS_PER_MS, Nanos(0))
    assert bucket.tokens(Nanos(0)) == before


def test_a_full_bucket_gives_a_part_of_at_least_one() -> None:
    bucket = TokenBucket(MILLI, 250 * NS_PER_MS, Nanos(0))
    assert bucket.available(Nanos(0)) == 1
    bucket.take(PICO)
    assert bucket.available(Nanos(NS_PER_S - 1)) == 0
    assert bucket.available(Nanos(NS_PER_S)) == 1
