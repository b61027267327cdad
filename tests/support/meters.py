"""Tells one meter what the peers believe, as the end of a round tells many."""

import numpy as np

from rgd.core.demand.counters import Counters, Touched
from rgd.core.demand.expected import expectations
from rgd.core.demand.meter import DemandMeter, MeterSettings
from rgd.core.exchange.columns import pairs
from rgd.core.units import COUNT_MAX, Nanos, Pair

#: Farther off than this is nothing: no steps are looked for in halves of a round.
NEVER = Pair(COUNT_MAX, COUNT_MAX)


class Metered(DemandMeter):
    """A meter with its counters, whose slots are closed as a tick would at each request that it is due."""

    __slots__ = ("_due", "counters")

    def __init__(self, now: Nanos) -> None:
        self.counters = Counters(now, Touched())
        super().__init__(self.counters)
        self._due = now

    def admit(self, cost: Pair, *, attempt: int, topic: str | None, now: Nanos) -> bool:
        """Count granted work; whether demand has jumped."""
        self.counters.admit(cost, attempt, topic, now)
        return self._tick(now)

    def refuse(
        self, cost: Pair, attempt: int, topic: str | None, retry_after_ms: int, now: Nanos
    ) -> bool:
        """Count refused work; whether demand has jumped."""
        self.counters.refuse(cost, attempt, topic, retry_after_ms, now)
        return self._tick(now)

    def hold(self, held: Pair, topic: str | None) -> None:
        """Note what a caller holds back."""
        self.counters.hold(held, topic)

    def _tick(self, now: Nanos) -> bool:
        if now < self._due:
            return False
        self._due = Nanos(now + MeterSettings().min_interval_ns)
        return self.close_slot()


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
