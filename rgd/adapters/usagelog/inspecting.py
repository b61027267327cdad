"""Looking at logs as they lie: which segments there are, and whether they are what was written.

Law: a look changes nothing and reads no more than it must: a list reads headers, a check reads every byte
once (a tier's twice: against its manifest, then its entries).
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from rgd.adapters.usagelog.errors import LogNotFound
from rgd.adapters.usagelog.files import list_logs, list_segments
from rgd.adapters.usagelog.reader import DamagedEntry, LogEntry, read_segment
from rgd.adapters.usagelog.sources import FileSource, Source, TierSource, logs_at, tier_at
from rgd.adapters.usagelog.trimming import facts_of
from rgd.storage.errors import TierDamaged
from rgd.storage.manifest import TieredSegment
from rgd.storage.tier import LogTier


@dataclass(frozen=True, slots=True)
class SegmentFacts:
    """One segment of a log."""

    #: The folder, or where in the tier.
    log: str
    first_index: int
    last_index: int
    #: The broker's time of the first and the last entry, ms since 1970.
    first_ms: int
    last_ms: int
    #: In bytes.
    size: int
    #: `closed` or `open` on disk; `tier`, or `marked` for deletion.
    state: str


def segments_at(place: str) -> Iterator[SegmentFacts]:
    """The segments of all logs at a place, log by log.

    Raises:
        LogNotFound, LogUnreadable, TierError, OSError: they cannot be listed.
    """
    tiers = tier_at(place)
    if tiers is not None:
        for tier in tiers:
            yield from _of_tier(tier)
        return
    path = Path(place)
    if not path.is_dir():
        raise LogNotFound(path)
    for folder in list_logs(path):
        segments = list_segments(folder)
        for number, segment in enumerate(segments):
            following = segments[number + 1] if number + 1 < len(segments) else None
            facts = facts_of(segment, following)
            state = "open" if following is None else "closed"
            yield SegmentFacts(
                str(folder),
                facts.first_index,
                facts.last_index,
                facts.first_ms,
                facts.last_ms,
                segment.path.stat().st_size,
                state,
            )


def _of_tier(tier: LogTier) -> Iterator[SegmentFacts]:
    listing = tier.list()
    marked = {one.first_index for one in listing.marked}
    both = sorted(chain(listing.segments, listing.marked), key=lambda one: one.first_index)
    place = tier.objects.place.rstrip("/")
    for one in both:
        yield SegmentFacts(
            f"{place}/{tier.prefix}",
            one.first_index,
            one.last_index,
            one.first_ms,
            one.last_ms,
            one.size,
            "marked" if one.first_index in marked else "tier",
        )


@dataclass(slots=True)
class _Line:
    """What a log's next entry has to follow."""

    index: int | None = None
    timestamp: int = 0


def sizes_at(place: str) -> int:
    """Bytes of all segments at a place: how long checking them takes.

    Raises:
        LogNotFound, LogUnreadable, TierError, OSError: they cannot be listed.
    """
    return sum(_size(source) for sources in logs_at(place) for source in sources)


def faults_at(place: str, done: Callable[[int], None]) -> Iterator[str]:
    """What is wrong with the logs at a place, in words.

    Args:
        place: a folder, a segment file or a tier.
        done: receives the bytes of each segment once it is checked.

    Raises:
        LogNotFound, LogUnreadable, TierError, OSError: they cannot be read.
    """
    for sources in logs_at(place):
        line = _Line()
        for source in sources:
            if isinstance(source, TierSource):
                yield from _against_manifest(source.tier, source.segment)
            for found in read_segment(source):
                yield from _entry_faults(found, line)
            done(_size(source))


def _against_manifest(tier: LogTier, segment: TieredSegment) -> Iterator[str]:
    try:
        tier.verify(segment)
    except TierDamaged as error:
        yield str(error)


def _entry_faults(found: LogEntry | DamagedEntry, line: _Line) -> Iterator[str]:
    if isinstance(found, DamagedEntry):
        yield str(found)
        # How many entries it was is not known.
        line.index = None
        return
    at = f"{found.path}: entry at offset {found.offset}"
    index, timestamp = found.entry.index, found.entry.broker_timestamp
    if index is not None:
        if line.index is not None and index != line.index:
            yield f"{at}: expected the index {line.index}, got {index}"
        line.index = index + 1
    if timestamp is not None:
        if timestamp < line.timestamp:
            yield f"{at}: its broker timestamp {timestamp} is before {line.timestamp}"
        line.timestamp = max(line.timestamp, timestamp)


def _size(source: Source) -> int:
    if isinstance(source, TierSource):
        return source.segment.size
    return source.path.stat().st_size if isinstance(source, FileSource) else 0
