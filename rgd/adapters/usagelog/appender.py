"""Appends entries to one log folder: numbers and stamps them, rolls segments, syncs, counts.

Law: indexes are continuous and broker time never runs backwards, over segments, restarts and jumps of
the clock. `synced_index` is never above the last entry of a successful sync.
Every method may raise OSError. Then nothing is open any more, complete entries are kept and
counted, and `resume` continues from the content on disk. An unsynced segment whose sync failed is never
appended to again, because the operating system reports such a failure once and drops the pages.

What is logged is encoded here, in the thread that writes: a segment begins with the policies in force, and
records continue one another within it (`rgd.wire.log_records`). What cannot be encoded is left out, counted
and passed to `on_fault`.

Single-threaded and blocking; queueing, retrying and telling people is the writer's business.
"""

import contextlib
import errno
import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

from rgd.adapters.usagelog.files import FolderLock, sync_path
from rgd.adapters.usagelog.headers import Header
from rgd.adapters.usagelog.index import MarkWriter
from rgd.adapters.usagelog.recovery import OpenEnd, Tail, recover
from rgd.adapters.usagelog.settings import UsageLogSettings
from rgd.core.exchange.messages import Loggable
from rgd.ports.usagelog import Fsync, Interceptor, UsageLogError
from rgd.wire.checks import check_broker
from rgd.wire.frame import BrokerEntryMetadata, Entry, encode_parts
from rgd.wire.log_records import POLICIES_BYTES_MAX, Item, LogEncoder
from rgd.wire.segment import LENGTH_SIZE, length_before, parse_segment_name, segment_name

#: Latest time that an entry can carry, in milliseconds since 1970 (int64).
TIMESTAMP_MAX: Final = (1 << 63) - 1

_MS_PER_S: Final = 1000

#: Pieces that are written in one call; operating systems take 1,024.
PIECES_MAX: Final = 512


class _Stored(NamedTuple):
    """An encoded entry with its length, and where it goes."""

    header: Header
    #: What stands before the payload, and the payload, which is nowhere copied.
    parts: tuple[bytes, bytes]
    sequence_id: int
    #: The pending whose next item it holds; None: it belongs to the segment.
    ordinal: int | None


@dataclass(frozen=True, slots=True)
class Pending:
    """Something that waits to be written, in one entry or several."""

    item: Loggable
    #: By the caller's clock, in milliseconds since 1970.
    timestamp_ms: int
    #: Of all that was offered since the start, from 0, also of what was not kept.
    ordinal: int


@dataclass(slots=True)
class _OpenSegment:
    """The segment that is being written."""

    path: Path
    descriptor: int
    size: int
    first_timestamp: int | None
    marks: MarkWriter
    #: The caller's clock at the last entry, and how far it has moved on since the first; it may be set back.
    offered_ms: int | None = None
    aged_ms: int = 0

    def age(self, now_ms: int) -> None:
        """Let time pass: broker time stands still while a clock that was set back catches up."""
        if self.offered_ms is not None:
            self.aged_ms += max(0, now_ms - self.offered_ms)
        self.offered_ms = now_ms


def _behind(pieces: list[bytes | memoryview], count: int) -> list[bytes | memoryview]:
    """What is left of pieces whose first `count` bytes were written."""
    for place, piece in enumerate(pieces):
        if count < len(piece):
            return [memoryview(piece)[count:], *pieces[place + 1 :]]
        count -= len(piece)
    return []


def _ignore(*_: object) -> None:
    """Let it be."""


class Appender:
    """Writes one log."""

    def __init__(
        self,
        folder: Path,
        settings: UsageLogSettings,
        *,
        broker: str,
        make_room: Callable[[int, int], None] = _ignore,
        on_fault: Callable[[Exception], None] = _ignore,
    ) -> None:
        """Nothing is touched before `resume`.

        Args:
            folder: the log's own.
            settings: sizes, times, limits.
            broker: whose log it is.
            make_room: called when a segment was begun, before anything is in it, with its first index
                and the bytes that it may come to need; may raise OSError.
            on_fault: receives the error of an item that cannot be encoded.
        """
        #: Of the next entry.
        self.next_index = 0
        #: Entries written.
        self.appended = 0
        #: Pendings that are settled: written whole, or given up.
        self.settled = 0
        #: Pendings, or parts of them, that cannot be encoded.
        self.unwritable = 0
        #: Items lost before they came here; the next record carries the count.
        self.dropped = 0
        #: Entries written whose sync failed: they may be on disk or not.
        self.doubtful = 0
        #: Damaged stretches met by the first `resume`.
        self.damaged = 0
        self.synced_index = -1
        self._folder = folder
        self._settings = settings
        self._is_syncing = settings.fsync is not Fsync.NEVER
        self._broker = check_broker(broker)
        self._make_room = make_room
        self._on_fault = on_fault
        self._lock = FolderLock(folder)
        self._segment: _OpenSegment | None = None
        self._is_ready = False
        self._last_timestamp = 0
        self._encoder = LogEncoder(
            policies_bytes_max=min(POLICIES_BYTES_MAX, settings.segment_bytes // 2)
        )
        #: What is left to write of pendings, by ordinal.
        self._items: dict[int, deque[Item]] = {}
        #: Of the last entry written; a gap in sequence ids shows a loss.
        self._last_sequence = -1
        #: Sequence id of the payload with ordinal 0, known from the first `resume` on.
        self._sequence_base: int | None = None
        #: Entries written since the last sync.
        self._unsynced = 0
        #: A segment whose sync failed.
        self._suspect: Path | None = None

    @property
    def lost(self) -> int:
        """What is not in the log, or may not be."""
        return self.dropped + self.unwritable + self.doubtful

    @property
    def is_ready(self) -> bool:
        """Whether `write` may be called; otherwise call `resume` first."""
        return self._is_ready

    @property
    def active_index(self) -> int | None:
        """First index of the segment that is being written; None: there is none."""
        return None if self._segment is None else parse_segment_name(self._segment.path.name)

    @property
    def active_bytes(self) -> int:
        """Bytes written to that segment."""
        return self._segment.size if self._segment else 0

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
            self._last_sequence = tail.next_sequence_id - 1
            self.damaged = tail.damaged
        expected = self.next_index
        self.next_index = max(expected, tail.next_index)
        self._last_timestamp = max(self._last_timestamp, tail.last_timestamp)
        with self._closing_on_error():
            self._go_on(tail)
        self._is_ready = True

    def write(self, batch: Sequence[Pending]) -> None:
        """Write pendings in order, in as many entries and segments as it takes.

        Raises:
            OSError: only the pendings by which `settled` has grown are written whole; of the next one the
                items that are written are not written again.
        """
        assert self._is_ready, "resume first"
        with self._closing_on_error():
            run: list[_Stored] = []
            for pending in batch:
                items = self._items_of(pending)
                if items is None or not items:
                    self._put(run)
                    run = []
                    self._settle(pending.ordinal)
                    continue
                for item in list(items):
                    run = self._add(run, pending, item)
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

    def _items_of(self, pending: Pending) -> deque[Item] | None:
        """What is left to write of a pending; None: it cannot be written."""
        items = self._items.get(pending.ordinal)
        if items is None:
            try:
                has_segment = self._segment is not None
                items = deque(self._encoder.items_of(pending.item, has_segment=has_segment))
            except Exception as error:  # noqa: BLE001 -- the next pending has nothing to do with it
                self._give_up(error)
                return None
            self._items[pending.ordinal] = items
        return items

    def _add(self, run: list[_Stored], pending: Pending, item: Item) -> list[_Stored]:
        """Encode an item behind `run`; answer with the run that is to be written now."""
        try:
            stored = self._encode(run, pending, item, is_offered=True)
            if self._segment is not None:
                self._segment.age(pending.timestamp_ms)
            if self._must_roll(run, stored.header):
                self._put(run)
                self._roll(stored.header.size, pending.timestamp_ms)
                run = self._first_entries(pending)
                stored = self._encode(run, pending, item, is_offered=True)
        except (OSError, UsageLogError):
            raise
        except Exception as error:  # noqa: BLE001 -- the next item has nothing to do with it
            self._encoder.restart()
            self._put(run)
            self._give_up(error)
            self._done(pending.ordinal)
            return []
        run.append(stored)
        return run

    def _first_entries(self, pending: Pending) -> list[_Stored]:
        """What a segment begins with, as of a pending."""
        run: list[_Stored] = []
        for item in self._encoder.begin_segment():
            run.append(self._encode(run, pending, item, is_offered=False))
        return run

    def _encode(
        self, run: list[_Stored], pending: Pending, item: Item, *, is_offered: bool
    ) -> _Stored:
        """The entry that follows `run`, and where it will be."""
        segment, last = self._segment, run[-1] if run else None
        offset = last.header.end if last else segment.size if segment else 0
        index = self.next_index + len(run)
        latest = last.header.timestamp if last else self._last_timestamp
        timestamp = max(pending.timestamp_ms, latest)
        assert self._sequence_base is not None
        before = last.sequence_id if last else self._last_sequence
        sequence_id = max(before + 1, self._sequence_base + pending.ordinal)
        payload = self._encoder.encode(item, lost=self.lost)
        added = self._settings.interceptors
        has_time, has_index = Interceptor.TIMESTAMP in added, Interceptor.INDEX in added
        entry = Entry(
            producer_name=self._broker,
            sequence_id=sequence_id,
            # Seeking needs a time that never runs backwards.
            publish_time=pending.timestamp_ms if has_time else timestamp,
            payload=payload.data,
            properties=payload.properties,
            broker=BrokerEntryMetadata(
                timestamp if has_time else None, index if has_index else None
            )
            if added
            else None,
            unknown=payload.metadata,
        )
        head, payload_bytes = encode_parts(entry)
        size = len(head) + len(payload_bytes)
        parts = (length_before(size) + head, payload_bytes)
        header = Header(offset, LENGTH_SIZE + size, index if has_index else None, timestamp)
        return _Stored(header, parts, sequence_id, pending.ordinal if is_offered else None)

    def _must_roll(self, run: list[_Stored], header: Header) -> bool:
        segment = self._segment
        if segment is None:
            return True
        if header.offset == 0:
            return False
        first_timestamp = segment.first_timestamp
        if first_timestamp is None and run:
            first_timestamp = run[0].header.timestamp
        age_ms = segment.aged_ms
        if first_timestamp is not None:
            age_ms = max(age_ms, header.timestamp - first_timestamp)
        is_old = age_ms >= self._settings.segment_age_s * _MS_PER_S
        return is_old or header.end > self._settings.segment_bytes

    def _put(self, run: list[_Stored]) -> None:
        """Write entries to the open segment; count those that are written whole."""
        if not run:
            return
        segment = self._segment
        assert segment is not None
        pieces: list[bytes | memoryview] = [piece for stored in run for piece in stored.parts]
        written = 0
        try:
            for begin in range(0, len(pieces), PIECES_MAX):
                rest = pieces[begin : begin + PIECES_MAX]
                while rest:
                    count = os.writev(segment.descriptor, rest)
                    written += count
                    rest = _behind(rest, count)
        finally:
            self._count(segment, run, segment.size + written)

    def _count(self, segment: _OpenSegment, run: list[_Stored], end: int) -> None:
        """Count the entries that end at or before `end`."""
        whole = [stored for stored in run if stored.header.end <= end]
        if not whole:
            return
        last = whole[-1]
        if segment.first_timestamp is None:
            segment.first_timestamp = whole[0].header.timestamp
        segment.size = last.header.end
        segment.marks.add([stored.header for stored in whole])
        self.next_index += len(whole)
        self.appended += len(whole)
        self._last_timestamp, self._last_sequence = last.header.timestamp, last.sequence_id
        if self._is_syncing:
            self._unsynced += len(whole)
        for stored in whole:
            if stored.ordinal is not None:
                self._done(stored.ordinal)

    def _done(self, ordinal: int) -> None:
        """One item of a pending is written, or given up."""
        items = self._items[ordinal]
        items.popleft()
        if not items:
            self._settle(ordinal)

    def _settle(self, ordinal: int) -> None:
        self._items.pop(ordinal, None)
        self.settled += 1

    def _give_up(self, error: Exception) -> None:
        self.unwritable += 1
        self._on_fault(error)

    def _roll(self, needed: int, now_ms: int) -> None:
        """Close the open segment, if any, and begin the next one, for an entry of `needed` bytes."""
        if self._segment is not None and self._is_syncing:
            self._sync(self._segment)
        self._close_segment()
        path = self._folder / segment_name(self.next_index)
        self._open(OpenEnd(path, size=0, first_timestamp=None, since_mark=0)).age(now_ms)
        if self._is_syncing:
            sync_path(self._folder)
        # The new segment stands for the next index, so the log may lose every other one.
        # It begins with policies of at most half its size, whatever the first entry needs.
        half = self._settings.segment_bytes // 2
        self._make_room(self.next_index, half + max(needed, half))

    def _open(self, end: OpenEnd) -> _OpenSegment:
        # Opening a FIFO of this name would wait for its reader.
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NONBLOCK | os.O_CLOEXEC
        descriptor = os.open(end.path, flags, 0o644)
        if os.fstat(descriptor).st_size != end.size:
            os.close(descriptor)
            raise FileExistsError(
                errno.EEXIST, "another process writes to this segment", str(end.path)
            )
        marks = MarkWriter(end.path, since_mark=end.since_mark)
        self._segment = _OpenSegment(end.path, descriptor, end.size, end.first_timestamp, marks)
        return self._segment

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
        except (OSError, UsageLogError):
            self._close_segment()
            self._encoder.restart()
            self._is_ready = False
            raise

    def _close_segment(self) -> None:
        segment, self._segment = self._segment, None
        if segment is not None:
            segment.marks.close()
            # The sync reports a late failure of a write.
            with contextlib.suppress(OSError):
                os.close(segment.descriptor)
