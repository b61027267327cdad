"""Looking at logs as they lie: which segments there are.

Law: a look changes nothing, and reads headers only. Checking them is `verifying`'s business.
"""

import contextlib
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from rgd.adapters.usagelog.errors import LogNotFound, LogUnreadable
from rgd.adapters.usagelog.files import Segment, list_logs, list_segments
from rgd.adapters.usagelog.sources import tier_at
from rgd.adapters.usagelog.trimming import facts_of
from rgd.storage.manifest import ClosedSegment
from rgd.storage.tier import LogTier


@dataclass(frozen=True, slots=True)
class SegmentFacts(ClosedSegment):
    """One segment of a log, perhaps still written to; its size is without the sparse index."""

    #: The folder, or where in the tier.
    log: str
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
        for segment in list_segments(folder):
            # Retention or the uploader may delete it just now.
            with contextlib.suppress(FileNotFoundError):
                yield _of_file(segment)


def _of_file(segment: Segment) -> SegmentFacts:
    """A segment on disk.

    Raises:
        FileNotFoundError: it is gone.
        LogUnreadable: it cannot be read.
    """
    try:
        facts = replace(facts_of(segment), size=segment.path.stat().st_size)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise LogUnreadable(segment.path, error) from error
    state = "open" if segment.end is None else "closed"
    return SegmentFacts(**asdict(facts), log=str(segment.path.parent), state=state)


def _of_tier(tier: LogTier) -> Iterator[SegmentFacts]:
    listing = tier.list()
    states = {"tier": listing.segments, "marked": listing.marked}
    both = ((one.first_index, state, one) for state, held in states.items() for one in held)
    log = f"{tier.objects.place.rstrip('/')}/{tier.prefix}"
    for _, state, one in sorted(both):
        yield SegmentFacts(
            one.first_index, one.last_index, one.first_ms, one.last_ms, one.size, log, state
        )
