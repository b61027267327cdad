"""Looking at logs as they lie: which segments there are.

Law: a look changes nothing, and reads headers only. Checking them is `verifying`'s business.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from rgd.adapters.usagelog.errors import LogNotFound, LogUnreadable
from rgd.adapters.usagelog.files import Segment, list_logs, list_segments
from rgd.adapters.usagelog.sources import tier_at
from rgd.adapters.usagelog.trimming import facts_of
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

    One that is deleted meanwhile is left out.

    Raises:
        LogNotFound, LogUnreadable, TierError: they cannot be listed.
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
            # Retention or the uploader may delete it just now.
            facts = _of_file(segment, following)
            if facts is not None:
                yield facts


def _of_file(segment: Segment, following: Segment | None) -> SegmentFacts | None:
    """A segment on disk; None: it is gone."""
    try:
        facts = facts_of(segment, following)
        size = segment.path.stat().st_size
    except FileNotFoundError:
        return None
    except OSError as error:
        raise LogUnreadable(segment.path, error) from error
    return SegmentFacts(
        str(segment.path.parent),
        facts.first_index,
        facts.last_index,
        facts.first_ms,
        facts.last_ms,
        size,
        "open" if following is None else "closed",
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
