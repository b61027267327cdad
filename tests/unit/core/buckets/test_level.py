"""One level of the chain: two buckets that decide together.

Not covered: several levels (test_limiter.py), one bucket by itself (test_bucket.py).
"""

import pytest

from rgd.core.buckets.bucket import PICO
from rgd.core.buckets.decision import Level, TooLarge
from rgd.core.buckets.level import LevelState
from rgd.core.policies.model import UNLIMITED, Rates
from rgd.core.units import COUNT_MAX, Dimension, Nanos, Pair
from tests.unit.core.values import BUCKETS, ms, rates

MESSAGES, BYTES = Dimension.MESSAGES, Dimension.BYTES
START = Nanos(0)


def level(quota: Rates, share: Rates | None = None) -> LevelState:
    state = LevelState(Level.TOPIC, BUCKETS)
    state.set_rates(quota, quota if share is None else share, START)
    return state


def admits(one: LevelState, messages: int, size: int = 0) -> bool:
    return one.admits(messages * PICO, size * PICO, START)


def test_both_dimensions_must_have_room() -> None:
    one = level(rates(100, 1000))
    one.take(25, 0)
    assert admits(one, 0, 250)
    assert not admits(one, 1, 0)
    assert not admits(one, 1, 250)
    one.take(0, 250)
    assert not admits(one, 0, 1)


def test_what_is_not_asked_for_is_not_refused_even_in_debt() -> None:
    one = level(rates(100, 1000))
    one.take(100, 0)
    assert admits(one, 0, 1)
    assert one.wait(0, 251, START) == (0, MESSAGES)


def test_an_unlimited_dimension_has_room_for_anything() -> None:
    one = level(rates(100))
    assert admits(one, 1, COUNT_MAX)
    one.take(1, COUNT_MAX)
    assert one.available(START) == (24, COUNT_MAX)
    assert one.wait(0, COUNT_MAX, START) == (0, MESSAGES)


def test_the_wait_is_that_of_the_slower_dimension_rounded_up_to_milliseconds() -> None:
    one = level(rates(100, 1000))
    one.take(25, 250)
    assert one.wait(1, 1, START) == (10, MESSAGES)
    assert one.wait(1, 11, START) == (11, BYTES)
    assert one.wait(1, 1, Nanos(1)) == (10, MESSAGES)
    assert one.wait(1, 1, ms(1)) == (9, MESSAGES)


def test_where_the_rate_is_zero_the_caller_waits_for_a_round() -> None:
    one = level(rates(100, 100), share=rates(0, 100))
    assert one.wait(1, 26, START) == (1000, MESSAGES)


@pytest.mark.parametrize(
    ("cost", "too_large"),
    [
        pytest.param(Pair(1000, 10_000), None, id="just-not"),
        pytest.param(
            Pair(1001, 10_001), TooLarge(Level.TOPIC, None, MESSAGES, 1000), id="messages-first"
        ),
        pytest.param(Pair(1, 10_001), TooLarge(Level.TOPIC, None, BYTES, 10_000), id="bytes"),
    ],
)
def test_ten_seconds_of_the_whole_quota_is_the_most(cost: Pair, too_large: TooLarge | None) -> None:
    # Of the quota: the share, which is a tenth of it, has no say in it.
    assert level(rates(100, 1000), share=rates(10, 100)).too_large(*cost) == too_large


def test_a_tiny_quota_lets_one_at_a_time_through() -> None:
    tiny = level(rates(0.001))
    assert tiny.too_large(1, 0) is None
    assert tiny.too_large(2, 0) == TooLarge(Level.TOPIC, None, MESSAGES, 1)


@pytest.mark.parametrize("quota", [rates(0, 0), UNLIMITED], ids=["blocked", "unlimited"])
def test_nothing_is_too_large_where_no_quota_says_what_would_be(quota: Rates) -> None:
    assert level(quota).too_large(COUNT_MAX, COUNT_MAX) is None


def test_a_dimension_that_stays_keeps_its_debt_when_the_other_comes_and_goes() -> None:
    one = level(rates(100))
    one.take(125, 0)
    one.set_rates(rates(100, 1000), rates(100, 1000), START)
    assert one.remaining(BYTES, START) == 250
    one.set_rates(rates(100), rates(100), START)
    assert one.tokens(BYTES, START) is None
    assert one.wait(1, 0, START) == (1010, MESSAGES)


def test_what_remains_is_whole_units_and_never_negative() -> None:
    one = level(rates(100))
    one.take(3, 0)
    assert one.remaining(MESSAGES, START) == 22
    one.take(30, 0)
    assert one.remaining(MESSAGES, START) == 0
    assert one.remaining(BYTES, START) == 0


def test_the_depth_changes_with_the_next_rates() -> None:
    one = level(rates(100))
    one.burst_ns = 0
    one.set_rates(rates(100), rates(100), START)
    assert one.remaining(MESSAGES, START) == 0
    assert admits(one, 1)


def test_a_shadow_level_adds_up_what_it_would_refuse() -> None:
    one = level(rates(100))
    one.count_shadow(1, 10)
    one.count_shadow(2, 20)
    assert one.shadow_refused == Pair(3, 30)
