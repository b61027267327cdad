"""What surrounds the usage log of a running daemon: its tier, its readers' positions, its figures, its door.

Law: nothing here is waited for by the event loop but in a thread, one read at a time; the figures are
computed from the state when they are asked for, and are gone once the log is closed.
Writing the log is `rgd.app.recorder`'s business, what happens in the tier `rgd.adapters.usagelog`'s.
"""

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Final, Protocol

import structlog

from rgd.adapters.usagelog.cursors import Cursor, Cursors
from rgd.adapters.usagelog.files import list_segments
from rgd.adapters.usagelog.reader import (
    DamagedEntry,
    LogEntry,
    Position,
    read_sources,
    seek_index_in,
    seek_time_in,
)
from rgd.adapters.usagelog.retention import ClosedSegment
from rgd.adapters.usagelog.sources import FileSource, MovingSource, Source, TierSource
from rgd.adapters.usagelog.tiering import CURSOR, TierAlarm, TierDeleted, Uploader
from rgd.app.clock import Clock
from rgd.core.units import NS_PER_S
from rgd.errors import Unavailable
from rgd.ports.log_door import (
    ENTRIES_BYTES_MAX,
    BrokerMetadataView,
    CursorRefused,
    CursorView,
    EntriesView,
    EntryView,
    From,
)
from rgd.ports.metrics import Sample
from rgd.wire.frame import headers_and_payload

#: Reads that may wait for their turn; more are refused.
READS_WAITING_MAX: Final = 16

_log = structlog.get_logger("rgd.log")


class KeptLog(Protocol):
    """What is asked of the log that is being written."""

    on_closed: Callable[[], None]
    cursors: Callable[[], Mapping[str, int]]

    @property
    def closed(self) -> tuple[ClosedSegment, ...]:
        """The segments on disk that nothing is appended to any more."""

    @property
    def next_index(self) -> int:
        """Of the next entry."""


@dataclass(frozen=True, slots=True)
class LogPlace:
    """Which log it is."""

    folder: Path
    #: `log.name`, the label `topic`.
    name: str
    #: The label `partition`.
    broker: str
    #: `log.exposingBrokerEntryMetadataToClientEnabled`.
    exposes_metadata: bool = False


class ReadsWaiting(Unavailable):
    """Too many reads of the log wait for their turn."""

    transient = True

    def __init__(self) -> None:
        super().__init__(f"{READS_WAITING_MAX} reads of the usage log wait already; come back")


class LogKeeper:
    """Keeps a log's tier and its readers; fulfils `rgd.ports.log_door.LogDoor`."""

    def __init__(
        self,
        place: LogPlace,
        log: KeptLog,
        cursors: Cursors,
        clock: Clock,
        uploader: Uploader | None = None,
    ) -> None:
        self._place = place
        self._kept = log
        self._cursors = cursors
        self._clock = clock
        self.uploader = uploader
        self._is_closed = False
        self._turn = asyncio.Lock()
        self._waiting = 0
        log.cursors = self._holding_local
        if uploader is not None:
            log.on_closed = uploader.wake
            uploader.cursors = lambda: self._cursors.holding(self._segments())

    # Its life.

    def start(self) -> None:
        """Begin to carry closed segments to the tier; the log is open."""
        if self.uploader is not None:
            self.uploader.start()

    @property
    def trouble(self) -> str | None:
        """Why nothing is uploaded, in words; None: as far as is known, all is well."""
        return None if self.uploader is None else self.uploader.trouble

    async def close(self) -> None:
        """Carry no more, and show no more figures. Idempotent."""
        self._is_closed = True
        if self.uploader is not None:
            await asyncio.to_thread(self.uploader.stop)

    # The door (rgd.ports.log_door).

    def cursors(self) -> tuple[CursorView, ...]:
        segments = self._segments()
        return tuple(self._view(cursor, segments) for cursor in self._cursors.all())

    def cursor(self, name: str) -> CursorView:
        return self._view(self._cursors.get(name), self._segments())

    async def acknowledge(self, name: str, index: int) -> CursorView:
        if name == CURSOR:
            raise CursorRefused(f"cursor {name}: this is the uploader's own; take another name")
        end = self._kept.next_index
        if index > end:
            raise CursorRefused(f"cursor {name}: expected an index of at most {end}, got {index}")
        cursor = await asyncio.to_thread(self._cursors.put, name, index)
        return self._view(cursor, self._segments())

    async def forget(self, name: str) -> None:
        await asyncio.to_thread(self._cursors.forget, name)

    async def entries(self, start: From, limit: int) -> EntriesView:
        if self._waiting >= READS_WAITING_MAX:
            raise ReadsWaiting
        self._waiting += 1
        try:
            async with self._turn:
                return await asyncio.to_thread(self._read, start, limit)
        finally:
            self._waiting -= 1

    # The figures (docs/metrics.md).

    def samples(self) -> list[Sample]:
        """The current figures."""
        return [] if self._is_closed else [*self._of_cursors(), *self._of_tier()]

    def _of_cursors(self) -> Iterator[Sample]:
        for view in self.cursors():
            yield Sample("rgd_log_cursor_lag", (view.name,), view.behind)
            yield Sample("rgd_log_cursor_holds", (view.name,), view.holds)
            yield Sample("rgd_log_cursor_passed", (view.name,), view.passed)

    def _of_tier(self) -> Iterator[Sample]:
        uploader = self.uploader
        lag = None if uploader is None else uploader.lag(self._clock.unix_ms())
        if uploader is None or lag is None:
            return
        labels = (self._place.name, self._place.broker)
        yield Sample("rgd_upload_tier_lag", labels, lag.upload_records)
        yield Sample("rgd_delete_tier_lag", labels, lag.delete_records)
        yield Sample("rgd_remote_copy_lag_bytes", labels, lag.upload_bytes)
        yield Sample("rgd_remote_copy_lag_segments", labels, lag.upload_segments)
        yield Sample("rgd_remote_delete_lag_bytes", labels, lag.delete_bytes)
        yield Sample("rgd_remote_delete_lag_segments", labels, lag.delete_segments)
        yield Sample("rgd_upload_oldest_seconds", labels, lag.upload_oldest_s)
        yield Sample("rgd_tier_uploaded_bytes_total", (), uploader.counts.uploaded_bytes)
        yield Sample("rgd_tier_segments_deleted_total", (), uploader.counts.deleted_segments)
        yield Sample("rgd_tier_failures_total", (), uploader.counts.failures)

    # What follows from the state.

    def _segments(self) -> list[ClosedSegment]:
        """The closed segments, in the tier and on disk, oldest first."""
        closed = self._kept.closed
        if self.uploader is None:
            return list(closed)
        state = self.uploader.state
        facts = [
            ClosedSegment(one.first_index, one.last_index, one.first_ms, one.last_ms, one.size)
            for one in state.segments
        ]
        return [*facts, *state.waiting(closed)]

    def _holding_local(self) -> Mapping[str, int]:
        held = self._cursors.holding(self._segments())
        if self.uploader is not None:
            held[CURSOR] = self.uploader.state.uploaded
        return held

    def _view(self, cursor: Cursor, segments: Sequence[ClosedSegment]) -> CursorView:
        end = self._kept.next_index
        first = segments[0].first_index if segments else self._first_on_disk(end)
        return CursorView(
            name=cursor.name,
            index=cursor.index,
            behind=max(0, end - cursor.index),
            idle_s=(self._clock.now() - cursor.since) / NS_PER_S,
            holds=self._cursors.holds(cursor, segments),
            passed=max(0, first - cursor.index),
        )

    def _first_on_disk(self, end: int) -> int:
        """The first entry that is left where nothing is closed: the active segment's."""
        files = list_segments(self._place.folder) if self._place.folder.is_dir() else []
        return files[0].first_index if files else end

    # In a thread.

    def _sources(self) -> list[Source]:
        """The segments, in the tier and on disk; what is on disk is read there."""
        local = list_segments(self._place.folder)
        on_disk = {segment.first_index for segment in local}
        files: list[Source] = [
            MovingSource(FileSource(segment.path), partial(self._in_tier, segment.first_index))
            for segment in local
        ]
        if self.uploader is None:
            return files
        # Asked after the folder: what left the disk before is there.
        remote: list[Source] = [
            TierSource(self.uploader.tier, segment)
            for segment in self.uploader.state.segments
            if segment.first_index not in on_disk
        ]
        return sorted(chain(remote, files), key=lambda source: source.first_index or 0)

    def _in_tier(self, first_index: int) -> Source | None:
        """A segment in the tier; None: it is not there."""
        if self.uploader is None:
            return None
        state, tier = self.uploader.state, self.uploader.tier
        there = (one for one in state.segments if one.first_index == first_index)
        return next((TierSource(tier, one) for one in there), None)

    def _read(self, start: From, limit: int) -> EntriesView:
        sources = self._sources()
        position = (
            seek_index_in(sources, start.index)
            if start.time_ms is None
            else seek_time_in(sources, start.time_ms)
        )
        if position is None:
            return EntriesView((), max(start.index, self._kept.next_index))
        return self._page(sources, position, start, limit)

    def _page(
        self, sources: Sequence[Source], position: Position, start: From, limit: int
    ) -> EntriesView:
        """Entries from a position on."""
        entries: list[EntryView] = []
        index = self._index_of(sources, position)
        first = index
        damaged = size = 0
        more = False
        for found in read_sources(sources, start=position):
            if isinstance(found, DamagedEntry):
                damaged += 1
                continue
            if len(entries) == limit or size >= ENTRIES_BYTES_MAX:
                more = True
                break
            own = found.entry.index
            index = (index if own is None else own) + 1
            size += len(found.data)
            entries.append(self._shown(found))
        passed = max(0, first - start.index) if start.time_ms is None else 0
        return EntriesView(tuple(entries), index, more, passed, damaged)

    def _index_of(self, sources: Sequence[Source], position: Position) -> int:
        """The index of the entry at a position, counted where the broker set none."""
        if position.index is not None:
            return position.index
        source = next(one for one in sources if one.name == str(position.path))
        before = read_sources([source])
        count = sum(
            1 for one in before if isinstance(one, LogEntry) and one.offset < position.offset
        )
        return (source.first_index or 0) + count

    def _shown(self, found: LogEntry) -> EntryView:
        metadata = None
        broker = found.entry.broker
        if self._place.exposes_metadata and broker is not None:
            metadata = BrokerMetadataView(broker.broker_timestamp, broker.index)
        return EntryView(headers_and_payload(found.data), metadata)


def tell_tier(event: TierAlarm | TierDeleted) -> None:
    """Write what happened to the tier to the daemon's log."""
    match event:
        case TierAlarm(place, None):
            _log.info("tier works again", tier=place)
        case TierAlarm(place, trouble):
            _log.error("tier fails: nothing is uploaded", tier=place, reason=trouble)
        case TierDeleted(segment):
            _log.info(
                "tier segment deleted",
                first_index=segment.first_index,
                last_index=segment.last_index,
                bytes=segment.size,
            )
