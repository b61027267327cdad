"""Max-min fair shares by water-filling (Bertsekas & Gallager, Data Networks 6.5.2).

Laws (design 3): the shares of all live brokers sum to the quota exactly; no
broker is below min(what it wants, its weighted equal part) while another has
more than that; what nobody wants is split evenly over all live brokers.

First every live broker gets its floor, inside the quota, so that an idle one
can start. The rest is poured over the rows that want more than their floor:
going up in order of want / weight, a row that wants no more than its weighted
part of what is left is filled; the others share what is left by weight.
"""

from collections.abc import Sequence
from typing import Final

from rgd.core.shares.apportion import by_weight, even, floors
from rgd.core.shares.model import Row
from rgd.core.units import Milli

#: Enough to tell any two fractions want / weight apart for weights below 2**31.
_SCALE_BITS: Final = 64


def max_min(quota: Milli, rows: Sequence[Row], floor_ppm: int) -> list[Milli]:
    """Share `quota` over rows that are in the order of their brokers' names."""
    shares = floors(quota, len(rows), floor_ppm)
    above = [max(0, row.wanted - floor) for row, floor in zip(rows, shares, strict=True)]
    left = quota - sum(shares)
    filled = _pour(left, above, [row.weight for row in rows])
    spare = even(left - sum(filled), len(rows))
    return [sum(parts) for parts in zip(shares, filled, spare, strict=True)]


def _pour(total: Milli, wants: Sequence[Milli], weights: Sequence[int]) -> list[Milli]:
    """Water-fill `total` over wants; what exceeds all wants is left over."""
    filled = [0] * len(wants)
    thirsty = sorted(
        (place for place, want in enumerate(wants) if want > 0),
        key=lambda place: ((wants[place] << _SCALE_BITS) // weights[place], place),
    )
    left, weight_left = total, sum(weights[place] for place in thirsty)
    for done, place in enumerate(thirsty):
        # wants[place] / weight <= left / weight_left, without a division.
        if wants[place] * weight_left > left * weights[place]:
            rest = sorted(thirsty[done:])
            parts = by_weight(left, [weights[other] for other in rest])
            for other, part in zip(rest, parts, strict=True):
                filled[other] = part
            break
        filled[place] = wants[place]
        left -= wants[place]
        weight_left -= weights[place]
    return filled
