"""Tells one meter what the peers believe, as the end of a round tells many."""

import numpy as np

from rgd.core.demand.expected import expectations
from rgd.core.demand.meter import DemandMeter, MeterSettings
from rgd.core.exchange.columns import pairs
from rgd.core.units import Pair


def tell(meter: DemandMeter, told: Pair, threshold: Pair, *, hungry: bool) -> None:
    """Have `meter` expect what was told, Milli per second, in slots of the default length."""
    (expected,) = expectations(
        pairs([told]), pairs([threshold]), np.array([hungry]), MeterSettings().min_interval_ns
    )
    meter.expect(expected)
