"""The rows of each group: a list of row numbers by slot, with all lists in one arena.

Law: a group's rows are adjacent. Each group has a region with some room to grow. A full region
moves to the end, and the arena is compacted when holes are the larger part. Gathering the rows
of thousands of groups therefore takes a few passes of numpy.
"""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from rgd.core.exchange.columns import Ints
from rgd.core.exchange.group_index import grown

#: Initial room of a group's region, in rows.
_ROOM: Final = 4


class GroupRegions:
    """Row numbers by slot; the `rows` of a call must exist, at most one for each (slot, broker)."""

    def __init__(self) -> None:
        #: By slot: start of the group's region, number of its rows, and room for rows.
        self._start = np.zeros(64, np.int64)
        self._count = np.zeros(64, np.int64)
        self._room = np.zeros(64, np.int64)
        #: The arena, filled up to `_used`; and by row, its position in the arena.
        self._rows: NDArray[np.int32] = np.zeros(256, np.int32)
        self._at: Ints = np.zeros(256, np.int64)
        self._used = 0
        self._live = 0

    @property
    def nbytes(self) -> int:
        """Size of the arrays in bytes."""
        arrays = (self._start, self._count, self._room, self._rows, self._at)
        return sum(array.nbytes for array in arrays)

    @property
    def live(self) -> int:
        """Number of rows."""
        return self._live

    @property
    def used(self) -> int:
        """Places of the arena that are rows, room to grow, or holes."""
        return self._used

    def make_room(self, slots: int, rows: int) -> None:
        """Make room for `slots` slots, and for row numbers below `rows`."""
        if slots <= len(self._start) and rows <= len(self._at):
            return
        self._start = grown(self._start, slots)
        self._count = grown(self._count, slots)
        self._room = grown(self._room, slots)
        self._at = grown(self._at, rows)

    def counts(self, slots: Ints) -> Ints:
        """[slots] number of rows of each."""
        return self._count[slots]

    def gather(self, slots: Ints) -> tuple[Ints, Ints]:
        """The rows of these slots, slot by slot: (row numbers, number of rows of each slot)."""
        counts = self._count.take(slots)
        return self._rows.take(_ranges(self._start.take(slots), counts)).astype(np.int64), counts

    def add(self, slots: Ints, rows: Ints) -> None:
        """Add rows, at most one for each slot."""
        full = slots[self._count[slots] == self._room[slots]]
        if len(full) and self._has_holes:
            # Compaction also removes the spare room of other groups.
            self._compact()
            full = slots[self._count[slots] == self._room[slots]]
        self._relocate(full)
        at = self._start[slots] + self._count[slots]
        self._count[slots] += 1
        self._rows[at] = rows
        self._at[rows] = at
        self._live += len(rows)

    def remove(self, slots: Ints, rows: Ints) -> None:
        """Remove rows, at most one of each slot: the last row of a region fills the hole."""
        self._count[slots] -= 1
        last = self._rows[self._start[slots] + self._count[slots]]
        at = self._at[rows]
        self._rows[at] = last
        self._at[last] = at
        self._live -= len(rows)

    @property
    def _has_holes(self) -> bool:
        """Whether much of the arena is neither rows nor the minimum room of groups."""
        return self._used > self._live * 3 // 2 + _ROOM * len(self._start)

    def _relocate(self, slots: Ints) -> None:
        """Move these groups to larger regions at the end of the arena."""
        if len(slots) == 0:
            return
        counts = self._count[slots]
        rooms = np.maximum(_ROOM, counts + counts // 2)
        starts = self._used + np.cumsum(rooms) - rooms
        self._used += int(rooms.sum())
        self._rows = grown(self._rows, self._used)
        moved = self._rows[_ranges(self._start[slots], counts)]
        at = _ranges(starts, counts)
        self._rows[at] = moved
        self._at[moved] = at
        self._start[slots] = starts
        self._room[slots] = rooms

    def _compact(self) -> None:
        """Close the holes."""
        counts = self._count
        rows = self._rows[_ranges(self._start, counts)]
        self._room = np.where(counts > 0, np.maximum(_ROOM, counts), 0)
        self._start = np.cumsum(self._room) - self._room
        self._used = int(self._room.sum())
        at = _ranges(self._start, counts)
        self._rows = np.zeros(max(256, self._used), np.int32)
        self._rows[at] = rows
        self._at[rows] = at


def _ranges(starts: Ints, counts: Ints) -> Ints:
    """start, start + 1, ... of each range, one after another."""
    ends = counts.cumsum()
    before: Ints = ends - counts
    firsts: Ints = starts - before
    ranges: Ints = np.repeat(firsts, counts)
    ranges += np.arange(len(ranges))
    return ranges
