"""How much the rates of one meter's slots differ by chance, learnt as they close.

Law: evenly spaced callers have none, one step of demand teaches next to nothing,
and random callers are known as such after a few slots.

A Huberised mean of absolute successive differences. One step makes two of them
large (the slot in which it falls is neither the one nor the other), so a third
in a row is what teaches at once. The estimator measures what differs from round
to round in the same manner (`rgd.core.demand.estimator`).
"""

from typing import Final

#: A difference teaches at most so many times what is known, or so many times the least of three.
CLIP: Final = 4.0
CLIP_LEAST: Final = 3.0

#: Least weight of the newest difference.
GAIN: Final = 1 / 16

#: Differences that it takes to know: as many as a step cannot make.
DIFFERENCES_MIN: Final = 3

#: Nothing is taken for steadier than this part of its rate.
NOISE_LEAST: Final = 0.001

#: Mean absolute difference of two normal deviates, in their standard deviations.
_DIFFERENCE_OF_SIGMA: Final = 1.128


class SlotNoise:
    """The noise of one dimension."""

    __slots__ = ("_before", "_count", "_latest", "_mean", "_previous")

    def __init__(self) -> None:
        self._before: float | None = None
        self._mean = self._latest = self._previous = 0.0
        self._count = 0

    @property
    def sigma(self) -> float | None:
        """Standard deviation of a slot's rate; None while unknown."""
        if self._count < DIFFERENCES_MIN:
            return None
        return self._mean / _DIFFERENCE_OF_SIGMA

    def take(self, rate: float) -> None:
        """Learn from a slot that closed."""
        before, self._before = self._before, rate
        if before is None:
            return
        difference = rate - before if rate > before else before - rate
        least = min(difference, self._latest, self._previous)
        known = max(self._mean, NOISE_LEAST * rate)
        taught = min(difference, max(CLIP * known, CLIP_LEAST * least))
        self._count += 1
        gain = max(1.0 / self._count, GAIN)
        self._mean += gain * (taught - self._mean)
        self._latest, self._previous = difference, self._latest
