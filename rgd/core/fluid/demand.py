"""What brokers say they want, from what was offered to them: by the core's estimator, or as it was counted."""

import numpy as np
from typing_extensions import override

from rgd.core.demand.estimator import History, Seen, end_round
from rgd.core.demand.marks import whole
from rgd.core.demand.settings import DemandSettings
from rgd.core.shares.columns_sums import Floats, Ints
from rgd.core.units import MILLI, NS_PER_MS


class CountedDemand:
    """What each broker says it wants, round by round: what was offered. Arrays are [groups, brokers, dimensions]."""

    def end_round(self, offered: Floats) -> Ints:
        """Take in a round, Milli per second; what is reported as wanted at its end, Milli per second."""
        return offered.astype(np.int64)

    def within_round(self, offered: Floats) -> Ints:
        """Take in a round; what is reported as wanted soon after its begin."""
        return self.end_round(offered)


class EstimatedDemand(CountedDemand):
    """The core's estimator, one row for each broker in each group; requests are of one unit each."""

    def __init__(self, rows: int, dimensions: int, round_ms: int) -> None:
        self._columns = History.empty(rows, dimensions=dimensions)
        self._settings = DemandSettings(round_ms * NS_PER_MS)
        self._elapsed_ns = np.full(rows, float(round_ms * NS_PER_MS))
        self._nothing = np.zeros((rows, dimensions))

    @override
    def end_round(self, offered: Floats) -> Ints:
        """Report what is estimated."""
        rates = offered.reshape(self._nothing.shape)
        seen = Seen(
            offered=rates,
            requests=rates[:, 0] // MILLI * (self._elapsed_ns / (1000 * NS_PER_MS)),
            elapsed_ns=self._elapsed_ns,
            held=self._nothing,
            # A round's load is an even flow.
            slot_noise=self._nothing,
        )
        return end_round(self._columns, seen, self._settings).wanted.reshape(offered.shape)

    @override
    def within_round(self, offered: Floats) -> Ints:
        """Report steps and the end of all demand, which do not wait for the round's end."""
        columns = self._columns
        before = whole(columns.level)
        # A round with a step has some of both levels, so the next one replaces its estimate.
        is_next = columns.since == 1
        self.end_round(offered)
        columns.level[is_next] = offered.reshape(is_next.shape)[is_next]
        is_early = columns.since <= 2
        return np.where(is_early, whole(columns.level), before).reshape(offered.shape)
