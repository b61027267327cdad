"""The uploader: one thread that carries closed segments to the tier and deletes what retention gives up.

Law: oldest first, one at a time, each step repeatable: a segment leaves the disk only once its manifest is
in the tier, and the tier only once it was marked. A place that does not hold the tier that is remembered is a
tier that fails. Nothing here is waited for by whoever writes or limits.
A tier that fails raises one alarm, is tried again after a growing pause, and its end is reported once.
On average at most `bytes_per_s` go up, one segment in one piece: a segment is created whole or not at all.

What the tier holds is in `tier_state`, its objects are `rgd.storage`'s business, which segments go is
`retention`'s.
"""

import contextlib
import secrets
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from rgd.adapters.usagelog.files import list_segments
from rgd.adapters.usagelog.index import index_path
from rgd.adapters.usagelog.retention import Ages, Limits, removals
from rgd.adapters.usagelog.tier_state import (
    TierLag,
    TierState,
    identity_of,
    lag_of,
    load_state,
    state_path,
    store_state,
)
from rgd.adapters.usagelog.trimming import facts_of, is_begun
from rgd.backoff import Backoff
from rgd.config.plain_files import read_plain_file
from rgd.core.units import NS_PER_S, Nanos
from rgd.errors import RgdError
from rgd.storage.errors import TierChanged, TierConflict
from rgd.storage.identity import IDENTITY_BYTES, MARKER, REMEDY, claim_identity, read_identity
from rgd.storage.manifest import ClosedSegment, TieredSegment
from rgd.storage.marks import INDEX_BYTES_MAX
from rgd.storage.objects import TIMEOUT_S, Objects, canonical
from rgd.storage.tier import LogTier, checksum_of
from rgd.wire.segment import segment_name

#: The cursor by which the uploader holds back retention on disk.
CURSOR: Final = "tier"
#: A step that takes longer hangs: twice the longest request, because a segment has several.
STUCK_S: Final = 2 * TIMEOUT_S


@dataclass(frozen=True, slots=True, kw_only=True)
class TierSettings:
    """The settings of the uploader."""

    #: `log.name`; the tier's objects are below it.
    name: str = "usage"
    #: On average; None: as fast as the link.
    bytes_per_s: int | None = None
    #: How long an uploaded segment stays on disk.
    local_s: float = 0.0
    #: From the mark of a segment to its deletion: readers that have begun may end.
    delete_delay_s: float = 60.0
    #: How often retention is looked at where nothing is closed.
    look_every_s: float = 60.0
    limits: Limits = field(default_factory=Limits)
    #: How long `stop` waits for the last segments; a request that hangs does not keep the process.
    stop_s: float = 5.0
    #: A longer gap between two segments is no age (`retention.ages_ms`).
    gap_max_ms: int = 3_600_000


@dataclass(frozen=True, slots=True)
class TierAlarm:
    """The tier fails, or works again."""

    place: str
    #: Why nothing goes up; None: the trouble is over.
    trouble: str | None


@dataclass(frozen=True, slots=True)
class TierDeleted:
    """Retention gave up a segment in the tier."""

    segment: TieredSegment


@dataclass(frozen=True, slots=True)
class TierParts:
    """What an uploader works with."""

    objects: Objects
    #: The closed segments on disk, oldest first; called from several threads.
    closed: Callable[[], Sequence[ClosedSegment]]
    #: Monotonic.
    clock: Callable[[], Nanos]
    #: Between tries.
    backoff: Backoff
    #: Called in the uploader's thread.
    on_event: Callable[[TierAlarm | TierDeleted], None]
    #: The same objects for readers, with shorter timeouts; None: `objects`.
    reading: Objects | None = None


@dataclass(slots=True)
class _Counts:
    """Totals since the start."""

    uploaded_segments: int = 0
    uploaded_bytes: int = 0
    deleted_segments: int = 0
    failures: int = 0
    #: Of these: while the tier was looked at or a segment went up; while one was marked or deleted.
    copy_errors: int = 0
    delete_errors: int = 0


class Uploader:
    """Carries one log to its tier."""

    def __init__(
        self, folder: Path, parts: TierParts, settings: TierSettings, *, new_log: str
    ) -> None:
        """Read what is stored beside the log; the tier is not asked before `start`.

        Args:
            folder: the log's own.
            parts: what it works with.
            settings: names, pauses, limits.
            new_log: the name of this log in the tier, where it begins there: letters and digits.

        Raises:
            OSError: the state beside the log cannot be read.
        """
        folder.mkdir(parents=True, exist_ok=True)
        self.counts = _Counts()
        #: Of each reader the index of the first entry that it has not read: they hold back deletion.
        self.cursors: Callable[[], Mapping[str, int]] = dict
        self._folder = folder
        self._settings = settings
        self._parts = parts
        #: What the tier holds, as far as is known, and the stored state that was found damaged.
        place = canonical(parts.objects.place)
        self.state, self.set_aside, is_stored = load_state(folder, place, new_log)
        prefix = f"{settings.name}/{folder.name}/{self.state.log}"
        #: Where the log is in the tier.
        self.tier = LogTier(parts.objects, prefix, self.state.identity)
        #: Whether the state on disk is older than the one here.
        self._is_unstored = not is_stored
        self._trouble: str | None = None
        self._ages = Ages(settings.gap_max_ms)
        #: Whether the tier was listed since the last failure.
        self._is_listed = False
        self._remnants: frozenset[int] = frozenset()
        #: When a mark was set or first seen, by first index; by the monotonic clock.
        self._marked_at: dict[int, Nanos] = {}
        #: When a segment was uploaded or first seen as uploaded.
        self._uploaded_at: dict[int, Nanos] = {}
        #: Before then nothing goes up, because of the bandwidth limit.
        self._upload_at = parts.clock()
        #: When a drop or a deletion will be due.
        self._due_at: list[Nanos] = []
        #: Since when the tier is asked for something; None: it is not.
        self._asking_since: Nanos | None = None
        self._thread: threading.Thread | None = None
        self._wake = threading.Event()
        #: What is closed is carried once more, then all ends.
        self._stopping = threading.Event()
        #: Nobody waits for it any more.
        self._is_over = False

    def tier_to_read(self) -> LogTier:
        """The same for readers."""
        return LogTier(
            self._parts.reading or self._parts.objects, self.tier.prefix, self.tier.identity
        )

    @property
    def trouble(self) -> str | None:
        """Why nothing goes up, in words; None: as far as is known, all is well."""
        since = self._asking_since
        asking_s = 0.0 if since is None else (self._parts.clock() - since) / NS_PER_S
        if asking_s > STUCK_S:
            return f"{self.tier.objects.place}: expected an answer, waiting since {asking_s:.0f} s"
        return self._trouble

    def lag(self, now_ms: int) -> TierLag | None:
        """The lag now, without waiting for anything; None once the log is closed."""
        if self._stopping.is_set():
            return None
        closed, state = self._parts.closed(), self.state
        return lag_of(state, closed, self._due(state, closed), now_ms)

    def start(self) -> None:
        """Begin to carry."""
        assert self._thread is None, "started twice"
        # A daemon thread: a tier that hangs must not keep the process from ending.
        self._thread = threading.Thread(target=self._run, name="rgd-usage-tier", daemon=True)
        self._thread.start()

    def wake(self) -> None:
        """A segment was closed."""
        self._wake.set()

    def stop(self) -> None:
        """Carry what is closed, without pauses, and end. Idempotent; blocks for at most `stop_s`."""
        self._stopping.set()
        self._wake.set()
        if self._thread is not None:
            self._thread.join(self._settings.stop_s)
        self._is_over = True

    def cycle(self) -> None:
        """Do all that is due: upload, drop, mark, delete. The thread calls it; a test may, without one.

        Raises:
            TierError, OSError: it did not work; what was done stays done.
        """
        uploads = list(self._carry())
        if self._is_over:
            return
        self._due_at = []
        self._drop_local()
        with self._asking(is_copying=False):
            self._delete()
        # Once more, where it could not be stored.
        self._set(self.state)
        # What was not on disk any more was deleted there, or dropped by another uploader: look again.
        self._is_listed = None not in uploads

    def catch_up(self, progress: Callable[[TieredSegment], None] | None = None) -> None:
        """Do in this thread all that is due, without pauses for retention: how `rgd log upload` works.

        Raises:
            TierError, OSError: it did not work; what was done stays done.
        """
        for uploaded in self._carry():
            if progress is not None and uploaded is not None:
                progress(uploaded)

    # --- the thread ---------------------------------------------------------------------------------

    def _run(self) -> None:
        is_last = False
        while not is_last:
            self._wake.clear()
            # What is closed by then is carried in this turn.
            is_last = self._stopping.is_set()
            try:
                self.cycle()
            except Exception as error:  # noqa: BLE001 -- a bug here must not end the uploading for ever
                self._fail(error)
                self._stopping.wait(self._parts.backoff.next_s())
            else:
                self._parts.backoff.reset()
                self._recover()
                self._wake.wait(0 if is_last else self._pause_s())

    def _carry(self) -> Iterator[TieredSegment | None]:
        """Upload what the tier does not hold; None: one that is not on disk any more."""
        closed = self._parts.closed()
        with self._asking(is_copying=True):
            self._look(closed)
        # Until all of it is done, it is not known what is there.
        self._is_listed = False
        for segment in self.state.waiting(closed):
            self._rest()
            if self._is_over:
                return
            with self._asking(is_copying=True):
                uploaded = self._upload(segment)
            yield uploaded

    @contextlib.contextmanager
    def _asking(self, *, is_copying: bool) -> Iterator[None]:
        """Note since when the tier is asked, so that a request that hangs can be told, and what failed."""
        self._asking_since = self._parts.clock()
        try:
            yield
        except Exception:
            self.counts.copy_errors += is_copying
            self.counts.delete_errors += not is_copying
            raise
        finally:
            self._asking_since = None

    def _look(self, closed: Sequence[ClosedSegment]) -> None:
        """Learn what is there: at the start and after a failure, whose outcome is not known."""
        self.tier.check()
        if not self._is_listed:
            known = {one.first_index: one for one in (*self.state.segments, *self.state.marked)}
            listing = self.tier.list(known)
            self._identify()
            self._remnants = listing.remnants
            self._set(self.state.with_listing(listing))
        # Asked each time: what counts again may be closed only now.
        foreign = self.state.foreign(closed)
        self._is_listed = not foreign
        if foreign:
            raise TierConflict(
                f"{self.tier.objects.place}: it holds, or held, other entries than this log from index "
                f"{foreign[0].first_index} on; move {state_path(self._folder, self.state.place).name} away, so "
                "that the log continues under another number, or use another log.name"
            )

    def _identify(self) -> None:
        """Remember which tier it is, from its first use on."""
        if self.tier.identity is not None:
            return
        # What went up under a number that a restart forgets would go up again.
        if self._is_unstored:
            store_state(self._folder, self.state)
        objects = self.tier.objects
        if self.state.is_regained and read_identity(objects) is None:
            raise TierChanged(
                f"{objects.place}: expected the tier that this log was uploaded to, but {MARKER} is missing, and "
                f"what was remembered of it was damaged; nothing is uploaded, dropped or deleted. {REMEDY}"
            )
        identity = claim_identity(objects, secrets.token_hex(IDENTITY_BYTES))
        self.tier.identity = identity
        self._set(replace(self.state, identity=identity, is_regained=False))

    def _upload(self, segment: ClosedSegment) -> TieredSegment | None:
        """Upload a segment; None: it is not on disk any more."""
        path = self._folder / segment_name(segment.first_index)
        try:
            data = path.read_bytes()
        except FileNotFoundError:
            return None
        marks = b""
        with contextlib.suppress(FileNotFoundError):
            marks = read_plain_file(index_path(path), INDEX_BYTES_MAX)[:INDEX_BYTES_MAX]
        uploaded = TieredSegment(
            segment.first_index,
            segment.last_index,
            segment.first_ms,
            segment.last_ms,
            len(data),
            checksum_of(data),
        )
        self.tier.check()
        self.tier.put(uploaded, data, marks)
        # It may have vanished meanwhile, and parts of it may be below the mount point.
        self.tier.check()
        self._set(self.state.with_uploaded(uploaded))
        now = self._parts.clock()
        self._uploaded_at[segment.first_index] = now
        self.counts.uploaded_segments += 1
        self.counts.uploaded_bytes += len(data)
        if self._settings.bytes_per_s is not None:
            self._upload_at = Nanos(now + len(data) * NS_PER_S // self._settings.bytes_per_s)
        return uploaded

    def _drop_local(self) -> None:
        """Delete from the disk what the tier has for long enough."""
        now = self._parts.clock()
        tiered = {identity_of(one) for one in (*self.state.segments, *self.state.marked)}
        # The log goes on from its newest entry.
        newest = [one for one in list_segments(self._folder) if not is_begun(one)][-1:]
        stay = {one.first_index for one in newest}
        closed = self._parts.closed()
        there = [
            one for one in closed if identity_of(one) in tiered and one.first_index not in stay
        ]
        self._uploaded_at = {
            one.first_index: self._uploaded_at.get(one.first_index, now) for one in there
        }
        for first_index, since in self._uploaded_at.items():
            drop_at = Nanos(since + round(self._settings.local_s * NS_PER_S))
            path = self._folder / segment_name(first_index)
            if now < drop_at:
                self._due_at.append(drop_at)
            elif path.exists():
                path.unlink(missing_ok=True)
                index_path(path).unlink(missing_ok=True)

    def _delete(self) -> None:
        """Mark what retention gives up, and delete what was marked long enough ago."""
        now = self._parts.clock()
        for segment in self._due(self.state, self._parts.closed()):
            self.tier.mark(segment.first_index)
            self._marked_at[segment.first_index] = now
            self._set(self.state.with_marked(segment))
            self._parts.on_event(TierDeleted(segment))
        for first_index in self._remnants:
            self.tier.delete(first_index)
        self._remnants = frozenset()
        for segment in self.state.marked:
            since = self._marked_at.setdefault(segment.first_index, now)
            delete_at = Nanos(since + round(self._settings.delete_delay_s * NS_PER_S))
            if now < delete_at:
                self._due_at.append(delete_at)
                continue
            self.tier.delete(segment.first_index)
            del self._marked_at[segment.first_index]
            self._set(self.state.with_deleted(segment))
            self.counts.deleted_segments += 1

    def _due(self, state: TierState, closed: Sequence[ClosedSegment]) -> list[TieredSegment]:
        """The segments of the tier that retention gives up and that are not marked yet."""
        line = [*state.segments, *state.waiting(closed)]
        ages = self._ages.at(line, self._parts.clock())[: len(state.segments)]
        limits = replace(self._settings.limits, local_bytes=None)
        gone = removals(state.segments, ages, limits, cursors=self.cursors())
        # They leave oldest first.
        return list(state.segments[: len(gone)])

    def _set(self, state: TierState) -> None:
        if state != self.state or self._is_unstored:
            self.state, self._is_unstored = state, True
            # A full disk must not keep back what would free it. A state that is lost is listed again.
            with contextlib.suppress(OSError):
                store_state(self._folder, state)
                self._is_unstored = False

    def _pause_s(self) -> float:
        """Until something may be due; being woken comes before."""
        now = self._parts.clock()
        return min([self._settings.look_every_s, *((at - now) / NS_PER_S for at in self._due_at)])

    def _rest(self) -> None:
        """Wait as the bandwidth limit demands."""
        while (left := self._upload_at - self._parts.clock()) > 0:
            if self._stopping.wait(left / NS_PER_S):
                return

    def _fail(self, error: Exception) -> None:
        self.counts.failures += 1
        is_new = self._trouble is None
        is_foreseen = isinstance(error, (RgdError, OSError))
        self._trouble = str(error) if is_foreseen else f"the uploader broke: {error!r}"
        if is_new:
            self._parts.on_event(TierAlarm(self.tier.objects.place, self._trouble))

    def _recover(self) -> None:
        if self._trouble is not None:
            self._trouble = None
            self._parts.on_event(TierAlarm(self.tier.objects.place, None))


def closed_on_disk(folder: Path, *, with_last: bool = False) -> list[ClosedSegment]:
    """The closed segments of a log folder, oldest first.

    Args:
        folder: the log's own.
        with_last: whether the last one is closed, too: nobody has the log open (`files.is_written`).

    Raises:
        UsageLogError, OSError: it cannot be read.
    """
    facts = []
    for segment in list_segments(folder):
        # Another uploader may drop it just now.
        with contextlib.suppress(FileNotFoundError):
            if segment.end is not None or (with_last and not is_begun(segment)):
                facts.append(facts_of(segment))
    return facts
