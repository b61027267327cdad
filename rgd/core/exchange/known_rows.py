"""Caches where a sender's rows are stored, by the numbers of its dictionary encoding.

A sender names the same groups in every report. Its dictionary encoding
(`rgd.wire.name_dictionary`) assigns each name a number once, so a receiver looks a name up once.
Later rows cost a few passes of numpy, even if a report has few of the sender's groups, and even if
they come and go.

Law: a cached slot is used only while it was not freed since it was cached (`GroupIndex.tickets`), and a
cached row only while it is the sender's and in that slot. So they are still those of the group that has
the number.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rgd.core.exchange.columns import Codes, Ints
from rgd.core.exchange.group_index import NO_SLOT, GroupIndex, grown
from rgd.core.exchange.numbered_names import NumberedNames
from rgd.core.exchange.row_store import NO_ROW, BrokerRows, RowStore
from rgd.core.runs import Places, run_of

#: The ticket where nothing is cached; no slot has it.
_NO_TICKET: Final = -1


class _Steady(NamedTuple):
    """Rows of one report and where they are stored, valid while the holding has this version."""

    names: NumberedNames
    kinds: Codes
    slots: Ints
    rows: Places
    version: int


class KnownRows:
    """One sender's rows by number in its table; a group has one row for each kind."""

    def __init__(self, broker: int, table: Sequence[str | None]) -> None:
        self._broker = broker
        self._table = table
        #: By 2 * number + kind: the row and its slot, and the ticket of the slot.
        self._place: NDArray[np.int32] = np.zeros((64, 2), np.int32)
        self._ticket: NDArray[np.int64] = np.full(64, _NO_TICKET)
        #: The last rows that were all held, and where they are.
        self._steady: _Steady | None = None

    def is_of(self, names: NumberedNames) -> bool:
        """Whether these names have numbers of the same table."""
        return names.table is self._table

    def steady(
        self, names: NumberedNames, kinds: Codes, holding: BrokerRows
    ) -> tuple[Ints, Places] | None:
        """Slots and rows, if the names are the last report's and all its rows are still held."""
        last = self._steady
        if last is None or last.names is not names or last.version != holding.version:
            return None
        return (last.slots, last.rows) if np.array_equal(last.kinds, kinds) else None

    def keep(
        self, names: NumberedNames, kinds: Codes, slots: Ints, rows: Ints, version: int
    ) -> Places:
        """Store the locations of rows that a holding of this version has, all of them."""
        places = run_of(rows)
        self._steady = _Steady(names, kinds, slots, places, version)
        return places

    def find(
        self, names: NumberedNames, kinds: Codes, store: RowStore, index: GroupIndex
    ) -> tuple[Ints, Ints]:
        """The slot and the row of each, both [rows]; `NO_SLOT` and `NO_ROW` where it is not known."""
        at = self._at(names, kinds)
        rows, slots = self._place.take(at, 0).T.astype(np.int64, "C")
        is_known = index.tickets.take(slots) == self._ticket.take(at)
        is_held = is_known & (store.broker.take(rows) == self._broker)
        is_held &= store.slot.take(rows) == slots
        if np.count_nonzero(is_held) < len(is_held):
            rows[~is_held] = NO_ROW
            # A row that was removed leaves its slot known.
            slots[~is_known] = NO_SLOT
        return slots, rows

    def put(
        self, names: NumberedNames, kinds: Codes, slots: Ints, rows: Ints, index: GroupIndex
    ) -> None:
        """Store rows that the sender holds."""
        at = self._at(names, kinds)
        self._place[at, 0], self._place[at, 1] = rows, slots
        self._ticket[at] = index.tickets[slots]

    def _at(self, names: NumberedNames, kinds: Codes) -> Ints:
        count, before = 2 * len(self._table), len(self._ticket)
        if count > before:
            self._place, self._ticket = grown(self._place, count), grown(self._ticket, count)
            self._ticket[before:] = _NO_TICKET
        at: Ints = 2 * names.numbers + kinds
        return at
