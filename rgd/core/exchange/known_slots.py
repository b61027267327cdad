"""Caches the slots of a sender's groups by the numbers of its dictionary encoding.

A sender names the same groups in every report. Its dictionary encoding
(`rgd.wire.name_dictionary`) assigns each name a number once, so a receiver looks a name up once.
Later rows cost a few passes of numpy, even if a report has few of the sender's groups.

Law: a cached slot is used only while the index has not freed it (`GroupIndex.tickets`).
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rgd.core.exchange.columns import Codes, Ints
from rgd.core.exchange.group_index import NO_SLOT, GroupIndex, grown
from rgd.core.exchange.numbered_names import NumberedNames
from rgd.core.exchange.row_store import BrokerRows
from rgd.core.runs import Places, run_of

#: Marks a row that was not looked up yet.
_NOT_FOUND: Final = -2


class _Steady(NamedTuple):
    """Rows of one report and where they are stored, valid while the holding has this version."""

    names: NumberedNames
    kinds: Codes
    slots: Ints
    rows: Places
    version: int


class KnownSlots:
    """Slots by number in one sender's table; a group has one slot for each kind."""

    def __init__(self, table: Sequence[str | None]) -> None:
        self._table = table
        #: By 2 * number + kind: the slot, and its ticket at the lookup (0: no slot was found).
        self._slot: NDArray[np.int32] = np.zeros(64, np.int32)
        self._ticket: NDArray[np.int64] = np.zeros(64, np.int64)
        #: The sender's row in that slot, while its holding has this version.
        self._row: NDArray[np.int32] = np.full(64, _NOT_FOUND, np.int32)
        self._version = -1
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
        # The slot of a held row is not freed.
        return (last.slots, last.rows) if np.array_equal(last.kinds, kinds) else None

    def keep(
        self, names: NumberedNames, kinds: Codes, slots: Ints, rows: Ints, version: int
    ) -> Places:
        """Store the locations of rows that a holding of this version has, all of them."""
        places = run_of(rows)
        self._steady = _Steady(names, kinds, slots, places, version)
        return places

    def find(self, names: NumberedNames, kinds: Codes, index: GroupIndex) -> Ints:
        """[rows] the slot of each row, `NO_SLOT` if none is known."""
        at = self._at(names, kinds)
        tickets = self._ticket.take(at)
        slots = self._slot.take(at).astype(np.int64)
        is_stale = (tickets == 0) | (index.tickets.take(slots) != tickets)
        if is_stale.any():
            slots[is_stale] = NO_SLOT
        return slots

    def rows(self, names: NumberedNames, kinds: Codes, slots: Ints, holding: BrokerRows) -> Ints:
        """[rows] the row of each of `slots` in the sender's holding, `NO_ROW` if there is none."""
        at = self._at(names, kinds)
        if self._version != holding.version:
            self._row[:] = _NOT_FOUND
            self._version = holding.version
        rows = self._row.take(at)
        missing = np.flatnonzero(rows == _NOT_FOUND)
        if len(missing):
            self._row[at[missing]] = rows[missing] = holding.find(slots[missing])
        return rows.astype(np.int64)

    def put(self, names: NumberedNames, kinds: Codes, slots: Ints, index: GroupIndex) -> None:
        """Store the slots that were found."""
        found = slots != NO_SLOT
        at, slots = self._at(names, kinds)[found], slots[found]
        self._slot[at] = slots
        self._ticket[at] = index.tickets[slots]
        self._row[at] = _NOT_FOUND

    def _at(self, names: NumberedNames, kinds: Codes) -> Ints:
        count = 2 * len(self._table)
        if count > len(self._slot):
            self._slot, self._ticket = grown(self._slot, count), grown(self._ticket, count)
            before = len(self._row)
            self._row = grown(self._row, count)
            self._row[before:] = _NOT_FOUND
        at: Ints = 2 * names.numbers + kinds
        return at
