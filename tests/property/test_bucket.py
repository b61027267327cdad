"""A pair of token buckets under any interleaving of takes, waits and rate changes, against a slow one.

The law: granted <= depth + the integral of the rate + one request.
Not covered: levels and chains of them (test_limiter.py).
"""

from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from rgd.core.buckets.bucket import PICO, Buckets
from rgd.core.policies.model import Rate, Rates
from rgd.core.units import COUNT_MAX, MILLI, NS_PER_MS, NS_PER_S, Dimension, Nanos

RATES = st.integers(0, 5_000 * MILLI) | st.integers(0, 10**13)
PAIRS = st.builds(Rates, st.none() | RATES, st.none() | RATES)
COSTS = st.integers(0, 10_000) | st.integers(1, 10**9)
GAPS_NS = st.integers(0, 3 * NS_PER_S)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("take"), st.tuples(COSTS, COSTS)),
        st.tuples(st.just("part"), st.tuples(COSTS, COSTS)),
        st.tuples(st.just("rate"), PAIRS),
        st.tuples(st.just("wait"), GAPS_NS),
    ),
    max_size=60,
)


class SlowBucket:
    """One bucket as it is defined: tokens in units, as fractions."""

    def __init__(self, rate: Rate, burst_ns: int) -> None:
        self.rate, self.burst_ns = rate, burst_ns
        self.tokens = self.depth
        #: Granted so far, the most that may be, and the largest request.
        self.granted, self.most, self.largest = Fraction(0), self.depth, 0

    @property
    def depth(self) -> Fraction:
        return Fraction((self.rate or 0) * self.burst_ns, PICO)

    def pass_time(self, span_ns: int) -> None:
        flowed = Fraction((self.rate or 0) * span_ns, PICO)
        self.most += flowed
        self.tokens = min(self.depth, self.tokens + flowed)

    def admits(self, cost: int) -> bool:
        if self.rate is None or cost == 0 or self.tokens >= cost:
            return True
        return self.rate > 0 and self.tokens >= self.depth

    def take(self, cost: int) -> None:
        self.tokens -= cost
        self.granted += cost
        self.largest = max(self.largest, cost)
        assert self.rate is None or self.granted <= self.most + self.largest

    def set_rate(self, rate: Rate) -> None:
        if (rate is None) is not (self.rate is None):
            # A limit that is new begins with a full bucket.
            self.__init__(rate, self.burst_ns)  # type: ignore[misc]
        self.rate = rate
        self.tokens = min(self.tokens, self.depth)


@given(first=PAIRS, burst_ms=st.integers(0, 2000), steps=STEPS)
def test_a_pair_is_two_slow_buckets_that_grant_no_more_than_the_law_allows(
    first: Rates, burst_ms: int, steps: list[tuple[str, object]]
) -> None:
    burst_ns = burst_ms * NS_PER_MS
    pair, now = Buckets(burst_ns, Nanos(0)), 0
    pair.flow(first, Nanos(0))
    slow = {dimension: SlowBucket(first.of(dimension), burst_ns) for dimension in Dimension}
    for step, amount in steps:
        if step == "wait":
            assert isinstance(amount, int)
            now += amount
            for bucket in slow.values():
                bucket.pass_time(amount)
        elif isinstance(amount, Rates):
            pair.flow(amount, Nanos(now))
            for dimension in Dimension:
                slow[dimension].set_rate(amount.of(dimension))
        else:
            assert isinstance(amount, tuple)
            available = pair.available(Nanos(now)) if step == "part" else (COUNT_MAX, COUNT_MAX)
            messages, size = map(min, amount, available)
            admits = pair.admits(messages * PICO, size * PICO, Nanos(now))
            both = zip(slow.values(), (messages, size), strict=True)
            assert admits == all(bucket.admits(cost) for bucket, cost in both)
            assert step == "take" or admits
            if admits:
                pair.take(messages, size)
                for bucket, cost in zip(slow.values(), (messages, size), strict=True):
                    bucket.take(cost)
        for dimension in Dimension:
            tokens = pair.tokens(dimension, Nanos(now))
            assert (tokens is None) == (slow[dimension].rate is None)
            assert tokens is None or tokens == slow[dimension].tokens * PICO
