"""Reads usage logs: every entry in order, damage with its offset, and seeking by time.

Law: reading returns every readable entry and invents none. Unreadable bytes are returned as a
`DamagedEntry` with file and offset, and reading continues after them. An incomplete end of a log's last
segment is not damage, because the daemon may be writing it. Reading returns the content at the time when each
segment was opened, needs no lock and changes nothing. A segment that is removed meanwhile is
skipped.

`seek_time` reads only the part of an entry that the broker added: it searches the segments by their
first entries, then the sparse index, then iterates at most from one mark to the next. `rgd.wire.record`
interprets payloads.
"""

import contextlib
import math
import os
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from rgd.adapters.usagelog.errors import LogNotFound, LogUnreadable
from rgd.adapters.usagelog.files import list_logs, list_segments
from rgd.adapters.usagelog.headers import read_chunks, walk
from rgd.adapters.usagelog.index import load_marks, true_marks
from rgd.wire.errors import Reason
from rgd.wire.frame import Entry
from rgd.wire.segment import Damaged, Found, SegmentReader, Stored, Torn


@dataclass(frozen=True, slots=True)
class LogEntry:
    """An entry and its position."""

    path: Path
    #: Offset of its length, in bytes from the start of the file.
    offset: int
    entry: Entry


@dataclass(frozen=True, slots=True)
class DamagedEntry:
    """Damaged bytes: one entry or several."""

    path: Path
    offset: int
    #: In bytes.
    size: int
    reason: Reason

    def __str__(self) -> str:
        return f"{self.path}: {self.size} damaged bytes at offset {self.offset}: {self.reason}"


@dataclass(frozen=True, slots=True)
class Position:
    """The position of an entry."""

    path: Path
    offset: int
    #: None where the broker set none.
    index: int | None
    #: Milliseconds since 1970: the broker's, otherwise the producer's.
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
    """The first entry at or after a time, in one log folder or one segment; None if there is none.

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
    # Checked before reading, because a segment with a successor is not written any more.
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
    """The time of the first entry; a segment without entries counts as the last one."""
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
