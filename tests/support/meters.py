"""Tells one meter what the peers believe, as the end of a round tells many."""

import numpy as np

from rgd.core.demand.expected import expectations
from rgd.core.demand.meter import DemandMeter, MeterSettings
from rgd.core.exchange.columns import pairs
from rgd.core.units import COUNT_MAX, Pair

#: Farther off than this is nothing: no steps are looked for in halves of a round.
NEVER = Pair(COUNT_MAX, COUNT_MAX)


def tell(
    meter: DemandMeter, told: Pair, threshold: Pair, *, hungry: bool, half_threshold: Pair = NEVER
) -> None:
    """Have `meter` expect what was told, Milli per second, in slots of the default length."""
    (expected,) = expectations(
        pairs([told]),
        pairs([threshold]),
        pairs([half_threshold]),
        np.array([hungry]),
        MeterSettings().min_interval_ns,
    )
    meter.expect(expected)
