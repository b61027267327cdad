"""Appends entries to one log folder: numbers and stamps them, rolls segments, syncs, counts.

Law: indexes are continuous and broker time never runs backwards, over segments, restarts and jumps of
the clock. `synced_index` is never above the last entry of a successful sync.
Every method may raise OSError. Then nothing is open any more, complete entries are kept and
counted, and `resume` continues from the content on disk. An unsynced segment whose sync failed is never
appended to again, because the operating system reports such a failure once and drops the pages.

Single-threaded and blocking; the writer queues, retries and reports.
"""

import contextlib
import errno
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from rgd.adapters.usagelog.files import FolderLock, sync_path
from rgd.adapters.usagelog.headers import Header
from rgd.adapters.usagelog.index import MarkWriter
from rgd.adapters.usagelog.recovery import OpenEnd, Tail, recover
from rgd.adapters.usagelog.settings import UsageLogSettings
from rgd.ports.usagelog import Fsync
from rgd.wire.checks import check_broker
from rgd.wire.frame import BrokerEntryMetadata, Entry, encode_entry
from rgd.wire.record import RECORD_PROPERTIES
from rgd.wire.segment import encode_stored, segment_name

#: Latest time that an entry can carry, in milliseconds since 1970 (int64).
TIMESTAMP_MAX: Final = (1 << 63) - 1

_MS_PER_S: Final = 1000

#: An encoded entry with its length, and where it goes.
_Stored = tuple[Header, bytes]


@dataclass(frozen=True, slots=True)
class Pending:
    """A payload that waits to be written."""

    payload: bytes
    #: By the caller's clock, in milliseconds since 1970.
    timestamp_ms: int
    #: Number of the payload among all since the start, from 0, counting lost ones too.
    ordinal: int


@dataclass(slots=True)
class _OpenSegment:
    """The segment that is being written."""

    path: Path
    descriptor: int
    size: int
    first_timestamp: int | None
    marks: MarkWriter


class Appender:
    """Writes one log."""

    def __init__(self, folder: Path, settings: UsageLogSettings, *, broker: str) -> None:
        #: Index of the next entry.
        self.next_index = 0
        #: Entries written.
        self.appended = 0
        #: Entries written whose sync failed: they may be on disk or not.
        self.doubtful = 0
        #: Damaged stretches met by the first `resume`.
        self.damaged = 0
        self.synced_index = -1
        self._folder = folder
        self._settings = settings
        self._is_syncing = settings.fsync is not Fsync.NEVER
        self._broker = check_broker(broker)
        self._lock = FolderLock(folder)
        self._segment: _OpenSegment | None = None
        self._is_ready = False
        self._last_timestamp = 0
        #: Sequence id of the payload with ordinal 0, known from the first `resume` on.
        self._sequence_base: int | None = None
        #: Entries written since the last sync.
        self._unsynced = 0
        #: A segment whose sync failed.
        self._suspect: Path | None = None

    @property
    def is_ready(self) -> bool:
        """Whether `write` may be called; otherwise call `resume` first."""
        return self._is_ready

    @property
    def has_unsynced(self) -> bool:
        """Whether there is anything for `sync` to write to disk."""
        return self._unsynced > 0

    def resume(self) -> None:
        """Lock the folder and prepare to append after the content on disk.

        Raises:
            LogLocked: another process appends to this log.
            UsageLogError, OSError: the log cannot be read, cut or synced.
        """
        self._lock.acquire()
        tail = recover(self._folder)
        if self._sequence_base is None:
            self._sequence_base = tail.next_sequence_id
            self.damaged = tail.damaged
        expected = self.next_index
        self.next_index = max(expected, tail.next_index)
        self._last_timestamp = max(self._last_timestamp, tail.last_timestamp)
        with self._closing_on_error():
            self._go_on(tail)
        self._is_ready = True

    def write(self, batch: Sequence[Pending]) -> None:
        """Write payloads in order, in as many segments as it takes.

        Raises:
            OSError: only the entries by which `appended` has grown were written.
        """
        assert self._is_ready, "resume first"
        with self._closing_on_error():
            run: list[_Stored] = []
            run_bytes = 0
            for pending in batch:
                header, data = self._encode(pending, run)
                if self._must_roll(run_bytes, header, run):
                    self._put(run)
                    run, run_bytes = [], 0
                    self._roll()
                    header, data = self._encode(pending, run)
                run.append((header, data))
                run_bytes += len(data)
            self._put(run)

    def sync(self) -> None:
        """Sync all written entries to disk, unless the settings disable it.

        Raises:
            OSError: it is unknown which entries since the last sync are on disk.
        """
        if self._segment is None or not self._is_syncing:
            return
        with self._closing_on_error():
            self._sync(self._segment)

    def doubt_unsynced(self) -> None:
        """Count the entries since the last sync as doubtful."""
        self.doubtful += self._unsynced
        self._unsynced = 0

    def close(self) -> None:
        """Close the segment, without a sync, and release the lock. Idempotent."""
        self._close_segment()
        self._is_ready = False
        self._lock.release()

    def _go_on(self, tail: Tail) -> None:
        """Open the last segment of the log, or skip it, so that `write` begins a new one."""
        if self._is_syncing and tail.path is not None and tail.path != self._suspect:
            try:
                sync_path(tail.path)
            except OSError:
                self._suspect = tail.path
                raise
            sync_path(self._folder)
        can_append = tail.path != self._suspect and tail.next_index == self.next_index
        if tail.segment is None or not can_append:
            # The entries may be in a segment that can no longer be synced.
            self.doubt_unsynced()
            return
        self._open(tail.segment)
        if self._is_syncing:
            self._count_synced()

    def _encode(self, pending: Pending, run: list[_Stored]) -> _Stored:
        """The entry that follows `run`, and its position."""
        segment, last = self._segment, run[-1][0] if run else None
        offset = last.end if last else segment.size if segment else 0
        index = self.next_index + len(run)
        timestamp = max(pending.timestamp_ms, last.timestamp if last else self._last_timestamp)
        assert self._sequence_base is not None
        entry = Entry(
            producer_name=self._broker,
            sequence_id=self._sequence_base + pending.ordinal,
            publish_time=pending.timestamp_ms,
            payload=pending.payload,
            properties=RECORD_PROPERTIES,
            broker=BrokerEntryMetadata(timestamp, index),
        )
        data = encode_stored(encode_entry(entry))
        return Header(offset, len(data), index, timestamp), data

    def _must_roll(self, run_bytes: int, header: Header, run: list[_Stored]) -> bool:
        segment = self._segment
        if segment is None:
            return True
        if segment.size + run_bytes == 0:
            return False
        first_timestamp = segment.first_timestamp
        if first_timestamp is None and run:
            first_timestamp = run[0][0].timestamp
        is_old = (
            first_timestamp is not None
            and header.timestamp - first_timestamp >= self._settings.segment_age_s * _MS_PER_S
        )
        return is_old or header.end > self._settings.segment_bytes

    def _put(self, run: list[_Stored]) -> None:
        """Write entries to the open segment; count those that are written whole."""
        if not run:
            return
        segment = self._segment
        assert segment is not None
        data = memoryview(b"".join(stored for _, stored in run))
        written = 0
        try:
            while written < len(data):
                written += os.write(segment.descriptor, data[written:])
        finally:
            self._count(segment, [header for header, _ in run], segment.size + written)

    def _count(self, segment: _OpenSegment, headers: list[Header], end: int) -> None:
        """Count the entries that end at or before `end`."""
        whole = [header for header in headers if header.end <= end]
        if not whole:
            return
        if segment.first_timestamp is None:
            segment.first_timestamp = whole[0].timestamp
        segment.size = whole[-1].end
        segment.marks.add(whole)
        self.next_index += len(whole)
        self.appended += len(whole)
        self._last_timestamp = whole[-1].timestamp
        if self._is_syncing:
            self._unsynced += len(whole)

    def _roll(self) -> None:
        """Close the open segment, if any, and begin the next one."""
        if self._segment is not None and self._is_syncing:
            self._sync(self._segment)
        self._close_segment()
        path = self._folder / segment_name(self.next_index)
        self._open(OpenEnd(path, size=0, first_timestamp=None, since_mark=0))
        if self._is_syncing:
            sync_path(self._folder)

    def _open(self, end: OpenEnd) -> None:
        descriptor = os.open(end.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        if os.fstat(descriptor).st_size != end.size:
            os.close(descriptor)
            raise FileExistsError(
                errno.EEXIST, "another process writes to this segment", str(end.path)
            )
        marks = MarkWriter(end.path, since_mark=end.since_mark)
        self._segment = _OpenSegment(end.path, descriptor, end.size, end.first_timestamp, marks)

    def _sync(self, segment: _OpenSegment) -> None:
        try:
            os.fsync(segment.descriptor)
            if os.fstat(segment.descriptor).st_nlink == 0:
                raise FileNotFoundError(errno.ENOENT, "this segment was removed", str(segment.path))
        except OSError:
            self._suspect = segment.path
            self.doubt_unsynced()
            raise
        self._count_synced()

    def _count_synced(self) -> None:
        self._unsynced = 0
        self.synced_index = self.next_index - 1

    @contextlib.contextmanager
    def _closing_on_error(self) -> Iterator[None]:
        """Close after a disk error; the next `resume` truncates incomplete entries."""
        try:
            yield
        except OSError:
            self._close_segment()
            self._is_ready = False
            raise

    def _close_segment(self) -> None:
        segment, self._segment = self._segment, None
        if segment is not None:
            segment.marks.close()
            # The sync reports a late failure of a write.
            with contextlib.suppress(OSError):
                os.close(segment.descriptor)
