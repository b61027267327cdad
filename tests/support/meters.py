"""One group's demand, driven by itself: a table of one row whose slots close as ticks would close them."""

from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np

from rgd.core.bounds import BOUNDS
from rgd.core.counts.counters import Counters
from rgd.core.counts.news import News
from rgd.core.demand.estimator import Estimates
from rgd.core.demand.settings import DemandSettings
from rgd.core.demand.table import Closed, DemandTable, Measured
from rgd.core.exchange.columns import Ints, pairs
from rgd.core.units import COUNT_MAX, Nanos, Pair

#: Farther off than this is nothing: no steps are looked for in halves of a round.
NEVER = Pair(COUNT_MAX, COUNT_MAX)


#: The slot id of a table's only row.
ONLY: Final = np.array([0])


@dataclass
class Row:
    """A group as far as it is counted; no level refuses its work."""

    counters: Counters
    reported: bool = False

    def refused_totals(self) -> list[int]:
        """Nothing."""
        return [0] * 10


class Rows:
    """Counters by slot id, and their news."""

    def __init__(self) -> None:
        self.counted: dict[int, Row] = {}
        self.news = News(self.counted)

    def add(self, now: Nanos, topics_max: int = BOUNDS.buckets.window_topics_max) -> Counters:
        """The counters of one more group."""
        slot = len(self.counted)
        counters = Counters(now, self.news, slot, topics_max=topics_max)
        self.counted[slot] = Row(counters)
        return counters

    def table(self) -> DemandTable:
        """A table that has a row of each."""
        table = DemandTable(DemandSettings(), self.news)
        for row in self.counted.values():
            row.counters.is_changed = True
        table.tick(self.news.changed(self.counted))
        return table


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
        self._rows = Rows()
        self.counters = self._rows.add(now, topics_max)
        self.table = self._rows.table()
        self._wanted_total = Pair()
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
        return _shown(self.table.measure(ONLY, now))

    def drain(self, now: Nanos) -> Window | None:
        """End a round's window; None where nothing was asked."""
        closed = self.table.close(ONLY, np.array([False]), now)
        if closed is None:
            return None
        window = _window(closed)
        self._wanted_total = window.wanted_total
        return window

    def totals(self) -> tuple[Pair, Pair]:
        """Admitted and wanted since the start."""
        return self.counters.admitted, self._wanted_total

    def _tick(self, now: Nanos) -> bool:
        if now < self._due:
            return False
        self._due = Nanos(now + DemandSettings().min_interval_ns)
        return bool(len(self.table.tick(self._rows.news.collect(1))))


def tell(
    meter: Metered, told: Pair, threshold: Pair, *, hungry: bool, half_threshold: Pair = NEVER
) -> None:
    """Have a row's slots compared with what was advertised, Milli per second."""
    wanted = pairs([told])
    meter.table.advertise(
        ONLY,
        wanted,
        Estimates(wanted, pairs([threshold]), pairs([half_threshold])),
        np.ones((1, 2), np.bool_),
        np.array([hungry]),
    )


def window_of(counters: Counters, now: Nanos) -> Window | None:
    """What was counted since the start; None where nothing was asked."""
    rows = Rows()
    rows.counted[counters.slot] = Row(counters)
    slots = np.array([counters.slot])
    closed = rows.table().close(slots, np.array([False]), now)
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
