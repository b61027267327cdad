"""Rates on their way: cuts at once, raises after `settle_ns` (design 3, law 6).

While reports travel the brokers' maps differ, and shares reckoned from them may
sum to more than the quota. So a rate in force is the least of what it should
have been over the last `settle_ns`, a sliding minimum: who is to give has given
before who is to get takes.
"""

import heapq
from collections import deque

from rgd.core.policies.model import Rate, Rates
from rgd.core.units import Nanos


class SettlingRate:
    """The least of the targets of the last `settle_ns`: cuts at once, raises later."""

    __slots__ = ("_targets",)

    def __init__(self, rate: Rate, now: Nanos) -> None:
        #: (from when, target), targets rising; the first is in force.
        self._targets: deque[tuple[Nanos, Rate]] = deque([(now, rate)])

    @property
    def target(self) -> Rate:
        """What it settles on."""
        return self._targets[-1][1]

    def aim(self, rate: Rate, now: Nanos) -> None:
        """Set a new target; higher ones that have not come into force yet are forgotten."""
        if rate == self._targets[-1][1]:
            # Mostly of the dimension that has no limit.
            return
        since = now
        while self._targets and _ceiling(self._targets[-1][1]) >= _ceiling(rate):
            # A raise that shrinks, or is told again, has waited as long as the one before.
            since, _ = self._targets.pop()
        self._targets.append((since, rate))

    def at(self, now: Nanos, settle_ns: int) -> Rate:
        """The rate in force."""
        while len(self._targets) > 1 and self._targets[1][0] + settle_ns <= now:
            self._targets.popleft()
        return self._targets[0][1]

    @property
    def rises_since(self) -> Nanos | None:
        """Since when the next raise waits; None: it has settled."""
        return self._targets[1][0] if len(self._targets) > 1 else None


class Settling:
    """Both dimensions' rates of every group in use, by place."""

    def __init__(self) -> None:
        self._rates: dict[int, tuple[SettlingRate, SettlingRate]] = {}
        #: (since when its next raise waits, place), each place once.
        self._waiting: list[tuple[Nanos, int]] = []
        self._is_waiting: set[int] = set()

    def __contains__(self, place: int) -> bool:
        return place in self._rates

    def begin(self, place: int, rates: Rates, now: Nanos) -> None:
        """Start with rates in force."""
        self._rates[place] = (SettlingRate(rates.messages, now), SettlingRate(rates.bytes, now))

    def end(self, place: int) -> None:
        """Forget a place."""
        self._rates.pop(place, None)

    def target(self, place: int) -> Rates:
        """What a place settles on."""
        messages, size = self._rates[place]
        return Rates(messages.target, size.target)

    def aim(self, place: int, target: Rates, now: Nanos, settle_ns: int) -> Rates:
        """Set a new target; returns the rates in force."""
        messages, size = self._rates[place]
        messages.aim(target.messages, now)
        size.aim(target.bytes, now)
        return self.in_force(place, now, settle_ns)

    def in_force(self, place: int, now: Nanos, settle_ns: int) -> Rates:
        """The rates in force."""
        messages, size = self._rates[place]
        rates = Rates(messages.at(now, settle_ns), size.at(now, settle_ns))
        self._wait(place)
        return rates

    def due(self, now: Nanos, settle_ns: int, count_max: int) -> list[int]:
        """Places with a raise that has waited long enough, at most so many."""
        places: list[int] = []
        while self._waiting and self._waiting[0][0] + settle_ns <= now and len(places) < count_max:
            _, place = heapq.heappop(self._waiting)
            self._is_waiting.discard(place)
            if place in self._rates:
                places.append(place)
        return places

    def next_at(self, settle_ns: int) -> Nanos | None:
        """When `due` will have a place, or is to be asked again."""
        return Nanos(self._waiting[0][0] + settle_ns) if self._waiting else None

    def _wait(self, place: int) -> None:
        """Have a place with a raise to come looked at in time."""
        if place in self._is_waiting:
            return
        since = [at for rate in self._rates[place] if (at := rate.rises_since) is not None]
        if since:
            heapq.heappush(self._waiting, (min(since), place))
            self._is_waiting.add(place)


def _ceiling(rate: Rate) -> float:
    return float("inf") if rate is None else rate
