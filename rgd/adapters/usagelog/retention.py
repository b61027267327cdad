"""Which closed segments of a log may be deleted: a pure decision by age, sizes and cursors.

Law: segments leave oldest first, so that what is left of a log has no gap. A segment's age is that of its last
entry now, on disk and in the tier alike (`Ages`). Of segments of earlier runs it comes from the brokers'
timestamps (`ages_ms`), never from file times or publish times, and from then on from the monotonic clock. So a jump
of the clock is no age: a gap between two segments that is longer than `gap_max_ms` counts as nothing, because a stop of
the broker and a jump of its clock look alike. Nothing is deleted early, and what lies before a long stop is
deleted later by its length.
A cursor (a reader that has a position) holds back deletion by age and by `retention_bytes`. It does not
hold back `local_bytes`, because a full disk helps no reader: such a removal names the cursors that it
passed.

The files are `rgd.adapters.usagelog.trimming`'s business; a tier decides by the same functions.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from rgd.core.units import NS_PER_MS, Nanos
from rgd.storage.manifest import ClosedSegment


class Reason(StrEnum):
    """The limit that a segment was deleted for."""

    LOCAL_BYTES = "local_bytes"
    RETENTION_S = "retention_s"
    RETENTION_BYTES = "retention_bytes"


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How much of a log is kept; None: no limit. The oldest closed segments go."""

    #: Bytes in this place, whatever any cursor needs.
    local_bytes: int | None = None
    #: Age of a segment's last entry, and bytes, unless a cursor needs them.
    retention_ms: int | None = None
    retention_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class Removal:
    """A segment that goes, and why."""

    segment: ClosedSegment
    reason: Reason
    #: Cursors that had not read it.
    passed: tuple[str, ...] = ()


def removals(
    segments: Sequence[ClosedSegment],
    ages: Sequence[int],
    limits: Limits,
    *,
    reserved_bytes: int = 0,
    cursors: Mapping[str, int] | None = None,
) -> list[Removal]:
    """The segments to delete, oldest first.

    Args:
        segments: all closed ones of a log, oldest first.
        ages: of each, in milliseconds (`ages_ms`).
        limits: what is kept.
        reserved_bytes: what the segment that is written may come to need; it counts for `local_bytes` alone.
        cursors: the index of the first entry that each reader has not read yet.
    """
    kept_bytes = sum(segment.size for segment in segments)
    gone: list[Removal] = []
    for segment, age_ms in zip(segments, ages, strict=True):
        unread = tuple(
            sorted(name for name, index in (cursors or {}).items() if index <= segment.last_index)
        )
        local_bytes = kept_bytes + reserved_bytes
        reason = _reason(limits, local_bytes, kept_bytes, age_ms, is_held=bool(unread))
        if reason is None:
            break
        gone.append(Removal(segment, reason, unread))
        kept_bytes -= segment.size
    return gone


def ages_ms(segments: Sequence[ClosedSegment], gap_max_ms: int) -> list[int]:
    """By how much each segment's last entry is older than the last entry of the last segment.

    Args:
        segments: oldest first.
        gap_max_ms: a longer gap between two segments counts as nothing.
    """
    ages = [0] * len(segments)
    for place in range(len(segments) - 2, -1, -1):
        segment, later = segments[place], segments[place + 1]
        gap_ms = later.first_ms - segment.last_ms
        passed_ms = gap_ms if 0 < gap_ms <= gap_max_ms else 0
        ages[place] = ages[place + 1] + passed_ms + max(0, later.last_ms - later.first_ms)
    return ages


class Ages:
    """How old the closed segments of a log are, for a process that watches them."""

    def __init__(self, gap_max_ms: int) -> None:
        self._gap_max_ms = gap_max_ms
        #: By first index: when the last entry was written, by the monotonic clock. Replaced as a whole, because
        #: several threads ask.
        self._since: dict[int, Nanos] | None = None

    def at(self, segments: Sequence[ClosedSegment], now: Nanos) -> list[int]:
        """The age of each segment in milliseconds; one that was not asked for before was closed just now.

        Args:
            segments: all closed ones of the log, oldest first.
            now: by the monotonic clock.
        """
        if self._since is None:
            found = [Nanos(now - age * NS_PER_MS) for age in ages_ms(segments, self._gap_max_ms)]
        else:
            found = [self._since.get(segment.first_index, now) for segment in segments]
        self._since = {
            segment.first_index: since for segment, since in zip(segments, found, strict=True)
        }
        return [(now - since) // NS_PER_MS for since in found]


def _reason(
    limits: Limits, local_bytes: int, kept_bytes: int, age_ms: int, *, is_held: bool
) -> Reason | None:
    """Why the oldest segment of a log of so many bytes, with and without what is reserved, has to go; None: it stays."""
    if limits.local_bytes is not None and local_bytes > limits.local_bytes:
        return Reason.LOCAL_BYTES
    if is_held:
        return None
    if limits.retention_bytes is not None and kept_bytes > limits.retention_bytes:
        return Reason.RETENTION_BYTES
    if limits.retention_ms is not None and age_ms > limits.retention_ms:
        return Reason.RETENTION_S
    return None
