"""When a caller has new work, and how much: a schedule cut into requests.

Law: the same schedule and seed give the same arrivals; a regular caller's requests sum to the
schedule's demand exactly, a Poisson caller's on average.

A regular caller asks every `gap_ns`, whatever its rate, for what it has come to want since; so the
number of events is bounded and demand is exact. A Poisson caller has exponential gaps and asks for
one message at a time.
"""

from collections.abc import Iterator
from typing import Protocol

import numpy as np

from sim.schedule import Schedule

#: Arrivals of so many stretches are made at a time, so that an hour need not fit into memory.
_STRETCH_ASKS = 512

#: Moment in ns, messages, bytes.
Arrival = tuple[int, int, int]


class Arrivals(Protocol):
    """New work, in order of time."""

    def stream(self, end_ns: int) -> Iterator[Arrival]:
        """All arrivals up to `end_ns`."""
        ...


class RegularArrivals:
    """One request every gap, of what has come to be wanted since the last."""

    def __init__(self, schedule: Schedule, *, gap_ns: int, phase_ns: int = 0) -> None:
        self._schedule = schedule
        self._gap_ns = gap_ns
        self._phase_ns = phase_ns % gap_ns

    def stream(self, end_ns: int) -> Iterator[Arrival]:
        given = np.zeros((2, 1), dtype=np.int64)
        begin = self._phase_ns
        while begin < end_ns:
            stop = min(begin + _STRETCH_ASKS * self._gap_ns, end_ns)
            moments = np.arange(begin, stop, self._gap_ns, dtype=np.int64)
            wanted = self._schedule.wanted_by(moments)
            amounts = np.diff(wanted, axis=1, prepend=given)
            given = wanted[:, -1:]
            asked = amounts.any(axis=0)
            yield from zip(
                moments[asked].tolist(),
                amounts[0, asked].tolist(),
                amounts[1, asked].tolist(),
                strict=True,
            )
            begin += len(moments) * self._gap_ns


class PoissonArrivals:
    """Single messages with exponential gaps; bytes in the schedule are not looked at."""

    def __init__(self, schedule: Schedule, dice: np.random.Generator) -> None:
        self._schedule = schedule
        self._dice = dice

    def stream(self, end_ns: int) -> Iterator[Arrival]:
        count = 0.0
        while True:
            # With one message a unit of "time", then stretched to the schedule's own.
            counts = count + np.cumsum(self._dice.exponential(size=_STRETCH_ASKS))
            count = float(counts[-1])
            for moment in self._schedule.moments_of(counts).tolist():
                if moment >= end_ns:
                    return
                yield moment, 1, 0
