"""Many groups on the same daemons, round by round.

In a round the buckets admit what they can of what is offered; then every daemon
says what it wants, all hear all, and the shares of the next round are computed:
the delay of one exchange, and nothing is lost.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sim.model.fluid import FluidBuckets
from sim.model.rule import CountedDemand, EstimatedDemand, Rule, Wanting

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Settings:
    """What the daemons of a sweep have in common."""

    floor_ppm: int = 10_000
    burst_ms: int = 250
    #: Whether demand is estimated, or taken as it was counted.
    estimates: bool = True


class Cluster:
    """The daemons, as far as one chunk of groups is concerned."""

    def __init__(self, quota: Ints, brokers: int, settings: Settings) -> None:
        self.rule = Rule(quota, brokers, settings.floor_ppm)
        self._wanting: Wanting = (
            EstimatedDemand(quota, brokers) if settings.estimates else CountedDemand()
        )
        self._buckets = FluidBuckets(self.rule.first_shares(), settings.burst_ms)

    @property
    def shares(self) -> Ints:
        """Shares in force; [groups, brokers] Milli per second."""
        return self._buckets.rate

    @property
    def tokens(self) -> Ints:
        """In all brokers' buckets; [groups] Milli."""
        total: Ints = self._buckets.tokens.sum(axis=1)
        return total

    def round(self, offered: Ints) -> Ints:
        """Let a round pass; [groups, brokers] Milli that were admitted of what was offered."""
        admitted = self._buckets.admit(offered)
        wanted = self._wanting.end_round(offered, admitted)
        self._buckets.set_rate(self.rule.shares(wanted))
        return admitted
