"""Appends entries to one log folder: numbers and stamps them, rolls segments, syncs, counts.

Law: indexes are continuous and broker time never runs backwards, over segments, restarts and jumps of
the clock. `synced_index` is never above the last entry of a successful sync.
Every method may raise OSError. Then nothing is open any more, complete entries are kept, synced or counted as doubtful,
and `resume` continues behind the content on disk. A segment that was closed, by whatever, is never appended
to again: it may be in the tier, and of a failed sync the operating system drops the pages and reports it once.

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
from typing import Final

from rgd.adapters.usagelog.files import FolderLock
from rgd.adapters.usagelog.intercepting import added_by
from rgd.adapters.usagelog.open_segment import Encoded, OpenSegment
from rgd.adapters.usagelog.recovery import recover
from rgd.adapters.usagelog.settings import UsageLogSettings
from rgd.core.exchange.messages import Loggable
from rgd.ports.usagelog import Fsync, Interceptor, UsageLogError
from rgd.storage.objects import sync_path
from rgd.wire.checks import check_broker
from rgd.wire.frame import BrokerEntryMetadata, Entry, encode_entry
from rgd.wire.log_records import POLICIES_BYTES_MAX, Item, LogEncoder
from rgd.wire.segment import encode_stored, parse_segment_name, segment_name

#: Latest time that an entry can carry, in milliseconds since 1970 (int64).
TIMESTAMP_MAX: Final = (1 << 63) - 1


@dataclass(frozen=True, slots=True)
class Pending:
    """Something that waits to be written, in one entry or several."""

    item: Loggable
    #: By the caller's clock, in milliseconds since 1970.
    timestamp_ms: int
    #: Of all that was kept or lost since the start, from 0.
    ordinal: int


def ignore(*_: object) -> None:
    """Let it be."""


class Appender:
    """Writes one log."""

    def __init__(
        self,
        folder: Path,
        settings: UsageLogSettings,
        *,
        broker: str,
        make_room: Callable[[int, int], None] = ignore,
        on_fault: Callable[[Exception], None] = ignore,
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
        self._segment: OpenSegment | None = None
        #: Whether `write` may be called; otherwise call `resume` first.
        self.is_ready = False
        self._last_timestamp = 0
        self._encoder = LogEncoder(
            policies_bytes_max=min(POLICIES_BYTES_MAX, settings.segment_bytes // 2)
        )
        #: The pending that is being written, and what is left of it.
        self._ordinal: int | None = None
        self._items: deque[Item] = deque()
        #: Of the last entry written; a gap in sequence ids shows a loss.
        self._last_sequence = -1
        #: Sequence id of the payload with ordinal 0, known from the first `resume` on.
        self._sequence_base: int | None = None
        #: Whether the sync of an earlier run's end was tried: a failure is reported only once.
        self._is_end_tried = False
        #: Entries written since the last sync.
        self._unsynced = 0

    @property
    def lost(self) -> int:
        """What is not in the log, or may not be."""
        return self.dropped + self.unwritable + self.doubtful

    @property
    def active_index(self) -> int | None:
        """First index of the segment that is being written; None: there is none."""
        # The log's thread may close it meanwhile.
        segment = self._segment
        return None if segment is None else parse_segment_name(segment.path.name)

    @property
    def active_bytes(self) -> int:
        """Bytes written to that segment."""
        segment = self._segment
        return segment.size if segment else 0

    def resume(self) -> None:
        """Lock the folder and prepare to append after the content on disk.

        Raises:
            LogLocked: another process appends to this log.
            UsageLogError, OSError: the log cannot be read, cut or synced.
        """
        self._lock.acquire()
        tail = recover(self._folder)
        if self._sequence_base is None:
            if self._is_syncing and tail.path is not None:
                # An earlier run may have left it unsynced.
                is_doubtful, self._is_end_tried = self._is_end_tried, True
                sync_path(tail.path)
                sync_path(self._folder)
                if not is_doubtful:
                    self.synced_index = tail.next_index - 1
            self._sequence_base = tail.next_sequence_id
            self._last_sequence = tail.next_sequence_id - 1
            self.damaged = tail.damaged
        self.next_index = max(self.next_index, tail.next_index)
        # A damaged entry may show a later time than any entry can carry.
        latest = min(tail.last_timestamp, TIMESTAMP_MAX)
        self._last_timestamp = max(self._last_timestamp, latest)
        self.is_ready = True

    def write(self, batch: Sequence[Pending]) -> None:
        """Write pendings in order, in as many entries and segments as it takes.

        Raises:
            OSError: only the pendings by which `settled` has grown are written whole; of the next one the
                items that are written are not written again.
        """
        assert self.is_ready, "resume first"
        with self._closing_on_error():
            if self._segment is not None:
                # Writes to a removed file succeed, and `fsync: never` has no sync that would notice.
                self._segment.check_linked()
            for pending in batch:
                self._write_items(pending)

    def sync(self) -> None:
        """Sync all written entries to disk, unless the settings disable it.

        Raises:
            OSError: it is unknown which entries since the last sync are on disk.
        """
        if self._segment is None or not self._is_syncing:
            return
        with self._closing_on_error():
            self._sync(self._segment)

    def end_segment(self) -> None:
        """Sync and close the segment that is being written; the next entry begins one.

        Raises:
            OSError: as for `sync`.
        """
        if self._segment is not None and self._segment.size:
            self.sync()
            self._close_segment()

    def close(self) -> None:
        """Close the segment, without a sync, and release the lock. Idempotent."""
        self._close_segment()
        self.is_ready = False
        self._lock.release()

    def _write_items(self, pending: Pending) -> None:
        """Write what is left of a pending; what cannot be encoded is given up."""
        if self._ordinal != pending.ordinal:
            self._ordinal = pending.ordinal
            self._items = self._items_of(pending)
        while self._items:
            try:
                entry = self._placed(self._items[0], pending)
            except (OSError, UsageLogError):
                raise
            except Exception as error:  # noqa: BLE001 -- the next item has nothing to do with it
                self._encoder.restart()
                self._give_up(error)
            else:
                self._put(entry, is_offered=True)
            self._items.popleft()
        self._ordinal = None
        self.settled += 1

    def _items_of(self, pending: Pending) -> deque[Item]:
        try:
            has_segment = self._segment is not None
            return deque(self._encoder.items_of(pending.item, has_segment=has_segment))
        except Exception as error:  # noqa: BLE001 -- the next pending has nothing to do with it
            self._give_up(error)
            return deque()

    def _placed(self, item: Item, pending: Pending) -> Encoded:
        """Encode an item for the open segment, or for a new one if it does not fit."""
        entry = self._encoded(item, pending)
        if self._segment is None or not self._segment.takes(entry, self._settings):
            self._roll(len(entry.stored), pending)
            entry = self._encoded(item, pending)
        return entry

    def _encoded(self, item: Item, pending: Pending) -> Encoded:
        """The next entry."""
        assert self._sequence_base is not None
        payload = self._encoder.encode(item, lost=self.lost)
        sequence_id = max(self._last_sequence + 1, self._sequence_base + pending.ordinal)
        # Seeking needs a time that never runs backwards.
        timestamp = max(pending.timestamp_ms, self._last_timestamp)
        added = self._settings.interceptors
        time = timestamp if Interceptor.TIMESTAMP in added else None
        index = self.next_index if Interceptor.INDEX in added else None
        own = added_by(self._settings.own_interceptors, time, index)
        entry = Entry(
            self._broker,
            sequence_id,
            timestamp if time is None else pending.timestamp_ms,
            payload.data,
            payload.properties,
            BrokerEntryMetadata(time, index, own) if added or own else None,
            payload.metadata,
        )
        stored = encode_stored(encode_entry(entry))
        return Encoded(stored, timestamp, index, sequence_id)

    def _put(self, entry: Encoded, *, is_offered: bool) -> None:
        """Write the next entry to the open segment, and count it."""
        assert self._segment is not None
        self._segment.write(entry, is_offered=is_offered)
        self.next_index += 1
        self.appended += 1
        self._last_timestamp = entry.timestamp
        self._last_sequence = entry.sequence_id
        if self._is_syncing:
            self._unsynced += 1

    def _give_up(self, error: Exception) -> None:
        self.unwritable += 1
        self._on_fault(error)

    def _roll(self, needed: int, pending: Pending) -> None:
        """Close the open segment, if any, and begin the next one.

        Args:
            needed: bytes of the entry that it is begun for.
            pending: what that entry is of.
        """
        self.sync()
        self._close_segment()
        self._open(self._folder / segment_name(self.next_index))
        if self._is_syncing:
            sync_path(self._folder)
        # The new segment stands for the next index, so the log may lose every other one.
        # It begins with policies of at most half its size, whatever the first entry needs.
        half = self._settings.segment_bytes // 2
        self._make_room(self.next_index, half + max(needed, half))
        try:
            for part in self._encoder.begin_segment():
                self._put(self._encoded(part, pending), is_offered=False)
        except Exception:
            # It has no policies to read its entries by: the next entry begins another segment.
            self.sync()
            self._close_segment()
            raise

    def _open(self, path: Path) -> None:
        # Opening a FIFO of this name would wait for its reader.
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NONBLOCK | os.O_CLOEXEC
        descriptor = os.open(path, flags, 0o644)
        if os.fstat(descriptor).st_size:
            os.close(descriptor)
            raise FileExistsError(errno.EEXIST, "another process writes to this segment", str(path))
        self._segment = OpenSegment(path, descriptor)

    def _sync(self, segment: OpenSegment) -> None:
        unsynced, self._unsynced = self._unsynced, 0
        try:
            os.fsync(segment.descriptor)
            segment.check_linked()
        except OSError:
            self.doubtful += unsynced
            raise
        self.synced_index = self.next_index - 1

    @contextlib.contextmanager
    def _closing_on_error(self) -> Iterator[None]:
        """Close after a disk error; the next `resume` truncates incomplete entries."""
        try:
            yield
        except (OSError, UsageLogError):
            if self._segment is not None and self._unsynced:
                with contextlib.suppress(OSError):
                    self._sync(self._segment)
            self._close_segment()
            self._encoder.restart()
            self.is_ready = False
            raise

    def _close_segment(self) -> None:
        segment, self._segment = self._segment, None
        if segment is not None:
            # The sync reports a late failure of a write.
            with contextlib.suppress(OSError):
                os.close(segment.descriptor)
