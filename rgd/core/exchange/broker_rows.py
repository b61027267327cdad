"""The rows that one broker advertises, and which brokers have a row of each group.

Law: a broker's rows are sorted by slot, at most one of each. Rows that stay are written in place; where rows
come or go, the broker's arrays are made anew. No other broker's are touched.
"""

import numpy as np
from numpy.typing import NDArray

from rgd.core.exchange.columns import Flags, Ints, UsageColumns
from rgd.core.exchange.group_index import grown
from rgd.core.exchange.known_slots import KnownSlots

#: [5, rows] topics, then Milli per second: admitted messages and bytes, wanted messages and bytes. Each is a
#: column of its own, because numpy is slow along a short axis.
Amounts = Ints

_NO_SLOTS: Ints = np.zeros(0, np.int64)


def amounts_of(rows: UsageColumns) -> Amounts:
    """The amounts of a report's rows."""
    return np.concatenate((rows.topics[None], rows.admitted.T, rows.wanted.T))


class BrokerRows:
    """The rows of one broker, of all shards that are read."""

    __slots__ = ("amounts", "known", "partial", "slots")

    def __init__(self) -> None:
        self.slots = _NO_SLOTS
        self.amounts: Amounts = np.zeros((5, 0), np.int64)
        #: Shards of which received rows were not stored since the last full state began.
        self.partial: set[int] = set()
        #: By shard: the slots of the names in the sender's table.
        self.known: dict[int, KnownSlots] = {}

    def __len__(self) -> int:
        return len(self.slots)

    def find(self, slots: Ints) -> tuple[Ints, Flags]:
        """[slots] the place of each, and whether there is a row."""
        if not len(self.slots):
            return np.zeros(len(slots), np.int64), np.zeros(len(slots), np.bool_)
        at = self.slots.searchsorted(slots)
        # A slot beyond the last is compared with the last.
        return at, self.slots.take(at, mode="clip") == slots

    def add(self, slots: Ints, amounts: Amounts) -> None:
        """Add rows of slots that have none."""
        slots = np.concatenate((self.slots, slots))
        order = slots.argsort(kind="stable")
        self.slots = slots.take(order)
        self.amounts = np.concatenate((self.amounts, amounts), axis=1).take(order, 1)

    def keep(self, stays: Flags) -> None:
        """Remove all other rows."""
        self.slots, self.amounts = self.slots[stays], self.amounts.compress(stays, 1)


class RowBrokers:
    """A bit for each slot and broker number: whether the broker has a row of the group."""

    def __init__(self) -> None:
        #: [brokers / 8, slots], the lowest bit first.
        self._bits: NDArray[np.uint8] = np.zeros((1, 64), np.uint8)

    @property
    def nbytes(self) -> int:
        """Size in bytes."""
        return self._bits.nbytes

    def make_room(self, brokers: int, slots: int) -> None:
        """Make room for so many broker numbers and slots."""
        before, rows = self._bits.shape[1], -(-brokers // 8)
        if slots > before:
            self._bits = grown(self._bits.T, slots).T.copy()
        self._bits = grown(self._bits, rows, capacity=rows)

    def add(self, slots: Ints, number: int) -> None:
        """Note that a broker has a row of each of these slots, at most one."""
        self._bits[number >> 3, slots] |= np.uint8(1 << (number & 7))

    def remove(self, slots: Ints, number: int) -> None:
        """Note that it has none."""
        self._bits[number >> 3, slots] &= np.uint8(0xFF ^ 1 << (number & 7))

    def of(self, slots: Ints) -> tuple[Ints, Ints]:
        """The broker number and the index into `slots` of each row, broker by broker."""
        bits = np.unpackbits(self._bits.take(slots, 1), axis=0, bitorder="little")
        brokers, places = bits.nonzero()
        return brokers, places

    def counts(self, slots: Ints) -> Ints:
        """[slots] number of rows of each."""
        counts: Ints = np.bitwise_count(self._bits.take(slots, 1)).sum(axis=0, dtype=np.int64)
        return counts

    def total(self) -> int:
        """Number of all rows."""
        return int(np.bitwise_count(self._bits).sum(dtype=np.int64))
