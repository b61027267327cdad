"""Estimates the offset of each broker's own clock from one common time, by the order of received messages.

A record of A that had received B's report s was made after B made s, and the other way round; so every
sighting (`rgd.analysis.timelines`) bounds the difference of two clocks from one side. Reports go both
ways every round, so the bounds of both sides leave about a round between them, and the middle is taken.

Law: bounds hold whatever was lost, doubled or late, because a lost or late report only loosens them. The
narrowest bounds of a stretch count, so a few late reports change nothing. Stretches are `STRETCH_ROUNDS`
long, so a clock that runs fast or slow is followed.

The piece that most others can be compared with has the common time; then those that can be compared
with it are compared, then those that these can be compared with. No wall clock is asked here.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np

from rgd.analysis.chunks import Floats
from rgd.analysis.timelines import Records
from rgd.core.exchange.columns import Ints

#: A stretch in which one difference of clocks is measured, in rounds.
STRETCH_ROUNDS: Final = 256

#: Bounds that leave this many rounds more than the narrowest are not used.
LOOSE_ROUNDS: Final = 1.0


@dataclass(frozen=True, slots=True)
class ClockOffset:
    """How much is to be added to a broker's own clock, at moments of that clock; ms."""

    at_ms: Floats
    add_ms: Floats

    def common(self, local_ms: Floats) -> Floats:
        """The common time of moments of the broker's own clock."""
        return np.asarray(local_ms + np.interp(local_ms, self.at_ms, self.add_ms))

    def within(self, local_ms: Floats) -> "ClockOffset":
        """This offset from the first to the last of some moments."""
        first, last = local_ms.min(), local_ms.max()
        inside = self.at_ms[(self.at_ms > first) & (self.at_ms < last)]
        at_ms = np.concatenate([[first], inside, [last]])
        return ClockOffset(at_ms, np.interp(at_ms, self.at_ms, self.add_ms))


def find_offsets(
    records: Records, *, round_ms: float, stretch_rounds: float = STRETCH_ROUNDS
) -> dict[int, ClockOffset]:
    """Each piece's offset to the time of the piece that most others can be compared with."""
    if records.pieces == 0:
        return {}
    bounds = _Bounds.of(records)
    root = int(np.argmax(np.bincount(records.piece[bounds.later], minlength=records.pieces)))
    zero = np.zeros(1)
    aligned = {root: ClockOffset(zero, zero)}
    bounds.put(root, aligned[root])
    while True:
        # All that can be compared with what is aligned so far; then those that these can be compared with.
        found = {
            piece: offset
            for piece in range(records.pieces)
            if piece not in aligned
            and (offset := bounds.offset_of(piece, round_ms, stretch_rounds)) is not None
        }
        if not found:
            return aligned
        for piece, offset in found.items():
            bounds.put(piece, offset)
        aligned |= found


class _Bounds:
    """What is known so far: the common times of the records of pieces that are aligned."""

    def __init__(self, records: Records, later: Ints, earlier: Ints) -> None:
        self._records = records
        self.later = later
        self.earlier = earlier
        self._common = np.full(len(records.local_ms), np.nan)
        # Sightings by the piece of either end, to find a piece's own at once.
        self._by_later = _Sorted(records.piece[later], records.pieces)
        self._by_earlier = _Sorted(records.piece[earlier], records.pieces)

    @classmethod
    def of(cls, records: Records) -> "_Bounds":
        seen = records.sightings
        is_other = records.timeline[seen.later] != records.timeline[seen.earlier]
        return cls(records, seen.later[is_other], seen.earlier[is_other])

    def put(self, piece: int, offset: ClockOffset) -> None:
        """Note where a piece is."""
        own = self._records.of_piece(piece)
        self._common[own] = offset.common(self._records.local_ms[own])

    def offset_of(self, piece: int, round_ms: float, stretch_rounds: float) -> ClockOffset | None:
        """Where a piece is, by what of it was seen by pieces that are aligned, and what it saw of them.

        None where the bounds of one side are missing.
        """
        seen, saw = self._by_earlier.of(piece), self._by_later.of(piece)
        local = self._records.local_ms
        high_at, low_at = local[self.earlier[seen]], local[self.later[saw]]
        high = self._common[self.later[seen]] - high_at
        low = self._common[self.earlier[saw]] - low_at
        is_high, is_low = np.isfinite(high), np.isfinite(low)
        if not is_high.any() or not is_low.any():
            return None
        slack_ms = LOOSE_ROUNDS * round_ms
        length_ms = stretch_rounds * round_ms
        begin = min(high_at[is_high].min(), low_at[is_low].min())
        highest = _by_stretch(np.minimum, high_at[is_high], high[is_high], begin, length_ms)
        lowest = _by_stretch(np.maximum, low_at[is_low], low[is_low], begin, length_ms)
        both = sorted(highest.keys() & lowest.keys())
        if not both:
            # Never in the same stretch: the bounds of all of the time.
            highest, lowest, both = {0: high[is_high].min()}, {0: low[is_low].max()}, [0]
        width = np.array([highest[one] - lowest[one] for one in both])
        # Bounds that contradict each other come of a clock that jumped and that nothing shows.
        is_possible = width >= -slack_ms
        if not is_possible.any():
            return None
        middle = np.array([(highest[one] + lowest[one]) / 2 for one in both])
        at_ms = begin + (np.array(both, float) + 0.5) * length_ms
        is_narrow = is_possible & (width <= width[is_possible].min() + slack_ms)
        return ClockOffset(at_ms[is_narrow], middle[is_narrow])


class _Sorted:
    """Places of numbers from 0 to `count` - 1, by the number."""

    def __init__(self, numbers: Ints, count: int) -> None:
        self._order = np.argsort(numbers, kind="stable")
        self._starts = np.searchsorted(numbers[self._order], np.arange(count + 1))

    def of(self, number: int) -> Ints:
        """Where a number stands."""
        return self._order[self._starts[number] : self._starts[number + 1]]


def _by_stretch(
    best: np.ufunc, at_ms: Floats, bound: Floats, begin: float, length_ms: float
) -> dict[int, float]:
    """The narrowest bound of each stretch."""
    stretch = ((at_ms - begin) // length_ms).astype(np.int64)
    order = np.argsort(stretch, kind="stable")
    numbers, starts = np.unique(stretch[order], return_index=True)
    narrowest = best.reduceat(bound[order], starts)
    return dict(zip(numbers.tolist(), narrowest.tolist(), strict=True))
