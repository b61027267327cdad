"""Assigns a slot id to every group and kind in use: its row number in columns kept by slot.

Law: a slot belongs to one group and kind from its assignment until it is freed. It is freed only
when no column holds anything in it: no broker has a row of the group, it is not in use here, and nothing of it
is advertised (`Broker` looks once a round). Arrays by slot therefore stay valid while groups come and go, and the
names that peers make up leave no trace once their rows are gone.

Peers may send names that no policy has, and may invent them. All such names together get at most
`ExchangeBounds.unknown_slots_max` slots, and `room` limits how many one call may add for a peer. Groups with policies
get the rest. A name that gets no slot is counted, and never displaces an assigned slot.
"""

from collections.abc import Container, Iterable, Mapping, Sequence
from hashlib import blake2b
from operator import itemgetter
from typing import Any, Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from rgd.core.bounds import BOUNDS, ExchangeBounds
from rgd.core.exchange.columns import KINDS, Codes, Flags, Ints, kind_code
from rgd.core.exchange.shards import WHOLE, NameHashes, Shard, name_hash, numbers_of
from rgd.core.policies.model import GroupKey

#: The slot id of a group that has no slot.
NO_SLOT: Final = -1

#: The columns by slot id, and what they have for slots that nobody has.
_COLUMNS: Final = {
    "hashes": 0,
    "name_hashes": 0,
    "kinds": 0,
    "is_given": False,
    "is_unknown": False,
    "ignores_admitted": False,
}

Hashes = NDArray[np.uint64]
_Column = TypeVar("_Column", bound=np.generic)


class GroupIndex:
    """Slots of groups and kinds; `len` is one more than the greatest slot ever assigned."""

    def __init__(self, bounds: ExchangeBounds = BOUNDS.exchange) -> None:
        #: Of this and of everything else that is kept by its slots.
        self.bounds = bounds
        #: [slots] a freed slot keeps its last key until it is reused.
        self.keys: list[GroupKey] = []
        #: [slots] 64-bit hash of the key, the same on every broker.
        self.hashes: Hashes = np.zeros(64, np.uint64)
        #: [slots] hash of the group's name, which decides its shard.
        self.name_hashes: NameHashes = np.zeros(64, np.uint32)
        #: [slots] indexes into `KINDS`; 0 for a freed slot.
        self.kinds: Codes = np.zeros(64, np.uint8)
        #: [slots] whether it is assigned, and whether it is assigned to a group without policies.
        self.is_given: Flags = np.zeros(64, np.bool_)
        self.is_unknown: Flags = np.zeros(64, np.bool_)
        #: [slots] whether the shares of the group are known not to depend on admitted work, as under max-min.
        self.ignores_admitted: Flags = np.zeros(64, np.bool_)
        #: Objects whose attributes are columns by slot id, and what these have for a new slot.
        self._keepers: list[tuple[Any, Mapping[str, int]]] = [(self, _COLUMNS)]
        self._slots: tuple[dict[str, int], ...] = tuple({} for _ in KINDS)
        self._free: list[int] = []
        #: The groups that have policies; None: all groups have.
        self._known: Container[str] | None = None
        #: Requests for a slot that were refused.
        self.refused = 0

    def __len__(self) -> int:
        return len(self.keys)

    @property
    def given(self) -> int:
        """Number of assigned slots."""
        return len(self.keys) - len(self._free)

    @property
    def unknown(self) -> int:
        """Number of slots assigned to groups without policies."""
        return int(np.count_nonzero(self.is_unknown))

    def keep(self, keeper: object, columns: Mapping[str, int]) -> None:
        """Have columns by slot id, arrays that are attributes of `keeper`, grow with the slots; new entries, and those of slots that are freed, have these values.

        An array is replaced when it grows, so nobody may hold one over a call that gives slots.
        """
        self._keepers.append((keeper, columns))
        self._grow(keeper, columns, len(self.hashes))

    def find(self, key: GroupKey) -> int | None:
        """The slot of a key, if it has one."""
        return self._slots[kind_code(key.kind)].get(key.group)

    def slot(self, key: GroupKey) -> int:
        """As `slots_of`, of one group."""
        return int(self.slots_of([key])[0])

    def slots_of(self, keys: Sequence[GroupKey]) -> Ints:
        """[keys] the slots of groups of this broker, assigned if needed; `NO_SLOT` where none is left."""
        kinds = np.array([kind_code(key.kind) for key in keys], np.uint8)
        return self.slots([key.group for key in keys], kinds)

    def slots(
        self,
        groups: Sequence[str],
        kinds: Codes,
        *,
        skip: Flags | None = None,
        room: int | None = None,
    ) -> Ints:
        """[rows] the slot of each row, assigned if it had none.

        Args:
            groups: [rows].
            kinds: [rows].
            skip: [rows] rows that are not assigned a new slot, because they are idle.
            room: most new slots for groups without policies; None: as many as are left.
        """
        tables, pairs = self._slots, zip(groups, kinds.tolist(), strict=True)
        slots = np.array([tables[code].get(group, NO_SLOT) for group, code in pairs], np.int64)
        missing = slots == NO_SLOT
        if skip is not None:
            missing &= ~skip
        left: int | None = None
        given = []
        for row in np.flatnonzero(missing).tolist():
            group = groups[row]
            key = GroupKey(group, KINDS[kinds[row]])
            known = self.find(key)
            if known is not None:
                # An earlier one of these rows has the same key.
                slots[row] = known
                continue
            if not self.knows(group):
                if left is None:
                    left = self.bounds.unknown_slots_max - self.unknown
                    left = left if room is None else min(left, room)
                if left <= 0:
                    self.refused += 1
                    continue
                left -= 1
            slot = self._take(key)
            if slot != NO_SLOT:
                slots[row] = slot
                given.append(slot)
        if given:
            self._fill(given)
        return slots

    def names(self, slots: Ints) -> tuple[str, ...]:
        """[slots] the groups' names."""
        return tuple(map(itemgetter(0), map(self.keys.__getitem__, slots.tolist())))

    def knows(self, group: str) -> bool:
        """Whether a group has policies."""
        return self._known is None or group in self._known

    def set_known(self, groups: Container[str], changed: Iterable[str] | None = None) -> Ints:
        """Set the groups that have policies.

        Args:
            groups: by name.
            changed: the names whose policies may have changed; None: all.

        Returns:
            The slots of those that may have changed.
        """
        self._known = groups
        if changed is None:
            slots = np.flatnonzero(self.is_given)
        else:
            keys = [GroupKey(name, kind) for name in sorted(changed) for kind in KINDS]
            found = [slot for key in keys if (slot := self.find(key)) is not None]
            slots = np.array(found, np.int64)
        self.is_unknown[slots] = [not self.knows(name) for name in self.names(slots)]
        return slots

    def are_of(self, slots: Ints, shard: Shard) -> Flags:
        """[slots] whether the groups are of a shard."""
        if shard == WHOLE:
            return np.ones(len(slots), np.bool_)
        are_of: Flags = numbers_of(self.name_hashes[slots], shard.of) == shard.number
        return are_of

    def free(self, slots: Ints) -> None:
        """Free slots that nobody uses, in all columns; each must be assigned and occur once."""
        for slot in slots.tolist():
            key = self.keys[slot]
            del self._slots[kind_code(key.kind)][key.group]
        for keeper, columns in self._keepers:
            for name, fresh in columns.items():
                getattr(keeper, name)[slots] = fresh
        self._free.extend(slots.tolist())

    def _take(self, key: GroupKey) -> int:
        """Choose a slot for a key that has none; call `_fill` before the slot is read."""
        if self._free:
            slot = self._free.pop()
            self.keys[slot] = key
        elif len(self.keys) < self.bounds.slots_max:
            slot = len(self.keys)
            self.keys.append(key)
        else:
            self.refused += 1
            return NO_SLOT
        self._slots[kind_code(key.kind)][key.group] = slot
        return slot

    @staticmethod
    def _grow(keeper: object, columns: Mapping[str, int], room: int) -> None:
        for name, fresh in columns.items():
            before = getattr(keeper, name)
            column = grown(before, room, capacity=room)
            column[len(before) :] = fresh
            setattr(keeper, name, column)

    def _fill(self, given: Sequence[int]) -> None:
        """Fill the columns of newly assigned slots."""
        if len(self.keys) > len(self.hashes):
            room = max(len(self.keys), len(self.hashes) * 3 // 2)
            for keeper, columns in self._keepers:
                self._grow(keeper, columns, room)
        slots = np.array(given, np.int64)
        keys = [self.keys[slot] for slot in given]
        digests = b"".join(
            blake2b(f"{group}\0{kind}".encode(), digest_size=8).digest() for group, kind in keys
        )
        self.hashes[slots] = np.frombuffer(digests, ">u8")
        self.name_hashes[slots] = [name_hash(key.group) for key in keys]
        self.kinds[slots] = [kind_code(key.kind) for key in keys]
        self.is_given[slots] = True
        self.is_unknown[slots] = [not self.knows(key.group) for key in keys]


def grown(column: NDArray[_Column], count: int, *, capacity: int | None = None) -> NDArray[_Column]:
    """The column with room for `count` entries along its first axis; new ones are 0.

    Args:
        column: what is to grow.
        count: entries that are needed.
        capacity: entries to allocate where it has to grow; None: half more than there were.
    """
    if count <= len(column):
        return column
    room = max(count, len(column) * 3 // 2) if capacity is None else capacity
    larger = np.zeros((room, *column.shape[1:]), column.dtype)
    larger[: len(column)] = column
    return larger
