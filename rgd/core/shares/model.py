"""The input of a share policy: one row for each live broker."""

from dataclasses import dataclass
from typing import Final

from rgd.core.units import Pair

#: Weight of a broker that reports none, in thousandths.
WEIGHT_ONE: Final = 1000

#: Bounds of weights in force: the highest is 100 times the lowest. Every broker limits advertised
#: weights to these bounds, so that all compute the same.
WEIGHT_MIN: Final = 100
WEIGHT_MAX: Final = 10_000

#: `shares.floor_fraction` is computed in millionths, so that it stays an integer.
PPM: Final = 1_000_000


def bounded_weight(weight: int) -> int:
    """The weight in force for an advertised one, in thousandths."""
    return min(max(weight, WEIGHT_MIN), WEIGHT_MAX)


@dataclass(frozen=True, slots=True)
class Row:
    """The usage and demand of one live broker in one group; zeros if it has no row."""

    broker: str
    #: Milli per second.
    admitted: Pair = Pair()
    wanted: Pair = Pair()
    #: In thousandths; used by max-min only.
    weight: int = WEIGHT_ONE
