"""Readings of counters as rows of a column, and the arithmetic between two of them.

A mark is all counters of a group at one time: one row of `FIELDS` integers. A rate is the count
between two marks divided by the time between them, so nothing is counted twice or lost. Counts are
whole units, rates Milli per second, and both are doubles (`rgd.core.counts.page`).
"""

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rgd.core.counts.page import BESIDES, PLAIN, REFUSING, Page
from rgd.core.units import MILLI, NS_PER_S, RATE_MAX

#: A count times this, divided by a time in ns, is a rate in Milli per second.
SCALE: Final = MILLI * NS_PER_S

#: The columns of a mark; those of amounts are pairs, messages and bytes.
AT, SINCE, REQUESTS = range(3)
ADMITTED: Final = slice(3, 5)
RETRIES, REFUSALS = 5, 6
RETRIED, REFUSED, REFUSED_NEW, UNSAID = (slice(at, at + 2) for at in range(7, 15, 2))
FIELDS: Final = 15
#: All refused work.
ALL_REFUSED: Final = slice(9, 15)

#: The columns of what only some rows have besides marks: given back, held back in the open window, and in it or the
#: one before, and slices of unsaid refusals.
RETURNED, HELD, HELD_LATELY = slice(0, 2), slice(2, 4), slice(4, 6)
SLICES: Final = slice(6, 14)
LARGEST_SLICE: Final = slice(8, 10)

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]


class Readings(NamedTuple):
    """A page as columns."""

    #: [rows] slot ids.
    slots: Ints
    #: [rows, FIELDS].
    marks: Floats
    #: [rows] active topics of the open window.
    topics: Floats
    #: [rows] the last wait of a refused caller, ms.
    wait_ms: Floats
    #: The places of rows that have more, and [such rows, BESIDES - 1] what.
    places: Ints
    besides: Floats


def readings_of(page: Page) -> Readings:
    """A page as columns; of a row that it has twice, the last reading, since the first."""
    plain = np.frombuffer(page.plain).reshape(-1, PLAIN)
    refusing = np.frombuffer(page.refusing).reshape(-1, REFUSING)
    besides = np.frombuffer(page.besides).reshape(-1, BESIDES)
    slots = plain[:, 0].astype(np.int64)
    order = np.arange(len(slots))
    first, last, place = np.zeros((3, int(slots.max(initial=-1)) + 1), np.int64)
    first[slots[::-1]], last[slots] = order[::-1], order
    kept = (last[slots] == order).nonzero()[0]
    slots, begun, plain = slots[kept], plain[first[slots[kept]], 1 + SINCE], plain[kept]
    place[slots] = order[: len(slots)]
    marks, wait_ms = np.zeros((len(plain), FIELDS)), np.zeros(len(plain))
    marks[:, :RETRIES], marks[:, SINCE] = plain[:, 1:-1], begun
    places = place[refusing[:, 0].astype(np.int64)]
    marks[places, RETRIES:], wait_ms[places] = refusing[:, 1:-1], refusing[:, -1]
    places = place[besides[:, 0].astype(np.int64)]
    return Readings(slots, marks, plain[:, -1], wait_ms, places, besides[:, 1:])


def counted(begin: Floats, end: Floats, fields: slice) -> Floats:
    """[rows, 2] the counts between two marks; beyond 2**53 marks are not exact, and may seem to fall."""
    return np.maximum(end[:, fields] - begin[:, fields], 0)


def arrived(begin: Floats, end: Floats) -> Floats:
    """[rows, 2] new work between two marks: what was admitted, or what arrived if that is more."""
    admitted = counted(begin, end, ADMITTED)
    new = admitted - counted(begin, end, RETRIED) + counted(begin, end, REFUSED_NEW)
    return np.maximum(admitted, new)


def came_back(begin: Floats, end: Floats) -> Floats:
    """[rows, 2] marked retries between two marks, granted or refused again; at most what was refused for the group."""
    refused = counted(begin, end, REFUSED)
    new = counted(begin, end, REFUSED_NEW) + counted(begin, end, UNSAID)
    return np.clip(counted(begin, end, RETRIED) + refused - new, 0, refused)


def elapsed(begin: Floats, end: Floats) -> Floats:
    """[rows] nanoseconds from one mark to another, at least one."""
    return np.maximum(end[:, AT] - begin[:, AT], 1)


def per_second(count: Floats, elapsed_ns: Floats) -> Floats:
    """[rows, 2] Milli per second."""
    return np.minimum(count * SCALE / elapsed_ns[:, None], RATE_MAX)


def whole(amounts: Floats) -> Ints:
    """Round amounts to whole numbers that fit a column, a message and a record."""
    numbers: Ints = np.minimum(np.rint(amounts), RATE_MAX).astype(np.int64)
    return numbers
