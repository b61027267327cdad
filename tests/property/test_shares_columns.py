"""The laws of max-min over columns: many groups, one or two dimensions, any numbers.

Against exact references (tests/support/slow_shares.py): to the `Milli` in one dimension, to a
billionth of the quota in two. Not covered: laws that need time (tests/simulation), and
PIP-82's policies (test_shares.py).
"""

import random
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from rgd.core.shares.columns import NO_RATE, Rows, Shares, share_out
from tests.support.slow_shares import PPM, fill_together, floors, water_fill

pytestmark = pytest.mark.slow

QUOTA_TOP = 9 * 10**18
QUOTAS = (
    st.sampled_from([0, 1, QUOTA_TOP])
    | st.integers(0, 1000)
    | st.integers(0, 10**8)
    | st.integers(0, QUOTA_TOP)
)
WANTS = (
    st.sampled_from([0, 0, 2**62])
    | st.integers(0, 1000)
    | st.integers(0, 10**8)
    | st.integers(0, 2**62)
)
WEIGHTS = st.just(1000) | st.integers(1, 10) | st.integers(1, 2**31)
FLOORS_PPM = st.sampled_from([0, 0, 10_000, 333_333, PPM])

UNLIMITED = st.just(NO_RATE)
ANY_LIMITS = st.tuples(QUOTAS | UNLIMITED, QUOTAS | UNLIMITED)
BOTH_LIMITED = st.tuples(QUOTAS, QUOTAS)
ONE_LIMITED = st.tuples(QUOTAS, UNLIMITED) | st.tuples(UNLIMITED, QUOTAS)

Limits = tuple[int, int]


@dataclass(frozen=True)
class Case:
    """Some groups; `wants[group][place]` = ((messages, bytes), weight)."""

    quotas: list[Limits]
    wants: list[dict[int, tuple[tuple[int, int], int]]]
    brokers: int
    floor_ppm: int

    def rows(self, shuffle: random.Random | None = None) -> Rows:
        """The rows, those of each group shuffled."""
        listed = []
        for group, wants in enumerate(self.wants):
            of_group = [(group, place, *row) for place, row in wants.items()]
            if shuffle is not None:
                shuffle.shuffle(of_group)
            listed.extend(of_group)
        return Rows(
            group=_column([row[0] for row in listed]),
            broker_index=_column([row[1] for row in listed]),
            wanted=_column([want for row in listed for want in row[2]]).reshape(-1, 2),
            weight=_column([row[3] for row in listed]),
        )

    def share_out(self, rows: Rows) -> Shares:
        """Ask the core."""
        quotas = _column([limit for pair in self.quotas for limit in pair]).reshape(-1, 2)
        return share_out(rows, quotas, brokers=self.brokers, floor_ppm=self.floor_ppm)

    def shares(self, shuffle: random.Random | None = None) -> list[list[Limits]]:
        """Every live broker's shares of every group."""
        shares = self.share_out(self.rows(shuffle)).of_all()
        return [[tuple(share) for share in table] for table in shares.tolist()]


def _column(numbers: list[int]) -> NDArray[np.int64]:
    return np.array(numbers, np.int64)


@st.composite
def cases(
    draw: st.DrawFn,
    quotas: st.SearchStrategy[Limits] = ANY_LIMITS,
    *,
    groups_max: int = 3,
    floors_ppm: st.SearchStrategy[int] = FLOORS_PPM,
) -> Case:
    brokers = draw(st.integers(1, 9))
    row = st.tuples(st.tuples(WANTS, WANTS), WEIGHTS)
    some = st.dictionaries(st.integers(0, brokers - 1), row, max_size=brokers)
    limits = draw(st.lists(quotas, min_size=1, max_size=groups_max))
    return Case(limits, [draw(some) for _ in limits], brokers, draw(floors_ppm))


@given(case=cases())
def test_shares_of_all_live_brokers_sum_to_each_limited_quota_exactly(case: Case) -> None:
    for limits, shares in zip(case.quotas, case.shares(), strict=True):
        for k, quota in enumerate(limits):
            column = [share[k] for share in shares]
            if quota == NO_RATE:
                assert set(column) == {NO_RATE}
            else:
                assert sum(column) == quota
                assert min(column) >= 0


@given(case=cases(), seed=st.integers(0, 1000))
def test_the_order_of_arrival_changes_nothing(case: Case, seed: int) -> None:
    assert case.shares(random.Random(seed)) == case.shares()


@given(case=cases(groups_max=6))
def test_other_groups_in_the_call_change_nothing(case: Case) -> None:
    """Daemons reckon different groups together, and have to agree to the last Milli."""
    alone = [
        Case([limits], [wants], case.brokers, case.floor_ppm).shares()[0]
        for limits, wants in zip(case.quotas, case.wants, strict=True)
    ]
    assert case.shares() == alone


@given(case=cases() | cases(ONE_LIMITED))
def test_a_broker_asked_for_alone_has_what_it_has_among_all(case: Case) -> None:
    shares = case.share_out(case.rows())
    of_all = shares.of_all()
    for index in range(case.brokers):
        assert shares.of_index(index).tolist() == of_all[:, index].tolist()


@given(case=cases(ONE_LIMITED))
def test_in_one_dimension_it_is_water_filling_to_the_milli(case: Case) -> None:
    for limits, wants, shares in zip(case.quotas, case.wants, case.shares(), strict=True):
        k = 0 if limits[0] != NO_RATE else 1
        exact = water_fill(
            limits[k],
            {place: (want[k], weight) for place, (want, weight) in wants.items()},
            case.brokers,
            case.floor_ppm,
        )
        for share, part in zip(shares, exact, strict=True):
            # Remainders that are nearly equal may be placed differently.
            assert abs(share[k] - part) <= 1


@given(wants=st.lists(WANTS, min_size=1, max_size=20), quota=QUOTAS)
def test_at_equal_weight_who_is_short_has_as_much_as_any_to_the_thousandth(
    wants: list[int], quota: int
) -> None:
    rows = {place: ((want, 0), 1000) for place, want in enumerate(wants)}
    case = Case([(quota, NO_RATE)], [rows], len(wants), floor_ppm=0)
    shares = [share for share, _ in case.shares()[0]]
    short = [share for share, want in zip(shares, wants, strict=True) if share < want]
    assert not short or max(shares) - min(short) <= 1


@given(case=cases(BOTH_LIMITED))
def test_in_two_dimensions_it_is_the_filling_from_event_to_event(case: Case) -> None:
    for limits, wants, shares in zip(case.quotas, case.wants, case.shares(), strict=True):
        exact = fill_together(limits, wants, case.brokers, case.floor_ppm)
        for share, part in zip(shares, exact, strict=True):
            for k in (0, 1):
                # Three roundings: the part, what is left, and what is left of that.
                assert abs(share[k] - part[k]) <= 3 + limits[k] / 10**9


@given(case=cases(BOTH_LIMITED, floors_ppm=st.just(0)))
def test_nobody_is_short_while_everything_that_it_wants_is_unspent(case: Case) -> None:
    """Law 4: what a short row wants and others do not is never all left over."""
    for limits, wants, shares in zip(case.quotas, case.wants, case.shares(), strict=True):
        for place, (want, _) in wants.items():
            if all(share >= amount for share, amount in zip(shares[place], want, strict=True)):
                continue
            assert any(
                want[k] > 0
                and sum(
                    min(share[k], wants[other][0][k] if other in wants else 0)
                    for other, share in enumerate(shares)
                )
                >= limits[k] * (1 - 1e-9) - 2 * case.brokers
                for k in (0, 1)
            )


@given(case=cases(BOTH_LIMITED))
def test_nobody_is_below_its_part_while_another_has_more_of_what_it_lacks(case: Case) -> None:
    """Law 3 in the larger fraction of the quota, floors apart."""
    for limits, wants, shares in zip(case.quotas, case.wants, case.shares(), strict=True):
        if min(limits) < 10**6:
            continue  # A Milli is too large a part of it.
        least = [floors(limit, case.brokers, case.floor_ppm) for limit in limits]
        above: dict[int, list[int]] = {}
        levels: dict[int, tuple[float, float]] = {}
        full: set[int] = set()
        for place, (want, weight) in wants.items():
            over = [max(0, want[k] - least[k][place]) for k in (0, 1)]
            if not any(over):
                continue
            above[place] = over
            dominant = max(over[k] / limits[k] for k in (0, 1))
            # What it can use of its shares is the same part of both wants; to two roundings.
            low, high = (
                min(
                    min(1.0, max(0, shares[place][k] - least[k][place] + rounding) / over[k])
                    for k in (0, 1)
                    if over[k]
                )
                for rounding in (-2, 2)
            )
            levels[place] = (low * dominant / weight, high * dominant / weight)
            if high >= 1 - 1e-12:
                full.add(place)
        for poor in above.keys() - full:
            for rich in above:
                if all(above[rich][k] > 0 or above[poor][k] == 0 for k in (0, 1)):
                    weight = min(wants[poor][1], wants[rich][1])
                    assert levels[rich][0] <= levels[poor][1] + 1e-9 / weight


@pytest.mark.parametrize(("floor_ppm", "least"), [(0, 1.0), (10_000, 0.99)])
def test_the_fuller_dimension_is_used_up_over_a_thousand_mixes(
    floor_ppm: int, least: float
) -> None:
    dice = random.Random(5)
    for _ in range(1000):
        brokers = dice.randrange(2, 12)
        wants = {
            place: ((dice.randrange(1, 10**8), dice.randrange(1, 10**8)), 1000)
            for place in range(brokers)
        }
        demand = [sum(want[k] for want, _ in wants.values()) for k in (0, 1)]
        limits = (int(demand[0] * dice.uniform(0.2, 0.9)), int(demand[1] * dice.uniform(0.2, 0.9)))
        shares = Case([limits], [wants], brokers, floor_ppm).shares()[0]
        # A broker that needs both is served by the scarcer of the two.
        served = [
            min(min(share[k] / wants[place][0][k], 1.0) for k in (0, 1))
            for place, share in enumerate(shares)
        ]
        fuller = max(
            sum(part * wants[place][0][k] for place, part in enumerate(served)) / limits[k]
            for k in (0, 1)
        )
        assert fuller >= least - 1e-6


def test_the_designs_example_to_the_thousandth() -> None:
    wants = {0: ((100_000, 50_000), 1000), 1: ((50_000, 100_000), 1000)}
    case = Case([(100_000, 100_000)], [wants], 2, 0)
    assert case.shares() == [[(66_667, 33_333), (33_333, 66_667)]]


def test_who_wants_none_of_what_is_spent_goes_on() -> None:
    wants = {0: ((90, 0), 1000), 1: ((90, 10), 1000), 2: ((0, 2000), 1000)}
    # Messages are spent at 50 each, with 5.56 bytes; the third then has what bytes are left.
    assert Case([(100, 1000)], [wants], 3, 0).shares() == [[(50, 0), (50, 6), (0, 994)]]


def test_a_blocked_dimension_stops_who_wants_it_and_nobody_else() -> None:
    wants = {0: ((10, 50), 1000), 1: ((0, 50), 1000)}
    assert Case([(0, 60)], [wants], 2, 0).shares() == [[(0, 5), (0, 55)]]


def test_without_rows_everybody_has_an_even_part() -> None:
    assert Case([(7, -1)], [{}], 3, 10_000).shares() == [[(3, -1), (2, -1), (2, -1)]]


def test_no_groups_are_no_shares() -> None:
    rows = Case([], [], 3, 0).rows()
    assert Case([], [], 3, 0).share_out(rows).of_rows.shape == (0, 2)
