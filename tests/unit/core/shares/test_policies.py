"""Share policies at their edges, to the thousandth.

Not covered: worked examples (test_vectors.py), the laws over any rows (tests/property/test_shares.py).
"""

import pytest

from rgd.core.policies.model import Rates, SharePolicyName
from rgd.core.shares.model import Row
from rgd.core.shares.registry import allocate
from rgd.core.units import Pair

MAX_MIN, RESIDUAL, PROPORTIONAL, STEAL = SharePolicyName
NO_FLOOR, PERCENT = 0, 10_000


def used(*rates: int) -> list[Row]:
    return [Row(f"b{place}", Pair(rate), Pair(rate)) for place, rate in enumerate(rates)]


def wants(*rates: int) -> list[Row]:
    return [Row(f"b{place}", wanted=Pair(rate)) for place, rate in enumerate(rates)]


def shares_of(
    policy: SharePolicyName, quota: int, rows: list[Row], *, floor_ppm: int
) -> tuple[int | None, ...]:
    """Shares of messages, where bytes are unlimited."""
    shares = allocate(policy, Rates(quota), rows, floor_ppm=floor_ppm)
    assert all(share.bytes is None for share in shares)
    return tuple(share.messages for share in shares)


@pytest.mark.parametrize("policy", SharePolicyName)
def test_nobody_gets_nothing(policy: SharePolicyName) -> None:
    assert shares_of(policy, 100, [], floor_ppm=PERCENT) == ()


def test_max_min_fills_small_wants_and_levels_the_rest() -> None:
    shares = shares_of(MAX_MIN, 100, wants(10, 200, 50, 45), floor_ppm=NO_FLOOR)
    assert shares == (10, 30, 30, 30)


def test_steal_raises_the_lowest_by_half_the_gap_to_the_highest_and_leaves_the_others() -> None:
    shares = shares_of(STEAL, 100, used(50, 10, 5, 15, 20), floor_ppm=NO_FLOOR)
    assert shares == (50, 15, 27, 15, 20)


def test_steal_has_the_dominant_one_give_up_what_the_thief_uses_more() -> None:
    """The PIP's step: broker-2 uses 30 in the next update, and broker-1 reduces its limit to 70."""
    assert shares_of(STEAL, 100, used(80, 30), floor_ppm=NO_FLOOR) == (70, 30)
    # Two dominant ones give up in proportion to what they have more than their thieves.
    assert shares_of(STEAL, 100, used(50, 40, 20, 10), floor_ppm=NO_FLOOR) == (37, 33, 20, 10)


def test_a_want_of_just_its_part_is_filled() -> None:
    assert shares_of(MAX_MIN, 90, wants(30, 30, 30), floor_ppm=NO_FLOOR) == (30, 30, 30)
    assert shares_of(MAX_MIN, 91, wants(30, 31, 31), floor_ppm=NO_FLOOR) == (30, 31, 30)
