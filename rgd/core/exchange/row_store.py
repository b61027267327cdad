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
from rgd.core.exchange.group_index import grown
from rgd.core.exchange.rate_words import (
    ADMITTED_BITS,
    NOT_CODED,
    CodedColumns,
    Words,
    rates_of,
)
from rgd.core.runs import Places

#: Marks a row that belongs to no broker.
NOBODY: Final = -1

#: Marks a missing row.
NO_ROW: Final = -1

_NONE: Final[Ints] = np.zeros(0, np.int64)

#: The rates of a row, in the order of columns.
_RATES: Final = ("admitted messages", "admitted bytes", "wanted messages", "wanted bytes")


class Amounts(NamedTuple):
    """The values of rows that are stored.

    Attributes:
        topics: [rows].
        words: [rows] rates as codes; None where they have none.
        rates: [4, rows] Milli per second: admitted messages and bytes, wanted messages and bytes;
            None where there are words.
    """

    topics: Ints
    words: Words | None
    rates: Ints | None

    @classmethod
    def of(cls, told: UsageColumns, which: Ints | None = None) -> "Amounts":
        """The values of a report's rows, of all or of the indexes in `which`."""
        topics = told.topics if which is None else told.topics[which]
        if isinstance(told, CodedColumns):
            return cls(topics, told.words if which is None else told.words.take(which), None)
        rates = np.concatenate((told.admitted.T, told.wanted.T))
        return cls(topics, None, rates if which is None else rates.take(which, 1))

    def looked_up(self) -> Ints:
        """[4, rows] the rates, whatever form they have."""
        if self.words is not None:
            return rates_of(self.words)
        assert self.rates is not None, "rows have words or rates"
        return self.rates


class RowStore:
    """Columns by row number; they may be read by all, and written only by `UsageMap`."""

    def __init__(self) -> None:
        self._used = 0
        #: Row numbers to reuse.
        self._free = _NONE
        self.slot: NDArray[np.int32] = np.zeros(256, np.int32)
        self.broker: NDArray[np.int32] = np.full(256, NOBODY, np.int32)
        self.topics: Ints = np.zeros(256, np.int64)
        self.words: Words = np.zeros(256, np.uint64)
        #: [4, rows] the rates of rows that are `NOT_CODED`, as in `Amounts`; no rows until there is one. Each
        #: is a column of its own, because numpy is slow along a short axis.
        self._rates: Ints = np.zeros((len(_RATES), 0), np.int64)

    @property
    def nbytes(self) -> int:
        """Size of the columns in bytes."""
        columns = (self.slot, self.broker, self.topics, self.words)
        return sum(column.nbytes for column in (*columns, self._rates, self._free))

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
        # Sorted, so that rows reported together next are stored together. Two sorted parts are merged,
        # where the default would sort all free rows again for each of many peers that leave together.
        self._free = np.sort(np.concatenate((self._free, rows)), kind="stable")

    def rates(self, rows: Places) -> Ints:
        """[4, rows] Milli per second: admitted messages and bytes, wanted messages and bytes."""
        words = self.words[rows]
        if not self._rates.shape[1]:
            return rates_of(words)
        is_coded = words != NOT_CODED
        if np.count_nonzero(is_coded) == len(words):
            return rates_of(words)
        rates = self._rates[:, rows] if isinstance(rows, slice) else self._rates.take(rows, 1)
        if np.count_nonzero(is_coded):
            rates = np.where(is_coded, rates_of(words), rates)
        return rates

    def differs(self, rows: Places, amounts: Amounts) -> tuple[Flags, Flags]:
        """[rows] whether the demand in rows differs from this; and whether admitted work does."""
        if amounts.words is not None:
            differences = self.words[rows]
            if differences.max(initial=0) != NOT_CODED:
                differences = differences ^ amounts.words
                return differences > ADMITTED_BITS, (differences & ADMITTED_BITS) > 0
        are_different = self.rates(rows) != amounts.looked_up()
        admitted, wanted = are_different[:2], are_different[2:]
        return wanted[0] | wanted[1], admitted[0] | admitted[1]

    def write(self, rows: Places, amounts: Amounts) -> None:
        """Write values into rows."""
        self.topics[rows] = amounts.topics
        if amounts.words is not None:
            self.words[rows] = amounts.words
            return
        self.words[rows] = NOT_CODED
        self._make_room_for_rates()
        for column, value in zip(self._rates, amounts.looked_up(), strict=True):
            column[rows] = value

    def _make_room(self) -> None:
        before = len(self.broker)
        if self._used <= before:
            return
        for name in ("slot", "broker", "topics", "words"):
            setattr(self, name, grown(getattr(self, name), self._used))
        self.broker[before:] = NOBODY

    def _make_room_for_rates(self) -> None:
        before = self._rates.shape[1]
        if before < len(self.broker):
            larger = np.zeros((len(self._rates), len(self.broker)), np.int64)
            larger[:, :before] = self._rates
            self._rates = larger


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
        at = self._slots.searchsorted(slots)
        # A slot beyond the last is compared with the last.
        rows = self._rows.take(at, mode="clip")
        rows[self._slots.take(at, mode="clip") != slots] = NO_ROW
        return rows

    def add(self, slots: Ints, rows: Ints) -> None:
        """Add rows of slots that had none."""
        order = slots.argsort(kind="stable")
        slots, rows = slots.take(order), rows.take(order)
        at = self._slots.searchsorted(slots) + np.arange(len(slots))
        # By `np.insert` and `np.delete` it takes five times as long.
        is_held = np.ones(len(self._slots) + len(slots), np.bool_)
        is_held[at] = False
        self._slots = _joined(self._slots, is_held, slots, at)
        self._rows = _joined(self._rows, is_held, rows, at)
        self._change()

    def discard(self, slots: Ints) -> None:
        """Remove the rows of slots that had one."""
        stays = np.ones(len(self._slots), np.bool_)
        stays[self._slots.searchsorted(slots)] = False
        self._slots, self._rows = self._slots[stays], self._rows[stays]
        self._change()

    def _change(self) -> None:
        self.version += 1
        self.hash = None


def _joined(held: Ints, is_held: Flags, added: Ints, at: Ints) -> Ints:
    """A column of what was held, in its order, with what is added at these indexes."""
    column = np.empty(len(is_held), np.int64)
    column[is_held], column[at] = held, added
    return column
