"""A counterfactual bucket stands where a bucket of its own would stand from which more is taken.

Not covered: which levels have them and what is counted by them (test_limiter.py).
"""

from hypothesis import given
from hypothesis import strategies as st

from rgd.core.buckets.bucket import PICO
from rgd.core.buckets.decision import Level
from rgd.core.buckets.level import LevelState
from rgd.core.policies.model import Rates
from rgd.core.units import COUNT_MAX, Dimension, Nanos
from tests.unit.core.values import BUCKETS, ms, rates

START = Nanos(0)


def level(quota: Rates, share: Rates | None = None, *, group: str | None = None) -> LevelState:
    made = LevelState(Level.TOPIC, BUCKETS, group)
    made.set_rates(quota, quota if share is None else share, START)
    return made


def would_grant(one: LevelState, at: float = 0, live_brokers: int = 1) -> int:
    """Messages, had the group named gold refused nothing."""
    return one.would_grant("gold", live_brokers, ms(at))[0]


def test_that_of_a_group_flows_at_its_even_part_while_the_real_one_is_in_debt() -> None:
    one = level(rates(200), rates(10), group="silver")
    one.take(20, 0)
    assert would_grant(one, 0, 2) == 0
    assert would_grant(one, 100, 2) == 0
    assert would_grant(one, 300, 2) == 12


OPERATIONS = st.lists(
    st.tuples(
        st.sampled_from(["both", "one", "rate", "look"]), st.integers(0, 60), st.integers(0, 400)
    ),
    max_size=40,
)


@given(OPERATIONS, st.sampled_from(Dimension))
def test_it_is_what_a_second_bucket_would_be(
    operations: list[tuple[str, int, int]], dimension: Dimension
) -> None:
    place = [*Dimension].index(dimension)

    def of(units: int) -> tuple[int, int]:
        return (0, units) if place else (units, 0)

    def limit(milli: int) -> Rates:
        return Rates(None, milli) if place else Rates(milli)

    real, second, now = level(limit(100_000)), level(limit(100_000)), 0
    real.would_grant("gold", 1, START)
    for sort, units, gap_ms in operations:
        now += gap_ms
        moment = ms(now)
        # As the limiter does: a charge to the counterfactual bucket follows a look at it.
        seen = real.would_grant("gold", 1, moment)[place]
        tokens = second.tokens(dimension, moment)
        rate = real.share.of(dimension)
        assert tokens is not None
        assert rate is not None
        full = tokens >= rate * BUCKETS.burst_ns
        assert seen == (COUNT_MAX * (rate > 0) if full else max(0, tokens // PICO))
        if sort == "both":
            real.take(*of(units))
            second.take(*of(units))
        elif sort == "one":
            real.forgo("gold", *of(units))
            second.take(*of(units))
        elif sort == "rate":
            for one in (real, second):
                one.set_rates(limit(units * 5000), limit(units * 5000), moment)
