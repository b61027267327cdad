"""A segment file: nothing but `[u32 length][entry]` repeated, named by its first index.

Law: the findings of a `SegmentReader` depend only on the bytes, never on how they were split. Every byte
is in exactly one finding, in order: an entry (`Stored`), a damaged stretch
(`Damaged`), or an incomplete end (`Torn`, only from `finish`).

After damage the reader continues at the first later entry with a correct checksum. If there is none, it
continues at the end that the damaged entry declares, if something like an entry starts there.
Searching costs at most `RESYNC_WORK_MAX`; beyond that, the rest of the segment is one
`Damaged`. The reader stores at most the bytes of one entry (`ENTRY_MAX`) and of the last `feed`.
Data without a checksum (the broker's part of an entry, entries without a checksum) are accepted if
they can be read. The usage log adapter has files, syncing and the truncation of an incomplete end.
"""

import re
import struct
from dataclasses import dataclass
from typing import Final

from rgd.wire.errors import Malformed, Oversize, Reason, TornFrame, WireError
from rgd.wire.frame import ENTRY_MAX, ENTRY_MIN, Entry, decode_entry

#: Bytes of the length before an entry.
LENGTH_SIZE: Final = 4

#: How much one search for the next entry may read again, in bytes (a refused candidate costs its
#: length, at least `_CANDIDATE_COST_MIN`). Random bytes of a whole 64 MiB segment need a tenth.
RESYNC_WORK_MAX: Final = 64 * 1024 * 1024
_CANDIDATE_COST_MIN: Final = 256

_U32: Final = struct.Struct(">I")
_MAGIC: Final = re.compile(rb"\x0e[\x01\x02]")
_MAGIC_SIZE: Final = 2
_HEAD_SIZE: Final = LENGTH_SIZE + _MAGIC_SIZE

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
class Torn:
    """The end of the segment: an entry that is not all there."""

    offset: int
    size: int


Found = Stored | Damaged | Torn


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
    return _U32.pack(len(data)) + data


def decode_length(head: bytes | bytearray) -> int:
    """Read an entry's length from its first `LENGTH_SIZE` bytes: how to skip to the next one.

    Raises:
        WireError: no entry is that long, or `head` is too short.
    """
    if len(head) < LENGTH_SIZE:
        raise TornFrame("entry length", LENGTH_SIZE, len(head))
    length: int = _U32.unpack_from(head)[0]
    _check_length(length)
    return length


@dataclass(slots=True)
class _Search:
    """Looking for the next entry after damage; offsets from the start of the segment."""

    start: int
    reason: Reason
    #: Where the damaged entry says it ends; None when its length cannot be right.
    stated_end: int | None
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
        #: Behind the last whole entry: a writer that found the end torn cuts here.
        self.whole_end = offset

    def feed(self, data: bytes) -> list[Found]:
        """Take the next bytes; answer with what they complete."""
        self._buffer += data
        return self._drain(final=False)

    @property
    def buffered(self) -> int:
        """How many bytes wait for what follows them."""
        return len(self._buffer)

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
                self.whole_end = self._base + self._at
                return judged
            if judged is None and (not final or self._at == len(self._buffer)):
                return None
            self._search = self._search_from(self._at, judged)
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

    def _search_from(self, at: int, error: WireError | None) -> _Search:
        """Begin to look for what follows the bytes at `at`."""
        start = self._base + at
        if error is None:
            return _Search(start, Reason.BAD_STRUCTURE, None, is_tail=True)
        length = self._length_at(at)
        stated_end = None if length is None else start + LENGTH_SIZE + length
        return _Search(start, error.reason, stated_end)

    def _resynchronise(self, search: _Search, *, final: bool) -> Damaged | Torn | None:
        """Find where the next entry starts; None when that needs more bytes."""
        if self._awaits_stated_end(search) and not final:
            return None
        while (at := self._candidate(search)) is not None:
            self._at = at
            is_start = self._starts_entry(search, at, final=final)
            if is_start is None:
                return None
            if is_start:
                return self._resume(search, at)
            self._at += 1
        end = len(self._buffer)
        if final:
            return self._resume(search, end)
        # The last byte may be the first half of a magic, unless nobody looks any more.
        self._at = max(self._at, end - _HEAD_SIZE + 1) if search.work_left > 0 else end
        return None

    def _awaits_stated_end(self, search: _Search) -> bool:
        """Whether places before the stated end cannot all be judged yet."""
        return (
            search.stated_end is not None
            and self._base + len(self._buffer) < search.stated_end + _HEAD_SIZE
        )

    def _candidate(self, search: _Search) -> int | None:
        """The next place, from `_at`, where an entry may start: before a magic, or the stated end."""
        if search.work_left <= 0:
            return None
        magic = _MAGIC.search(self._buffer, self._at + LENGTH_SIZE)
        at = None if magic is None else magic.start() - LENGTH_SIZE
        if search.stated_end is None:
            return at
        stated = search.stated_end - self._base
        return stated if at is None else min(at, stated)

    def _starts_entry(self, search: _Search, at: int, *, final: bool) -> bool | None:
        """Whether reading goes on at `at`; None when that needs more bytes."""
        judged = self._judge(at)
        if judged is None and not final:
            return None
        if search.stated_end == self._base + at:
            search.stated_end = None
            return isinstance(judged, Stored) or self._looks_like_entry(at)
        if isinstance(judged, Stored) and judged.entry.is_checksummed:
            return True
        search.work_left -= self._cost(at)
        return False

    def _looks_like_entry(self, at: int) -> bool:
        """Whether the first bytes at `at` could be an entry's; too few of them could be."""
        head = bytes(self._buffer[at : at + _HEAD_SIZE])
        if len(head) < _HEAD_SIZE:
            return True
        return self._length_at(at) is not None and _MAGIC.match(head, LENGTH_SIZE) is not None

    def _cost(self, at: int) -> int:
        return max(self._length_at(at) or 0, _CANDIDATE_COST_MIN)

    def _length_at(self, at: int) -> int | None:
        """The length that stands at `at`, None when there is none that an entry can have."""
        try:
            return decode_length(self._buffer[at : at + LENGTH_SIZE])
        except WireError:
            return None

    def _resume(self, search: _Search, at: int) -> Damaged | Torn:
        """End the search: reading goes on at `at`."""
        self._search = None
        self._at = at
        size = self._base + at - search.start
        if search.is_tail and at == len(self._buffer) and search.work_left > 0:
            return Torn(search.start, size)
        return Damaged(search.start, size, search.reason)


def _check_length(length: int) -> None:
    if length > ENTRY_MAX:
        raise Oversize("entry", length, ENTRY_MAX)
    if length < ENTRY_MIN:
        raise Malformed(Reason.BAD_STRUCTURE, f"entry: {length} bytes cannot be one")
