"""Reads usage logs: every entry in order, damage with its place, and where a time starts.

Law: nothing that is readable is left out and nothing is made up. What cannot be read comes as a
`DamagedEntry` with file and offset, and reading goes on behind it. The torn end of a log's last
segment is not damage: the daemon may be writing it just now. Reading takes what was there when each
segment was opened, needs no lock and changes nothing; a segment that retention removes meanwhile is
left out.

`seek_time` reads no more of an entry than what the broker added: it searches the segments by their
first entries, then the sparse index, then walks at most from one mark to the next. What a payload
means is `rgd.wire.record`'s business.
"""

import contextlib
import math
import os
from bisect import bisect_left
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from rgd.adapters.usagelog.errors import LogNotFound, LogUnreadable
from rgd.adapters.usagelog.files import list_logs, list_segments
from rgd.adapters.usagelog.headers import read_chunks, walk
from rgd.adapters.usagelog.index import load_marks, true_marks
from rgd.wire.errors import Reason
from rgd.wire.frame import Entry
from rgd.wire.log_records import CONTEXT_ENTRIES
from rgd.wire.segment import Damaged, Found, SegmentReader, Stored, Torn


@dataclass(frozen=True, slots=True)
class LogEntry:
    """An entry and where it stands."""

    path: Path
    #: Of its length, in bytes from the start of the file.
    offset: int
    entry: Entry


@dataclass(frozen=True, slots=True)
class DamagedEntry:
    """Bytes that are not what was written; one entry or several."""

    path: Path
    offset: int
    #: In bytes.
    size: int
    reason: Reason

    def __str__(self) -> str:
        return f"{self.path}: {self.size} damaged bytes at offset {self.offset}: {self.reason}"


@dataclass(frozen=True, slots=True)
class Position:
    """Where an entry stands."""

    path: Path
    offset: int
    #: None where the broker set none.
    index: int | None
    #: Milliseconds since 1970: the broker's, else the producer's.
    timestamp: int


def read_entries(path: Path, *, start: Position | None = None) -> Iterator[LogEntry | DamagedEntry]:
    """Everything in a log folder, in a folder of log folders (one after the other) or in one segment.

    Args:
        path: a folder or a segment file.
        start: begin here (`seek_time` in the same log) instead of at the beginning.

    Raises:
        LogNotFound: there is no such path.
        LogUnreadable: the operating system refuses to read it.
    """
    for segments in _logs_at(path):
        for segment in segments:
            is_started = start is not None and segment.parent == start.path.parent
            if start is not None and is_started and segment.name < start.path.name:
                continue
            offset = start.offset if start is not None and segment == start.path else 0
            yield from _read_segment(segment, offset)


def seek_time(path: Path, timestamp_ms: int) -> Position | None:
    """The first entry at or after a time, in one log folder or one segment; None: there is none.

    Raises:
        LogNotFound: there is no such path.
        LogUnreadable: the operating system refuses to read it.
    """
    segments = _segments_at(path) if path.is_dir() else next(_logs_at(path))
    following = bisect_left(segments, float(timestamp_ms), key=_first_timestamp)
    # The sought entry may still be in the segment before the first that starts late enough.
    for segment in segments[max(following - 1, 0) :]:
        found = _seek_in_segment(segment, timestamp_ms)
        if found is not None:
            return found
    return None


def with_context(position: Position) -> Position:
    """Where to begin to read, so that the record at `position` can be decoded.

    A record may continue those before it in its segment (`rgd.wire.log_records`), at most
    `CONTEXT_ENTRIES` of them.

    Raises:
        LogUnreadable: the operating system refuses to read it.
    """
    with _opened(position.path) as descriptor:
        if descriptor is None:
            return position
        earlier = [
            mark
            for mark in load_marks(position.path)
            if position.index is not None and mark.index <= position.index - CONTEXT_ENTRIES
        ]
        marks = true_marks(descriptor, earlier)
        before: deque[Position] = deque(maxlen=CONTEXT_ENTRIES + 1)
        for header in walk(descriptor, marks[-1].offset if marks else 0):
            before.append(Position(position.path, header.offset, header.index, header.timestamp))
            if header.offset >= position.offset:
                return before[0]
    return position


def _logs_at(path: Path) -> Iterator[list[Path]]:
    """The segment files of each log."""
    if path.is_dir():
        yield from map(_segments_at, list_logs(path))
    elif path.exists():
        yield [path]
    else:
        raise LogNotFound(path)


def _segments_at(folder: Path) -> list[Path]:
    return [segment.path for segment in list_segments(folder)]


@contextlib.contextmanager
def _opened(segment: Path) -> Iterator[int | None]:
    """A descriptor of a segment file; None: it was removed meanwhile."""
    try:
        descriptor = os.open(segment, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        yield None
        return
    except OSError as exc:
        raise LogUnreadable(segment, exc) from exc
    try:
        yield descriptor
    except OSError as exc:
        raise LogUnreadable(segment, exc) from exc
    finally:
        os.close(descriptor)


def _read_segment(segment: Path, offset: int) -> Iterator[LogEntry | DamagedEntry]:
    # Asked before reading: a segment that has a successor is not written any more.
    is_active = not any(other.name > segment.name for other in _segments_at(segment.parent))
    reader = SegmentReader(offset)
    with _opened(segment) as descriptor:
        if descriptor is None:
            return
        for chunk in read_chunks(descriptor, offset):
            for found in reader.feed(chunk):
                yield _item(segment, found)
        for found in reader.finish():
            if not (is_active and isinstance(found, Torn)):
                yield _item(segment, found)


def _item(segment: Path, found: Found) -> LogEntry | DamagedEntry:
    match found:
        case Stored():
            return LogEntry(segment, found.offset, found.entry)
        case Damaged():
            return DamagedEntry(segment, found.offset, found.size, found.reason)
        case Torn():
            return DamagedEntry(segment, found.offset, found.size, Reason.TORN)


def _first_timestamp(segment: Path) -> float:
    """When the first entry was written; a segment without entries counts as written last."""
    with _opened(segment) as descriptor:
        first = None if descriptor is None else next(walk(descriptor), None)
    return math.inf if first is None else first.timestamp


def _seek_in_segment(segment: Path, timestamp_ms: int) -> Position | None:
    with _opened(segment) as descriptor:
        if descriptor is None:
            return None
        marks = load_marks(segment)
        earlier = marks[: bisect_left(marks, timestamp_ms, key=lambda mark: mark.timestamp)]
        marks = true_marks(descriptor, earlier)
        for header in walk(descriptor, marks[-1].offset if marks else 0):
            if header.timestamp >= timestamp_ms:
                return Position(segment, header.offset, header.index, header.timestamp)
    return None
