"""Slices of unsaid refusals, what they let count, and what is learnt of them.

Not covered: the rates they come from (test_meter.py).
"""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rgd.core.counts.unsaid import UnsaidBound
from rgd.core.demand.bound import most_unsaid
from rgd.core.demand.credit import PART_LEAST, learn_credit
from rgd.core.demand.slots import Slots
from rgd.core.units import NS_PER_MS, NS_PER_S, Pair
from tests.unit.core.values import ms

NOBODY = (0.0, 0.0)

#: Rates of work, Milli per second.
amounts = st.floats(1, 1e12)


def bound(*moments: float, retry_after: int = 100) -> UnsaidBound:
    made = UnsaidBound()
    for now in moments:
        made.note(Pair(1, 10), retry_after, ms(now))
    return made


def most(
    made: UnsaidBound, advertised: tuple[float, float], period_ns: int, now: float
) -> list[float]:
    slices, told = np.array([made.numbers()]), np.array([advertised])
    (found,) = most_unsaid(slices, told, np.array([float(period_ns)]), np.array([ms(now)]))
    return [*map(float, found)]


def test_after_it_a_fresh_group_counts_at_the_first_slices_rate() -> None:
    made = bound(0, 50, 100, 101, 102)
    assert most(made, NOBODY, NS_PER_S, 150) == [20, 200]
    assert most(bound(0, 50), NOBODY, 500 * NS_PER_MS, 500) == [10, 100]


def test_slices_of_the_window_before_are_forgotten() -> None:
    made = bound(0, 1, 2, 150, 151)
    made.open()
    assert most(made, (1, 1), NS_PER_S, 1000) == [2, 20]


class Belief:
    """The credit of one row, by round; rates are of messages."""

    def __init__(self) -> None:
        self.of = Slots.empty(1)

    @property
    def part(self) -> float:
        return float(1 - self.of.doubt[0, 0])

    def refused(self, admitted: float, unsaid: float) -> None:
        rows = (np.array([[amount, 0.0]]) for amount in (admitted, unsaid))
        learn_credit(self.of, *rows)

    def cleared(self, admitted: float) -> None:
        self.refused(admitted, 0)


def test_retries_without_end_are_believed_a_little() -> None:
    credit = Belief()
    for _ in range(3):
        credit.refused(1000, 40_000)
        credit.cleared(1000)
    assert credit.part == pytest.approx(PART_LEAST)


def test_of_few_refusals_nothing_is_learnt_and_of_many_nearly_all() -> None:
    few, many = Belief(), Belief()
    few.refused(1000, 10)
    few.cleared(1000)
    assert few.part > 0.9999
    many.refused(1000, 10_000)
    many.cleared(2000)
    assert many.part == pytest.approx(0.1, abs=0.01)


@given(admitted=amounts, unsaid=amounts, fallen_to=st.floats(0, 0.49))
def test_demand_that_fell_teaches_nothing(admitted: float, unsaid: float, fallen_to: float) -> None:
    credit = Belief()
    credit.refused(admitted, unsaid)
    credit.cleared(fallen_to * admitted)
    assert credit.part == 1


def test_refusals_that_go_on_and_silence_teach_nothing() -> None:
    credit = Belief()
    credit.refused(100, 400)
    credit.refused(100, 400)
    credit.cleared(0)
    assert credit.part == 1
    credit.cleared(100)
    assert credit.part < 1
