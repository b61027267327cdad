"""What a daemon knows of its log's tier, kept beside the log, and the lag that follows from it.

Law: the lag is computed from the state whenever it is asked for, without a lock and without the tier, so
it is true while the tier is down, while the uploader is stuck and right after a start. It counts closed
segments only, and it is a sum of what is there, so it is never negative (KIP-963, and what Kafka adopted).

A state is a value that is replaced as a whole: who reads it while it changes sees the one or the other.
On disk it is a copy of what the tier says. A lost one is not recovered: the log goes on under a new number,
and what is on disk is uploaded again.
"""

import hashlib
import json
import os
import threading
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Final

from rgd.adapters.usagelog.retention import ClosedSegment
from rgd.storage.errors import TierDamaged
from rgd.storage.manifest import TieredSegment, segment_from
from rgd.storage.tier import Listing

#: Digits of the hash in a state's file name: each place has a state of its own.
_HASH_DIGITS: Final = 12
STATE_VERSION: Final = 1

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

    def with_uploaded(self, segment: TieredSegment) -> "TierState":
        """After an upload."""
        others = [one for one in self.segments if one.first_index != segment.first_index]
        ordered = sorted([*others, segment], key=lambda one: one.first_index)
        uploaded = max(self.uploaded, segment.last_index + 1)
        return replace(self, uploaded=uploaded, segments=tuple(ordered))

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
        ends = [one.last_index + 1 for one in (*listing.segments, *listing.marked)]
        uploaded = max([self.uploaded, *ends])
        return replace(self, uploaded=uploaded, segments=listing.segments, marked=listing.marked)

    def waiting(self, closed: Sequence[ClosedSegment]) -> list[ClosedSegment]:
        """The closed segments that the tier does not hold, oldest first."""
        foreign = self.foreign(closed)
        return [one for one in closed if one.first_index >= self.uploaded or one in foreign]

    def foreign(self, closed: Sequence[ClosedSegment]) -> list[ClosedSegment]:
        """The closed segments at whose indexes the tier holds other entries.

        A log that lost its segments, or that was restored from a copy, counts its indexes a second time.
        """
        held = (*self.segments, *self.marked)
        known = {_identity(one) for one in held}
        return [
            one
            for one in closed
            if one.first_index < self.uploaded
            and _identity(one) not in known
            and any(
                one.first_index <= other.last_index and other.first_index <= one.last_index
                for other in held
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


def load_state(folder: Path, place: str, new_log: str) -> TierState:
    """The state of a place beside a log; without one a new state, which is stored.

    Of two processes that begin at once, both take what the first one stored.

    Raises:
        OSError: it cannot be read or stored.
    """
    path = state_path(folder, place)
    found = _read(path, place)
    if found is not None:
        return found
    fresh = TierState(place, new_log)
    draft = _draft_of(path)
    draft.write_bytes(_encode(fresh))
    try:
        path.hardlink_to(draft)
    except FileExistsError:
        # Another process was first; or what is there cannot be read.
        again = _read(path, place)
        if again is not None:
            return again
        store_state(folder, fresh)
    finally:
        draft.unlink(missing_ok=True)
    return fresh


def store_state(folder: Path, state: TierState) -> None:
    """Store a state, all at once.

    Raises:
        OSError: it cannot be stored.
    """
    path = state_path(folder, state.place)
    draft = _draft_of(path)
    draft.write_bytes(_encode(state))
    draft.replace(path)


def state_path(folder: Path, place: str) -> Path:
    """Where the state of a log in a place is stored."""
    digest = hashlib.sha256(place.encode()).hexdigest()[:_HASH_DIGITS]
    return folder / f"tier-{digest}.json"


def _draft_of(path: Path) -> Path:
    """A file that no other thread or process writes."""
    return path.with_suffix(f".{os.getpid()}.{threading.get_ident()}")


def _encode(state: TierState) -> bytes:
    return json.dumps({"version": STATE_VERSION, **asdict(state)}).encode() + b"\n"


def _read(path: Path, place: str) -> TierState | None:
    """The stored state of a place; None: there is none that can be read, which is as good as none."""
    try:
        decoded = json.loads(path.read_bytes())
        if decoded["version"] != STATE_VERSION:
            return None
        segments, marked = (
            tuple(segment_from(one, path.name) for one in decoded[name])
            for name in ("segments", "marked")
        )
        is_same = decoded["place"] == place
        log, uploaded = decoded["log"], decoded["uploaded"]
    except (FileNotFoundError, ValueError, KeyError, TypeError, AttributeError, TierDamaged):
        return None
    is_sound = is_same and isinstance(log, str) and log.isalnum()
    if not is_sound or type(uploaded) is not int or uploaded < 0:
        return None
    return TierState(place, log, uploaded, segments, marked)
