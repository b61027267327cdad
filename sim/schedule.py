"""What one load wants over time: rates that hold from one moment to the next.

Law: demand is exact. However often a caller asks, what it has asked for by a moment is the integral
of its rate up to then, rounded down; nothing is lost or gained between two asks.

`meant` is what the rates are noise around: the demand that a share can be judged by. Where there is
no noise it is the rates themselves. Which rates make a workload is the business of `sim.workloads`.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from rgd.core.units import NS_PER_S

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

#: Against sums that stop just short of a whole number.
_EPSILON = 1e-6


class Schedule:
    """Rates of one load in messages and bytes per second, each from a moment on."""

    def __init__(
        self,
        moments_ns: Sequence[int],
        messages: Sequence[float] | Floats,
        size: Sequence[float] | Floats | None = None,
        *,
        meant: tuple[Sequence[float] | Floats, Sequence[float] | Floats] | None = None,
    ) -> None:
        """Take rates that begin at the moments; the first is 0, the last rate goes on for ever."""
        assert moments_ns[0] == 0, "a schedule begins with the world"
        count = len(moments_ns)
        self.moments_ns: Ints = np.asarray(moments_ns, dtype=np.int64)
        #: Rates by (dimension, piece).
        self.rates: Floats = np.zeros((2, count))
        self.rates[0] = messages
        if size is not None:
            self.rates[1] = size
        self._meant: Floats = self.rates if meant is None else np.asarray(meant, dtype=np.float64)
        spans = np.diff(self.moments_ns) / NS_PER_S
        #: Wanted before each piece begins, by (dimension, piece).
        self._before = np.zeros((2, count))
        np.cumsum(self.rates[:, :-1] * spans, axis=1, out=self._before[:, 1:])

    def meant_at(self, moments_ns: Ints) -> Floats:
        """The rates to be judged by at each moment, by (moment, dimension)."""
        return self._meant[:, self._pieces(moments_ns)].T

    def wanted_by(self, moments_ns: Ints) -> Ints:
        """Whole messages and bytes wanted up to each moment, by (dimension, moment)."""
        pieces = self._pieces(moments_ns)
        since_s = (moments_ns - self.moments_ns[pieces]) / NS_PER_S
        wanted = self._before[:, pieces] + self.rates[:, pieces] * since_s
        whole: Ints = np.floor(wanted + _EPSILON).astype(np.int64)
        return whole

    def moments_of(self, counts: Floats) -> Ints:
        """When so many messages have been wanted, for counts in order that will be reached."""
        ends = np.append(self._before[0, 1:], np.inf)
        # Of pieces with a rate of 0 none is found: they end with what they began with.
        pieces = np.minimum(np.searchsorted(ends, counts, side="right"), len(ends) - 1)
        rates = np.maximum(self.rates[0, pieces], 1e-12)
        since_s = (counts - self._before[0, pieces]) / rates
        moments = self.moments_ns[pieces] + np.minimum(since_s, 1e9) * NS_PER_S
        whole: Ints = moments.astype(np.int64)
        return whole

    def _pieces(self, moments_ns: Ints) -> NDArray[np.intp]:
        return np.searchsorted(self.moments_ns, moments_ns, side="right") - 1
