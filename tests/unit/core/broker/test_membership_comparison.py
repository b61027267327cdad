"""Which reports are compared with what we hold, by what follows on those that differ.

Every report here says another hash than that of what is held of its sender, from some report on
without a gap: as if something had gone wrong in our own map, for what is lost on the way leaves a gap.
Not covered: what is asked then, and what it repairs (test_membership.py, tests/simulation).
"""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from rgd.core.bounds import BOUNDS
from rgd.core.broker.effects import Alarm, AlarmCode
from rgd.core.broker.membership import REPORTS_A_COMPARISON
from rgd.core.exchange.messages import Report
from rgd.core.exchange.rows import UsageRow
from tests.unit.core.broker.desk import ME, Desk
from tests.unit.core.values import report, usage

MANY = BOUNDS.exchange.hashed_rows_max + 1
#: Longer than a broker is not asked again.
ROUND_MS = 1001
WRONG = 99


def rows(sequence: int, count: int = MANY) -> list[UsageRow]:
    """So many rows, which are other ones in every report."""
    return [usage(sequence, group=f"g{place}") for place in range(count)]


def large(broker: str, sequence: int, rows_hash: int | None = None) -> Report:
    """A report of many rows."""
    return report(broker, *rows(sequence), sequence=sequence, rows_hash=rows_hash)


def is_missed(desk: Desk, said: Report, at: float) -> bool:
    """Whether a report shows that something was missed."""
    return Alarm(AlarmCode.REPORTS_MISSED, said.sender.broker) in desk.hear(said, at)


def missed(desk: Desk, said: Sequence[Report]) -> list[int]:
    """The sequences of the reports, a round apart, that show that something was missed."""
    begin = 2100
    return [
        word.sequence
        for place, word in enumerate(said)
        if is_missed(desk, word, begin + place * ROUND_MS)
    ]


@pytest.mark.parametrize("right", range(1, REPORTS_A_COMPARISON + 1))
def test_a_difference_without_a_gap_is_found_that_many_reports_later_at_the_latest(
    live: Desk, right: int
) -> None:
    said = [large("b2", sequence) for sequence in range(1, right + 1)]
    wrong = range(right + 1, right + 1 + REPORTS_A_COMPARISON)
    said += [large("b2", sequence, WRONG) for sequence in wrong]
    first, *others = missed(live, said)
    assert first in wrong
    # From then on every report is compared, until one holds.
    assert others == list(range(first + 1, wrong[-1] + 1))


def first_unseen(live: Desk) -> int:
    """A sequence at which a large report of b2, wrong, is not compared; all before it were right."""
    live.hear(large("b2", 1), 2100)
    number = live.broker.usage.number_of("b2")
    sequence = 2
    while (sequence + number) % REPORTS_A_COMPARISON == 0:
        live.hear(large("b2", sequence), 2100)
        sequence += 1
    return sequence


def test_a_large_report_between_is_not_compared(live: Desk) -> None:
    assert not is_missed(live, large("b2", first_unseen(live), WRONG), 2200)
    assert not live.broker.usage.is_hashed("b2")


def test_who_was_wrong_is_compared_until_it_is_right_though_it_is_not_asked_each_time(
    live: Desk,
) -> None:
    sequence = first_unseen(live)
    assert is_missed(live, large("b2", sequence + 1, WRONG), 2200)
    assert not is_missed(live, large("b2", sequence + 2, WRONG), 2300)
    assert is_missed(live, large("b2", sequence + 3, WRONG), 2200 + ROUND_MS)


def own(sequence: int, rows_hash: int | None = None) -> Report:
    """A large report of our own, as it comes back."""
    return replace(large("b1", sequence, rows_hash), sender=ME)
