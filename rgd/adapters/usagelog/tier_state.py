"""What a daemon knows of its log's tier, kept beside the log, and the lag that follows from it.

Law: the lag is computed from the state whenever it is asked for, without a lock and without the tier, so
it is true while the tier is down, while the uploader is stuck and right after a start. It counts closed
segments only, and it is a sum of what is there, so it is never negative (KIP-963, and what Kafka adopted).

A state is a value that is replaced as a whole: who reads it while it changes sees the one or the other.
On disk it is a copy of what the tier says. A lost one is not recovered: the log goes on under a new number,
and what is on disk is uploaded again. A damaged one is set aside, and then the tier has to have an identity already,
because it had one.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Final, Literal

import msgspec
from msgspec import Meta

from rgd.adapters.usagelog.side_files import read_side_file
from rgd.config.plain_files import SetAside, replace_file, set_aside
from rgd.storage.identity import Identity
from rgd.storage.manifest import ClosedSegment, TieredSegment, Whole
from rgd.storage.tier import Listing

#: Digits of the hash in a state's file name: each place has a state of its own.
_HASH_DIGITS: Final = 12
#: Largest state that is read: some 200,000 segments.
STATE_BYTES_MAX: Final = 32 << 20

_MS_PER_S: Final = 1000


@dataclass(frozen=True, slots=True)
class TierState:
    """What the tier holds of one log, as far as is known."""

    #: `log.tier_url`, as `rgd.storage.objects.canonical` writes it.
    place: str
    #: Which of its broker's logs this is in the tier.
    log: Annotated[str, Meta(pattern=r"^[0-9A-Za-z]+\Z")]
    #: Index of the first entry that was never uploaded; never falls.
    uploaded: Whole
    #: Of the tier (`rgd.storage.identity`); None: nothing was uploaded there yet.
    identity: Identity | None
    #: Of its file.
    version: Literal[1]
    #: Uploaded and not marked, by first index.
    segments: tuple[TieredSegment, ...] = ()
    #: Marked for deletion, and not deleted as far as is known.
    marked: tuple[TieredSegment, ...] = ()
    #: Whether the tier must have an identity, which is not known any more.
    is_regained: bool = False
    #: Broker time of the last entry that was uploaded, in milliseconds since 1970; 0: not known.
    uploaded_ms: Whole = 0

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
        known = {identity_of(one) for one in held}
        return [
            one
            for one in closed
            if one.first_index < self.uploaded
            and identity_of(one) not in known
            and (
                one.last_ms > self.uploaded_ms > 0
                or any(
                    one.first_index <= other.last_index and other.first_index <= one.last_index
                    for other in held
                )
            )
        ]


_decoder: Final = msgspec.json.Decoder(TierState)


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


def identity_of(segment: ClosedSegment | TieredSegment) -> tuple[int, int, int, int]:
    """What a segment on disk and the same one in a tier have in common, and no other one has."""
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


def load_state(folder: Path, place: str, new_log: str) -> tuple[TierState, SetAside | None, bool]:
    """The state of a place beside a log, the damaged file that was, and whether the state is stored; without one a new state.

    Raises:
        OSError: it cannot be read.
    """
    path = state_path(folder, place)
    stored, aside = read_side_file(path, STATE_BYTES_MAX, _decoder.decode)
    if stored is not None:
        if stored.place == place:
            return stored, None, True
        aside = set_aside(path, f"expected the state of {place}")
    fresh = TierState(place, new_log, 0, None, 1, is_regained=aside is not None)
    try:
        store_state(folder, fresh)
    except OSError:
        # It is stored before anything goes up (`Uploader`): a full disk is no reason not to start.
        return fresh, aside, False
    return fresh, aside, True


def store_state(folder: Path, state: TierState) -> None:
    """Store a state, all at once.

    Raises:
        OSError: it cannot be stored.
    """
    replace_file(state_path(folder, state.place), msgspec.json.encode(state))


def state_path(folder: Path, place: str) -> Path:
    """Where the state of a log in a place is stored."""
    digest = hashlib.sha256(place.encode()).hexdigest()[:_HASH_DIGITS]
    return folder / f"tier-{digest}.json"
