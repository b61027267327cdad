"""What a run left behind, as arrays: the input of metrics, files and plots.

Law: wanted and admitted were counted at the load, shares and tokens seen at the round boundaries; no
figure is taken from what a broker says of itself.

Axes are always in this order: round (or boundary), group, place, dimension (messages, bytes).
Boundary k is where round k begins, so there is one more boundary than rounds. The max-min parts of
the true demand are computed by the core's own policy (`sim.truth`).
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from rgd.core.units import NS_PER_S
from sim.truth import Truth

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Segment:
    """A stretch in which true demand and members stay: from a step to the next."""

    #: Boundaries at which shares are judged: the first one after the step, and one past the last.
    first: int
    stop: int


@dataclass(frozen=True)
class Recording:
    """One run."""

    brokers: tuple[str, ...]
    groups: tuple[str, ...]
    round_ns: int
    #: The first round that is measured.
    warmup: int
    #: Messages and bytes per second of each group; nan is unlimited.
    quota: Floats
    floor_ppm: int
    #: Whole units in each round.
    wanted: Ints
    admitted: Ints
    #: Units per second in force at each boundary; nan where there is none, or no limit.
    shares: Floats
    #: By (boundary, group, dimension): in all buckets together.
    tokens: Floats
    #: True demand at each boundary, without noise, units per second.
    meant: Floats
    #: By (boundary, place).
    is_up: Bools
    segments: tuple[Segment, ...]
    #: Whether anything went wrong on purpose.
    has_faults: bool

    @property
    def rounds(self) -> int:
        """Rounds in all."""
        return len(self.wanted)

    @property
    def round_s(self) -> float:
        """A round in seconds."""
        return self.round_ns / NS_PER_S

    @property
    def limited(self) -> list[int]:
        """The dimensions that have a quota."""
        return [dimension for dimension in (0, 1) if not np.isnan(self.quota[dimension])]

    @cached_property
    def parts(self) -> Floats:
        """Max-min shares of the true demand at each boundary; nan where a member is down."""
        truth = Truth(self.quota, self.floor_ppm)
        return np.stack(
            [
                truth.shares_of_all(self.meant[boundary], self.is_up[boundary])
                for boundary in range(self.rounds + 1)
            ]
        )

    @cached_property
    def due(self) -> Floats:
        """What each should have got in each round, whole units: its max-min part, if it wants it.

        Nan in rounds in which the member came or went.
        """
        truth = Truth(self.quota, self.floor_ppm)
        wanted = self.wanted / self.round_s
        due = np.full(self.wanted.shape, np.nan)
        for number in range(self.rounds):
            is_up = self.is_up[number]
            if not np.array_equal(is_up, self.is_up[number + 1]):
                continue
            shares = truth.shares_of_all(wanted[number], is_up)
            due[number] = _within(shares, wanted[number]) * self.round_s
            due[number][:, ~is_up] = np.nan
        return due


def _within(shares: Floats, wanted: Floats) -> Floats:
    """What wants within their shares come to: a request takes both dimensions or none."""
    with np.errstate(divide="ignore", invalid="ignore"):
        part = np.fmin(np.where(wanted > 0, shares / wanted, 1.0), 1.0)
    within: Floats = wanted * np.nanmin(part, axis=-1, keepdims=True)
    return within
