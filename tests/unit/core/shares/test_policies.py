"""Share policies at their edges, to the thousandth.

Not covered: worked examples (test_vectors.py), the laws over any rows (tests/property/test_shares.py).
"""

import numpy as np
import pytest

from rgd.core.policies.model import Rates, SharePolicyName
from rgd.core.shares.apportion import by_weight, even, floors
from rgd.core.shares.model import Row
from rgd.core.shares.pip82 import USAGE_POLICIES
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


def test_every_policy_has_a_rule() -> None:
    assert {*USAGE_POLICIES, MAX_MIN} == set(SharePolicyName)


@pytest.mark.parametrize("policy", SharePolicyName)
def test_nobody_gets_nothing(policy: SharePolicyName) -> None:
    assert shares_of(policy, 100, [], floor_ppm=PERCENT) == ()


@pytest.mark.parametrize("policy", SharePolicyName)
def test_a_broker_alone_has_it_all(policy: SharePolicyName) -> None:
    assert shares_of(policy, 100, used(70), floor_ppm=PERCENT) == (100,)


@pytest.mark.parametrize("policy", SharePolicyName)
def test_of_nothing_everybody_has_nothing(policy: SharePolicyName) -> None:
    assert shares_of(policy, 0, used(70, 0, 30), floor_ppm=PERCENT) == (0, 0, 0)
    assert shares_of(policy, 0, used(0, 0), floor_ppm=PERCENT) == (0, 0)


@pytest.mark.parametrize("policy", SharePolicyName)
def test_remainders_go_by_the_order_of_names_whatever_the_order_of_rows(
    policy: SharePolicyName,
) -> None:
    rows = [Row("c"), Row("a"), Row("b")]
    assert shares_of(policy, 11, rows, floor_ppm=NO_FLOOR) == (3, 4, 4)


def test_remainders_go_to_the_largest_fractions() -> None:
    weights = np.array([[1, 5, 1], [14, 55, 31]])
    assert by_weight(np.array([10, 10]), weights).tolist() == [[2, 7, 1], [1, 6, 3]]
    assert even(np.array([5]), 3).tolist() == [[2, 2, 1]]


def test_floors_are_an_even_split_of_their_part_of_the_quota() -> None:
    both = [[25, 25, 25, 25], [26, 26, 26, 25]]
    assert floors(np.array([1001, 1030]), 4, 100_000).tolist() == both


def test_max_min_fills_small_wants_and_levels_the_rest() -> None:
    shares = shares_of(MAX_MIN, 100, wants(10, 200, 50, 45), floor_ppm=NO_FLOOR)
    assert shares == (10, 30, 30, 30)


def test_a_want_of_just_its_part_is_filled() -> None:
    assert shares_of(MAX_MIN, 90, wants(30, 30, 30), floor_ppm=NO_FLOOR) == (30, 30, 30)
    assert shares_of(MAX_MIN, 91, wants(30, 31, 31), floor_ppm=NO_FLOOR) == (30, 31, 30)


def test_what_nobody_wants_is_split_over_everybody() -> None:
    assert shares_of(MAX_MIN, 100, wants(10, 0, 30), floor_ppm=NO_FLOOR) == (30, 20, 50)


def test_wants_are_reckoned_above_the_floors() -> None:
    # Floors of 5 each; the other 90 are poured over wants of 0 and 195 above them.
    assert shares_of(MAX_MIN, 100, wants(4, 200), floor_ppm=100_000) == (5, 95)
    assert shares_of(MAX_MIN, 100, wants(20, 200), floor_ppm=100_000) == (20, 80)


def test_a_heavier_broker_is_filled_in_proportion_to_its_weight() -> None:
    rows = [
        Row("a", wanted=Pair(1000), weight=2000),
        Row("b", wanted=Pair(40)),
        Row("c", wanted=Pair(1000)),
    ]
    assert shares_of(MAX_MIN, 200, rows, floor_ppm=NO_FLOOR) == (107, 40, 53)
    # By weight the second is the thirstier: 90 / 3 is less than 40 / 1.
    rows = [Row("a", wanted=Pair(90), weight=3000), Row("b", wanted=Pair(40))]
    assert shares_of(MAX_MIN, 100, rows, floor_ppm=NO_FLOOR) == (75, 25)


def test_residual_gives_a_broker_without_usage_its_floor_alone() -> None:
    assert shares_of(RESIDUAL, 100, used(60, 0, 20), floor_ppm=30_000) == (79, 1, 40)


def test_residual_at_exactly_the_quota_changes_nothing() -> None:
    assert shares_of(RESIDUAL, 100, used(60, 40), floor_ppm=NO_FLOOR) == (60, 40)


def test_a_floor_is_taken_from_the_others_in_proportion_to_what_they_have_above_theirs() -> None:
    # Floors of 10; 80 and 20 have 70 and 10 above theirs and give 8.75 and 1.25.
    assert shares_of(PROPORTIONAL, 100, used(80, 20, 0), floor_ppm=300_000) == (71, 19, 10)


def test_below_saturation_steal_is_proportional() -> None:
    assert shares_of(STEAL, 1000, used(800, 189), floor_ppm=NO_FLOOR) == (809, 191)
    assert shares_of(STEAL, 1000, used(800, 190), floor_ppm=NO_FLOOR) == (808, 500)


def test_steal_raises_the_lowest_by_half_the_gap_to_the_highest_and_leaves_the_others() -> None:
    shares = shares_of(STEAL, 100, used(50, 10, 5, 15, 20), floor_ppm=NO_FLOOR)
    assert shares == (50, 15, 27, 15, 20)


def test_steal_has_the_dominant_one_give_up_what_the_thief_uses_more() -> None:
    """The PIP's step: broker-2 uses 30 in the next update, and broker-1 reduces its limit to 70."""
    assert shares_of(STEAL, 100, used(80, 30), floor_ppm=NO_FLOOR) == (70, 30)
    # Two dominant ones give up in proportion to what they have more than their thieves.
    assert shares_of(STEAL, 100, used(50, 40, 20, 10), floor_ppm=NO_FLOOR) == (37, 33, 20, 10)


def test_an_excess_beyond_the_gaps_is_given_up_by_all() -> None:
    assert shares_of(STEAL, 100, used(60, 60), floor_ppm=NO_FLOOR) == (50, 50)
    assert shares_of(STEAL, 100, used(120), floor_ppm=NO_FLOOR) == (100,)


def test_steal_orders_equal_usage_by_name_and_leaves_out_who_has_none() -> None:
    assert shares_of(STEAL, 100, used(40, 0, 20, 40), floor_ppm=NO_FLOOR) == (40, 0, 30, 40)
