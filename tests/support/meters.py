"""One group's demand, driven by itself: a table of one row whose slots close as ticks would close them."""

from typing import NamedTuple

import numpy as np

from rgd.core.bounds import BOUNDS
from rgd.core.demand.counters import NO_ROW, Counters, News
from rgd.core.demand.estimator import Estimates
from rgd.core.demand.settings import DemandSettings
from rgd.core.demand.table import Closed, DemandTable, Measured
from rgd.core.exchange.columns import Ints, pairs
from rgd.core.units import COUNT_MAX, Nanos, Pair

#: Farther off than this is nothing: no steps are looked for in halves of a round.
NEVER = Pair(COUNT_MAX, COUNT_MAX)


class Shown(NamedTuple):
    """What a table measured of its only row."""

    admitted: Pair
    offered: Pair
    #: What would be sent to the peers.
    wanted: Pair
    threshold: Pair
    requests: int


class Window(NamedTuple):
    """What a window counted, rates in Milli per second."""

    admitted: Pair
    wanted: Pair
    refused: Pair
    admitted_total: Pair
    wanted_total: Pair
    topics: int
    measured: Shown


class Metered:
    """The counters of one group, and its row."""

    def __init__(self, now: Nanos, topics_max: int = BOUNDS.buckets.window_topics_max) -> None:
        self.counters = Counters(now, News(), topics_max=topics_max)
        self.table = DemandTable(DemandSettings())
        self.table.row_of(self.counters)
        self._due = now

    def admit(self, cost: Pair, *, attempt: int, topic: str | None, now: Nanos) -> bool:
        """Count granted work; whether demand has jumped."""
        self.counters.admit(cost.messages, cost.bytes, attempt, topic, now)
        return self._tick(now)

    def refuse(
        self, cost: Pair, attempt: int, topic: str | None, retry_after_ms: int, now: Nanos
    ) -> bool:
        """Count refused work; whether demand has jumped."""
        self.counters.refuse(cost, attempt, topic, retry_after_ms, now)
        return self._tick(now)

    def measure(self, now: Nanos) -> Shown:
        """What an early report would send."""
        return _shown(self.table.measure([self.counters], now))

    def drain(self, now: Nanos) -> Window | None:
        """End a round's window; None where nothing was asked."""
        closed = self.table.close([self.counters], np.array([False]), now)
        return None if closed is None else _window(closed)

    def totals(self) -> tuple[Pair, Pair]:
        """Admitted and wanted since the start."""
        return self.counters.admitted, self.table.wanted_total(self.counters)

    def _tick(self, now: Nanos) -> bool:
        if now < self._due:
            return False
        self._due = Nanos(now + DemandSettings().min_interval_ns)
        return bool(self.table.tick([self.counters]))


def tell(
    meter: Metered, told: Pair, threshold: Pair, *, hungry: bool, half_threshold: Pair = NEVER
) -> None:
    """Have a row's slots compared with what was advertised, Milli per second."""
    wanted = pairs([told])
    meter.table.advertise(
        [meter.counters],
        wanted,
        Estimates(wanted, pairs([threshold]), pairs([half_threshold])),
        np.ones((1, 2), np.bool_),
        np.array([hungry]),
    )


def window_of(counters: Counters, now: Nanos) -> Window | None:
    """What was counted since the start; None where nothing was asked."""
    table = DemandTable(DemandSettings())
    counters.row = NO_ROW
    table.row_of(counters)
    closed = table.close([counters], np.array([False]), now)
    return None if closed is None else _window(closed)


def _window(closed: Closed) -> Window:
    measured = closed.measured
    return Window(
        admitted=_pair(closed.admitted),
        wanted=_pair(closed.wanted),
        refused=_pair(closed.refused),
        admitted_total=_pair(closed.admitted_total),
        wanted_total=_pair(closed.wanted_total),
        topics=int(measured.topics[0]),
        measured=_shown(measured),
    )


def _shown(measured: Measured) -> Shown:
    return Shown(
        admitted=_pair(measured.admitted),
        offered=_pair(np.rint(measured.seen.offered).astype(np.int64)),
        wanted=_pair(measured.estimates.wanted),
        threshold=_pair(measured.estimates.threshold),
        requests=int(measured.seen.requests[0]),
    )


def _pair(column: Ints) -> Pair:
    return Pair(*column[0].tolist())
