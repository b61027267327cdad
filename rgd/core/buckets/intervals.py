"""Divides a rate over intervals of whole weights.

Law: all intervals together get exactly the rate, to the last thousandth, whatever their weights.

A new rate or a new interval costs the same for 10,000 intervals as for one, because each interval
computes its own rate on demand, and the lowest rate that applied to it meanwhile.
`rgd.core.buckets.split` uses it for the parts that topics have of a share.
"""

from bisect import bisect_right
from typing import NamedTuple

from rgd.core.policies.model import Rate


class Steps(NamedTuple):
    """One part's interval of the total weight: `low` to `high`, excluding `high`."""

    low: int
    high: int


class Division(NamedTuple):
    """A share (Milli per second; None: unlimited) and the total weight that it is divided by."""

    share: Rate
    weight: int

    def part(self, steps: Steps) -> Rate:
        """The rate of an interval: all intervals together get exactly the share."""
        if self.share is None:
            return None
        low, high = self.share * steps.low // self.weight, self.share * steps.high // self.weight
        return high - low

    def is_above(self, other: "Division") -> bool:
        """Whether this division gives a weight at least as much as the other does."""
        if self.share is None or other.share is None:
            return self.share is None
        return self.share * other.weight >= other.share * self.weight


class Stream:
    """The divisions of a share in one dimension since the last round ended."""

    __slots__ = ("_divisions", "_generations", "newcomer", "weight")

    def __init__(self, newcomer: int = 1) -> None:
        self.weight = 0
        #: The weight of the next part to join.
        self.newcomer = newcomer
        #: The present division and, before it, each past one that gave less than all later ones;
        #: and the generation of each.
        self._divisions: list[Division] = []
        self._generations: list[int] = []

    def join(self) -> Steps:
        """Allocate the interval of a new part."""
        return self.next(self.newcomer)

    def divide(self, share: Rate, generation: int) -> None:
        """Divide `share` from this generation on."""
        division = Division(share, self.weight)
        while self._divisions and self._divisions[-1].is_above(division):
            self._divisions.pop()
            self._generations.pop()
        self._divisions.append(division)
        self._generations.append(generation)

    def forget(self, generation: int) -> None:
        """Drop divisions up to a generation; all parts must have applied it."""
        count = min(bisect_right(self._generations, generation), len(self._generations) - 1)
        del self._divisions[:count], self._generations[:count]

    def part(self, steps: Steps) -> Rate:
        """The present rate of an interval."""
        return self._divisions[-1].part(steps)

    def lowest(self, steps: Steps, generation: int) -> Rate:
        """The lowest rate of an interval after a generation; None if nothing changed since then."""
        at = bisect_right(self._generations, generation)
        return self._divisions[at].part(steps) if at < len(self._divisions) else None

    def next(self, weight: int) -> Steps:
        """Allocate the next interval, of the given weight."""
        low, self.weight = self.weight, self.weight + weight
        return Steps(low, self.weight)
