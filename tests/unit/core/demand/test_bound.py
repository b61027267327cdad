"""Slices of unsaid refusals, what they let count, and what is learnt of them.

Not covered: the rates they come from (test_meter.py).
"""

import numpy as np

from rgd.core.demand.credit import PART_LEAST, REGROWTH, learn_credit
from rgd.core.demand.slots import Slots
from rgd.core.demand.unsaid import UnsaidBound
from rgd.core.units import MILLI, NS_PER_MS, NS_PER_S, Pair
from tests.unit.core.values import ms

NOBODY = (0, 0)


def bound(*moments: float, retry_after: int = 100) -> UnsaidBound:
    made = UnsaidBound()
    for now in moments:
        made.note(Pair(1, 10), retry_after, ms(now))
    return made


def test_within_the_first_slice_everything_counts() -> None:
    assert bound(0, 1, 2).most(NOBODY, NS_PER_S, ms(99)) == (float("inf"), float("inf"))


def test_after_it_a_fresh_group_counts_at_the_first_slices_rate() -> None:
    made = bound(0, 50, 100, 101, 102)
    assert made.most(NOBODY, NS_PER_S, ms(150)) == (20, 200)
    assert bound(0, 50).most(NOBODY, 500 * NS_PER_MS, ms(500)) == (10, 100)


def test_a_known_group_counts_four_times_what_was_told_or_its_largest_slice() -> None:
    made = bound(0, 1, 2, 150, 151)
    assert made.most((MILLI, MILLI), NS_PER_S, ms(1000)) == (4, 30)
    assert made.most((MILLI // 10, MILLI), NS_PER_S, ms(1000)) == (3, 30)


def test_slices_of_the_window_before_are_forgotten() -> None:
    made = bound(0, 1, 2, 150, 151)
    made.open()
    assert made.most((1, 1), NS_PER_S, ms(1000)) == (2, 20)


def test_a_wait_of_nothing_is_a_slice_all_the_same() -> None:
    assert bound(0, 0, 5, retry_after=0).most(NOBODY, NS_PER_S, ms(10)) == (2000, 20_000)


class Belief:
    """The credit of one row, by round; rates are of messages."""

    def __init__(self) -> None:
        self.of = Slots.empty(1)

    @property
    def part(self) -> float:
        return float(1 - self.of.doubt[0, 0])

    def refused(self, admitted: float, unsaid: float, *, throughout: bool = False) -> None:
        self.of.was_clear[0] = not throughout
        self._round(admitted, unsaid, admitted + unsaid)

    def cleared(self, offered: float) -> None:
        self._round(offered, 0, offered)

    def _round(self, admitted: float, unsaid: float, offered: float) -> None:
        rows = (np.array([[amount, 0.0]]) for amount in (admitted, unsaid, offered))
        learn_credit(self.of, *rows)


def test_refusals_are_believed_in_full_at_first() -> None:
    assert Belief().part == 1


def test_the_part_that_proved_new_is_believed() -> None:
    credit = Belief()
    credit.refused(100, 40)
    credit.cleared(110)
    assert credit.part == 0.25
    # Believed again by halves.
    credit.refused(100, 40)
    credit.cleared(140)
    assert credit.part == 0.625


def test_retries_without_end_are_believed_a_little() -> None:
    credit = Belief()
    credit.refused(100, 4000)
    credit.cleared(90)
    assert credit.part == PART_LEAST


def test_refusals_that_do_not_end_are_believed_more_and_more() -> None:
    credit = Belief()
    credit.refused(100, 40, throughout=True)
    credit.cleared(110)
    for _ in range(3):
        credit.refused(100, 40, throughout=True)
    assert credit.part == 0.25 * REGROWTH**2
    credit.refused(100, 40)
    assert credit.part == 0.25 * REGROWTH**2
    for _ in range(20):
        credit.refused(100, 40, throughout=True)
    assert credit.part == 1


def test_a_few_refusals_teach_nothing_and_none_teach_twice() -> None:
    credit = Belief()
    credit.refused(100, 10)
    credit.cleared(100)
    assert credit.part == 1
    credit.refused(100, 40)
    credit.cleared(120)
    credit.cleared(100)
    assert credit.part == 0.5
