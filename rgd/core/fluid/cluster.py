"""Many groups on the same brokers, round by round.

In a round the buckets admit what they can of what is offered; then every broker
says what it wants, all learn of all, and the shares of the next round are computed:
the delay of one exchange, and nothing is lost. All brokers hold the same rows, so shares are computed once.

A row is one broker in one group; rows are sorted by group and then by broker, as the usage map's are.
"""

from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from rgd.core.fluid.buckets import MS_PER_S, FluidBuckets
from rgd.core.fluid.demand import CountedDemand, EstimatedDemand
from rgd.core.policies.model import SharePolicyName
from rgd.core.shares.columns import NO_RATE, Rows, share_out
from rgd.core.shares.columns_sums import Floats, Ints
from rgd.core.shares.model import WEIGHT_ONE
from rgd.core.shares.pip82 import share_by_usage
from rgd.core.shares.pulsar_shipped import local_quotas
from rgd.core.units import MILLI

#: The rule that Apache Pulsar ships, beside the names of `SharePolicyName`.
PULSAR_SHIPPED: Final = "pulsar-shipped"


@dataclass(frozen=True, slots=True)
class Settings:
    """What the brokers have in common."""

    #: One of `SharePolicyName`, or `PULSAR_SHIPPED`.
    policy: str = SharePolicyName.MAX_MIN
    floor_ppm: int = 10_000
    burst_ms: int = 250
    round_ms: int = MS_PER_S
    #: Whether demand is estimated, or taken as it was counted.
    estimates: bool = True


class Cluster:
    """The brokers of some groups.

    Args:
        quota: [groups, dimensions] Milli per second, `NO_RATE` for unlimited.
        weight: [groups, brokers] thousandths; None: all the same.
    """

    def __init__(
        self, quota: Ints, brokers: int, settings: Settings, weight: Ints | None = None
    ) -> None:
        groups, dimensions = quota.shape
        self._settings = settings
        self._quota = quota
        self._shape = (groups, brokers, dimensions)
        self._weight = np.full((groups, brokers), WEIGHT_ONE) if weight is None else weight
        rows = groups * brokers
        self._wanting = (
            EstimatedDemand(rows, dimensions, settings.round_ms)
            if settings.estimates
            else CountedDemand()
        )
        nothing = np.zeros(self._shape, np.int64)
        #: Shares in force; [groups, brokers, dimensions] Milli per second, `NO_RATE` for unlimited.
        self.share = self.shares(nothing, nothing)
        self._buckets = FluidBuckets(self._rate(), settings.burst_ms)

    @property
    def tokens(self) -> Floats:
        """In all buckets; [groups, brokers, dimensions] Milli."""
        return self._buckets.tokens

    def set_policy(self, policy: str, quota: Ints, weight: Ints) -> None:
        """Change the policy, quotas and weights, from the next exchange on."""
        self._settings = replace(self._settings, policy=policy)
        self._quota, self._weight = quota, weight

    def admit(self, offered: Floats, ms: float = MS_PER_S) -> Floats:
        """Let some time pass in which so many Milli were offered; [groups, brokers, dimensions] Milli admitted."""
        return self._buckets.admit(offered, ms)

    def exchange(self, offered: Floats, admitted: Floats) -> None:
        """Share out by what the last round had, Milli per second."""
        wanted = self._wanting.end_round(np.maximum(offered, admitted))
        self._put(self.shares(wanted, admitted.astype(np.int64)))

    def exchange_early(self, offered: Floats) -> None:
        """Share out by demand for the round that has it: brokers report steps at once, under `max-min`."""
        wanted = self._wanting.within_round(offered)
        self._put(self.shares(wanted, wanted))

    def shares(self, wanted: Ints, admitted: Ints) -> Ints:
        """Every broker's share of rates in Milli per second; all are [groups, brokers, dimensions]."""
        policy = self._settings.policy
        if policy == SharePolicyName.MAX_MIN:
            return self._max_min(wanted)
        if policy == PULSAR_SHIPPED:
            return _shipped(self._quota[:, None], admitted)
        name, floor_ppm = SharePolicyName(policy), self._settings.floor_ppm
        return share_by_usage(name, self._quota, admitted, floor_ppm)

    def _max_min(self, wanted: Ints) -> Ints:
        groups, brokers, dimensions = self._shape
        rows = Rows(
            np.repeat(np.arange(groups), brokers),
            np.tile(np.arange(brokers), groups),
            _pair(wanted.reshape(-1, dimensions), 0),
            self._weight.reshape(-1),
        )
        shares = share_out(
            rows,
            _pair(self._quota, NO_RATE),
            brokers=brokers,
            floor_ppm=self._settings.floor_ppm,
        )
        return shares.of_rows[:, :dimensions].reshape(self._shape)

    def _put(self, share: Ints) -> None:
        self.share = share
        self._buckets.set_rate(self._rate())

    def _rate(self) -> Floats:
        return np.where(self.share == NO_RATE, np.inf, self.share)


def _pair(columns: Ints, fill: int) -> Ints:
    """[rows, 2] from one or two dimensions."""
    missing = 2 - columns.shape[1]
    return np.pad(columns, ((0, 0), (0, missing)), constant_values=fill) if missing else columns


def _shipped(quota: Ints, used: Ints) -> Ints:
    """Pulsar counts in whole units, and knows no quota of 0, which blocks."""
    used = used // MILLI
    whole = np.broadcast_to(quota // MILLI, used.shape)
    total = np.broadcast_to(used.sum(axis=1, keepdims=True), used.shape)
    return np.where(quota > 0, local_quotas(whole, used, total) * MILLI, quota)
