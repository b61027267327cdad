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
from itertools import groupby
from pathlib import Path
from typing import Final, cast

import numpy as np

from rgd.adapters.usagelog.files import FolderLock, sync_path
from rgd.adapters.usagelog.index import MarkWriter
from rgd.adapters.usagelog.intercepting import added_by
from rgd.adapters.usagelog.open_segment import OpenSegment, Run
from rgd.adapters.usagelog.recovery import OpenEnd, Tail, recover
from rgd.adapters.usagelog.settings import UsageLogSettings
from rgd.core.exchange.messages import Loggable
from rgd.ports.usagelog import Fsync, Interceptor, UsageLogError
from rgd.wire.checks import check_broker
from rgd.wire.frame import BrokerEntryMetadata, Entry
from rgd.wire.frame_runs import Framed, Stamps, consecutive, frame_each, frame_run
from rgd.wire.log_records import PLAIN_PROPERTIES, POLICIES_BYTES_MAX, Item, LogEncoder
from rgd.wire.segment import parse_segment_name, segment_name

#: Latest time that an entry can carry, in milliseconds since 1970 (int64).
TIMESTAMP_MAX: Final = (1 << 63) - 1


@dataclass(frozen=True, slots=True)
class Pending:
    """Something that waits to be written, in one entry or several."""

    item: Loggable
    #: By the caller's clock, in milliseconds since 1970.
    timestamp_ms: int
    #: Of all that was offered since the start, from 0, also of what was not kept.
    ordinal: int


def _runs_of(batch: Sequence[Pending]) -> Iterator[Sequence[Pending]]:
    """Pendings that were offered one after the other, payloads apart from what is to be encoded."""
    is_whole = bool(batch) and batch[-1].ordinal - batch[0].ordinal == len(batch) - 1
    if is_whole and all(isinstance(pending.item, bytes) for pending in batch):
        yield batch
        return

    def run(placed: tuple[int, Pending]) -> tuple[bool, int]:
        place, pending = placed
        return isinstance(pending.item, bytes), pending.ordinal - place

    for _, some in groupby(enumerate(batch), run):
        yield [pending for _, pending in some]


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
        self._segment: OpenSegment | None = None
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
        # A damaged entry may show a later time than any entry can carry.
        latest = min(tail.last_timestamp, TIMESTAMP_MAX)
        self._last_timestamp = max(self._last_timestamp, latest)
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
            if self._segment is not None:
                # Writes to a removed file succeed, and `fsync: never` has no sync that would notice.
                self._segment.check_linked()
            for pendings in _runs_of(batch):
                if isinstance(pendings[0].item, bytes):
                    self._write_plain(pendings)
                else:
                    for pending in pendings:
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

    def _write_plain(self, pendings: Sequence[Pending]) -> None:
        """Write payloads that need no encoding, and were offered one after the other."""
        while pendings:
            first = pendings[0]
            payloads = [cast("bytes", pending.item) for pending in pendings]
            times = [pending.timestamp_ms for pending in pendings]
            try:
                run = self._run(payloads, times, first.ordinal, PLAIN_PROPERTIES)
            except Exception:  # noqa: BLE001 -- each is tried by itself
                for pending in pendings:
                    self._write_items(pending)
                return
            count = 0 if self._segment is None else self._segment.fitting(run, self._settings)
            if not count:
                self._roll(int(run.framed.sizes[0]), first)
                continue
            self._put(run, count, self._settle_plain)
            pendings = pendings[count:]

    def _write_items(self, pending: Pending) -> None:
        """Write what is left of a pending; what cannot be encoded is given up."""
        items = self._items_of(pending)
        if not items:
            self._settle(pending.ordinal)
            return
        for item in list(items):
            try:
                run = self._placed(item, pending)
            except (OSError, UsageLogError):
                raise
            except Exception as error:  # noqa: BLE001 -- the next item has nothing to do with it
                self._encoder.restart()
                self._give_up(error)
                self._done(pending.ordinal)
            else:
                self._put(run, 1, lambda count: self._done(pending.ordinal) if count else None)

    def _placed(self, item: Item, pending: Pending) -> Run:
        """Encode an item for the open segment, or for a new one if it does not fit."""
        run = self._run_of(item, pending)
        if self._segment is None or not self._segment.fitting(run, self._settings):
            self._roll(int(run.framed.sizes[0]), pending)
            run = self._run_of(item, pending)
        return run

    def _run_of(self, item: Item, pending: Pending) -> Run:
        payload = self._encoder.encode(item, lost=self.lost)
        return self._run(
            [payload.data],
            [pending.timestamp_ms],
            pending.ordinal,
            payload.properties,
            payload.metadata,
        )

    def _run(
        self,
        payloads: list[bytes],
        times_ms: list[int],
        ordinal: int,
        properties: tuple[tuple[str, str], ...],
        metadata: bytes = b"",
    ) -> Run:
        """The next entries; their pendings have ordinals from `ordinal` on."""
        count = len(payloads)
        assert self._sequence_base is not None
        sequence_id = max(self._last_sequence + 1, self._sequence_base + ordinal)
        # Seeking needs a time that never runs backwards.
        times = np.fromiter(times_ms, np.int64, count)
        timestamps = np.maximum.accumulate(np.maximum(times, self._last_timestamp))
        stamped = timestamps.view(np.uint64)
        added = self._settings.interceptors
        has_time, has_index = Interceptor.TIMESTAMP in added, Interceptor.INDEX in added
        stamps = Stamps(
            consecutive(sequence_id, count),
            times.view(np.uint64) if has_time else stamped,
            stamped if has_time else None,
            consecutive(self.next_index, count) if has_index else None,
        )
        if self._settings.own_interceptors:
            framed = self._intercepted(payloads, stamps, properties, metadata)
        else:
            framed = frame_run(
                self._broker, payloads, stamps, properties=properties, unknown=metadata
            )
        first_index = self.next_index if has_index else None
        return Run(framed, times, timestamps, first_index, sequence_id)

    def _intercepted(
        self,
        payloads: list[bytes],
        stamps: Stamps,
        properties: tuple[tuple[str, str], ...],
        unknown: bytes,
    ) -> Framed:
        """The same entries with what own interceptors add."""
        count = len(payloads)
        times, indexes = (
            [None] * count if of is None else of.tolist()
            for of in (stamps.broker_timestamps, stamps.indexes)
        )
        owns = self._settings.own_interceptors
        return frame_each(
            [
                Entry(
                    self._broker,
                    sequence_id,
                    publish_time,
                    payload,
                    properties,
                    BrokerEntryMetadata(
                        time,
                        index,
                        added_by(owns, time, index),
                    ),
                    unknown,
                )
                for sequence_id, publish_time, payload, time, index in zip(
                    stamps.sequence_ids.tolist(),
                    stamps.publish_times.tolist(),
                    payloads,
                    times,
                    indexes,
                    strict=True,
                )
            ]
        )

    def _put(self, run: Run, count: int, on_whole: Callable[[int], None] | None) -> None:
        """Write the first entries of a run to the open segment; count those that are written whole.

        Args:
            run: the next entries.
            count: how many of them.
            on_whole: told how many; None: they belong to the segment.
        """
        segment = self._segment
        assert segment is not None
        try:
            segment.write(run, count, is_offered=on_whole is not None)
        finally:
            whole = segment.whole
            if whole:
                self.next_index += whole
                self.appended += whole
                self._last_timestamp = int(run.timestamps[whole - 1])
                self._last_sequence = run.sequence_id + whole - 1
                if self._is_syncing:
                    self._unsynced += whole
            if on_whole is not None:
                on_whole(whole)

    def _settle_plain(self, count: int) -> None:
        self._encoder.note_plain(count)
        self.settled += count

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

    def _roll(self, needed: int, pending: Pending) -> None:
        """Close the open segment, if any, and begin the next one.

        Args:
            needed: bytes of the entry that it is begun for.
            pending: what that entry is of.
        """
        if self._segment is not None and self._is_syncing:
            self._sync(self._segment)
        self._close_segment()
        path = self._folder / segment_name(self.next_index)
        self._open(OpenEnd(path, size=0, first_timestamp=None, since_mark=0))
        if self._is_syncing:
            sync_path(self._folder)
        # The new segment stands for the next index, so the log may lose every other one.
        # It begins with policies of at most half its size, whatever the first entry needs.
        half = self._settings.segment_bytes // 2
        self._make_room(self.next_index, half + max(needed, half))
        for part in self._encoder.begin_segment():
            self._put(self._run_of(part, pending), 1, None)

    def _open(self, end: OpenEnd) -> None:
        # Opening a FIFO of this name would wait for its reader.
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NONBLOCK | os.O_CLOEXEC
        descriptor = os.open(end.path, flags, 0o644)
        if os.fstat(descriptor).st_size != end.size:
            os.close(descriptor)
            raise FileExistsError(
                errno.EEXIST, "another process writes to this segment", str(end.path)
            )
        marks = MarkWriter(end.path, since_mark=end.since_mark)
        self._segment = OpenSegment(
            end.path,
            descriptor,
            end.size,
            end.first_timestamp,
            marks,
            has_offered=end.size > 0,
        )

    def _sync(self, segment: OpenSegment) -> None:
        try:
            os.fsync(segment.descriptor)
            segment.check_linked()
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
