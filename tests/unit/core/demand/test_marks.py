"""Pages of readings: what one has, several have together."""

import numpy as np

from rgd.core.counts.counters import Counters, Listener
from rgd.core.counts.news import News
from rgd.core.counts.page import joined, pack
from rgd.core.demand.marks import AT, REQUESTS, SINCE, readings_of
from rgd.core.units import Nanos, Pair


def counters(news: Listener, slot: int) -> Counters:
    """Counters of which every third refused work, and every other of those held some back."""
    of = Counters(Nanos(slot), news, slot=slot)
    of.admit(slot, 2 * slot, 1, "topic", Nanos(10 * slot), requests=3)
    if slot % 3 == 0:
        of.refuse(Pair(slot, 5 * slot), 0, None, 7, Nanos(11 * slot))
    if slot % 6 == 0:
        of.hold(Pair(slot, 1), None)
    return of


def test_pages_together_read_as_one_page_of_all_rows() -> None:
    news = News({})
    rows = [counters(news, slot) for slot in (40, 3, 12, 7, 6, 0, 30, 1)]
    whole = readings_of(pack(rows))
    for size in (1, 3, 8):
        pages = [pack(rows[begin : begin + size]) for begin in range(0, len(rows), size)]
        for one, other in zip(whole, readings_of(joined(pages)), strict=True):
            assert np.array_equal(one, other, equal_nan=True)
    assert whole.slots.tolist() == [40, 3, 12, 7, 6, 0, 30, 1]
    assert whole.wait_ms.tolist() == [0, 7, 7, 0, 7, 7, 7, 0]
    assert whole.places.tolist() == [1, 2, 4, 5, 6]
    assert whole.besides[:, 2].tolist() == [0, 12, 6, 0, 30]


def test_no_page_has_no_rows() -> None:
    assert len(readings_of(joined([])).slots) == 0


def test_of_a_row_that_two_pages_have_the_last_reading_counts_since_the_first() -> None:
    news = News({})
    rows = [counters(news, slot) for slot in (6, 2, 9)]
    before = pack(rows)
    rows[0].touched_at = Nanos(70)
    rows[0].admit(1, 1, 1, None, Nanos(80))
    read = readings_of(joined([before, pack(rows[:1])]))
    assert read.slots.tolist() == [2, 9, 6]
    assert read.marks[:, [AT, SINCE, REQUESTS]].tolist() == [[20, 20, 3], [99, 90, 4], [80, 60, 5]]
    assert read.wait_ms.tolist() == [0, 7, 7]
    assert read.places.tolist() == [2, 1, 2]
