"""A persistent mapping: it never changes, and shares unchanged parts with its predecessor.

Law: a `Table` never changes after it was created, whatever is written afterwards. A policy
snapshot is therefore stable, and costs the same for 100,000 namespaces as for one.

A table is divided into `PARTS` dicts by the key's hash. A writer copies a part before its first
write since the last table. A change therefore copies one part, and related tables are compared by
the identity of their parts (`changed_keys`). Entries have no order.
"""

from collections.abc import Collection, Hashable, ItemsView, Iterator, Mapping
from itertools import chain
from typing import Final, Generic, TypeVar, cast, overload

#: Dicts that a table is divided into; a power of two.
PARTS: Final = 1024

_MASK: Final = PARTS - 1

_Key = TypeVar("_Key", bound=Hashable)
_Value = TypeVar("_Value")
_Default = TypeVar("_Default")


class Table(Mapping[_Key, _Value]):
    """An immutable mapping."""

    __slots__ = ("_count", "parts")

    def __init__(self, parts: tuple[dict[_Key, _Value], ...], count: int) -> None:
        #: By `hash(key) % PARTS`; never written to.
        self.parts = parts
        self._count = count

    def __getitem__(self, key: _Key) -> _Value:
        return self.parts[hash(key) & _MASK][key]

    def __contains__(self, key: object) -> bool:
        return key in self.parts[hash(key) & _MASK]

    def __iter__(self) -> Iterator[_Key]:
        return chain.from_iterable(self.parts)

    def __len__(self) -> int:
        return self._count

    @overload
    def get(self, key: _Key, /) -> _Value | None: ...
    @overload
    def get(self, key: _Key, /, default: _Value | _Default) -> _Value | _Default: ...
    def get(self, key: _Key, /, default: object = None) -> object:
        """The value of a key, or the default."""
        return self.parts[hash(key) & _MASK].get(key, cast("_Value", default))

    def items(self) -> ItemsView[_Key, _Value]:
        """All pairs, part by part."""
        return _Items(self)

    def changed_since(self, before: "Table[_Key, _Value]", count_max: int) -> set[_Key] | None:
        """Keys whose value is another object; None if there may be more than `count_max`."""
        pairs = zip(before.parts, self.parts, strict=True)
        differing = [(old, new) for old, new in pairs if old is not new]
        if len(differing) > count_max:
            return None
        changed = {
            key
            for old, new in differing
            for key in old.keys() | new.keys()
            if (key in old) != (key in new) or old.get(key) is not new.get(key)
        }
        return changed if len(changed) <= count_max else None


class _Items(ItemsView[_Key, _Value]):
    """All pairs of a table, without a lookup for each."""

    _mapping: Table[_Key, _Value]

    def __iter__(self) -> Iterator[tuple[_Key, _Value]]:
        return chain.from_iterable(part.items() for part in self._mapping.parts)


class TableWriter(Generic[_Key, _Value]):
    """A mutable builder that can return its table at any moment."""

    __slots__ = ("_count", "_own", "_parts", "_table")

    def __init__(self) -> None:
        nothing: dict[_Key, _Value] = {}
        self._parts = [nothing] * PARTS
        #: Parts copied since the last table, which may be modified.
        self._own: set[int] = set()
        self._count = 0
        self._table: Table[_Key, _Value] | None = None

    def put(self, key: _Key, value: _Value) -> None:
        """Set a key."""
        part = self._part(key)
        self._count += key not in part
        part[key] = value

    def remove(self, key: _Key) -> None:
        """Remove a key, if it exists."""
        if key in self._parts[hash(key) & _MASK]:
            del self._part(key)[key]
            self._count -= 1

    def table(self) -> Table[_Key, _Value]:
        """The table of the current content; the last one again if nothing was written since."""
        if self._table is None:
            self._table = Table(tuple(self._parts), self._count)
            self._own.clear()
        return self._table

    def _part(self, key: _Key) -> dict[_Key, _Value]:
        """The part of a key, writable."""
        part_id = hash(key) & _MASK
        self._table = None
        if part_id not in self._own:
            self._own.add(part_id)
            self._parts[part_id] = self._parts[part_id].copy()
        return self._parts[part_id]


def changed_keys(
    before: Mapping[_Key, _Value], after: Mapping[_Key, _Value], count_max: int
) -> Collection[_Key] | None:
    """Keys with another value; None if there are too many, or the comparison would take too long.

    Related tables are compared by their shared parts; others are compared only
    if they are small.
    """
    if before is after:
        return ()
    if isinstance(before, Table) and isinstance(after, Table):
        return after.changed_since(before, count_max)
    if len(before) + len(after) > count_max:
        return None
    keys = {**before, **after}
    return [key for key in keys if before.get(key) != after.get(key)]
