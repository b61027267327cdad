"""The usage map of PIP-82: group -> broker -> usage, as the exchange told it.

Laws: it holds exactly what each broker told last, this one too (as read back
from the topic), so every daemon that heard the same holds the same; a row that
says 0 removes the broker from the group, as PIP-82 asks.

Rows are columns in one arena. Each group has a region of it with some room to
grow; a region that is full moves to the end, and the holes are closed when they
are the larger part. So a report of thousands of rows is a few passes of numpy,
and so is gathering the rows of the groups that it changed.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rgd.core.buckets.level import GroupKey
from rgd.core.exchange.columns import Ints, UsageColumns
from rgd.core.exchange.group_index import NO_PLACE, GroupIndex, grown
from rgd.core.exchange.messages import Report
from rgd.core.exchange.rows_hash import HASH_MASK, row_hashes
from rgd.core.units import Pair

#: Most rows kept of one broker; a report that would exceed it is cut there, and its hash differs.
ROWS_MAX: Final = 1_000_000

#: Rows that a group's region has room for at first.
_ROOM: Final = 4

#: Marks a row of the arena that holds nothing.
_NOBODY: Final = -1

#: The arena's columns, the broker's number apart.
_COLUMNS: Final = ("_place", "_topics", "_row_hash", "_admitted", "_wanted")

_NO_PLACES: Final[Ints] = np.zeros(0, np.int64)


class HeldRow(NamedTuple):
    """What one broker told of one group."""

    topics: int
    #: Milli per second.
    admitted: Pair
    wanted: Pair


class Gathered(NamedTuple):
    """Rows of some groups, in the order of the groups.

    Attributes:
        group: [rows] place in the list of groups that was asked for.
        broker: [rows] number of the broker (`UsageMap.number_of`).
        admitted: [rows, 2] Milli per second; `wanted` likewise.
    """

    group: Ints
    broker: NDArray[np.int32]
    admitted: Ints
    wanted: Ints


class UsageMap:
    """Every row that anybody told and did not take back."""

    def __init__(self, index: GroupIndex | None = None) -> None:
        self.index = GroupIndex() if index is None else index
        #: By place: where the group's region begins, how many rows it has, and has room for.
        self._start = np.zeros(64, np.int64)
        self._count = np.zeros(64, np.int64)
        self._room = np.zeros(64, np.int64)
        #: The arena, as far as `_used`.
        self._used = 0
        self._live = 0
        self._broker = np.full(256, _NOBODY, np.int32)
        self._place = np.zeros(256, np.int32)
        self._topics = np.zeros(256, np.int64)
        self._row_hash = np.zeros(256, np.uint64)
        self._admitted = np.zeros((256, 2), np.int64)
        self._wanted = np.zeros((256, 2), np.int64)
        self._numbers: dict[str, int] = {}
        self._names: list[str] = []
        #: By broker number: rows held, and the sum of their hashes.
        self._rows: list[int] = []
        self._hash: list[int] = []

    def apply(self, report: Report) -> Ints:
        """Take a report in; returns the places of groups whose rates changed."""
        rows = report.rows
        number = self.number_of(report.speaker.broker)
        places = self.index.places(rows.groups, rows.kinds)
        self._make_room_for_places()
        idle = rows.is_idle
        at = self._find(number, places)
        is_held = at >= 0
        gone = at[is_held & idle]
        if report.full:
            held = self._held_by(number)
            gone = np.union1d(gone, np.setdiff1d(held, at, assume_unique=True))
        changed = [self._place[gone].astype(np.int64)]
        rewritten = np.flatnonzero(is_held & ~idle)
        changed.append(self._rewrite(number, at[rewritten], rows, rewritten))
        self._forget(number, gone)
        fresh = np.flatnonzero(~is_held & ~idle & (places != NO_PLACE))
        fresh = fresh[: max(0, ROWS_MAX - self._rows[number])]
        changed.append(self._insert(number, places[fresh], rows, fresh))
        return np.concatenate(changed)

    def remove(self, broker: str) -> Ints:
        """Forget a broker; returns the places of the groups it had rows in."""
        number = self._numbers.get(broker)
        if number is None:
            return _NO_PLACES
        held = self._held_by(number)
        places = self._place[held].astype(np.int64)
        self._forget(number, held)
        return places

    def gather(self, places: Ints) -> Gathered:
        """The rows of these groups."""
        self._make_room_for_places()
        counts = self._count[places]
        at = _ranges(self._start[places], counts)
        return Gathered(
            group=np.repeat(np.arange(len(places)), counts),
            broker=self._broker[at],
            admitted=self._admitted[at],
            wanted=self._wanted[at],
        )

    def counts(self, places: Ints) -> Ints:
        """[places] how many rows each of these groups has."""
        self._make_room_for_places()
        return self._count[places]

    def rows(self, key: GroupKey) -> Mapping[str, HeldRow]:
        """The rows of one group and kind, by broker."""
        place = self.index.find(key)
        if place is None or place >= len(self._start):
            return {}
        begin = int(self._start[place])
        places = range(begin, begin + int(self._count[place]))
        return {self._names[self._broker[at]]: self._row(at) for at in places}

    def rows_of(self, broker: str) -> Mapping[GroupKey, HeldRow]:
        """Everything one broker told and did not take back."""
        number = self._numbers.get(broker)
        if number is None:
            return {}
        held = self._held_by(number).tolist()
        return {self.index.keys[self._place[at]]: self._row(at) for at in held}

    def count_of(self, broker: str) -> int:
        """How many rows one broker has."""
        number = self._numbers.get(broker)
        return 0 if number is None else self._rows[number]

    def hash_of(self, broker: str) -> int:
        """`told_hash` over the rows of one broker."""
        number = self._numbers.get(broker)
        return 0 if number is None else self._hash[number] & HASH_MASK

    def brokers(self) -> set[str]:
        """Everybody who has a row of anything."""
        return {name for name, number in self._numbers.items() if self._rows[number]}

    def number_of(self, broker: str) -> int:
        """The number that stands for a broker in `Gathered`; it stays the same."""
        number = self._numbers.get(broker)
        if number is None:
            number = self._numbers[broker] = len(self._names)
            self._names.append(broker)
            self._rows.append(0)
            self._hash.append(0)
        return number

    @property
    def brokers_numbered(self) -> int:
        """One more than the greatest number."""
        return len(self._names)

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays that hold the map."""
        columns = (self._start, self._count, self._room, self._broker, self._place)
        amounts = (self._topics, self._row_hash, self._admitted, self._wanted)
        return sum(column.nbytes for column in (*columns, *amounts))

    # The arena.

    def _row(self, at: int) -> HeldRow:
        return HeldRow(
            int(self._topics[at]),
            Pair(*self._admitted[at].tolist()),
            Pair(*self._wanted[at].tolist()),
        )

    def _find(self, number: int, places: Ints) -> Ints:
        """[places] where in the arena this broker's row is; -1: it has none."""
        at = np.full(len(places), -1, np.int64)
        known = np.flatnonzero(places != NO_PLACE)
        counts = self._count[places[known]]
        candidates = _ranges(self._start[places[known]], counts)
        is_mine = self._broker[candidates] == number
        at[np.repeat(known, counts)[is_mine]] = candidates[is_mine]
        return at

    def _held_by(self, number: int) -> Ints:
        return np.flatnonzero(self._broker[: self._used] == number)

    def _rewrite(self, number: int, at: Ints, rows: UsageColumns, source: Ints) -> Ints:
        """Put other values into rows; returns the places where rates changed."""
        if len(at) == 0:
            return _NO_PLACES
        admitted, wanted = rows.admitted[source], rows.wanted[source]
        differs = (self._admitted[at] != admitted) | (self._wanted[at] != wanted)
        self._hash[number] -= int(self._row_hash[at].sum())
        self._write(number, at, rows, source)
        moved: Ints = self._place[at[differs.any(axis=1)]].astype(np.int64)
        return moved

    def _insert(self, number: int, places: Ints, rows: UsageColumns, source: Ints) -> Ints:
        """Add rows of one broker, at most one to a place."""
        if len(places) == 0:
            return _NO_PLACES
        full = places[self._count[places] == self._room[places]]
        if len(full) and self._has_holes:
            # Which takes the room to spare from others as well.
            self._compact()
            full = places[self._count[places] == self._room[places]]
        self._relocate(full)
        at = self._start[places] + self._count[places]
        self._count[places] += 1
        self._broker[at] = number
        self._place[at] = places
        self._write(number, at, rows, source)
        self._live += len(at)
        self._rows[number] += len(at)
        return places

    def _write(self, number: int, at: Ints, rows: UsageColumns, source: Ints) -> None:
        """Put values into rows whose group and broker are in place, and count their hashes."""
        topics, admitted, wanted = rows.topics[source], rows.admitted[source], rows.wanted[source]
        hashes = row_hashes(self.index.hashes[self._place[at]], topics, admitted, wanted)
        self._topics[at] = topics
        self._admitted[at] = admitted
        self._wanted[at] = wanted
        self._row_hash[at] = hashes
        self._hash[number] += int(hashes.sum())

    def _forget(self, number: int, at: Ints) -> None:
        """Take rows of one broker out, at most one of a place: the last of the region fills the hole."""
        if len(at) == 0:
            return
        self._hash[number] -= int(self._row_hash[at].sum())
        places = self._place[at]
        self._count[places] -= 1
        last = self._start[places] + self._count[places]
        self._copy(last, at)
        self._broker[last] = _NOBODY
        self._live -= len(at)
        self._rows[number] -= len(at)

    @property
    def _has_holes(self) -> bool:
        """Whether much of the arena is neither a row nor the least room of a group."""
        return self._used > self._live * 3 // 2 + _ROOM * len(self._start)

    def _relocate(self, places: Ints) -> None:
        """Give these groups larger regions at the end of the arena."""
        if len(places) == 0:
            return
        counts = self._count[places]
        rooms = np.maximum(_ROOM, counts + counts // 2)
        starts = self._used + np.cumsum(rooms) - rooms
        self._used += int(rooms.sum())
        self._make_room_for_rows()
        source, target = _ranges(self._start[places], counts), _ranges(starts, counts)
        self._copy(source, target)
        self._broker[source] = _NOBODY
        self._start[places] = starts
        self._room[places] = rooms

    def _copy(self, source: Ints, target: Ints) -> None:
        self._broker[target] = self._broker[source]
        for name in _COLUMNS:
            column = getattr(self, name)
            column[target] = column[source]

    def _compact(self) -> None:
        """Close the holes."""
        counts = self._count
        source = _ranges(self._start, counts)
        self._room = np.where(counts > 0, np.maximum(_ROOM, counts), 0)
        self._start = np.cumsum(self._room) - self._room
        target = _ranges(self._start, counts)
        used = int(self._room.sum())
        for name in _COLUMNS:
            column = getattr(self, name)
            packed = np.zeros((max(256, used), *column.shape[1:]), column.dtype)
            packed[target] = column[source]
            setattr(self, name, packed)
        brokers = np.full(max(256, used), _NOBODY, np.int32)
        brokers[target] = self._broker[source]
        self._broker = brokers
        self._used = used

    def _make_room_for_places(self) -> None:
        count = len(self.index)
        if count > len(self._start):
            self._start = grown(self._start, count)
            self._count = grown(self._count, count)
            self._room = grown(self._room, count)

    def _make_room_for_rows(self) -> None:
        before = len(self._broker)
        if self._used <= before:
            return
        self._broker = grown(self._broker, self._used)
        self._broker[before:] = _NOBODY
        for name in _COLUMNS:
            setattr(self, name, grown(getattr(self, name), self._used))


def _ranges(starts: Ints, counts: Ints) -> Ints:
    """start, start + 1, ... of each range, one after another."""
    ends = np.cumsum(counts)
    total = int(ends[-1]) if len(ends) else 0
    ranges: Ints = np.arange(total) + np.repeat(starts - (ends - counts), counts)
    return ranges
