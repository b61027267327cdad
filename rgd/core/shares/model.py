"""The input of a share policy: one row for each live broker."""

from dataclasses import dataclass
from typing import Final

from rgd.core.units import Pair

#: Weight of a broker that says nothing, in thousandths.
WEIGHT_ONE: Final = 1000

#: `shares.floor_fraction` is reckoned in millionths, so that it stays an integer.
PPM: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class Row:
    """What one live broker uses and wants of one group; zeros where it has no row."""

    broker: str
    #: Milli per second.
    admitted: Pair = Pair()
    wanted: Pair = Pair()
    #: In thousandths; only max-min looks at it.
    weight: int = WEIGHT_ONE
