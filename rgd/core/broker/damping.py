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
from numpy.typing import NDArray

from rgd.core.exchange.columns import Ints
from rgd.core.exchange.group_index import grown
from rgd.core.pairs import either
from rgd.core.runs import capacity_for
from rgd.core.shares.columns import NO_RATE
from rgd.core.units import Nanos

#: Most increases of one rate that wait at once. Five reports of a round seldom fall within
#: `damping_ns`.
INCREASES_MAX: Final = 4

#: An unlimited rate in these columns, which compares as the largest; and a time that never comes.
_UNLIMITED: Final = np.iinfo(np.int64).max
_NEVER: Final = np.iinfo(np.int64).max

#: The seat of a slot id that has none.
_NO_SEAT: Final = -1


class Damping:
    """Rates in force of every group in use, by slot id.

    Rates are [.., 2] messages and bytes, in Milli per second, `NO_RATE` for unlimited.
    """

    def __init__(self) -> None:
        #: The group's seat, by slot id.
        self._seat: NDArray[np.int32] = np.full(64, _NO_SEAT, np.int32)
        self._free: list[int] = []
        self._seats = 0
        #: The slot id, by seat.
        self._slot = np.zeros(64, np.int64)
        #: [seats, 2, 1 + INCREASES_MAX] rates, ascending, of which the first is in force.
        self._rate = np.full((64, 2, 1 + INCREASES_MAX), _UNLIMITED)
        #: [seats, 2, 1 + INCREASES_MAX] since when each rate waits.
        self._since = np.full((64, 2, 1 + INCREASES_MAX), _NEVER)
        #: A lower bound of the times since which increases wait.
        self._least_since: int = _NEVER

    def __contains__(self, slot: int) -> bool:
        return slot < len(self._seat) and self._seat[slot] != _NO_SEAT

    def begin(self, slot: int, rates: Ints) -> None:
        """Add a group whose rates, [2], are in force at once."""
        before = len(self._seat)
        if slot >= before:
            self._seat = grown(self._seat, slot + 1)
            self._seat[before:] = _NO_SEAT
        seat = self._free.pop() if self._free else self._seats
        if seat == self._seats:
            self._seats += 1
            self._slot = grown(self._slot, self._seats)
            room = capacity_for(self._seats)
            self._rate = grown(self._rate, self._seats, capacity=room)
            self._since = grown(self._since, self._seats, capacity=room)
        self._rate[seat], self._since[seat] = _UNLIMITED, _NEVER
        self._rate[seat, :, 0] = np.where(rates == NO_RATE, _UNLIMITED, rates)
        self._slot[seat] = slot
        # This is last, so an exception before it leaves the group without a seat.
        self._seat[slot] = seat

    def end(self, slot: int) -> None:
        """Remove a group."""
        seat = int(self._seat[slot])
        self._seat[slot] = _NO_SEAT
        self._since[seat] = _NEVER
        self._free.append(seat)

    def aim(self, slots: Ints, targets: Ints, now: Nanos, damping_ns: int) -> Ints:
        """Set new targets, and drop the waiting increases above them.

        Returns:
            [slots, 2] the rates in force.
        """
        seats = self._seat.take(slots)
        self._advance(seats, now - damping_ns)
        target = np.where(targets == NO_RATE, _UNLIMITED, targets)[..., None]
        rate, since = self._rate.take(seats, 0), self._since.take(seats, 0)
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
        self._rate[seats] = np.where(stays, rate, np.where(follows, target, _UNLIMITED))
        self._since[seats] = since
        self._least_since = min(self._least_since, int(since[..., 1].min(initial=_NEVER)))
        if damping_ns <= 0:
            self._advance(seats, now)
        return self._in_force(seats)

    def in_force(self, slots: Ints, now: Nanos, damping_ns: int) -> Ints:
        """[slots, 2] the rates in force."""
        seats = self._seat.take(slots)
        self._advance(seats, now - damping_ns)
        return self._in_force(seats)

    def raise_due(self, now: Nanos, damping_ns: int, count_max: int) -> tuple[Ints, Ints]:
        """Put increases in force that have waited for `damping_ns`, of at most `count_max` groups.

        Returns:
            The slot ids of these groups, and [slots, 2] their rates in force.
        """
        waited_since = now - damping_ns
        if self._least_since > waited_since:
            return np.zeros(0, np.int64), np.zeros((0, 2), np.int64)
        since = self._since[: self._seats, :, 1]
        seats = either(since <= waited_since).nonzero()[0][:count_max]
        self._advance(seats, waited_since)
        self._least_since = int(since.min(initial=_NEVER))
        return self._slot.take(seats), self._in_force(seats)

    def next_at(self, damping_ns: int) -> Nanos | None:
        """When to call `raise_due` again; None where no increase waits."""
        return None if self._least_since == _NEVER else Nanos(self._least_since + damping_ns)

    def _in_force(self, seats: NDArray[np.integer]) -> Ints:
        rates = self._rate.take(seats, 0)[..., 0]
        rates[rates == _UNLIMITED] = NO_RATE
        return rates

    def _advance(self, seats: NDArray[np.integer], waited_since: int) -> None:
        """Put the increases in force that have waited since `waited_since` or longer."""
        if self._least_since > waited_since:
            return
        due, dimension = (self._since.take(seats, 0)[..., 1] <= waited_since).nonzero()
        seats = seats.take(due)
        while len(seats):
            rate, since = self._rate[seats, dimension], self._since[seats, dimension]
            rate[:, :-1], rate[:, -1] = rate[:, 1:], _UNLIMITED
            since[:, 1:-1], since[:, -1] = since[:, 2:], _NEVER
            self._rate[seats, dimension], self._since[seats, dimension] = rate, since
            due = (since[:, 1] <= waited_since).nonzero()[0]
            seats, dimension = seats.take(due), dimension.take(due)
