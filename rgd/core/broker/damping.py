"""Damping: a share that decreases is in force at once, one that increases after `damping_ns`.

While reports travel, the brokers' usage maps differ, and shares computed from them may sum to more
than the quota. So the rate in force is the least of the targets of the last `damping_ns` (law 6
of docs/architecture.md): a broker that must give up rate does so before another takes it.

Rates of all groups in use are columns, with a line for each dimension of each group. A line holds the
rate in force and, ascending, the increases that wait behind it. At most `INCREASES_MAX` wait. A
further one replaces the newest, whose rate then comes into force together with it: later than
necessary, never earlier.
"""

from typing import Final

import numpy as np

from rgd.core.exchange.columns import Ints
from rgd.core.exchange.group_index import GroupIndex
from rgd.core.pairs import either
from rgd.core.shares.columns import NO_RATE
from rgd.core.units import Nanos

#: Most increases of one rate that wait at once. Five reports of a round seldom fall within
#: `damping_ns`.
INCREASES_MAX: Final = 4

#: An unlimited rate in these columns, which compares as the largest; and a time that never comes.
_UNLIMITED: Final = np.iinfo(np.int64).max
_NEVER: Final = np.iinfo(np.int64).max


class Damping:
    """Rates in force of every group in use, by slot id.

    Rates are [.., 2] messages and bytes, in Milli per second, `NO_RATE` for unlimited.
    """

    def __init__(self, index: GroupIndex) -> None:
        #: [slots, 2, 1 + INCREASES_MAX] rates, ascending, of which the first is in force.
        self._rate = np.full((0, 2, 1 + INCREASES_MAX), _UNLIMITED)
        #: [slots, 2, 1 + INCREASES_MAX] since when each rate waits.
        self._since = np.full((0, 2, 1 + INCREASES_MAX), _NEVER)
        index.keep(self, {"_rate": _UNLIMITED, "_since": _NEVER})
        #: A lower bound of the times since which increases wait.
        self._least_since: int = _NEVER

    def begin(self, slots: Ints, rates: Ints) -> None:
        """Add groups whose rates, [slots, 2], are in force at once."""
        self._rate[slots], self._since[slots] = _UNLIMITED, _NEVER
        self._rate[slots, :, 0] = np.where(rates == NO_RATE, _UNLIMITED, rates)

    def end(self, slots: Ints) -> None:
        """Remove groups."""
        self._since[slots] = _NEVER

    def aim(self, slots: Ints, targets: Ints, now: Nanos, damping_ns: int) -> Ints:
        """Set new targets, and drop the waiting increases above them.

        Returns:
            [slots, 2] the rates in force.
        """
        self._advance(slots, now - damping_ns)
        target = np.where(targets == NO_RATE, _UNLIMITED, targets)[..., None]
        rate, since = self._rate.take(slots, 0), self._since.take(slots, 0)
        is_below = rate < target
        # A line is ascending, so the rates that stay are its beginning, and the target follows them.
        stays = is_below.copy()
        stays[..., -1] = False
        follows = ~stays
        follows[..., 1:] &= stays[..., :-1]
        # An increase that shrinks or is repeated keeps the time since which it waits.
        waits = np.where(is_below | (since == _NEVER), now, since)
        since = np.where(stays, since, np.where(follows, waits, _NEVER))
        # The rate in force does not wait.
        since[..., 0] = _NEVER
        self._rate[slots] = np.where(stays, rate, np.where(follows, target, _UNLIMITED))
        self._since[slots] = since
        self._least_since = min(self._least_since, int(since[..., 1].min(initial=_NEVER)))
        if damping_ns <= 0:
            self._advance(slots, now)
        return self._in_force(slots)

    def raise_due(self, now: Nanos, damping_ns: int, count_max: int) -> tuple[Ints, Ints]:
        """Put increases in force that have waited for `damping_ns`, of at most `count_max` groups.

        Returns:
            The slot ids of these groups, and [slots, 2] their rates in force.
        """
        waited_since = now - damping_ns
        if self._least_since > waited_since:
            return np.zeros(0, np.int64), np.zeros((0, 2), np.int64)
        since = self._since[:, :, 1]
        slots = either(since <= waited_since).nonzero()[0][:count_max]
        self._advance(slots, waited_since)
        self._least_since = int(since.min(initial=_NEVER))
        return slots, self._in_force(slots)

    def next_at(self, damping_ns: int) -> Nanos | None:
        """When to call `raise_due` again; None where no increase waits."""
        return None if self._least_since == _NEVER else Nanos(self._least_since + damping_ns)

    def _in_force(self, slots: Ints) -> Ints:
        rates = self._rate.take(slots, 0)[..., 0]
        rates[rates == _UNLIMITED] = NO_RATE
        return rates

    def _advance(self, slots: Ints, waited_since: int) -> None:
        """Put the increases in force that have waited since `waited_since` or longer."""
        if self._least_since > waited_since:
            return
        due, dimension = (self._since.take(slots, 0)[..., 1] <= waited_since).nonzero()
        slots = slots.take(due)
        while len(slots):
            rate, since = self._rate[slots, dimension], self._since[slots, dimension]
            rate[:, :-1], rate[:, -1] = rate[:, 1:], _UNLIMITED
            since[:, 1:-1], since[:, -1] = since[:, 2:], _NEVER
            self._rate[slots, dimension], self._since[slots, dimension] = rate, since
            due = (since[:, 1] <= waited_since).nonzero()[0]
            slots, dimension = slots.take(due), dimension.take(due)
