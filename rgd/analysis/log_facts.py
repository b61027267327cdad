"""What the logs are, as a whole: how much, of whom, from when to when, and what is missing.

Law: every stretch that could not be read and every record that is not there is counted here, so that
no figure of the report hides them. Entries lost between two segments show in the indexes, as those
within one do.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any, Final

from rgd.analysis.continuity import Stretch
from rgd.analysis.errors import NothingLogged
from rgd.analysis.segments import Contents, Damage, read_segment
from rgd.core.units import NS_PER_MS
from rgd.wire.errors import WireError
from rgd.wire.segment import parse_segment_name

#: Segments and records of each that are looked at to learn how long a round is.
PROBED_SEGMENTS_MAX: Final = 8
PROBED_RECORDS_MAX: Final = 64

#: Stretches of damage that a report names; more are counted.
DAMAGES_NAMED_MAX: Final = 20


@dataclass(frozen=True, slots=True)
class Stats:
    """What one segment was found to hold, for the driver."""

    contents: Contents
    runs: list[Stretch]

    def to_json(self) -> str:
        """As it travels in the column `stats`."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> "Stats":
        """Back from the column."""
        values = json.loads(text)
        return cls(Contents(**values["contents"]), [Stretch(**run) for run in values["runs"]])


@dataclass(frozen=True, slots=True)
class LogFacts:
    """What was read."""

    segments: int
    records: int
    brokers: tuple[str, ...]
    #: First and last timestamp, ms since 1970.
    from_ms: int
    to_ms: int
    #: Length of a round and of a window, in ms.
    round_ms: float
    window_ms: int
    #: Whole entries that are somebody else's.
    foreign: int
    #: Stretches that cannot be read, their bytes, and the first of them: file, offset, reason.
    damaged: int
    damaged_bytes: int
    damages: tuple[tuple[str, int, str], ...]
    #: Bytes of entries that were being written, or never were to the end.
    torn_bytes: int
    #: Records (or other entries) that should be there and are not; damaged ones too.
    missing: int
    #: Requests that were granted, and refused, because a broker knew no policies.
    unknown_granted: int = 0
    unknown_refused: int = 0

    def to_json(self) -> dict[str, Any]:
        """The value of "log" in `summary.json`."""
        return {
            "segments": self.segments,
            "records": self.records,
            "brokers": list(self.brokers),
            "from_ms": self.from_ms,
            "to_ms": self.to_ms,
            "round_s": self.round_ms / 1000,
            "window_s": self.window_ms / 1000,
            "missing_records": self.missing,
            "damaged_entries": self.damaged,
            "damaged_bytes": self.damaged_bytes,
            "damages": [
                {"file": file, "offset": offset, "reason": reason}
                for file, offset, reason in self.damages
            ],
            "torn_bytes": self.torn_bytes,
            "foreign_entries": self.foreign,
            "unknown_granted": self.unknown_granted,
            "unknown_refused": self.unknown_refused,
        }


def gather(stats: Sequence[Stats], *, round_ms: float, window_ms: int) -> LogFacts:
    """Put together what the segments were found to hold.

    Raises:
        NothingLogged: there is no row in any of them.
    """
    contents = sorted((one.contents for one in stats), key=lambda one: Path(one.segment))
    check_rows(contents)
    runs = [run for one in stats for run in one.runs]
    damages = [(one.segment, offset, reason) for one in contents for offset, reason in one.damages]
    return LogFacts(
        segments=len(contents),
        records=sum(one.records for one in contents),
        brokers=tuple(sorted({run.broker for run in runs})),
        from_ms=min(one.first_ms for one in contents if one.first_ms is not None),
        to_ms=max(one.last_ms for one in contents if one.last_ms is not None),
        round_ms=round_ms,
        window_ms=window_ms,
        foreign=sum(one.foreign for one in contents),
        damaged=sum(one.damaged for one in contents),
        damaged_bytes=sum(one.damaged_bytes for one in contents),
        damages=tuple(damages[:DAMAGES_NAMED_MAX]),
        torn_bytes=sum(one.torn_bytes for one in contents),
        missing=sum(one.lost_entries for one in contents)
        + sum(_lost_between(contents))
        + sum(run.missing for run in runs),
        unknown_granted=sum(one.unknown_granted for one in contents),
        unknown_refused=sum(one.unknown_refused for one in contents),
    )


def check_rows(contents: Sequence[Contents]) -> None:
    """Refuse logs that there is nothing to say about.

    Raises:
        NothingLogged: saying what there is instead.
    """
    if any(one.rows for one in contents):
        return
    foreign = sum(one.foreign for one in contents)
    damaged = sum(one.damaged for one in contents)
    raise NothingLogged(
        f"the {len(contents)} segments hold no usage of any group ({foreign} entries of others, "
        f"{damaged} damaged); let the daemons serve requests of a group first, or name other logs"
    )


def probe_round_ms(segments: Sequence[Path]) -> float:
    """How long a round is: the median of the first records of some segments.

    Raises:
        NothingLogged: there is no record in any segment.
    """
    step = max(1, len(segments) // PROBED_SEGMENTS_MAX)
    probed = segments[::step][:PROBED_SEGMENTS_MAX]
    periods = [period for segment in probed for period in _periods(segment)]
    if not periods:
        periods = [period for segment in segments for period in _periods(segment)]
    if not periods:
        contents = [Contents(str(segment)) for segment in segments]
        for segment, one in zip(segments, contents, strict=True):
            list(read_segment(segment, one))
        check_rows(contents)
    return median(periods)


def _periods(segment: Path) -> list[float]:
    found: list[float] = []
    for item in read_segment(segment, Contents(str(segment))):
        if not isinstance(item, Damage) and item.record.period_ns > 0:
            found.append(item.record.period_ns / NS_PER_MS)
        if len(found) == PROBED_RECORDS_MAX:
            break
    return found


def _lost_between(contents: Sequence[Contents]) -> Iterator[int]:
    """Entries that are lost at the ends of segments: each is named by its first index."""
    for before, after in pairwise(contents):
        if Path(before.segment).parent == Path(after.segment).parent:
            first = _named_index(before)
            last = first - 1 if before.last_index is None else before.last_index
            yield max(0, _named_index(after) - last - 1)
    for one in contents:
        # Without damage, a name that is not the first index is only a name.
        if one.damaged and one.first_index is not None:
            yield max(0, one.first_index - _named_index(one))


def _named_index(contents: Contents) -> int:
    """The first index that the segment's name states; a file may have been renamed."""
    try:
        return parse_segment_name(Path(contents.segment).name)
    except WireError:
        return contents.first_index or 0
