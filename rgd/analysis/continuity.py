"""Counts the missing records between the records of one broker.

A daemon logs a record for every round with any request. So a round without a record was either
silent or its record was lost, and the two must be distinguished. The evidence, in this order:

1. Indexes are continuous within a log: the size of a gap is the number of lost entries.
2. Otherwise records are missing if three things hold: the sequence skips, the time skips by whole
   rounds (a `Gap`), and the totals have grown by more than the record's own round explains (`is_loss`).
   Totals are columns, so `rgd.analysis.chunks` decides this for the records of a chunk at once.

3. A round in parts has all its parts: each missing part is one missing record.

A sequence alone proves nothing, because early reports and silent rounds use numbers too. The totals
recover the lost counts (`rgd.analysis.pieces`, `.windows`); this module only counts.
It also notes when a broker stood still, and whether it stopped in an orderly way, for `.presence`.
"""

from collections.abc import Container, Iterable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final

import numpy as np
from numpy.typing import NDArray

from rgd.analysis.errors import DuplicateLog
from rgd.analysis.presence import Life, is_long, stood_still
from rgd.analysis.round_parts import RoundPart, parts_between
from rgd.analysis.segments import Contents, Logged
from rgd.core.units import NS_PER_MS

#: Growth of a total beyond its own round means a loss from this fraction of what the missing rounds
#: would have added at the record's own rate; less is the burst at the start of a busy time.
LOSS_PART: Final = 0.2

#: Less than this fraction of a round between two records is no gap, because clocks and timers are inexact.
GAP_ROUNDS_MIN: Final = 0.5

#: Most silences that one incarnation lists in one segment.
SILENCES_MAX: Final = 100

Amounts = NDArray[np.float64]


def is_loss(extra: Amounts, own: Amounts, rounds: Amounts | float) -> NDArray[np.bool_]:
    """Whether totals have grown by more than their own round explains.

    Args:
        extra: growth of a total since the last record, less `own`; whole units.
        own: what the record's own rate and period account for; whole units.
        rounds: rounds without a record before it.
    """
    return (extra >= 1) & (extra > LOSS_PART * rounds * own)


@dataclass(frozen=True, slots=True)
class Gap:
    """Time and sequences without a record, before one of a run."""

    run: "Run"
    rounds: int
    #: Records that are missing if the totals grew in it.
    missing: int


@dataclass(slots=True)
class Run:
    """The records of one incarnation of a broker in one segment."""

    broker: str
    incarnation: str
    first_sequence: int
    last_sequence: int
    round_ms: float
    #: When the round of the first record began, ms since 1970.
    first_ms: int
    last_ms: int
    #: Whether the last record is the closing one; None: a record of before there were any.
    is_closed: bool = False
    #: When it stood still between records (`rgd.analysis.presence`), the first `SILENCES_MAX`.
    silent: list[tuple[int, int]] = field(default_factory=list)
    #: Missing records that the indexes do not show (evidence 2 and 3).
    missing: int = 0
    #: Which part of its round the first and the last record are.
    first_part: RoundPart | None = None
    last_part: RoundPart | None = None
    _has_record: bool = False
    _lost_entries: int = 0

    def note(self, logged: Logged, lost_entries: int) -> Gap | None:
        """Add the next record; `lost_entries` is the number that the indexes have shown so far.

        Returns:
            The gap before the record that the indexes do not explain, if there is one.
        """
        record = logged.record
        part = RoundPart.of(record)
        if self.first_part is None:
            self.first_part = part
        gap = None
        if lost_entries == self._lost_entries:
            gap = self._gap_before(logged)
            if self.last_part is not None:
                self.missing += parts_between(self.last_part, part)
        if part.part == 1:
            self._note_silence(logged)
        self.last_part = part
        self.last_sequence = record.sequence
        self.last_ms = logged.timestamp_ms
        self.is_closed = record.last
        self._has_record = True
        self._lost_entries = lost_entries
        return gap

    @property
    def parts(self) -> tuple[tuple[int, int], tuple[int, int]]:
        """The part numbers, and the number of parts, of the first and the last record."""
        assert self.first_part is not None, "a run has a record"
        assert self.last_part is not None, "a run has a record"
        return self.first_part[1:], self.last_part[1:]

    def _note_silence(self, logged: Logged) -> None:
        """Note when the broker stood still before this record: in its round, or in the gap before that."""
        record = logged.record
        period_ms = record.period_ns / NS_PER_MS
        began_ms = round(logged.timestamp_ms - period_ms)
        if len(self.silent) == SILENCES_MAX:
            return
        skipped = max(0, record.sequence - self.last_sequence - 1)
        gap_ms = began_ms - self.last_ms
        if self._has_record and stood_still(gap_ms, skipped, self.round_ms):
            self.silent.append((self.last_ms, began_ms))
        # The first round of an incarnation begins before it has joined.
        is_first = record.sequence <= 2 and not self._has_record
        if is_long(period_ms, self.round_ms) and not is_first:
            self.silent.append((began_ms, logged.timestamp_ms))

    def _gap_before(self, logged: Logged) -> Gap | None:
        record = logged.record
        skipped = record.sequence - self.last_sequence - 1
        period_ms = record.period_ns / NS_PER_MS
        gap_ms = logged.timestamp_ms - period_ms - self.last_ms
        if not self._has_record or skipped < 1 or gap_ms < GAP_ROUNDS_MIN * period_ms:
            return None
        rounds = max(1, round(gap_ms / period_ms))
        return Gap(self, rounds, min(skipped, rounds))


class Continuity:
    """Follows the runs of one segment."""

    def __init__(self, contents: Contents, round_ms: float) -> None:
        self._contents = contents
        self._round_ms = round_ms
        #: By broker and lower 32 bits of its incarnation: when a peer last knew it to be up.
        self.seen_ms: dict[tuple[str, int], int] = {}
        #: By the offset of the record behind it, each gap that nobody has judged yet.
        self.gaps: dict[int, Gap] = {}
        self._runs: dict[tuple[str, int], Run] = {}

    @property
    def runs(self) -> list[Run]:
        """All runs."""
        return list(self._runs.values())

    def note(self, logged: Logged) -> None:
        """Add the next record of the segment."""
        sender = logged.record.sender
        key = (sender.broker, sender.incarnation)
        run = self._runs.get(key)
        if run is None:
            record = logged.record
            began_ms = round(logged.timestamp_ms - record.period_ns / NS_PER_MS)
            run = Run(
                sender.broker,
                incarnation_name(sender.incarnation),
                record.sequence,
                record.sequence,
                self._round_ms,
                began_ms,
                began_ms,
            )
            self._runs[key] = run
        gap = run.note(logged, self._contents.lost_entries)
        if gap is not None:
            self.gaps[logged.offset] = gap
        peers = zip(logged.record.peers, logged.record.peer_incarnations, strict=True)
        self.seen_ms.update(((broker, low), logged.timestamp_ms) for (broker, _), low in peers)


@dataclass(frozen=True, slots=True)
class Stretch:
    """One run in one segment, as the driver sees it."""

    segment: str
    broker: str
    incarnation: str
    first_sequence: int
    last_sequence: int
    missing: int
    first_ms: int = 0
    last_ms: int = 0
    is_closed: bool = False
    silent: tuple[tuple[int, int], ...] = ()
    #: Which part of its round the first and the last record are: part, of so many.
    first_part: tuple[int, int] = (1, 1)
    last_part: tuple[int, int] = (1, 1)

    @property
    def first(self) -> RoundPart:
        """The first record's round and part."""
        return RoundPart(self.first_sequence, *self.first_part)

    @property
    def last(self) -> RoundPart:
        """The last record's round and part."""
        return RoundPart(self.last_sequence, *self.last_part)

    @property
    def life(self) -> Life:
        """When the broker was up, as far as this segment shows."""
        return Life(
            self.broker,
            self.incarnation,
            self.first_ms,
            self.last_ms,
            self.first_sequence,
            self.last_sequence,
            self.is_closed,
            tuple((first, last) for first, last in self.silent),
        )


def incarnation_name(incarnation: int) -> str:
    """An incarnation as 16 hexadecimal digits."""
    return f"{incarnation:016x}"


def low_bits(incarnation: str) -> int:
    """The lower 32 bits of an incarnation's name, as records name those of peers."""
    return int(incarnation, 16) & 0xFFFF_FFFF


def check_distinct(stretches: Iterable[Stretch]) -> None:
    """Refuse duplicate records: each part of each round of a run is in one segment only.

    Raises:
        DuplicateLog: naming the two segments.
    """
    ordered = sorted(
        stretches, key=lambda one: (one.broker, one.incarnation, one.first, one.segment)
    )
    for before, after in pairwise(ordered):
        same_run = (before.broker, before.incarnation) == (after.broker, after.incarnation)
        if same_run and after.first <= before.last:
            raise DuplicateLog(
                f"{before.segment} and {after.segment} hold the same records of broker "
                f"{before.broker!r}; give each log once"
            )


def missing_between(stretches: Iterable[Stretch], lossy: Container[str]) -> int:
    """Parts of rounds that are missing where one stretch ends and the next of the run begins.

    Args:
        stretches: of all segments.
        lossy: segments with a loss before them in the indexes, which counts it already.
    """
    ordered = sorted(stretches, key=lambda one: (one.broker, one.incarnation, one.first))
    return sum(
        parts_between(before.last, after.first)
        for before, after in pairwise(ordered)
        if (before.broker, before.incarnation) == (after.broker, after.incarnation)
        and after.segment not in lossy
    )
