"""The input of a share policy: one row for each live broker."""

from dataclasses import dataclass
from typing import Final

from rgd.core.units import Pair

#: Weight of a broker that says nothing, in thousandths.
WEIGHT_ONE: Final = 1000

#: Weights in force lie between these: 100 times from the lowest to the highest. Every broker computes
#: with what is within, whatever was told, so that all compute the same.
WEIGHT_MIN: Final = 100
WEIGHT_MAX: Final = 10_000

#: `shares.floor_fraction` is computed in millionths, so that it stays an integer.
PPM: Final = 1_000_000


def bounded_weight(weight: int) -> int:
    """The weight that counts for one that was told, in thousandths."""
    return min(max(weight, WEIGHT_MIN), WEIGHT_MAX)


@dataclass(frozen=True, slots=True)
class Row:
    """What one live broker uses and wants of one group; zeros where it has no row."""

    broker: str
    #: Milli per second.
    admitted: Pair = Pair()
    wanted: Pair = Pair()
    #: In thousandths; only max-min looks at it.
    weight: int = WEIGHT_ONE
