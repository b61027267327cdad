"""Adds up what the contract asks of a run (docs/simulator.md), over chunks of groups.

Law: adding tallies of chunks gives the tally of the whole; every group counts
alike, because all amounts are parts of its own quota.
"""

from dataclasses import dataclass, field
from typing import Final, Self

import numpy as np
from numpy.typing import NDArray

from rgd.core.units import MILLI

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

#: A share is fair within this part of its max-min share; so many of all must be.
FAIR_WITHIN: Final = 0.02
FAIR_FRACTION: Final = 0.999

#: Rounds of the longer window of overshoot.
WINDOW_ROUNDS: Final = 10


@dataclass(frozen=True, slots=True)
class Figures:
    """The contract's figures of a run, and how wide they are."""

    #: For `FAIR_FRACTION` of all shares, and for every single one; None: never.
    rounds_to_fair: int | None
    rounds_to_all_fair: int | None
    #: Of all (group, broker, round), within `FAIR_WITHIN` of max-min; the step rounds are counted.
    within: float
    utilisation: float
    movement: float
    overshoot_round: float
    overshoot_10: float
    lowest_ratio: float | None


@dataclass(slots=True)
class Tally:
    """Sums over rows and groups, by round."""

    rounds: int
    rows: int = 0
    groups: int = 0
    within: Ints = field(init=False)
    #: [rounds] the least admitted / part.
    lowest: Floats = field(init=False)
    admitted: float = 0.0
    owed: float = 0.0
    movement: float = 0.0
    overshoot_round: float = 0.0
    overshoot_10: float = 0.0

    def __post_init__(self) -> None:
        self.within = np.zeros(self.rounds, np.int64)
        self.lowest = np.full(self.rounds, np.inf)

    def add(self, other: Self) -> None:
        """Take another chunk in."""
        self.rows += other.rows
        self.groups += other.groups
        self.within += other.within
        self.admitted += other.admitted
        self.owed += other.owed
        self.movement += other.movement
        self.overshoot_round = max(self.overshoot_round, other.overshoot_round)
        self.overshoot_10 = max(self.overshoot_10, other.overshoot_10)
        self.lowest = np.minimum(self.lowest, other.lowest)

    def figures(self, steps: tuple[int, ...]) -> Figures:
        """What the contract asks for; `steps` are the rounds at whose start the demand moved."""
        fair = [fair_from(self.within, self.rows, *span) for span in spans(steps, self.rounds)]
        every = [
            fair_from(self.within, self.rows, *span, fraction=1.0)
            for span in spans(steps, self.rounds)
        ]
        return Figures(
            rounds_to_fair=worst(fair),
            rounds_to_all_fair=worst(every),
            within=float(self.within[1:].sum()) / max(1, self.rows * (self.rounds - 1)),
            utilisation=self.admitted / self.owed if self.owed else 1.0,
            movement=self.movement / max(1, self.groups * (self.rounds - 1)),
            overshoot_round=self.overshoot_round,
            overshoot_10=self.overshoot_10,
            lowest_ratio=self._lowest_ratio(steps, fair),
        )

    def _lowest_ratio(self, steps: tuple[int, ...], fair: list[int | None]) -> float | None:
        """From fair on; what never was fair counts from its second boundary on."""
        lowest = [
            float(self.lowest[first + (1 if after is None else after) : end].min(initial=np.inf))
            for (first, end), after in zip(spans(steps, self.rounds), fair, strict=True)
        ]
        least = min(lowest, default=np.inf)
        return least if np.isfinite(least) else None


class Watch:
    """Follows one chunk through its rounds and makes its tally."""

    def __init__(self, quota: Ints, brokers: int, rounds: int) -> None:
        self.tally = Tally(rounds, rows=len(quota) * brokers, groups=len(quota))
        self._quota = quota
        self._round = 0
        self._share: Ints | None = None
        #: [rounds of the window, groups] Milli admitted, and tokens at the start.
        self._admitted = np.zeros((WINDOW_ROUNDS, len(quota)), np.int64)
        self._tokens = np.zeros((WINDOW_ROUNDS, len(quota)), np.int64)

    def shares(self, share: Ints, fair: Ints) -> None:
        """Look at the shares of a round against the max-min shares of what is truly wanted."""
        error = np.abs(share - fair)
        is_fair = error <= np.maximum(FAIR_WITHIN * fair, 1)
        self.tally.within[self._round] = np.count_nonzero(is_fair)
        if self._share is not None:
            moved = np.abs(share - self._share).sum(axis=1)
            self.tally.movement += float((moved / self._quota).sum())
        self._share = share

    def round(self, offered: Ints, admitted: Ints, *, part: Ints, tokens: Ints) -> None:
        """Look at what a round gave.

        Args:
            offered: [groups, brokers] Milli in the round.
            admitted: [groups, brokers] Milli in the round.
            part: [groups, brokers] max-min part of what was offered, Milli.
            tokens: [groups] in all brokers' buckets at the start of the round, Milli.
        """
        total = admitted.sum(axis=1)
        tally = self.tally
        tally.admitted += float((total / self._quota).sum())
        tally.owed += float((np.minimum(self._quota, offered.sum(axis=1)) / self._quota).sum())
        place = self._round % WINDOW_ROUNDS
        self._admitted[place], self._tokens[place] = total, tokens
        over = ((total - tokens) / self._quota).max()
        tally.overshoot_round = max(tally.overshoot_round, float(over))
        if self._round + 1 >= WINDOW_ROUNDS:
            first = (self._round + 1) % WINDOW_ROUNDS
            excess = self._admitted.sum(axis=0) - self._tokens[first]
            over = (excess / (WINDOW_ROUNDS * self._quota)).max()
            tally.overshoot_10 = max(tally.overshoot_10, float(over))
        is_judged = part >= MILLI
        ratio = np.divide(admitted, part, out=np.ones(part.shape), where=is_judged)
        tally.lowest[self._round] = ratio.min()
        self._round += 1


def spans(steps: tuple[int, ...], rounds: int) -> list[tuple[int, int]]:
    """From the first boundary after each step to the next step.

    A step at the start of round k is after its boundary: the first one after it begins round k + 1.
    Without steps, all rounds but the first.
    """
    ends = [*steps, rounds][1:] if steps else [rounds]
    return [(step + 1, end) for step, end in zip(steps or (0,), ends, strict=True)]


def fair_from(
    within: Ints, rows: int, first: int, end: int, *, fraction: float = FAIR_FRACTION
) -> int | None:
    """Rounds from `first` until enough shares are fair up to `end`; None: never.

    Args:
        within: [rounds] rows that were fair in each round.
        rows: of how many.
        first: the first boundary after a step.
        end: the round in which the next one is.
        fraction: how many are enough.
    """
    after = within[first:end]
    left = np.arange(len(after), 0, -1) * rows
    lasting = after[::-1].cumsum()[::-1] >= fraction * left
    return int(lasting.argmax()) if lasting.any() else None


def worst(rounds: list[int | None]) -> int | None:
    """The most rounds of all steps; None where some step never was made good."""
    known = [after for after in rounds if after is not None]
    return max(known, default=0) if len(known) == len(rounds) else None
