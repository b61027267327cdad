"""The slots of a sender's groups, by the numbers that it gave their names.

A sender names the same groups in every report. Its dictionary encoding (`rgd.wire.name_dictionary`) gives each
name a number once, so a receiver looks a name up once: rows after that cost a few passes of numpy, however
few of the sender's groups a report has.

Law: a slot that was found for a number is used only while the index has not freed it (`GroupIndex.tickets`).
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

#: Marks a row that was not looked for.
_NOT_FOUND: Final = -2


class _Steady(NamedTuple):
    """Rows of one report, and where they are while the holding has a version."""

    names: NumberedNames
    kinds: Codes
    slots: Ints
    rows: Places
    version: int


class KnownSlots:
    """Slots by number of one sender's table; a group has one for each kind."""

    def __init__(self, table: Sequence[str | None]) -> None:
        self._table = table
        #: By 2 * number + kind: the slot, and its ticket when it was found; 0: none was.
        self._slot: NDArray[np.int32] = np.zeros(64, np.int32)
        self._ticket: NDArray[np.int64] = np.zeros(64, np.int64)
        #: The row that the sender has there while its holding has this version.
        self._row: NDArray[np.int32] = np.full(64, _NOT_FOUND, np.int32)
        self._version = -1
        #: The last rows of which all were held, and where they are.
        self._steady: _Steady | None = None

    def is_of(self, names: NumberedNames) -> bool:
        """Whether these names have numbers of the same table."""
        return names.table is self._table

    def steady(
        self, names: NumberedNames, kinds: Codes, holding: BrokerRows
    ) -> tuple[Ints, Places] | None:
        """Slots and rows, if these are the names of the last report and all of its rows are still held."""
        last = self._steady
        if last is None or last.names is not names or last.version != holding.version:
            return None
        # While a row is held, its slot is not freed.
        return (last.slots, last.rows) if np.array_equal(last.kinds, kinds) else None

    def keep(
        self, names: NumberedNames, kinds: Codes, slots: Ints, rows: Ints, version: int
    ) -> Places:
        """Remember where rows are that the holding of this version has, all of them."""
        places = run_of(rows)
        self._steady = _Steady(names, kinds, slots, places, version)
        return places

    def find(self, names: NumberedNames, kinds: Codes, index: GroupIndex) -> Ints:
        """[rows] the slot of each, `NO_SLOT` where none is known."""
        at = self._at(names, kinds)
        tickets = self._ticket.take(at)
        slots = self._slot.take(at).astype(np.int64)
        is_stale = (tickets == 0) | (index.tickets.take(slots) != tickets)
        if is_stale.any():
            slots[is_stale] = NO_SLOT
        return slots

    def rows(self, names: NumberedNames, kinds: Codes, slots: Ints, holding: BrokerRows) -> Ints:
        """[rows] the row in the sender's holding of each of its `slots`, `NO_ROW` where there is none."""
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
        """Remember the slots that were found."""
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
