"""Gives every group and kind that is in use a slot: a row number in columns that are kept by slot.

Law: a slot belongs to one group and kind from when it is given until it is freed, and it is freed only
when no column holds anything in it (`rgd.core.broker.slots` decides that). So arrays by slot stay true
while groups come and go.

Names that peers send and no policy knows may be invented: all of them together take at most
`UNKNOWN_MAX` slots, and whoever asks for a peer says how many it may add (`room`). Groups with
policies take the rest. What gets no slot is counted, and a known slot is never taken away for it.
"""

from collections.abc import Container, Sequence
from hashlib import blake2b
from typing import Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from rgd.core.buckets.level import GroupKey
from rgd.core.exchange.columns import KINDS, Codes, Flags, Ints, kind_code

#: Most groups and kinds that a daemon tells apart, ten times PIP-82's cluster (100,000 groups in both
#: kinds); a group of ours that comes later is granted its floor.
SLOTS_MAX: Final = 2_000_000

#: Most of them that no policy knows, twice PIP-82's cluster: policies may be read after the reports.
UNKNOWN_MAX: Final = 400_000

#: Stands for a group that has no slot.
NO_SLOT: Final = -1

Hashes = NDArray[np.uint64]
_Column = TypeVar("_Column", bound=np.generic)


class GroupIndex:
    """Slots of groups and kinds; `len` is one more than the greatest that was ever given."""

    def __init__(self) -> None:
        #: [slots] a freed one keeps its last key until it is given again.
        self.keys: list[GroupKey] = []
        #: [slots] 64 bits that tell keys apart, the same on every broker.
        self.hashes: Hashes = np.zeros(64, np.uint64)
        #: [slots] bytes of the group's name.
        self.name_bytes: NDArray[np.int32] = np.zeros(64, np.int32)
        #: [slots] whether it is given, and whether it is given to a group without policies.
        self.is_given: Flags = np.zeros(64, np.bool_)
        self.is_unknown: Flags = np.zeros(64, np.bool_)
        self._slots: tuple[dict[str, int], ...] = tuple({} for _ in KINDS)
        self._free: list[int] = []
        #: The groups that have policies; None: all have.
        self._known: Container[str] | None = None
        #: How many slots are given to groups without policies.
        self.unknown = 0
        #: Requests for a slot that were refused.
        self.refused = 0
        #: [slots] another number whenever the slot is given, 0 while it is free: whoever remembers a slot
        #: remembers its ticket, and knows by it that the slot was not freed.
        self.tickets: Ints = np.zeros(64, np.int64)
        self._next_ticket = 1

    def __len__(self) -> int:
        return len(self.keys)

    @property
    def given(self) -> int:
        """How many slots are given."""
        return len(self.keys) - len(self._free)

    def find(self, key: GroupKey) -> int | None:
        """The slot of one key, if it has one."""
        return self._slots[kind_code(key.kind)].get(key.group)

    def slot(self, key: GroupKey) -> int:
        """The slot of a group of ours, `NO_SLOT` when there are too many."""
        slot = self.find(key)
        if slot is None:
            slot = self._take(key)
            if slot != NO_SLOT:
                self._fill([slot])
        return slot

    def find_all(self, groups: Sequence[str], kinds: Codes) -> Ints:
        """[rows] the slot of each, `NO_SLOT` where there is none."""
        tables = self._slots
        codes = kinds.tolist()
        found = [
            tables[code].get(group, NO_SLOT) for group, code in zip(groups, codes, strict=True)
        ]
        return np.array(found, np.int64)

    def slots(
        self,
        groups: Sequence[str],
        kinds: Codes,
        *,
        skip: Flags | None = None,
        room: int | None = None,
    ) -> Ints:
        """[rows] the slot of each, given where there was none.

        Args:
            groups: [rows].
            kinds: [rows].
            skip: [rows] what gets no slot if it has none: rows that say nothing.
            room: how many groups without policies may be given one; None: as many as there are.
        """
        slots = self.find_all(groups, kinds)
        missing = slots == NO_SLOT
        if skip is not None:
            missing &= ~skip
        if missing.any():
            self._give(slots, np.flatnonzero(missing).tolist(), groups, kinds, room)
        return slots

    def knows(self, group: str) -> bool:
        """Whether a group has policies."""
        return self._known is None or group in self._known

    def set_known(self, groups: Container[str]) -> None:
        """From now on these groups have policies; slots that are given hear of it by `judge`."""
        self._known = groups

    def judge(self, slots: Ints) -> None:
        """Look again whether the groups of these slots have policies."""
        slots = slots[self.is_given[slots]]
        keys = self.keys
        unknown = [not self.knows(keys[slot].group) for slot in slots.tolist()]
        self.unknown += sum(unknown) - int(np.count_nonzero(self.is_unknown[slots]))
        self.is_unknown[slots] = unknown

    def free(self, slots: Ints) -> None:
        """Take slots back in which no column holds anything; each must be given, and comes once."""
        if not len(slots):
            return
        for slot in slots.tolist():
            key = self.keys[slot]
            del self._slots[kind_code(key.kind)][key.group]
        self.unknown -= int(np.count_nonzero(self.is_unknown[slots]))
        self.is_given[slots] = self.is_unknown[slots] = False
        self.tickets[slots] = 0
        self._free.extend(slots.tolist())

    def _give(
        self,
        slots: Ints,
        rows: Sequence[int],
        groups: Sequence[str],
        kinds: Codes,
        room: int | None,
    ) -> None:
        """Give the groups of some rows their slots, as far as there is room, and put them in `slots`."""
        left = UNKNOWN_MAX - self.unknown
        room = left if room is None else min(left, room)
        given = []
        for row in rows:
            group = groups[row]
            key = GroupKey(group, KINDS[kinds[row]])
            known = self.find(key)
            if known is not None:
                # It stood among these rows before.
                slots[row] = known
                continue
            if not self.knows(group):
                if room <= 0:
                    self.refused += 1
                    continue
                room -= 1
            slot = self._take(key)
            if slot != NO_SLOT:
                slots[row] = slot
                given.append(slot)
        self._fill(given)

    def _take(self, key: GroupKey) -> int:
        """Choose a slot for a key that has none; `_fill` it before anybody looks."""
        if self._free:
            slot = self._free.pop()
            self.keys[slot] = key
        elif len(self.keys) < SLOTS_MAX:
            slot = len(self.keys)
            self.keys.append(key)
        else:
            self.refused += 1
            return NO_SLOT
        self._slots[kind_code(key.kind)][key.group] = slot
        return slot

    def _fill(self, given: Sequence[int]) -> None:
        """Fill the columns of slots that were taken."""
        if len(self.keys) > len(self.hashes):
            for name in ("hashes", "name_bytes", "is_given", "is_unknown", "tickets"):
                setattr(self, name, grown(getattr(self, name), len(self.keys)))
        slots = np.array(given, np.int64)
        keys = [self.keys[slot] for slot in given]
        digests = b"".join(
            blake2b(f"{group}\0{kind}".encode(), digest_size=8).digest() for group, kind in keys
        )
        self.hashes[slots] = np.frombuffer(digests, ">u8")
        self.name_bytes[slots] = [len(key.group) for key in keys]
        self.is_given[slots] = True
        self.tickets[slots] = np.arange(self._next_ticket, self._next_ticket + len(slots))
        self._next_ticket += len(slots)
        unknown = [not self.knows(key.group) for key in keys]
        self.is_unknown[slots] = unknown
        self.unknown += sum(unknown)


def grown(column: NDArray[_Column], count: int) -> NDArray[_Column]:
    """The column with room for `count` entries along its first axis; new ones are 0."""
    if count <= len(column):
        return column
    larger = np.zeros((max(count, len(column) * 3 // 2), *column.shape[1:]), column.dtype)
    larger[: len(column)] = column
    return larger
