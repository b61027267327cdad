"""Finds where a log continues, and truncates incomplete entries.

Law: after any crash, the log continues after its last complete entry with the next index, a time
not below the last one and a higher sequence id. Only two things are ever truncated: an incomplete last
entry, and zeros at the end (a file system that allocated space and lost the bytes). Other damage
stays for the reader to report.

Only the last segment's part after its last true mark is read, so it takes the same few milliseconds
for a large log as for a small one. Without an index, or without a whole entry there, the last segment is read once.
"""

import contextlib
import os
from dataclasses import dataclass
from pathlib import Path

from rgd.adapters.usagelog.files import FolderLock, Segment, list_segments
from rgd.adapters.usagelog.index import load_marks
from rgd.config.plain_files import open_plain_file
from rgd.ports.usagelog import LogLocked
from rgd.storage.headers import header_at, header_of, read_chunks, read_found
from rgd.storage.marks import true_marks
from rgd.wire.errors import WireError
from rgd.wire.segment import Damaged, Stored, Torn


@dataclass(frozen=True, slots=True)
class Tail:
    """The state from which a log continues."""

    next_index: int = 0
    #: Of the last complete entry, in milliseconds since 1970.
    last_timestamp: int = 0
    next_sequence_id: int = 0
    #: The last segment; None if there is none.
    path: Path | None = None
    #: Number of damaged stretches.
    damaged: int = 0


@dataclass(slots=True)
class _Scan:
    """The findings from a segment's last true mark on."""

    #: Index of the entry that the scan began with.
    base: int
    #: Behind the last finding that stays.
    end: int = 0
    #: Complete entries from the start of the scan on.
    count: int = 0
    last: Stored | None = None
    damaged: int = 0
    #: Damage without a complete entry after it.
    trailing: Damaged | None = None


def recover(folder: Path) -> Tail:
    """Truncate the incomplete end of the log in `folder`, and return where the log continues.

    Raises:
        UsageLogError, OSError: the folder or its last segment cannot be read or truncated.
    """
    segments = list_segments(folder)
    if not segments:
        return Tail()
    last = segments[-1]
    with open_plain_file(last.path, os.O_RDWR) as descriptor:
        scan = _scan(descriptor, last)
        if os.fstat(descriptor).st_size > scan.end:
            os.ftruncate(descriptor, scan.end)
        next_index = _next_index(descriptor, last, scan)
    before = scan.last or _last_of(segments[:-1])
    return Tail(
        next_index=next_index,
        last_timestamp=before.entry.timestamp if before else 0,
        next_sequence_id=before.entry.sequence_id + 1 if before else 0,
        path=last.path,
        damaged=scan.damaged,
    )


def recover_unless_written(folder: Path) -> None:
    """Truncate the incomplete end of a log, unless a daemon has it open.

    Raises:
        UsageLogError, OSError: as `recover`.
    """
    lock = FolderLock(folder)
    try:
        lock.acquire()
    except LogLocked:
        return
    try:
        recover(folder)
    finally:
        lock.release()


def index_behind(descriptor: int, segment: Segment) -> int:
    """The index with which the log goes on behind a segment.

    Raises:
        OSError: it cannot be read.
    """
    return _next_index(descriptor, segment, _scan(descriptor, segment))


def _scan(descriptor: int, segment: Segment) -> _Scan:
    """Read everything from the segment's last true mark on."""
    marks = true_marks(descriptor, load_marks(segment.path))
    if not marks:
        return _scan_from(descriptor, segment.first_index, 0)
    scan = _scan_from(descriptor, marks[-1].index, marks[-1].offset)
    if scan.last is None:
        # Nothing is whole from there on: time and sequence go on from what is whole before it.
        scan.last = _scan_from(descriptor, segment.first_index, 0).last
    return scan


def _scan_from(descriptor: int, base: int, start: int) -> _Scan:
    scan = _Scan(base, end=start)
    for found in read_found(descriptor, start):
        if isinstance(found, Stored):
            scan.last, scan.count, scan.end = found, scan.count + 1, header_of(found).end
            scan.trailing = None
        elif not isinstance(found, Torn):
            scan.damaged += 1
            scan.trailing, scan.end = found, found.offset + found.size
    if scan.trailing is not None and _is_zeros(descriptor, scan.trailing):
        scan.end = scan.trailing.offset
        scan.trailing = None
        scan.damaged -= 1
    return scan


def _next_index(descriptor: int, segment: Segment, scan: _Scan) -> int:
    """The index after everything that stays in the last segment."""
    if scan.last is None:
        next_index = scan.base
    elif scan.last.entry.index is None:
        # The broker added no index: the entries are counted from the last one that has a mark.
        next_index = scan.base + scan.count
    else:
        next_index = max(scan.base, scan.last.entry.index + 1)
    if scan.trailing is None:
        return next_index
    # Damaged entries keep their indexes, as far as these can be read. A segment with only damage counts as
    # at least one entry, because the next segment must not have its name.
    offset, counted = scan.trailing.offset, next_index
    with contextlib.suppress(WireError):
        while (header := header_at(descriptor, offset)).index == counted:
            offset, counted = header.end, counted + 1
    return max(counted, segment.first_index + 1)


def _last_of(segments: list[Segment]) -> Stored | None:
    """The last complete entry of the newest of these segments that has one."""
    for segment in reversed(segments):
        with open_plain_file(segment.path) as descriptor:
            last = _scan(descriptor, segment).last
        if last is not None:
            return last
    return None


def _is_zeros(descriptor: int, damaged: Damaged) -> bool:
    end = damaged.offset + damaged.size
    return not any(any(chunk) for chunk in read_chunks(descriptor, damaged.offset, end))
