"""A segment file: nothing but `[u32 length][entry]` repeated, named by its first index.

Law: the findings of a `SegmentReader` depend only on the bytes, never on how they were split. Every byte
is in exactly one finding, in order: an entry (`Stored`), a damaged stretch
(`Damaged`), or an incomplete end (`Torn`, a kind of it; only from `finish`).

After damage the reader continues at the first later entry with a correct checksum. Searching costs at most `RESYNC_WORK_MAX`; beyond that, the rest of the segment is one
`Damaged`. The reader stores at most the bytes of one entry (`ENTRY_MAX`) and of the last `feed`.
Data without a checksum (the broker's part of an entry, entries without a checksum) are accepted if
they can be read, but not between damage and the next entry that has one. The usage log adapter has files, syncing and the truncation of an incomplete end.
"""

import re
from dataclasses import dataclass
from typing import Final

from rgd.wire.errors import Malformed, Reason, WireError
from rgd.wire.frame import ENTRY_MAX, ENTRY_MIN, Entry, decode_entry
from rgd.wire.parts import MAGIC_SIZE, U32, check_size, read_u32

#: Bytes of the length before an entry.
LENGTH_SIZE: Final = 4

#: How much one search for the next entry may read again, in bytes (a refused candidate costs its
#: length, at least `_CANDIDATE_COST_MIN`). Random bytes of a whole 64 MiB segment need a tenth.
RESYNC_WORK_MAX: Final = 64 * 1024 * 1024
_CANDIDATE_COST_MIN: Final = 256

_MAGIC: Final = re.compile(rb"\x0e[\x01\x02]")
_HEAD_SIZE: Final = LENGTH_SIZE + MAGIC_SIZE

_NAME: Final = re.compile(r"([0-9]{20})\.log")
_INDEX_MAX: Final = (1 << 64) - 1


@dataclass(slots=True)
class Stored:
    """A whole entry."""

    #: Of its length, in bytes from the start of the segment.
    offset: int
    #: The entry as it is stored, without the length before it.
    data: bytes
    entry: Entry


@dataclass(frozen=True, slots=True)
class Damaged:
    """Bytes that are not what was written; one entry or several."""

    offset: int
    size: int
    reason: Reason


@dataclass(frozen=True, slots=True)
class Torn(Damaged):
    """The end of the segment: an entry that is not all there."""

    reason: Reason = Reason.TORN


Found = Stored | Damaged


def segment_name(first_index: int) -> str:
    """The file name of the segment whose first entry has this index."""
    if not 0 <= first_index <= _INDEX_MAX:
        raise Malformed(Reason.BAD_NUMBER, f"segment: {first_index} cannot be an index")
    return f"{first_index:020}.log"


def parse_segment_name(name: str) -> int:
    """The first index that a segment's file name states.

    Raises:
        Malformed: it is not a segment's name.
    """
    matched = _NAME.fullmatch(name)
    if matched is None or (first_index := int(matched[1])) > _INDEX_MAX:
        raise Malformed(Reason.BAD_NAME, "segment: expected 20 digits and .log")
    return first_index


def encode_stored(data: bytes) -> bytes:
    """Put its length before an entry.

    Raises:
        WireError: no entry is that long.
    """
    _check_length(len(data))
    return U32.pack(len(data)) + data


def decode_length(head: bytes | bytearray) -> int:
    """Read an entry's length from its first `LENGTH_SIZE` bytes: how to skip to the next one.

    Raises:
        WireError: no entry is that long, or `head` is too short.
    """
    length = read_u32(head, 0, "entry length")
    _check_length(length)
    return length


@dataclass(slots=True)
class _Search:
    """Looking for the next entry after damage; offsets from the start of the segment."""

    start: int
    reason: Reason
    #: Nothing is wrong but that the bytes end early.
    is_tail: bool = False
    work_left: int = RESYNC_WORK_MAX


class SegmentReader:
    """Finds the entries of one segment, given its bytes piece by piece."""

    def __init__(self, offset: int = 0) -> None:
        """Start at `offset`, where a length stands (0, or what a sparse index says)."""
        self._buffer = bytearray()
        #: Of the buffer's first byte, from the start of the segment.
        self._base = offset
        #: Where to go on, in the buffer.
        self._at = 0
        self._search: _Search | None = None

    def feed(self, data: bytes) -> list[Found]:
        """Take the next bytes; answer with what they complete."""
        self._buffer += data
        return self._drain(final=False)

    def finish(self) -> list[Found]:
        """The segment ends here; answer with what is left."""
        return self._drain(final=True)

    def _drain(self, *, final: bool) -> list[Found]:
        found: list[Found] = []
        while (item := self._next(final=final)) is not None:
            found.append(item)
        del self._buffer[: self._at]
        self._base += self._at
        self._at = 0
        return found

    def _next(self, *, final: bool) -> Found | None:
        """The next finding; None when that needs more bytes, or there are no more."""
        if self._search is None:
            judged = self._judge(self._at)
            if isinstance(judged, Stored):
                self._at += LENGTH_SIZE + len(judged.data)
                return judged
            if judged is None and (not final or self._at == len(self._buffer)):
                return None
            reason = Reason.BAD_STRUCTURE if judged is None else judged.reason
            self._search = _Search(self._base + self._at, reason, is_tail=judged is None)
            self._at += 1
        return self._resynchronise(self._search, final=final)

    def _judge(self, at: int) -> Stored | WireError | None:
        """The entry at `at`, what is wrong with it, or None: it is not all there."""
        start = at + LENGTH_SIZE
        if len(self._buffer) < start:
            return None
        try:
            length = decode_length(self._buffer[at:start])
        except WireError as error:
            return error
        if len(self._buffer) < start + length:
            return None
        data = bytes(self._buffer[start : start + length])
        try:
            return Stored(self._base + at, data, decode_entry(data))
        except WireError as error:
            return error

    def _resynchronise(self, search: _Search, *, final: bool) -> Damaged | None:
        """Find where the next entry starts; None when that needs more bytes."""
        while (at := self._candidate(search)) is not None:
            self._at = at
            judged = self._judge(at)
            if judged is None and not final:
                return None
            if isinstance(judged, Stored) and judged.entry.is_checksummed:
                return self._resume(search, at)
            search.work_left -= self._cost(at)
            self._at += 1
        end = len(self._buffer)
        if final:
            return self._resume(search, end)
        # The last byte may be the first half of a magic, unless nobody looks any more.
        self._at = max(self._at, end - _HEAD_SIZE + 1) if search.work_left > 0 else end
        return None

    def _candidate(self, search: _Search) -> int | None:
        """The next place, from `_at`, where an entry may start: before a magic."""
        if search.work_left <= 0:
            return None
        magic = _MAGIC.search(self._buffer, self._at + LENGTH_SIZE)
        return None if magic is None else magic.start() - LENGTH_SIZE

    def _cost(self, at: int) -> int:
        """What it cost to look at a candidate: its length, where it has one."""
        try:
            length = decode_length(self._buffer[at : at + LENGTH_SIZE])
        except WireError:
            length = 0
        return max(length, _CANDIDATE_COST_MIN)

    def _resume(self, search: _Search, at: int) -> Damaged:
        """End the search: reading goes on at `at`."""
        self._search = None
        self._at = at
        size = self._base + at - search.start
        if search.is_tail and at == len(self._buffer) and search.work_left > 0:
            return Torn(search.start, size)
        return Damaged(search.start, size, search.reason)


def _check_length(length: int) -> None:
    check_size("entry", length, ENTRY_MAX)
    if length < ENTRY_MIN:
        raise Malformed(Reason.BAD_STRUCTURE, f"entry: {length} bytes cannot be one")
