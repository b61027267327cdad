"""The daemon's usage log: one thread that writes, fed by one bounded queue.

Law: `append` never waits for the disk. Payloads are written in order, or counted in `lost`, but for policies, which are offered again. A full
queue drops the newest at once. While the disk fails, the queue keeps its payloads until the log is closed
and one more attempt has failed.
A failing disk raises one alarm, is tried again every `retry_ms` while payloads wait,
and its end is reported once too. Only a successful write proves that the disk works.

What is offered is encoded in the thread too, so that `append` takes no longer for a large round.
"""

import asyncio
import contextlib
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeVar

from rgd.adapters.usagelog.appender import Appender, Pending, ignore
from rgd.adapters.usagelog.files import list_segments
from rgd.adapters.usagelog.inbox import Inbox
from rgd.adapters.usagelog.index import mend
from rgd.adapters.usagelog.retention import Removal
from rgd.adapters.usagelog.settings import UsageLogSettings
from rgd.adapters.usagelog.trimming import Trimmer
from rgd.core.exchange.messages import Loggable
from rgd.core.units import NS_PER_MS, NS_PER_S, Nanos
from rgd.ports.usagelog import Fsync, LogLocked, UsageLogError
from rgd.storage.manifest import ClosedSegment

#: Most payload bytes of one write; one payload may be larger.
BATCH_BYTES: Final = 1 << 20
#: Most payloads of one write.
BATCH_MAX: Final = 512
#: How often closed segments are looked at where none is begun.
TRIM_EVERY_MS: Final = 60_000

_Notice = TypeVar("_Notice")


@dataclass(frozen=True, slots=True)
class LogAlarm:
    """Logging stopped, or continues again."""

    #: Why nothing is written; None when the problem is over.
    trouble: str | None
    #: Entries lost so far.
    lost: int


class SegmentedLog:
    """A log folder of segments; fulfils `rgd.ports.usagelog.UsageLog`."""

    def __init__(
        self,
        folder: Path,
        settings: UsageLogSettings,
        *,
        broker: str,
        clock: Callable[[], Nanos],
        on_alarm: Callable[[LogAlarm], None],
        on_trimmed: Callable[[Removal], None] = ignore,
    ) -> None:
        """Nothing is touched before `open`.

        Args:
            folder: this log's own (`files.log_folder`).
            settings: sizes, times, limits.
            broker: the log's broker: the producer's name of every entry.
            clock: monotonic.
            on_alarm: called on the event loop when logging stops, and when it goes on.
            on_trimmed: called on the event loop for each closed segment that was deleted.

        Raises:
            Malformed: `broker` is no valid broker name.
        """
        self._folder = folder
        self._settings = settings
        self._clock = clock
        self._on_alarm = on_alarm
        #: Of each reader the index of the first entry that it has not read; called in the thread, and not
        #: before `next_index` is known.
        self.cursors: Callable[[], Mapping[str, int]] = dict
        #: Told in the thread when a segment may have been closed.
        self.on_closed: Callable[[], None] = ignore
        self._on_trimmed = on_trimmed
        self._trimmer = Trimmer(folder, settings, clock)
        #: Receives, on the event loop, the error of an item that could not be encoded.
        self.on_fault: Callable[[Exception], None] = ignore
        self._appender = Appender(
            folder,
            settings,
            broker=broker,
            make_room=self._trim,
            on_fault=lambda error: self._call(self.on_fault, error),
        )
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        #: As the port has it.
        self.trouble: str | None = None
        #: What the thread does next, and when; looking at what is closed is always among it.
        self._due: dict[Callable[[], None], Nanos] = {}
        #: First index of the segment that `_due` will close.
        self._aging: int | None = None
        #: While there is trouble: when what waits is written again.
        self._retry_at = Nanos(0)
        self._inbox = Inbox(settings)

    @property
    def appended(self) -> int:
        return self._appender.appended

    @property
    def lost(self) -> int:
        return self._inbox.lost + self._appender.unwritable + self._appender.doubtful

    @property
    def damaged(self) -> int:
        return self._appender.damaged

    @property
    def synced_index(self) -> int:
        return self._appender.synced_index

    @property
    def deleted(self) -> Mapping[str, int]:
        return {reason.value: count for reason, count in self._trimmer.deleted.items()}

    @property
    def local_bytes(self) -> int:
        return sum(one.size for one in self.closed) + self._appender.active_bytes

    @property
    def closed(self) -> tuple[ClosedSegment, ...]:
        """The segments on disk that nothing is appended to any more, oldest first."""
        return self._trimmer.closed

    @property
    def first_index(self) -> int:
        """Of the oldest segment on disk; 0: none is known."""
        return self._trimmer.first_index

    @property
    def next_index(self) -> int:
        """Of the next entry."""
        return self._appender.next_index

    async def open(self) -> None:
        assert self._thread is None, "opened twice"
        assert not self._inbox.is_closed, "opened after it was closed"
        self._loop = asyncio.get_running_loop()
        opened: Future[None] = Future()
        # A daemon thread, because a hanging disk must not block the exit of the process.
        self._thread = threading.Thread(
            target=self._run, args=(opened,), name="rgd-usage-log", daemon=True
        )
        self._thread.start()
        await asyncio.shield(asyncio.wrap_future(opened))

    def append(self, item: Loggable, *, broker_timestamp_ms: int) -> bool:
        return self._inbox.offer(item, broker_timestamp_ms)

    async def close(self) -> None:
        ended = self._inbox.close()
        if self._thread is None:
            self._inbox.end()
        await asyncio.shield(asyncio.wrap_future(ended))

    # --- the thread ---------------------------------------------------------------------------------

    def _run(self, opened: Future[None]) -> None:
        """Open the log, then write until the end; the boundary of the thread."""
        try:
            self._open()
            # What is closed is known before anybody can ask for the lag.
            self._trim_idle()
            opened.set_result(None)
            self._mend_indexes()
            while self._step():
                pass
        except LogLocked as error:
            self._thread = None
            if self._inbox.is_closed:
                self._inbox.end()
            opened.set_exception(error)
            return
        except Exception as error:  # noqa: BLE001 - nobody may wait for a thread that a bug ended
            self._tell(f"{self._folder}: the writer of the usage log broke: {error!r}")
            if not opened.done():
                opened.set_exception(error)
        self._appender.close()
        self._inbox.end()

    def _open(self) -> None:
        try:
            self._appender.resume()
        except LogLocked:
            raise
        except (OSError, UsageLogError) as error:
            self._fail(error)

    def _mend_indexes(self) -> None:
        """Write the missing or stale sparse indexes of closed segments."""
        with contextlib.suppress(OSError, UsageLogError):
            self._trimmer.sweep()
            # None is being written yet.
            for segment in list_segments(self._folder):
                if self._inbox.is_closed:
                    return
                mend(segment.path)

    def _step(self) -> bool:
        """Wait for the next work and do it; False when the end was reached."""
        self._inbox.wait(self._idle_s)
        # Asked first: once it is closed, nothing is added to what waits.
        is_closed = self._inbox.is_closed
        batch = self._inbox.first(BATCH_MAX, BATCH_BYTES)
        if batch:
            self._write(batch)
        if is_closed and (not batch or self.trouble is not None):
            self._sync()
            self._end_segment()
            return False
        work = min(self._due, key=self._due.__getitem__)
        if self._clock() >= self._due[work]:
            del self._due[work]
            work()
        return True

    def _idle_s(self) -> float:
        """The time until work is due."""
        has_pending = self._inbox.pending > 0
        if self._inbox.is_closed or (has_pending and self.trouble is None):
            return 0
        dues = [*self._due.values(), *([self._retry_at] if has_pending else [])]
        return (min(dues) - self._clock()) / NS_PER_S

    def _write(self, batch: list[Pending]) -> None:
        """Write payloads; those that cannot be written stay."""
        before = self._appender.settled
        self._appender.dropped = self._inbox.lost
        try:
            if not self._appender.is_ready:
                self._appender.resume()
            self._appender.write(batch)
            if self.trouble is not None or self._settings.fsync is Fsync.ALWAYS:
                self._appender.sync()
        except (OSError, UsageLogError) as error:
            self._fail(error)
        else:
            self._recover()
            self._note_age()
        self._inbox.written(self._appender.settled - before)

    def _sync(self) -> None:
        """Sync the written entries, or count them as lost."""
        try:
            self._appender.sync()
        except OSError as error:
            self._fail(error)

    def _note_age(self) -> None:
        """Note when the segment that is being written is closed, also where nothing more comes."""
        aging, self._aging = self._aging, self._appender.active_index
        if self._end_segment not in self._due or aging != self._aging:
            self._plan(self._end_segment, self._settings.segment_age_ms)

    def _end_segment(self) -> None:
        """Close the segment that is being written, so that it can go to the tier."""
        try:
            self._appender.end_segment()
        except OSError as error:
            self._fail(error)
        self._trim_idle()

    def _trim_idle(self) -> None:
        """Delete what has become too old, also where no segment is begun for long."""
        self._plan(self._trim_idle, TRIM_EVERY_MS)
        if not self._appender.is_ready:
            return
        active = self._appender.active_index
        try:
            self._trim(active, max(self._appender.active_bytes, self._settings.segment_bytes))
        except (OSError, UsageLogError) as error:
            self._fail(error)

    def _trim(self, active: int | None, reserved_bytes: int) -> None:
        gone = self._trimmer.trim(
            active=active, reserved_bytes=reserved_bytes, cursors=self.cursors()
        )
        self.on_closed()
        for removal in gone:
            self._call(self._on_trimmed, removal)

    def _fail(self, error: OSError | UsageLogError) -> None:
        self._due.pop(self._sync, None)
        self._retry_at = self._in_ms(self._settings.retry_ms)
        is_new = self.trouble is None
        self.trouble = f"{self._folder}: nothing is logged: {_words(error)}"
        if is_new:
            self._tell(self.trouble)

    def _recover(self) -> None:
        """Note a successful write, which proves that the disk works."""
        if self.trouble is not None:
            self._tell(None)
        if self._sync not in self._due and self._settings.fsync is Fsync.INTERVAL:
            self._plan(self._sync, self._settings.fsync_ms)

    def _tell(self, trouble: str | None) -> None:
        self.trouble = trouble
        self._call(self._on_alarm, LogAlarm(trouble, self.lost))

    def _call(self, listener: Callable[[_Notice], None], notice: _Notice) -> None:
        """Call a listener on the event loop."""
        assert self._loop is not None
        # A loop that is closed has no listener left.
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(listener, notice)

    def _plan(self, work: Callable[[], None], delay_ms: int) -> None:
        self._due[work] = self._in_ms(delay_ms)

    def _in_ms(self, delay_ms: int) -> Nanos:
        return Nanos(self._clock() + delay_ms * NS_PER_MS)


def _words(error: OSError | UsageLogError) -> str:
    if isinstance(error, OSError) and error.strerror:
        return f"{error.strerror} ({error.filename})" if error.filename else error.strerror
    return str(error)
