"""The facts about the logs as a whole: their size, brokers, time range, and missing data.

Law: every unreadable stretch and every missing record is counted here, so that
no figure of the report hides them. The indexes show entries lost between two segments, like those
within one.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import groupby, pairwise
from pathlib import Path
from typing import Any, Final

from rgd.analysis.asked import ALWAYS, TimeRange
from rgd.analysis.clocks import AS_STAMPED, ERRORS_LISTED_MAX, Clocks
from rgd.analysis.continuity import Run, low_bits, missing_between
from rgd.analysis.errors import NothingLogged
from rgd.analysis.presence import (
    End,
    Ending,
    Life,
    RoundPart,
    Silence,
    find_ends,
    find_silences,
    whole_lives,
)
from rgd.analysis.segments import Contents
from rgd.analysis.tenants import NOTHING_ATTACHED, Attached
from rgd.wire.errors import WireError
from rgd.wire.segment import parse_segment_name

#: Most stretches of damage that a report names; more are counted.
DAMAGES_NAMED_MAX: Final = 20

#: What a report says of all segments together.
_SUMMED: Final = (
    *("records", "foreign", "damaged", "damaged_bytes", "torn_bytes"),
    *("unknown_granted", "unknown_refused"),
)

#: Most silences that a report lists, the first ones; more are counted.
SILENCES_LISTED_MAX: Final = 50


@dataclass(frozen=True, slots=True)
class Stats:
    """The facts about one segment, for the driver; a task sends an attachment with the first segment that has it."""

    contents: Contents
    runs: list[Run]
    #: Broker, lower 32 bits of its incarnation, and when another broker's record last knew it to be up.
    seen: list[tuple[str, int, int]] = field(default_factory=list)
    is_of_lake: bool = False

    def to_json(self) -> dict[str, Any]:
        """The form in a lake and on the way to the driver."""
        values = asdict(replace(self, contents=replace(self.contents, attached=set())))
        values["contents"]["attached"] = sorted(self.contents.attached)
        # They stay in the task that read the segment.
        del values["contents"]["groups"]
        return values

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> "Stats":
        """What `to_json` gave."""
        contents = Contents(**values["contents"])
        contents.attached = {(group, key) for group, key in contents.attached}
        runs = [Run(**run) for run in values["runs"]]
        for run in runs:
            run.first, run.last = RoundPart(*run.first), RoundPart(*run.last)
        seen = [(broker, low, at_ms) for broker, low, at_ms in values["seen"]]
        # Lakes that older versions made do not have it.
        return cls(contents, runs, seen, values.get("is_of_lake", False))


@dataclass(frozen=True, slots=True)
class LogFacts:
    """The facts about all logs."""

    segments: int
    records: int
    brokers: tuple[str, ...]
    #: First and last timestamp, ms since 1970.
    from_ms: int
    to_ms: int
    #: Length of a round and of a window, in ms.
    round_ms: float
    window_ms: int
    #: Complete entries of other producers.
    foreign: int
    #: Unreadable stretches, their bytes, and the first of them: file, offset, reason.
    damaged: int
    damaged_bytes: int
    damages: tuple[tuple[str, int, str], ...]
    #: Bytes of incomplete entries at the end.
    torn_bytes: int
    #: Missing records (or other entries); damaged ones too.
    missing: int
    #: When brokers stood still or were down after a kill, and how each incarnation ended.
    silences: tuple[Silence, ...] = ()
    ends: tuple[End, ...] = ()
    #: Which broker joined (True) or left when, ms since 1970.
    changes: tuple[tuple[str, int, bool], ...] = ()
    #: Clock errors, and the brokers whose clocks cannot be compared.
    clocks: Clocks = AS_STAMPED
    #: The range that was asked for, by the brokers' own stamps.
    within: TimeRange = ALWAYS
    #: Whether there is another range to compare with, also by these.
    is_compared: bool = False
    #: Requests that were granted, and refused, because a broker knew no policies.
    unknown_granted: int = 0
    unknown_refused: int = 0
    #: Bytes that were fetched of logs, all readings together, and bytes of all segments at the places.
    fetched: tuple[int, int] = (0, 0)
    #: Whose a group is (`rgd.analysis.tenants`).
    attached: Attached = field(default_factory=dict)

    @property
    def killed(self) -> tuple[End, ...]:
        """The incarnations without an orderly stop."""
        return tuple(end for end in self.ends if end.ending is Ending.KILLED)

    @property
    def open(self) -> tuple[str, ...]:
        """Brokers that ended without a closing record at the end of the logs."""
        return tuple(end.broker for end in self.ends if end.ending is Ending.OPEN)

    def to_json(self) -> dict[str, Any]:
        """The value of "log" in `summary.json`."""
        plain = ("segments", "records", "from_ms", "to_ms", "damaged_bytes", "torn_bytes")
        return {
            **{
                name: getattr(self, name) for name in (*plain, "unknown_granted", "unknown_refused")
            },
            "brokers": list(self.brokers),
            "round_s": self.round_ms / 1000,
            "window_s": self.window_ms / 1000,
            "missing_records": self.missing,
            "damaged_entries": self.damaged,
            "damages": [
                {"file": file, "offset": offset, "reason": reason}
                for file, offset, reason in self.damages
            ],
            "foreign_entries": self.foreign,
            "clocks": [
                {
                    "broker": one.broker,
                    "ahead_s": round(one.ahead_ms / 1000, 3),
                    "from_ms": one.from_ms,
                    "to_ms": one.to_ms,
                }
                for one in self.clocks.errors[:ERRORS_LISTED_MAX]
            ],
            "clock_errors": len(self.clocks.errors),
            "unaligned_clocks": list(self.clocks.unaligned),
            "uncorrected_clocks": list(self.clocks.uncorrected),
            "silent": [asdict(one) for one in self.silences[:SILENCES_LISTED_MAX]],
            "silences": len(self.silences),
            "kills": [
                {"broker": end.broker, "at_ms": end.at_ms, "missing_up_to_s": self.round_ms / 1000}
                for end in self.killed
            ],
            "open_ends": list(self.open),
            "fetched_bytes": self.fetched[0],
            "stored_bytes": self.fetched[1],
        }


def gather(
    stats: Sequence[Stats],
    *,
    round_ms: float,
    window_ms: int,
    clocks: Clocks = AS_STAMPED,
    attached: Attached = NOTHING_ATTACHED,
    within: TimeRange = ALWAYS,
) -> LogFacts:
    """Join the facts of the segments.

    Raises:
        NothingLogged: there is no row in any of them.
    """
    contents = sorted((one.contents for one in stats), key=lambda one: Path(one.segment))
    check_rows(contents, within)
    runs = [run for one in stats for run in one.runs]
    lives = whole_lives(runs, round_ms)
    ends = find_ends(lives, _seen(stats, lives), round_ms)
    lost = Counter[str]()
    for segment, count in _lost_before(stats, within):
        lost[segment] += count
    damages = [(one.segment, offset, reason) for one in contents for offset, reason in one.damages]
    return LogFacts(
        segments=len(contents),
        **{name: sum(getattr(one, name) for one in contents) for name in _SUMMED},
        brokers=tuple(sorted({run.broker for run in runs})),
        from_ms=min(one.first_ms for one in contents if one.first_ms is not None),
        to_ms=max(one.last_ms for one in contents if one.last_ms is not None),
        round_ms=round_ms,
        window_ms=window_ms,
        damages=tuple(damages[:DAMAGES_NAMED_MAX]),
        missing=sum(one.lost_entries for one in contents)
        + lost.total()
        + sum(run.missing for run in runs)
        + missing_between(runs, [segment for segment, count in lost.items() if count]),
        silences=tuple(find_silences(lives, ends, round_ms)),
        # Where the range ends says nothing of how a broker did.
        ends=tuple(one for one in ends if within.to_ms is None or one.ending is not Ending.OPEN),
        changes=(
            *((one.broker, one.first_ms, True) for one in lives if one.begins),
            *((one.broker, one.at_ms, False) for one in ends if one.ending is not Ending.OPEN),
        ),
        clocks=clocks,
        within=within,
        attached=attached,
    )


def _seen(stats: Sequence[Stats], lives: Sequence[Life]) -> dict[tuple[str, str], int]:
    """When another broker last knew each incarnation to be up."""
    seen_ms: dict[tuple[str, int], int] = {}
    for broker, low, at_ms in (seen for one in stats for seen in one.seen):
        seen_ms[broker, low] = max(at_ms, seen_ms.get((broker, low), at_ms))
    keys = {(one.broker, one.incarnation) for one in lives}
    return {
        (broker, incarnation): at_ms
        for broker, incarnation in keys
        if (at_ms := seen_ms.get((broker, low_bits(incarnation)), 0))
    }


def check_rows(contents: Sequence[Contents], within: TimeRange = ALWAYS) -> None:
    """Refuse logs without usable records in a time range.

    Raises:
        NothingLogged: the message has the content of the logs.
    """
    if any(one.rows for one in contents):
        return
    foreign = sum(one.foreign for one in contents)
    damaged = sum(one.damaged for one in contents)
    if within != ALWAYS:
        raise NothingLogged(
            "the logs have no rows between --from and --to, or in the range of --compare, by their brokers' timestamps; "
            "`rgd log ls` prints the times of a log"
        )
    raise NothingLogged(
        f"the {len(contents)} segments hold no usage of any group ({foreign} entries of others, "
        f"{damaged} damaged); let the daemons serve requests of a group first, or name other logs"
    )


def _lost_before(stats: Iterable[Stats], within: TimeRange) -> Iterator[tuple[str, int]]:
    """Entries that are lost at the ends of segments, by the later one: each is named by its first index."""
    has_start = within.from_ms is None
    for log in _logs(stats):
        contents = [one for one in log if has_start or one.last_index is not None]
        for before, after in pairwise(contents):
            # Of entries that the broker gave no index it is not known how many there were.
            if before.last_index is not None or not before.has_entries:
                yield after.segment, max(0, _named_index(after) - _last_index(before) - 1)
        for one in contents:
            # Without damage, a name that differs from the first index has no meaning.
            if one.damaged and one.first_index is not None and has_start:
                yield one.segment, max(0, one.first_index - _named_index(one))


def _logs(stats: Iterable[Stats]) -> Iterator[list[Contents]]:
    """The segments of each log in order.

    In a lake one folder may stand for those of several machines, and segments of one log may have been converted from several
    folders and tiers.
    """
    logs: dict[tuple[Path | None, str], list[Contents]] = defaultdict(list)
    ordered = sorted(stats, key=lambda one: Path(one.contents.segment))
    for folder, found in groupby(ordered, lambda one: Path(one.contents.segment).parent):
        segments = list(found)
        # A segment without a record goes with its neighbour.
        broker = next((run.broker for one in segments for run in one.runs), "")
        for one in segments:
            broker = one.runs[0].broker if one.runs else broker
            logs[None if one.is_of_lake else folder, broker].append(one.contents)
    for (place, _), contents in logs.items():
        yield from _rising(contents) if place is None else [contents]


def _rising(segments: list[Contents]) -> list[list[Contents]]:
    """The logs that segments of one broker are of: indexes and times rise in each."""
    logs: list[list[Contents]] = []
    for one in sorted(segments, key=_named_index):
        before = [
            log
            for log in logs
            if _last_index(log[-1]) < _named_index(one)
            and (one.first_ms is None or (log[-1].last_ms or 0) <= one.first_ms)
        ]
        if before:
            max(before, key=lambda log: log[-1].last_ms or 0).append(one)
        else:
            logs.append([one])
    return logs


def _last_index(contents: Contents) -> int:
    """The index of the last entry; the one before the segment where nothing is known of it."""
    return _named_index(contents) - 1 if contents.last_index is None else contents.last_index


def _named_index(contents: Contents) -> int:
    """The first index that the segment's name states; a file may have been renamed."""
    try:
        return parse_segment_name(Path(contents.segment).name)
    except WireError:
        return contents.first_index or 0
