"""Counts the missing records between the records of one broker.

A daemon logs a record for every round with any request. So a round without a record was either
silent or its record was lost, and the two must be distinguished. The evidence, in this order:

1. Indexes are continuous within a log: the size of a gap is the number of lost entries.
2. Otherwise records are missing if three things hold: the sequence skips, the time skips by whole
   rounds (a `Gap`), and the totals have grown by more than the record's own round explains (`is_loss`).
   Totals are columns, so `rgd.analysis.row_columns` decides this for the records of a chunk at once.

3. A round in parts counts once and has all its parts: each missing part is one missing record, wherever a segment ends.
   Parts after the last record of a log are still being written, and those before its first one were deleted with an
   earlier segment, so neither are missing.

A sequence alone proves nothing, because early reports and silent rounds use numbers too. The totals
recover the lost counts (`rgd.analysis.pieces`, `.windows`); this module only counts.
It also notes when a broker stood still, and whether it stopped in an orderly way, for `.presence`.
"""

from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np
from numpy.typing import NDArray

from rgd.analysis.errors import DuplicateLog
from rgd.analysis.presence import Life, RoundPart, is_long, stood_still
from rgd.analysis.segments import Contents, Logged
from rgd.core.exchange.messages import Sender
from rgd.core.units import NS_PER_MS
from rgd.wire.record import LoggedRound

#: Growth of a total beyond its own round means a loss from this fraction of what the missing rounds
#: would have added at the record's own rate; less is the burst at the start of a busy time.
LOSS_PART: Final = 0.2

#: Less than this fraction of a round between two records is no gap, because clocks and timers are inexact.
GAP_ROUNDS_MIN: Final = 0.5

#: Most silences that one incarnation lists in one segment.
SILENCES_MAX: Final = 100

Amounts = NDArray[np.float64]


def parts_between(before: RoundPart, after: RoundPart) -> int:
    """The number of parts of the two records' rounds between them, without complete rounds."""
    if before.sequence == after.sequence:
        return max(0, after.part - before.part - 1)
    return (before.parts - before.part) + (after.part - 1)


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
class Run(Life):
    """The records of one incarnation of a broker in one segment; of its silences the first `SILENCES_MAX`."""

    segment: str = ""
    #: Missing records that the indexes do not show (evidence 2 and 3).
    missing: int = 0

    @classmethod
    def of(cls, segment: str, logged: Logged) -> "Run":
        """The run that begins with a record, which is not noted yet."""
        record = logged.record
        began_ms = round(logged.timestamp_ms - record.period_ns / NS_PER_MS)
        name, place = incarnation_name(record.sender.incarnation), RoundPart.of(record)
        return cls(record.sender.broker, name, place, place, began_ms, began_ms, segment=segment)

    def note(self, logged: Logged, round_ms: float, *, is_first: bool) -> None:
        """Add the next record."""
        record = logged.record
        if record.part == 1:
            self._note_silence(logged, round_ms, is_first=is_first)
        self.last = RoundPart.of(record)
        self.last_ms = logged.timestamp_ms
        self.is_closed = record.last

    def goes_on_with(self, record: LoggedRound) -> bool:
        """Whether a record of a whole round is of the round after the last one, as nearly all are."""
        is_next = record.sequence == self.last.sequence + 1
        return is_next and record.parts == 1 and self.last.part == self.last.parts

    def gap_before(self, logged: Logged) -> Gap | None:
        """The gap before the next record, if the indexes do not explain it."""
        record = logged.record
        skipped = record.sequence - self.last.sequence - 1
        period_ms = max(1.0, record.period_ns / NS_PER_MS)
        gap_ms = logged.timestamp_ms - period_ms - self.last_ms
        if skipped < 1 or gap_ms < GAP_ROUNDS_MIN * period_ms:
            return None
        rounds = max(1, round(gap_ms / period_ms))
        return Gap(self, rounds, min(skipped, rounds))

    def _note_silence(self, logged: Logged, round_ms: float, *, is_first: bool) -> None:
        """Note when the broker stood still before this record: in its round, or in the gap before that."""
        record = logged.record
        period_ms = record.period_ns / NS_PER_MS
        began_ms = round(logged.timestamp_ms - period_ms)
        if len(self.silent) == SILENCES_MAX:
            return
        skipped = max(0, record.sequence - self.last.sequence - 1)
        gap_ms = began_ms - self.last_ms
        if not is_first and stood_still(gap_ms, skipped, round_ms):
            self.silent.append((self.last_ms, began_ms))
        # The first round of an incarnation begins before it has joined.
        if is_long(period_ms, round_ms) and not (is_first and record.sequence <= 2):
            self.silent.append((began_ms, logged.timestamp_ms))


class Continuity:
    """Follows the runs of one segment."""

    def __init__(self, contents: Contents, round_ms: float) -> None:
        self._contents = contents
        self._round_ms = round_ms
        #: By broker and lower 32 bits of its incarnation: when a peer last knew it to be up.
        self.seen_ms: dict[tuple[str, int], int] = {}
        #: By the offset of the record behind it, each gap that nobody has judged yet.
        self.gaps: dict[int, Gap] = {}
        #: By sender, each with what the indexes had shown to be lost at its last record.
        self._runs: dict[Sender, tuple[Run, int]] = {}

    @property
    def runs(self) -> list[Run]:
        """All runs."""
        return [run for run, _ in self._runs.values()]

    def note(self, logged: Logged) -> None:
        """Add the next record of the segment."""
        record = logged.record
        lost_entries = self._contents.lost_entries
        known = self._runs.get(record.sender)
        run = Run.of(self._contents.segment, logged) if known is None else known[0]
        if known is not None and known[1] == lost_entries and not run.goes_on_with(record):
            run.missing += parts_between(run.last, RoundPart.of(record))
            gap = run.gap_before(logged)
            if gap is not None:
                self.gaps[logged.offset] = gap
        run.note(logged, self._round_ms, is_first=known is None)
        if known is None or known[1] != lost_entries:
            self._runs[record.sender] = run, lost_entries
        for (broker, _), low in zip(record.peers, record.peer_incarnations, strict=True):
            self.seen_ms[broker, low] = logged.timestamp_ms


def incarnation_name(incarnation: int) -> str:
    """An incarnation as 16 hexadecimal digits."""
    return f"{incarnation:016x}"


def low_bits(incarnation: str) -> int:
    """The lower 32 bits of an incarnation's name, as records name those of peers."""
    return int(incarnation, 16) & 0xFFFF_FFFF


def check_distinct(runs: Iterable[Run]) -> None:
    """Refuse duplicate records: each part of each round of a run is in one segment only.

    Raises:
        DuplicateLog: naming the two segments.
    """
    for before, after in _following(runs):
        if after.first <= before.last:
            raise DuplicateLog(
                f"{before.segment} and {after.segment} hold the same records of broker "
                f"{before.broker!r}; give each log once"
            )


def missing_between(runs: Iterable[Run], lossy: Container[str]) -> int:
    """Parts of rounds that are missing where one run ends and the next of the same incarnation begins.

    Args:
        runs: of all segments.
        lossy: segments with a loss before them in the indexes, which counts it already.
    """
    return sum(
        parts_between(before.last, after.first)
        for before, after in _following(runs)
        if after.segment not in lossy
    )


def _following(runs: Iterable[Run]) -> Iterator[tuple[Run, Run]]:
    """The runs of an incarnation that follow one another."""
    ordered = sorted(runs, key=lambda one: (one.broker, one.incarnation, one.first, one.segment))
    for before, after in pairwise(ordered):
        if (before.broker, before.incarnation) == (after.broker, after.incarnation):
            yield before, after
