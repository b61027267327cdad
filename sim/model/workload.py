"""What is wanted in the model: demand by round for a chunk of groups, from a seed.

Law: the same seed and chunk give the same demand, whatever else is run.

Each group has a quota (from 100 to 100,000 units a second, evenly over the
decades) and a load of 0.3 to 3 times it, on `spread` of the brokers. How the
load lies on the brokers is the workload's name: `heavy-tail` (Pareto, shuffled
at every step), `steps` (each step draws for every broker whether it wants 1 or 30 parts) or
`noise` (the heavy tail, and 30 % normal noise on every broker in every round).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from rgd.core.units import MILLI

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

QUOTA_LEAST: Final = 100.0
QUOTA_DECADES: Final = 3.0
LOAD_LEAST: Final = 0.3
LOAD_MOST: Final = 3.0

#: Pareto's exponent: the largest of a hundred brokers wants about a third of it all.
TAIL: Final = 1.2

#: Rounds at whose start the demand moves, unless a sweep says otherwise.
STEPS: Final = (10, 25, 40)

#: A broker's parts of the load before or after a step.
STEP_PARTS: Final = (1.0, 30.0)

#: Standard deviation of the noise, as a part of the mean.
NOISE: Final = 0.3


class WorkloadName(StrEnum):
    """How the load lies on the brokers, and moves."""

    HEAVY_TAIL = "heavy-tail"
    STEPS = "steps"
    NOISE = "noise"


@dataclass(frozen=True, slots=True)
class Workload:
    """Demand of a whole sweep."""

    name: WorkloadName
    seed: int
    brokers: int
    #: Brokers that each group is on.
    spread: int
    rounds: int
    #: Rounds at whose start the demand moves.
    steps: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class RoundDemand:
    """One round of a chunk.

    Attributes:
        mean: [groups, brokers] what is truly wanted, Milli per second.
        offered: [groups, brokers] what came in this round, Milli per second.
        is_step: whether `mean` changed at the start of this round (round 0 too).
    """

    mean: Ints
    offered: Ints
    is_step: bool


class Chunk:
    """The demand of a chunk of groups."""

    def __init__(self, workload: Workload, number: int, groups: int) -> None:
        self._workload = workload
        self._dice = np.random.default_rng((workload.seed, number))
        shape = (groups, workload.brokers)
        exponent = self._dice.uniform(0, QUOTA_DECADES, groups)
        #: [groups] Milli per second.
        self.quota: Ints = (QUOTA_LEAST * 10**exponent * MILLI).astype(np.int64)
        self._load = self._dice.uniform(LOAD_LEAST, LOAD_MOST, groups)
        ranks = self._dice.random(shape).argsort(axis=1)
        #: [groups, brokers] whether the group is on the broker.
        self._is_on = ranks < workload.spread
        self._tail = self._dice.pareto(TAIL, shape) + 0.01

    def rounds(self) -> Iterator[RoundDemand]:
        """Every round, in order."""
        mean = self._mean()
        for number in range(self._workload.rounds):
            is_step = number in self._workload.steps
            if is_step:
                mean = self._mean()
            offered = mean
            if self._workload.name is WorkloadName.NOISE:
                offered = noisy(mean, self._dice)
            yield RoundDemand(mean, offered, is_step or number == 0)

    def _mean(self) -> Ints:
        if self._workload.name is WorkloadName.STEPS:
            parts = self._dice.choice(STEP_PARTS, self._tail.shape)
        else:
            parts = self._dice.permuted(self._tail, axis=1)
        parts = np.where(self._is_on, parts, 0.0)
        total = (self._load * self.quota)[:, None]
        mean: Ints = (parts / parts.sum(axis=1, keepdims=True) * total).astype(np.int64)
        return mean


def noisy(mean: Ints, dice: Generator) -> Ints:
    """A round's demand around its mean, never below 0."""
    factor = dice.standard_normal(mean.shape)
    factor *= NOISE
    factor += 1.0
    np.maximum(factor, 0.0, out=factor)
    factor *= mean
    return factor.astype(np.int64)
