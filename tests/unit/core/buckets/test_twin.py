"""A twin stands where a bucket of its own would stand from which more is taken.

Not covered: which levels have twins and what is counted by them (test_limiter.py).
"""

from hypothesis import given
from hypothesis import strategies as st

from rgd.core.buckets.bucket import PICO, TokenBucket
from rgd.core.buckets.twin import Twin, WatchedBucket
from rgd.core.units import COUNT_MAX, NS_PER_MS, Nanos
from tests.unit.core.values import ms, rate

BURST_NS = 250 * NS_PER_MS
START = Nanos(0)


def pair(units: float) -> tuple[WatchedBucket, Twin]:
    bucket = WatchedBucket(rate(units) or 0, BURST_NS, START)
    return bucket, Twin(bucket, START)


def test_a_watched_bucket_stands_where_the_bucket_stood() -> None:
    bucket = TokenBucket(rate(100) or 0, BURST_NS, START)
    bucket.take(40 * PICO)
    watched = WatchedBucket.of(bucket, BURST_NS, ms(50))
    assert watched.tokens(ms(50)) == bucket.tokens(ms(50)) == -10 * PICO
    assert WatchedBucket.of(watched, BURST_NS, ms(60)) is watched


def test_what_the_twin_forgoes_comes_back_when_the_bucket_spills() -> None:
    bucket, twin = pair(100)
    twin.take(30)
    assert twin.available(bucket.rate, BURST_NS, START) == 0
    assert bucket.available(START) == 25
    assert twin.available(bucket.rate, BURST_NS, ms(60)) == 1
    assert twin.available(bucket.rate, BURST_NS, ms(1000)) == COUNT_MAX


def test_at_rate_zero_nothing_would_be_granted() -> None:
    _, twin = pair(0)
    assert twin.available(0, BURST_NS, ms(1000)) == 0
    assert twin.available(rate(10) or 0, BURST_NS, ms(2000)) == COUNT_MAX


def test_a_faster_twin_fills_while_its_bucket_is_in_debt() -> None:
    bucket, twin = pair(10)
    bucket.take(20 * PICO)
    assert twin.available(rate(100) or 0, BURST_NS, ms(100)) == 0
    assert twin.available(rate(100) or 0, BURST_NS, ms(300)) == 12


OPERATIONS = st.lists(
    st.tuples(
        st.sampled_from(["both", "twin", "rate", "look"]), st.integers(0, 60), st.integers(0, 400)
    ),
    max_size=40,
)


@given(OPERATIONS)
def test_a_twin_is_what_a_second_bucket_would_be(operations: list[tuple[str, int, int]]) -> None:
    bucket, twin = pair(100)
    second, now = TokenBucket(bucket.rate, BURST_NS, START), 0
    for sort, units, gap_ms in operations:
        now += gap_ms
        moment = ms(now)
        # As the limiter does: a charge to the twin follows a look at it.
        seen = twin.available(bucket.rate, BURST_NS, moment)
        tokens = second.tokens(moment)
        full = tokens >= bucket.rate * BURST_NS
        assert seen == (COUNT_MAX * (bucket.rate > 0) if full else max(0, tokens // PICO))
        bucket.tokens(moment)
        if sort == "both":
            bucket.take(units * PICO)
            second.take(units * PICO)
        elif sort == "twin":
            twin.take(units)
            second.take(units * PICO)
        elif sort == "rate":
            bucket.set_rate(units * 5000, BURST_NS, moment)
            second.set_rate(units * 5000, BURST_NS, moment)
