"""What a daemon knows of its log's tier, kept beside the log, and the lag that follows from it.

Law: the lag is computed from the state whenever it is asked for, without a lock and without the tier, so
it is true while the tier is down, while the uploader is stuck and right after a start. It counts closed
segments only, and it is a sum of what is there, so it is never negative (KIP-963, and what Kafka adopted).

A state is a value that is replaced as a whole: who reads it while it changes sees the one or the other.
On disk it is a copy of what the tier says. A lost one is not recovered: the log goes on under a new number,
and what is on disk is uploaded again. A damaged one is set aside, and then the tier has to have an identity already,
because it had one.
"""

import contextlib
import hashlib
import json
import os
import threading
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Final

from rgd.adapters.usagelog.retention import ClosedSegment
from rgd.adapters.usagelog.side_files import (
    SetAside,
    SideFileDamaged,
    read_side_file,
    set_aside,
)
from rgd.storage.errors import TierDamaged
from rgd.storage.identity import is_identity
from rgd.storage.manifest import TieredSegment, segment_from
from rgd.storage.tier import Listing

#: Digits of the hash in a state's file name: each place has a state of its own.
_HASH_DIGITS: Final = 12
STATE_VERSION: Final = 1
#: Largest state that is read: some 200,000 segments.
STATE_BYTES_MAX: Final = 32 << 20

_MS_PER_S: Final = 1000


@dataclass(frozen=True, slots=True)
class TierState:
    """What the tier holds of one log, as far as is known."""

    #: `log.tier_url`, as `rgd.storage.objects.canonical` writes it.
    place: str
    #: Which of its broker's logs this is in the tier.
    log: str
    #: Index of the first entry that was never uploaded; never falls.
    uploaded: int = 0
    #: Uploaded and not marked, by first index.
    segments: tuple[TieredSegment, ...] = ()
    #: Marked for deletion, and not deleted as far as is known.
    marked: tuple[TieredSegment, ...] = ()
    #: Of the tier (`rgd.storage.identity`); None: nothing was uploaded there yet.
    identity: str | None = None
    #: Whether the tier must have an identity, which is not known any more.
    is_regained: bool = False
    #: Broker time of the last entry that was uploaded, in milliseconds since 1970; 0: not known.
    uploaded_ms: int = 0

    def with_uploaded(self, segment: TieredSegment) -> "TierState":
        """After an upload."""
        others = [one for one in self.segments if one.first_index != segment.first_index]
        ordered = sorted([*others, segment], key=lambda one: one.first_index)
        uploaded = max(self.uploaded, segment.last_index + 1)
        uploaded_ms = max(self.uploaded_ms, segment.last_ms)
        return replace(self, uploaded=uploaded, segments=tuple(ordered), uploaded_ms=uploaded_ms)

    def with_marked(self, segment: TieredSegment) -> "TierState":
        """After a mark."""
        return replace(
            self,
            segments=tuple(one for one in self.segments if one != segment),
            marked=(*(one for one in self.marked if one != segment), segment),
        )

    def with_deleted(self, segment: TieredSegment) -> "TierState":
        """After a deletion."""
        return replace(self, marked=tuple(one for one in self.marked if one != segment))

    def with_listing(self, listing: Listing) -> "TierState":
        """As the tier itself says."""
        held = (*listing.segments, *listing.marked)
        return replace(
            self,
            uploaded=max([self.uploaded, *(one.last_index + 1 for one in held)]),
            segments=listing.segments,
            marked=listing.marked,
            uploaded_ms=max([self.uploaded_ms, *(one.last_ms for one in held)]),
        )

    def waiting(self, closed: Sequence[ClosedSegment]) -> list[ClosedSegment]:
        """The closed segments that the tier does not hold, oldest first."""
        foreign = self.foreign(closed)
        return [one for one in closed if one.first_index >= self.uploaded or one in foreign]

    def foreign(self, closed: Sequence[ClosedSegment]) -> list[ClosedSegment]:
        """The closed segments at whose indexes the tier holds, or held, other entries.

        A log that lost its segments, or that was restored from a copy, counts its indexes a second time. Times
        never run backwards within a log, so the later of two entries with one index is the second one, also
        where retention deleted the first.
        """
        held = (*self.segments, *self.marked)
        known = {_identity(one) for one in held}
        return [
            one
            for one in closed
            if one.first_index < self.uploaded
            and _identity(one) not in known
            and (
                one.last_ms > self.uploaded_ms > 0
                or any(
                    one.first_index <= other.last_index and other.first_index <= one.last_index
                    for other in held
                )
            )
        ]


@dataclass(frozen=True, slots=True)
class TierLag:
    """How far the tier is behind."""

    #: Entries, bytes and number of the closed segments that are not uploaded.
    upload_records: int = 0
    upload_bytes: int = 0
    upload_segments: int = 0
    #: The same of uploaded segments that are to be deleted, marked or not yet.
    delete_records: int = 0
    delete_bytes: int = 0
    delete_segments: int = 0
    #: Since the last entry of the oldest segment that is not uploaded.
    upload_oldest_s: float = 0.0


def _identity(segment: ClosedSegment | TieredSegment) -> tuple[int, int, int, int]:
    return segment.first_index, segment.last_index, segment.first_ms, segment.last_ms


def lag_of(
    state: TierState,
    closed: Sequence[ClosedSegment],
    due: Sequence[TieredSegment],
    now_ms: int,
) -> TierLag:
    """The lag now.

    Args:
        state: what the tier holds.
        closed: the closed segments on disk; the one that is written is not among them.
        due: uploaded segments that retention gives up, marked or not.
        now_ms: by the broker's clock, milliseconds since 1970.
    """
    waiting = state.waiting(closed)
    gone = {segment.first_index: segment for segment in (*state.marked, *due)}.values()
    oldest_ms = min((segment.last_ms for segment in waiting), default=now_ms)
    return TierLag(
        upload_records=sum(one.last_index - one.first_index + 1 for one in waiting),
        upload_bytes=sum(one.size for one in waiting),
        upload_segments=len(waiting),
        delete_records=sum(one.last_index - one.first_index + 1 for one in gone),
        delete_bytes=sum(one.size for one in gone),
        delete_segments=len(gone),
        upload_oldest_s=max(0, now_ms - oldest_ms) / _MS_PER_S,
    )


def load_state(folder: Path, place: str, new_log: str) -> tuple[TierState, SetAside | None]:
    """The state of a place beside a log, and the damaged file that was; without one a new state, which is stored.

    Of two processes that begin at once, both take what the first one stored.

    Raises:
        OSError: it cannot be read or stored.
    """
    path = state_path(folder, place)
    aside = None
    try:
        found = _read(path, place)
    except SideFileDamaged as error:
        found, aside = None, set_aside(path, str(error))
    if found is not None:
        return found, None
    fresh = TierState(place, new_log, is_regained=aside is not None)
    draft = _draft_of(path)
    _write(draft, fresh)
    try:
        path.hardlink_to(draft)
    except FileExistsError:
        # Another process was first; or what is there cannot be set aside.
        with contextlib.suppress(SideFileDamaged):
            again = _read(path, place)
            if again is not None:
                return again, aside
        store_state(folder, fresh)
    finally:
        draft.unlink(missing_ok=True)
    return fresh, aside


def store_state(folder: Path, state: TierState) -> None:
    """Store a state, all at once.

    Raises:
        OSError: it cannot be stored.
    """
    path = state_path(folder, state.place)
    draft = _draft_of(path)
    _write(draft, state)
    draft.replace(path)


def state_path(folder: Path, place: str) -> Path:
    """Where the state of a log in a place is stored."""
    digest = hashlib.sha256(place.encode()).hexdigest()[:_HASH_DIGITS]
    return folder / f"tier-{digest}.json"


def _draft_of(path: Path) -> Path:
    """A file that no other thread or process writes."""
    return path.with_suffix(f".{os.getpid()}.{threading.get_ident()}")


def _write(draft: Path, state: TierState) -> None:
    with draft.open("wb") as file:
        file.write(json.dumps({"version": STATE_VERSION, **asdict(state)}).encode() + b"\n")
        file.flush()
        # An empty file after a loss of power would be taken for a damaged state.
        os.fsync(file.fileno())


def _read(path: Path, place: str) -> TierState | None:
    """The stored state of a place; None: there is none.

    Raises:
        SideFileDamaged: it is there, and makes no sense.
    """
    try:
        decoded = read_side_file(path, STATE_BYTES_MAX)
    except FileNotFoundError:
        return None
    if not isinstance(decoded, dict) or decoded.get("version") != STATE_VERSION:
        raise SideFileDamaged(f"expected a state of version {STATE_VERSION}")
    if decoded.get("place") != place:
        raise SideFileDamaged(f"expected the state of {place}")
    log, uploaded, identity = (decoded.get(name) for name in ("log", "uploaded", "identity"))
    uploaded_ms = decoded.get("uploaded_ms")
    if not isinstance(log, str) or not log.isascii() or not log.isalnum():
        raise SideFileDamaged("log: expected letters and digits")
    if type(uploaded) is not int or not 0 <= uploaded < 1 << 64:
        raise SideFileDamaged("uploaded: expected a whole number")
    if type(uploaded_ms) is not int or not 0 <= uploaded_ms < 1 << 64:
        raise SideFileDamaged("uploaded_ms: expected a whole number")
    if identity is not None and not is_identity(identity):
        raise SideFileDamaged("identity: expected 32 hexadecimal digits")
    return TierState(
        place,
        log,
        uploaded,
        _segments(decoded.get("segments"), "segments"),
        _segments(decoded.get("marked"), "marked"),
        identity,
        is_regained=decoded.get("is_regained") is True,
        uploaded_ms=uploaded_ms,
    )


def _segments(value: object, name: str) -> tuple[TieredSegment, ...]:
    if not isinstance(value, list) or not all(isinstance(one, dict) for one in value):
        raise SideFileDamaged(f"{name}: expected a list of objects")
    try:
        return tuple(segment_from(one, name) for one in value)
    except TierDamaged as error:
        raise SideFileDamaged(str(error)) from error
