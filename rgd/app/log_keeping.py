"""What surrounds the usage log of a running daemon: its tier, its readers' positions, its figures, its door.

Law: nothing here is waited for by the event loop but in a thread; the figures are computed from the state when
they are asked for, and are gone once the log is closed. Writing the log is `rgd.app.daemon`'s business,
reading it `log_reading`'s, what happens in the tier `rgd.adapters.usagelog`'s.
"""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import structlog

from rgd.adapters.usagelog.cursors import Cursor, Cursors
from rgd.adapters.usagelog.tiering import CURSOR, TierAlarm, TierDeleted, Uploader
from rgd.adapters.usagelog.writer import SegmentedLog
from rgd.app.audit import tell_written
from rgd.app.clock import Clock
from rgd.app.log_reading import LogPlace, LogReading
from rgd.core.units import NS_PER_S
from rgd.ports.log_door import CursorRefused, CursorView, EntriesView, From, NotExposed
from rgd.ports.metrics import Sample
from rgd.storage.manifest import ClosedSegment

_log = structlog.get_logger("rgd.log")


class LogKeeper:
    """Keeps a log's tier and its readers; fulfils `rgd.ports.log_door.LogDoor`."""

    def __init__(
        self,
        place: LogPlace,
        log: SegmentedLog,
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
        self._reading = LogReading(place, uploader, lambda: log.next_index)
        self._set_aside = [
            aside
            for aside in (cursors.set_aside, uploader.set_aside if uploader is not None else None)
            if aside is not None
        ]
        for aside in self._set_aside:
            kept = None if aside.kept is None else str(aside.kept)
            _log.error("file set aside", path=str(aside.path), kept=kept, reason=aside.why)
        log.cursors = self._holding_local
        if uploader is not None:
            log.on_closed = uploader.wake
            uploader.cursors = lambda: self._cursors.holding(self._segments())

    # Its life.

    def start(self) -> None:
        """Begin to carry closed segments to the tier."""
        if self.uploader is not None:
            self.uploader.start()

    @property
    def trouble(self) -> str | None:
        """Why nothing is uploaded, in words; None: as far as is known, all is well."""
        return None if self.uploader is None else self.uploader.trouble

    def drain(self) -> None:
        """End the reads that wait for the tier, which may never answer. Idempotent."""
        self._reading.drain()

    async def close(self) -> None:
        """Carry no more, and show no more figures. Idempotent."""
        self._is_closed = True
        self._reading.close()
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
        before = next((one.index for one in self._cursors.all() if one.name == name), None)
        cursor = await asyncio.to_thread(self._cursors.put, name, index)
        tell_written("cursor moved", name, before, index)
        return self._view(cursor, self._segments())

    async def forget(self, name: str) -> None:
        before = self._cursors.get(name).index
        await asyncio.to_thread(self._cursors.forget, name)
        tell_written("cursor forgotten", name, before, None)

    async def entries(self, start: From, limit: int, *, expose: bool | None = None) -> EntriesView:
        allowed = self._place.exposes_metadata
        if expose and not allowed:
            raise NotExposed
        view = await self._reading.entries(start, limit)
        if expose is not False or not allowed:
            return view
        hidden = tuple(replace(one, broker_entry_metadata=None) for one in view.entries)
        return replace(view, entries=hidden)

    # The figures (docs/metrics.md).

    def samples(self) -> list[Sample]:
        """The current figures."""
        if self._is_closed:
            return []
        aside = Sample("rgd_log_files_set_aside_total", (), len(self._set_aside))
        return [aside, *self._of_cursors(), *self._of_tier()]

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
        began_ns = self._clock.now()
        segments = uploader.state.segments
        size = sum(segment.size for segment in segments)
        yield Sample("rgd_remote_log_size_bytes", labels, size)
        yield Sample("rgd_remote_log_segments", labels, len(segments))
        took_s = (self._clock.now() - began_ns) / NS_PER_S
        yield Sample("rgd_remote_log_size_computation_seconds", labels, took_s)
        yield Sample("rgd_remote_copy_errors_total", labels, uploader.counts.copy_errors)
        yield Sample("rgd_remote_delete_errors_total", labels, uploader.counts.delete_errors)
        yield Sample("rgd_remote_fetch_errors_total", labels, self._reading.tier_errors)
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
        return [*state.segments, *state.waiting(closed)]

    def _holding_local(self) -> Mapping[str, int]:
        """For the log's thread, which looks once its end is known, then once a minute and at each roll."""
        self._lower_cursors()
        segments = self._segments()
        held = self._cursors.holding(segments)
        if self.uploader is not None:
            state = self.uploader.state
            waiting = state.waiting(self._kept.closed)
            # In a log that counts again, the segment that was closed just now is not among them yet.
            known = min(state.uploaded, max(0, self._kept.next_index - 1))
            held[CURSOR] = min([known, *(one.first_index for one in waiting[:1])])
        return held

    def _lower_cursors(self) -> None:
        end = self._kept.next_index
        for name, index in self._cursors.lower(end):
            _log.warning(
                "a cursor was beyond the end of the log, which lost entries; it is at the end now",
                cursor=name,
                index=index,
                end=end,
            )

    def _view(self, cursor: Cursor, segments: Sequence[ClosedSegment]) -> CursorView:
        end = self._kept.next_index
        first = segments[0].first_index if segments else self._kept.first_index
        return CursorView(
            name=cursor.name,
            index=cursor.index,
            behind=max(0, end - cursor.index),
            idle_s=(self._clock.now() - cursor.since) / NS_PER_S,
            holds=self._cursors.holds(cursor, segments),
            passed=max(0, first - cursor.index),
        )


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
