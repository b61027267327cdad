"""Caches the slots of a sender's names, by the numbers of its dictionary encoding.

A sender names the same groups in every report. Its dictionary encoding
(`rgd.wire.name_dictionary`) assigns each name a number once, so a receiver looks a name up once.

Law: a cached slot is used only while it is assigned to the group and kind that it was cached for.
"""

from collections.abc import Sequence
from typing import Final

import numpy as np

from rgd.core.exchange.columns import Codes, Ints
from rgd.core.exchange.group_index import NO_SLOT, GroupIndex, Hashes, grown
from rgd.core.exchange.numbered_names import NumberedNames

_ROOM: Final = 64


class KnownSlots:
    """The slots of one sender's names, by number in its table; a name has one for each kind."""

    def __init__(self, table: Sequence[str | None]) -> None:
        self.table = table
        #: By 2 * number + kind: the slot, and the hash of the group and kind.
        self._slots: Ints = np.zeros(_ROOM, np.int64)
        self._hashes: Hashes = np.zeros(_ROOM, np.uint64)

    def find(self, names: NumberedNames, kinds: Codes, index: GroupIndex) -> Ints:
        """[rows] the slot of each; `NO_SLOT` where it is not known."""
        at = self._at(names, kinds)
        slots = self._slots.take(at)
        is_known = index.is_given.take(slots) & (index.hashes.take(slots) == self._hashes.take(at))
        slots[~is_known] = NO_SLOT
        return slots

    def put(self, names: NumberedNames, kinds: Codes, slots: Ints, index: GroupIndex) -> None:
        """Store the slots of names, as far as they have one."""
        has_slot = (slots != NO_SLOT).nonzero()[0]
        at, slots = self._at(names, kinds)[has_slot], slots[has_slot]
        self._slots[at], self._hashes[at] = slots, index.hashes[slots]

    def _at(self, names: NumberedNames, kinds: Codes) -> Ints:
        count = 2 * len(self.table)
        self._slots, self._hashes = grown(self._slots, count), grown(self._hashes, count)
        at: Ints = 2 * names.numbers + kinds
        return at
