"""The core's own rules over a chunk of groups: what is wanted, and what each broker's share is.

Law: nothing is decided in here. The classes bring arrays of a chunk into the
shape that the core's functions take, and back; a row is one broker in one
group, and rows are sorted by group and then by broker, as the usage map's are.

All daemons hold the same rows, because the exchange of the model loses nothing,
so shares are computed once for all of them.
"""

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from rgd.core.demand.estimator import History, Seen, end_round
from rgd.core.demand.settings import DemandSettings
from rgd.core.shares.columns import NO_RATE, Rows, share_out
from rgd.core.shares.model import WEIGHT_ONE
from rgd.core.units import MILLI, NS_PER_S

Ints = NDArray[np.int64]


class Wanting(Protocol):
    """What each broker says it wants, round by round; arrays are [groups, brokers]."""

    def end_round(self, offered: Ints, admitted: Ints) -> Ints:
        """Take in a round, Milli in it; what is reported as wanted, Milli per second."""
        ...


class CountedDemand:
    """What was offered is what is wanted."""

    def end_round(self, offered: Ints, admitted: Ints) -> Ints:
        """Report what was counted."""
        return np.maximum(offered, admitted)


class EstimatedDemand:
    """The core's estimator, one row for each broker in each group."""

    def __init__(self, quota: Ints, brokers: int) -> None:
        rows = len(quota) * brokers
        self._columns = History.empty(rows, dimensions=1)
        self._settings = DemandSettings()
        self._elapsed_ns = np.full(rows, float(NS_PER_S))
        self._nothing = np.zeros((rows, 1))

    def end_round(self, offered: Ints, admitted: Ints) -> Ints:  # noqa: ARG002 -- as the others'
        """Report what is estimated; requests are of one unit each."""
        seen = Seen(
            offered=offered.reshape(-1, 1).astype(np.float64),
            requests=(offered // MILLI).reshape(-1).astype(np.float64),
            elapsed_ns=self._elapsed_ns,
            held=self._nothing,
            # A round's load is an even flow.
            slot_noise=self._nothing,
        )
        estimates = end_round(self._columns, seen, self._settings)
        return estimates.wanted.reshape(offered.shape)


class Rule:
    """The share policy of all daemons; quotas are of messages only."""

    def __init__(self, quota: Ints, brokers: int, floor_ppm: int) -> None:
        groups = len(quota)
        self._brokers = brokers
        self._floor_ppm = floor_ppm
        self._quota = np.stack([quota, np.full(groups, NO_RATE, np.int64)], axis=1)
        self._group = np.repeat(np.arange(groups), brokers)
        self._place = np.tile(np.arange(brokers), groups)
        self._weight = np.full(groups * brokers, WEIGHT_ONE, np.int64)

    def first_shares(self) -> Ints:
        """Shares before anything was heard of anybody; [groups, brokers] Milli per second."""
        return self.shares(np.zeros((len(self._quota), self._brokers), np.int64))

    def shares(self, wanted: Ints) -> Ints:
        """Every broker's share; [groups, brokers] Milli per second."""
        messages = wanted.reshape(-1)
        rows = Rows(
            self._group,
            self._place,
            np.stack([messages, np.zeros_like(messages)], axis=1),
            self._weight,
        )
        shares = share_out(rows, self._quota, brokers=self._brokers, floor_ppm=self._floor_ppm)
        return shares.of_rows[:, 0].reshape(wanted.shape)
