"""Looking at logs as they lie: which segments there are.

Law: a look changes nothing, and reads headers only, but for the end of the last segment. Checking them is `verifying`'s business.
"""

from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from rgd.adapters.usagelog.errors import LogUnreadable
from rgd.adapters.usagelog.files import list_logs, list_segments
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
    for folder in list_logs(Path(place)):
        for segment in list_segments(folder):
            try:
                facts = replace(facts_of(segment), size=segment.path.stat().st_size)
            except FileNotFoundError:
                continue  # Retention or the uploader deleted it just now.
            except OSError as error:
                raise LogUnreadable(segment.path, error) from error
            state = "open" if segment.end is None else "closed"
            yield SegmentFacts(**asdict(facts), log=str(folder), state=state)


def _of_tier(tier: LogTier) -> Iterator[SegmentFacts]:
    listing = tier.list()
    states = {"tier": listing.segments, "marked": listing.marked}
    both = ((one.first_index, state, one) for state, held in states.items() for one in held)
    log = f"{tier.objects.place.rstrip('/')}/{tier.prefix}"
    for _, state, one in sorted(both):
        yield SegmentFacts(
            one.first_index, one.last_index, one.first_ms, one.last_ms, one.size, log, state
        )
