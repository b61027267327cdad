"""Rows of usage by number, and which rows each broker has.

Law: a row keeps its number while it exists. Freed numbers are reused, so the columns are as long
as the greatest number of rows that existed at once.

Rows that a broker reports together are stored together, so that applying its next report touches
little memory. All rows of a hundred brokers must be kept, though few are of groups used here.
"""

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rgd.core.exchange.columns import Flags, Ints, UsageColumns
from rgd.core.exchange.group_index import Hashes, grown
from rgd.core.exchange.rows_hash import row_hashes
from rgd.core.runs import Places

#: Marks a row that belongs to no broker.
NOBODY: Final = -1

#: Marks a missing row.
NO_ROW: Final = -1

_NONE: Final[Ints] = np.zeros(0, np.int64)


class Amounts(NamedTuple):
    """The values of rows that are stored.

    Attributes:
        topics: [rows].
        admitted: [rows, 2] Milli per second; `wanted` likewise.
    """

    topics: Ints
    admitted: Ints
    wanted: Ints

    @classmethod
    def of(cls, told: UsageColumns, which: Ints | None = None) -> "Amounts":
        """The values of a report's rows, of all or of the indexes in `which`."""
        if which is None:
            return cls(told.topics, told.admitted, told.wanted)
        return cls(told.topics[which], told.admitted.take(which, 0), told.wanted.take(which, 0))


class RowStore:
    """Columns by row number; they may be read by all, and written only by `UsageMap`."""

    def __init__(self) -> None:
        self._used = 0
        #: Row numbers to reuse.
        self._free = _NONE
        self.slot: NDArray[np.int32] = np.zeros(256, np.int32)
        self.broker: NDArray[np.int32] = np.full(256, NOBODY, np.int32)
        self.topics: Ints = np.zeros(256, np.int64)
        #: [2, rows] Milli per second, messages and bytes. Each is a column of its own, as on the wire, because
        #: numpy is slow along an axis of two.
        self.admitted: Ints = np.zeros((2, 256), np.int64)
        self.wanted: Ints = np.zeros((2, 256), np.int64)

    @property
    def nbytes(self) -> int:
        """Size of the columns in bytes."""
        columns = (self.slot, self.broker, self.topics, self.admitted, self.wanted, self._free)
        return sum(column.nbytes for column in columns)

    @property
    def live(self) -> int:
        """Number of rows in use."""
        return self._used - len(self._free)

    def new(self, broker: int, slots: Ints) -> Ints:
        """[rows] numbers of new rows of one broker."""
        count = len(slots)
        again = self._free[: min(count, len(self._free))]
        self._free = self._free[len(again) :]
        begin, self._used = self._used, self._used + count - len(again)
        self._make_room()
        rows = np.concatenate((again, np.arange(begin, self._used)))
        self.broker[rows] = broker
        self.slot[rows] = slots
        return rows

    def free(self, rows: Ints) -> None:
        """Free rows for reuse."""
        self.broker[rows] = NOBODY
        # Sorted, so that rows reported together next are stored together.
        self._free = np.sort(np.concatenate((self._free, rows)))

    def differs(self, rows: Places, amounts: Amounts) -> tuple[Flags, Flags]:
        """[rows] whether the demand in rows differs from this; and whether admitted work does."""
        return (
            _are_different(_taken(self.wanted, rows), amounts.wanted.T),
            _are_different(_taken(self.admitted, rows), amounts.admitted.T),
        )

    def write(self, rows: Places, amounts: Amounts) -> None:
        """Write values into rows."""
        self.topics[rows] = amounts.topics
        for columns, values in ((self.admitted, amounts.admitted), (self.wanted, amounts.wanted)):
            for column, value in zip(columns, values.T, strict=True):
                column[rows] = value

    def hash_of(self, rows: Places, keys: Hashes) -> int:
        """The sum of the hashes of rows; `keys` are the hashes of groups and kinds, by slot."""
        hashes = row_hashes(
            keys.take(self.slot[rows]),
            self.topics[rows],
            _taken(self.admitted, rows).T,
            _taken(self.wanted, rows).T,
        )
        return int(hashes.sum())

    def _make_room(self) -> None:
        before = len(self.broker)
        if self._used <= before:
            return
        for name in ("slot", "broker", "topics"):
            setattr(self, name, grown(getattr(self, name), self._used))
        self.broker[before:] = NOBODY
        for name in ("admitted", "wanted"):
            larger = np.zeros((2, len(self.broker)), np.int64)
            larger[:, :before] = getattr(self, name)
            setattr(self, name, larger)


class BrokerRows:
    """The rows of one broker, found by slot."""

    __slots__ = ("_rows", "_slots", "hash", "is_partial", "version")

    def __init__(self) -> None:
        #: Sorted slots, and the row of each.
        self._slots: Ints = _NONE
        self._rows: Ints = _NONE
        #: Sum of the rows' hashes; None: unknown, because rows have changed since it was computed.
        self.hash: int | None = 0
        #: Changes whenever rows are added or removed.
        self.version = 0
        #: Whether any received rows were not stored since the last full state began.
        self.is_partial = False

    def __len__(self) -> int:
        return len(self._slots)

    @property
    def slots(self) -> Ints:
        """The slots of all rows, sorted."""
        return self._slots

    @property
    def rows(self) -> Ints:
        """All rows, in the order of `slots`."""
        return self._rows

    @property
    def span(self) -> Places:
        """All rows, in any order: a slice if they are adjacent."""
        rows = self._rows
        if len(rows) == 0:
            return rows
        first, last = int(rows.min()), int(rows.max())
        return slice(first, last + 1) if last - first == len(rows) - 1 else rows

    @property
    def nbytes(self) -> int:
        """Size of the columns in bytes."""
        return self._slots.nbytes + self._rows.nbytes

    def find(self, slots: Ints) -> Ints:
        """[slots] the row of each, `NO_ROW` if there is none."""
        if not len(self._slots):
            return np.full(len(slots), NO_ROW, np.int64)
        at = np.searchsorted(self._slots, slots)
        # A slot beyond the last is compared with the last.
        rows = self._rows.take(at, mode="clip")
        rows[self._slots.take(at, mode="clip") != slots] = NO_ROW
        return rows

    def add(self, slots: Ints, rows: Ints) -> None:
        """Add rows of slots that had none."""
        order = np.argsort(slots, kind="stable")
        slots, rows = slots[order], rows[order]
        at = np.searchsorted(self._slots, slots)
        self._slots = np.insert(self._slots, at, slots)
        self._rows = np.insert(self._rows, at, rows)
        self.version += 1

    def discard(self, slots: Ints) -> None:
        """Remove the rows of slots that had one."""
        at = np.searchsorted(self._slots, slots)
        self._slots = np.delete(self._slots, at)
        self._rows = np.delete(self._rows, at)
        self.version += 1


def _are_different(left: Ints, right: Ints) -> Flags:
    """[rows] whether columns [2, rows] differ in either."""
    flags: Flags = left[0] != right[0]
    flags |= left[1] != right[1]
    return flags


def _taken(columns: Ints, rows: Places) -> Ints:
    """[2, rows] of two columns; a slice gives a view, not a copy."""
    # Gathering by an index in brackets takes numpy several times as long.
    return columns[:, rows] if isinstance(rows, slice) else columns.take(rows, 1)
