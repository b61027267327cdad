"""Rows of usage by number, and which rows each broker has.

Law: a row keeps its number while it lives; numbers of rows that are gone are given again, so the
columns stay as long as the most rows that ever lived at once.

What a broker tells at once lies together, so that taking its next report in touches little memory:
of a hundred brokers' rows few are of groups that matter here, and all have to be kept.
"""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from rgd.core.exchange.columns import Ints
from rgd.core.exchange.group_index import Hashes, grown
from rgd.core.exchange.rows_hash import row_hashes

#: Marks a row that nobody has.
NOBODY: Final = -1

#: No row.
NO_ROW: Final = -1

_NONE: Final[Ints] = np.zeros(0, np.int64)


class RowStore:
    """Columns by row number; what they hold is public, who may write is `UsageMap`."""

    def __init__(self) -> None:
        self._used = 0
        #: Numbers to give again.
        self._free = _NONE
        self.place: NDArray[np.int32] = np.zeros(256, np.int32)
        self.broker: NDArray[np.int32] = np.full(256, NOBODY, np.int32)
        self.topics: Ints = np.zeros(256, np.int64)
        self.hash: Hashes = np.zeros(256, np.uint64)
        #: [rows, 2] Milli per second.
        self.admitted: Ints = np.zeros((256, 2), np.int64)
        self.wanted: Ints = np.zeros((256, 2), np.int64)

    @property
    def nbytes(self) -> int:
        """Bytes of the columns."""
        columns = (self.place, self.broker, self.topics, self.hash, self.admitted, self.wanted)
        return sum(column.nbytes for column in (*columns, self._free))

    def new(self, broker: int, places: Ints) -> Ints:
        """[rows] numbers of rows that one broker has from now on."""
        count = len(places)
        again = self._free[: min(count, len(self._free))]
        self._free = self._free[len(again) :]
        begin, self._used = self._used, self._used + count - len(again)
        self._make_room()
        rows = np.concatenate((again, np.arange(begin, self._used)))
        self.broker[rows] = broker
        self.place[rows] = places
        return rows

    def free(self, rows: Ints) -> None:
        """Let rows go."""
        self.broker[rows] = NOBODY
        # In order, so that what is told together next lies together.
        self._free = np.sort(np.concatenate((self._free, rows)))

    def write(self, rows: Ints, keys: Hashes, topics: Ints, admitted: Ints, wanted: Ints) -> int:
        """Put values into rows; returns by how much the sum of their hashes grew.

        Args:
            rows: [rows] numbers, each once.
            keys: [rows] hashes of group and kind.
            topics: [rows].
            admitted: [rows, 2] Milli per second.
            wanted: [rows, 2] likewise.
        """
        hashes = row_hashes(keys, topics, admitted, wanted)
        growth = int(hashes.sum()) - int(self.hash[rows].sum())
        self.topics[rows] = topics
        self.admitted[rows] = admitted
        self.wanted[rows] = wanted
        self.hash[rows] = hashes
        return growth

    def clear(self, rows: Ints) -> int:
        """Take the values out of rows that go; returns by how much the sum of hashes shrinks."""
        shrinkage = int(self.hash[rows].sum())
        self.hash[rows] = 0
        return shrinkage

    def _make_room(self) -> None:
        before = len(self.broker)
        if self._used <= before:
            return
        for name in ("place", "broker", "topics", "hash", "admitted", "wanted"):
            setattr(self, name, grown(getattr(self, name), self._used))
        self.broker[before:] = NOBODY


class Holding:
    """The rows of one broker, found by place."""

    __slots__ = ("_places", "_rows", "hash")

    def __init__(self) -> None:
        #: In order, and the row of each.
        self._places: Ints = _NONE
        self._rows: Ints = _NONE
        #: Sum of the rows' hashes.
        self.hash = 0

    def __len__(self) -> int:
        return len(self._places)

    @property
    def rows(self) -> Ints:
        """All rows."""
        return self._rows

    @property
    def nbytes(self) -> int:
        """Bytes of the columns."""
        return self._places.nbytes + self._rows.nbytes

    def find(self, places: Ints) -> Ints:
        """[places] the row of each, `NO_ROW` where there is none."""
        if not len(self._places):
            return np.full(len(places), NO_ROW, np.int64)
        at = np.searchsorted(self._places, places)
        at[at == len(self._places)] = 0
        return np.where(self._places[at] == places, self._rows[at], NO_ROW)

    def add(self, places: Ints, rows: Ints) -> None:
        """Take in rows of places that had none."""
        order = np.argsort(places, kind="stable")
        places, rows = places[order], rows[order]
        at = np.searchsorted(self._places, places)
        self._places = np.insert(self._places, at, places)
        self._rows = np.insert(self._rows, at, rows)

    def discard(self, places: Ints) -> None:
        """Let go of rows of places that had one."""
        at = np.searchsorted(self._places, places)
        self._places = np.delete(self._places, at)
        self._rows = np.delete(self._rows, at)
