"""Divides a flow over intervals of whole weights.

Law: all intervals together get the flow, to the last thousandth, whatever their weights.

Another flow or another interval costs the same for 10,000 intervals as for one: whoever owns one
finds out what it gets, and the least that it was to get meanwhile, when it looks. Used by
`rgd.core.buckets.split` for the parts that topics have of a share.
"""

from bisect import bisect_right
from typing import NamedTuple

from rgd.core.policies.model import Rate


class Steps(NamedTuple):
    """The interval of all weights, one after the other, that belongs to one part."""

    low: int
    high: int


class Division(NamedTuple):
    """A share and the weight that it is divided by."""

    share: Rate
    weight: int

    def part(self, steps: Steps) -> Rate:
        """What an interval gets: all intervals together get the share, to the last thousandth."""
        if self.share is None:
            return None
        low, high = self.share * steps.low // self.weight, self.share * steps.high // self.weight
        return high - low

    def is_above(self, other: "Division") -> bool:
        """Whether a weight gets as much here as there, or more."""
        if self.share is None or other.share is None:
            return self.share is None
        return self.share * other.weight >= other.share * self.weight


class Stream:
    """The share in one dimension, as it was divided since the last round ended."""

    __slots__ = ("_cuts", "_epochs", "newcomer", "weight")

    def __init__(self, newcomer: int = 1) -> None:
        self.weight = 0
        #: The weight of whoever joins next.
        self.newcomer = newcomer
        #: The division now and, before it, each that gave less than all later ones.
        self._cuts: list[Division] = []
        self._epochs: list[int] = []

    def join(self) -> Steps:
        """The interval of a newcomer."""
        return self.next(self.newcomer)

    def divide(self, share: Rate, generation: int) -> None:
        """Divide a share from now on."""
        cut = Division(share, self.weight)
        while self._cuts and self._cuts[-1].is_above(cut):
            self._cuts.pop()
            self._epochs.pop()
        self._cuts.append(cut)
        self._epochs.append(generation)

    def forget(self, generation: int) -> None:
        """Forget what only somebody who knows less than an generation would ask for."""
        count = min(bisect_right(self._epochs, generation), len(self._epochs) - 1)
        del self._cuts[:count], self._epochs[:count]

    def part(self, steps: Steps) -> Rate:
        """What an interval gets now."""
        return self._cuts[-1].part(steps)

    def lowest(self, steps: Steps, generation: int) -> Rate:
        """The least that an interval was to get after an generation; None where nothing changed since."""
        at = bisect_right(self._epochs, generation)
        return self._cuts[at].part(steps) if at < len(self._cuts) else None

    def next(self, weight: int) -> Steps:
        """The next interval, of so much weight."""
        low, self.weight = self.weight, self.weight + weight
        return Steps(low, self.weight)
