"""Splits a whole number so that the parts sum to it exactly.

Law: the same input gives the same parts on every broker. Remainders go one
each to the largest fractions, and among equal fractions in the caller's order, which is
the order of the brokers' names everywhere.
"""

from collections.abc import Sequence

from rgd.core.shares.model import PPM
from rgd.core.units import Milli


def even(total: Milli, count: int) -> list[Milli]:
    """Split `total` evenly over `count` rows."""
    part, left = divmod(total, count)
    return [part + (place < left) for place in range(count)]


def by_weight(total: Milli, weights: Sequence[int]) -> list[Milli]:
    """Split `total` in proportion to weights, at least one of which is positive.

    The largest remainders are rounded up, so every part is off by less than one unit.
    """
    whole = sum(weights)
    parts = [total * weight // whole for weight in weights]
    left = total - sum(parts)
    if left:
        by_remainder = sorted(
            range(len(weights)), key=lambda place: -(total * weights[place] % whole)
        )
        for place in by_remainder[:left]:
            parts[place] += 1
    return parts


def floors(quota: Milli, count: int, floor_ppm: int) -> list[Milli]:
    """Each live broker's floor: `floor_fraction` of the quota, split evenly (law 1)."""
    return even(quota * floor_ppm // PPM, count)


def least_floor(quota: Milli, count: int, floor_ppm: int) -> Milli:
    """The lowest floor of `count` brokers: that of the last one."""
    return quota * floor_ppm // PPM // count
