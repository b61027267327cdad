"""What a meter shows: the rates of its newest segment, and what one window counted.

Values only. Who counts is `rgd.core.demand.meter`; what is made of it by the peers' side is
`rgd.core.demand.estimator`, and by the log `rgd.core.broker.rounds`.
"""

from math import nan
from typing import NamedTuple

from rgd.core.units import Pair


class Measured(NamedTuple):
    """A group's demand since it changed last, or since the last full round; rates in Milli/s."""

    admitted: Pair = Pair()
    #: New work, admitted or refused.
    offered: Pair = Pair()
    #: What callers hold back, if it is to pass within a round.
    held: Pair = Pair()
    #: Requests, retries apart, and the time that the rates were counted over.
    requests: int = 0
    elapsed_ns: int = 1
    #: Whether anything was refused that counts for the group.
    refused: bool = False
    #: Standard deviation of a slot's rate in each dimension, Milli per second; NaN while unknown.
    slot_noise: tuple[float, float] = (nan, nan)
    #: What noise is to be learnt from: the rate before a step, where `offered` shows but the slot in
    #: which it fell; None for `offered`.
    settled: Pair | None = None


class Demand(NamedTuple):
    """What one window showed: rates in Milli per second, totals in whole units."""

    #: Topics that were active in the window.
    topics: int
    #: Over the whole window, for the log; what is held back is wanted too.
    admitted: Pair
    wanted: Pair
    #: Refused in the window, retries too, whole units.
    refused: Pair
    #: Totals since the daemon started.
    admitted_total: Pair
    wanted_total: Pair
    #: For the estimator.
    measured: Measured
