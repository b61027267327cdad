"""Gives every group and kind that was ever heard of a place in columns.

Law: a place is never given to another; so arrays by place (of the usage map, of
what was told, of shares) stay true while groups come and go.
"""

from collections.abc import Sequence
from hashlib import blake2b
from typing import Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from rgd.core.buckets.level import GroupKey
from rgd.core.exchange.columns import KINDS, Codes, Ints, kind_code

#: Most groups and kinds that a daemon tells apart, ten times PIP-82's cluster; later ones are not kept.
PLACES_MAX: Final = 2_000_000

#: Stands for a group that has no place.
NO_PLACE: Final = -1

Hashes = NDArray[np.uint64]
_Column = TypeVar("_Column", bound=np.generic)


class GroupIndex:
    """Places of groups and kinds, in the order in which they were heard of."""

    def __init__(self) -> None:
        self.keys: list[GroupKey] = []
        #: [places] 64 bits that tell keys apart, the same on every broker.
        self.hashes: Hashes = np.zeros(64, np.uint64)
        self._places: tuple[dict[str, int], ...] = tuple({} for _ in KINDS)

    def __len__(self) -> int:
        return len(self.keys)

    def find(self, key: GroupKey) -> int | None:
        """The place of one key, if it has one."""
        return self._places[kind_code(key.kind)].get(key.group)

    def place(self, key: GroupKey) -> int:
        """The place of one key, `NO_PLACE` when there are too many."""
        place = self.find(key)
        return self._add(key) if place is None else place

    def places(self, groups: Sequence[str], kinds: Codes) -> Ints:
        """[rows] the place of each, `NO_PLACE` for what is one too many."""
        tables = self._places
        codes = kinds.tolist()
        found = [tables[code].get(group) for group, code in zip(groups, codes, strict=True)]
        if None in found:
            found = [
                self.place(GroupKey(group, KINDS[code])) if place is None else place
                for place, group, code in zip(found, groups, codes, strict=True)
            ]
        return np.array(found, np.int64)

    def _add(self, key: GroupKey) -> int:
        place = len(self.keys)
        if place >= PLACES_MAX:
            return NO_PLACE
        self.keys.append(key)
        self._places[kind_code(key.kind)][key.group] = place
        self.hashes = grown(self.hashes, place + 1)
        digest = blake2b(f"{key.group}\0{key.kind}".encode(), digest_size=8).digest()
        self.hashes[place] = int.from_bytes(digest)
        return place


def grown(column: NDArray[_Column], count: int) -> NDArray[_Column]:
    """The column with room for `count` entries along its first axis; new ones are 0."""
    if count <= len(column):
        return column
    larger = np.zeros((max(count, len(column) * 3 // 2), *column.shape[1:]), column.dtype)
    larger[: len(column)] = column
    return larger
