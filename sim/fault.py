"""What can go wrong in a world, as data; `sim.cluster` does it.

A fault is a deed, a moment and, unless it lasts for ever, an end. Losing, doubling, delaying and
reordering messages are no deeds: they are what a network is like, and stand in the scenario.
"""

from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from rgd.core.units import NS_PER_S


class Deed(StrEnum):
    """What happens to the places that a fault names."""

    #: Not there from the start: starts at the moment.
    JOIN = "join"
    #: The same, under the name of the broker at the place `of`.
    DUPLICATE = "duplicate"
    #: Sends a goodbye; starts again at the end.
    LEAVE = "leave"
    #: Falls silent; starts again at the end, with another incarnation.
    CRASH = "crash"
    #: Loses its plane; the gate goes on, and another plane takes over at the end.
    PLANE = "plane"
    #: Nobody hears them, they hear nobody, nor themselves.
    CUT = "cut"
    #: They hear one another only, and the rest hears the rest.
    SPLIT = "split"
    #: Nobody hears them; they hear everybody else.
    MUTE = "mute"
    #: They hear nobody; everybody hears them.
    DEAF = "deaf"
    #: They hear everything `amount_ns` later.
    SLOW = "slow"
    #: Nothing happens there until the end, and then everything at once.
    FREEZE = "freeze"
    #: Their wall clocks are `amount_ns` ahead (negative: behind), which only their logs show.
    CLOCK = "clock"

    @property
    def is_membership(self) -> bool:
        """Whether it is in order: shares must be fair again after it, not only after its end."""
        return self in (Deed.JOIN, Deed.DUPLICATE, Deed.LEAVE)

    @property
    def is_late_start(self) -> bool:
        """Whether the places it names are empty until then."""
        return self in (Deed.JOIN, Deed.DUPLICATE)


#: Deeds that take messages away.
_CUTTING = frozenset({Deed.CUT, Deed.SPLIT, Deed.MUTE, Deed.DEAF})

#: Deeds that `random_faults` draws from.
_RANDOM = tuple(
    deed for deed in Deed if deed not in (Deed.JOIN, Deed.DUPLICATE, Deed.CLOCK, Deed.PLANE)
)


#: Least time between two faults of a place, one of which is a lost plane.
APART_NS = NS_PER_S


@dataclass(frozen=True, slots=True)
class Fault:
    """One deed at some places, from a moment to an end (None: for ever)."""

    deed: Deed
    places: tuple[int, ...]
    at_ns: int
    end_ns: int | None = None
    amount_ns: int = 0
    #: Whose name a duplicate takes.
    of: int = 0

    def clock_ahead_ns(self, place: int, at_ns: int) -> int:
        """By how much this puts the wall clock of a place ahead at a moment."""
        is_acting = self.at_ns <= at_ns and (self.end_ns is None or at_ns < self.end_ns)
        return (
            self.amount_ns if self.deed is Deed.CLOCK and place in self.places and is_acting else 0
        )

    def cut_pairs(self, names: list[str]) -> set[tuple[str, str]]:
        """Pairs (from, to) that hear nothing while this lasts."""
        if self.deed not in _CUTTING:
            return set()
        mine = {names[place] for place in self.places}
        others = set(names) - mine
        if self.deed is Deed.SPLIT:
            return {
                pair for one in mine for other in others for pair in ((one, other), (other, one))
            }
        cut: set[tuple[str, str]] = set()
        if self.deed in (Deed.CUT, Deed.MUTE):
            cut |= {(one, other) for one in mine for other in names}
        if self.deed in (Deed.CUT, Deed.DEAF):
            cut |= {(other, one) for one in mine for other in names}
        return cut


def random_faults(
    dice: np.random.Generator, *, daemons: int, begin_ns: int, end_ns: int, round_ns: int
) -> tuple[Fault, ...]:
    """A mix of everything: at most one fault at a time at one place, all over by `end_ns`."""
    faults: list[Fault] = []
    free_at = [begin_ns] * daemons
    moment = begin_ns
    while True:
        moment += int(dice.exponential(2.5 * round_ns))
        duration = int(dice.uniform(0.1, 6) * round_ns)
        if moment + duration >= end_ns:
            return tuple(faults)
        deed = _RANDOM[int(dice.integers(len(_RANDOM)))]
        free = [place for place in range(daemons) if free_at[place] <= moment]
        most = len(free) // 2 if deed in _CUTTING else 1
        # Somebody always stays as it is.
        if len(free) < 2 or most < 1:
            continue
        count = int(dice.integers(1, most + 1))
        places = tuple(sorted(dice.choice(free, size=count, replace=False).tolist()))
        for place in places:
            free_at[place] = moment + duration
        slow_ns = int(dice.uniform(0.2, 3) * NS_PER_S) if deed is Deed.SLOW else 0
        faults.append(Fault(deed, places, moment, moment + duration, slow_ns))


def plane_faults(
    dice: np.random.Generator,
    *,
    daemons: int,
    within_ns: tuple[int, int],
    every_ns: int,
    late_part: float,
    besides: tuple[Fault, ...] = (),
) -> tuple[Fault, ...]:
    """Planes that are lost, never within `APART_NS` of another fault of the place; a part of them is away for longer than the hold."""
    faults: list[Fault] = []
    moment, end_ns = within_ns
    while True:
        moment += int(dice.exponential(every_ns))
        is_late = dice.uniform(0, 1) < late_part
        seconds = dice.uniform(2, 6) if is_late else dice.uniform(0.3, 2)
        place, end = int(dice.integers(daemons)), moment + int(seconds * NS_PER_S)
        if end >= end_ns:
            return tuple(faults)
        others = [one for one in (*besides, *faults) if place in one.places]
        if all(
            end + APART_NS < one.at_ns or (one.end_ns or end_ns) + APART_NS < moment
            for one in others
        ):
            faults.append(Fault(Deed.PLANE, (place,), moment, end))
