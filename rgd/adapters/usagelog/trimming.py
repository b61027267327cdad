"""Deletes closed segments of a log on disk, as `rgd.adapters.usagelog.retention` decides.

Law: before a segment is begun, the closed ones and room for a full one take at most `local_bytes`, so the
log never takes more, whatever its readers and its tier do. Segments that were found at the start
are as old as their entries' broker timestamps show. Time since then is that of the monotonic clock, so a wall
clock that jumps deletes nothing.

The segment goes before its sparse index: an index alone is nothing to readers, and `sweep` removes it.
"""

import os
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from rgd.adapters.usagelog.appender import TIMESTAMP_MAX
from rgd.adapters.usagelog.files import Segment, list_segments
from rgd.adapters.usagelog.index import SUFFIX, index_path, load_marks
from rgd.adapters.usagelog.recovery import index_behind
from rgd.adapters.usagelog.retention import Ages, Reason, Removal, removals
from rgd.adapters.usagelog.settings import UsageLogSettings
from rgd.config.plain_files import open_plain_file
from rgd.core.units import Nanos
from rgd.storage.headers import Header, walk
from rgd.storage.manifest import ClosedSegment
from rgd.storage.marks import true_marks
from rgd.wire.segment import segment_name


@dataclass(slots=True)
class Trimmer:
    """Keeps one log folder within its limits."""

    folder: Path
    settings: UsageLogSettings
    clock: Callable[[], Nanos]
    #: Segments deleted so far.
    deleted: Counter[Reason] = field(default_factory=Counter)
    #: The closed segments on disk, oldest first, as of the last look; replaced as a whole.
    closed: tuple[ClosedSegment, ...] = ()
    #: Of the oldest segment on disk, closed or not, as of that look; 0: there was none.
    first_index: int = 0
    _known: dict[int, ClosedSegment] = field(default_factory=dict)
    _ages: Ages = field(init=False)

    def __post_init__(self) -> None:
        self._ages = Ages(self.settings.segment_age_ms)

    def trim(
        self, *, active: int | None, reserved_bytes: int, cursors: Mapping[str, int] | None = None
    ) -> list[Removal]:
        """Delete segments beyond the limits; returns them.

        Args:
            active: first index of the segment that is being written, which stays; None: there is none. Where none
                has an entry yet, the newest one that has stays, because the log goes on from it.
            reserved_bytes: what that segment, or the next one, may come to need.
            cursors: the index of the first entry that each reader has not read yet.

        Raises:
            UsageLogError, OSError: the folder cannot be read, or a segment cannot be deleted.
        """
        segments = list_segments(self.folder)
        known = self._closed_now(segments, active)
        ages = self._ages.at(known, self.clock())
        stay = known[-1:] if active is None or any(map(is_begun, segments[-1:])) else []
        limits = self.settings.limits
        gone = removals(known, ages, limits, reserved_bytes=reserved_bytes, cursors=cursors)
        del gone[len(known) - len(stay) :]
        for removal in gone:
            self._delete(removal)
        self.closed = tuple(known[len(gone) :])
        self.first_index = next((one.first_index for one in segments[len(gone) :]), 0)
        return gone

    def sweep(self) -> None:
        """Remove sparse indexes whose segments are gone.

        Raises:
            OSError: the folder cannot be read, or one cannot be removed.
        """
        for path in self.folder.glob(f"*{SUFFIX}"):
            if not path.with_suffix(".log").exists():
                path.unlink(missing_ok=True)

    def _closed_now(self, segments: list[Segment], active: int | None) -> list[ClosedSegment]:
        """The closed ones of the segments on disk, oldest first."""
        closed = [
            self._known.get(segment.first_index) or facts_of(segment)
            for segment in segments
            if segment.first_index != active and not is_begun(segment)
        ]
        self._known = {one.first_index: one for one in closed}
        return closed

    def _delete(self, removal: Removal) -> None:
        segment = removal.segment
        path = self.folder / segment_name(segment.first_index)
        path.unlink(missing_ok=True)
        index_path(path).unlink(missing_ok=True)
        self.deleted[removal.reason] += 1


def is_begun(segment: Segment) -> bool:
    """Whether it is the last one and without an entry, so that the log goes on in it: a full disk, or a kill.

    Raises:
        OSError: it cannot be read.
    """
    return segment.end is None and segment.path.stat().st_size == 0


def facts_of(segment: Segment) -> ClosedSegment:
    """What retention has to know of a closed segment; reads its first header and its last ones.

    Of the last segment it reads all that is behind its last mark.

    Raises:
        OSError: it cannot be read.
    """
    with open_plain_file(segment.path) as descriptor:
        size = os.fstat(descriptor).st_size
        first = next(walk(descriptor), None)
        last = _last_of(segment, descriptor)
        end = index_behind(descriptor, segment) if segment.end is None else segment.end
    if index_path(segment.path).exists():
        size += index_path(segment.path).stat().st_size
    # No checksum covers the broker's times.
    first_ms, last_ms = (min(one.timestamp, TIMESTAMP_MAX) if one else 0 for one in (first, last))
    return ClosedSegment(
        first_index=segment.first_index,
        last_index=max(segment.first_index, end - 1),
        first_ms=first_ms,
        last_ms=last_ms,
        size=size,
    )


def _last_of(segment: Segment, descriptor: int) -> Header | None:
    """The last whole entry, looked for behind the last true mark."""
    marks = true_marks(descriptor, load_marks(segment.path))
    last = None
    for header in walk(descriptor, marks[-1].offset if marks else 0):
        last = header
    return last
