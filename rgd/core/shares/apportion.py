"""Splits whole numbers so that the parts sum to them exactly, for many groups at once.

Law: the same input gives the same parts on every broker. Remainders go one
each to the largest fractions, and among equal fractions in the order of the columns, which is
the order of the brokers' names everywhere.

Columns are int64, or of Python's integers (`object`) where int64 is too small for sums and products.
"""

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from rgd.core.shares.model import PPM

#: [groups] or [groups, brokers], whole numbers.
Whole = NDArray[Any]

#: Sums up to here are split in int64: a quotient in float64 is off by 2**12 at most, and 2**12 times
#: this is below 2**63.
SHORT_MAX: Final = 1 << 50


def even(total: Whole, count: int) -> Whole:
    """[groups, count] `total` split evenly."""
    left: Whole = total % count
    parts: Whole = (total // count)[:, None] + (np.arange(count) < left[:, None])
    return parts


def by_weight(total: Whole, weights: Whole) -> Whole:
    """[groups, brokers] `total` in proportion to weights of the same type; nothing where all weights are 0.

    The largest remainders are rounded up, so every part is off by less than one unit. Weights of int64 sum
    to at most `SHORT_MAX`.
    """
    whole = weights.sum(axis=1)
    divisor = np.maximum(whole, 1)[:, None]
    parts: Whole
    if weights.dtype == object:
        products = total[:, None] * weights
        parts, remainder = products // divisor, products % divisor
    else:
        parts = (total[:, None] / divisor * weights).astype(np.int64)
        # The products may overflow; their difference fits, because both wrap around.
        remainder = total[:, None] * weights - parts * divisor
        correction = remainder // divisor
        parts += correction
        remainder -= correction * divisor
    left = np.where(whole > 0, total - parts.sum(axis=1), 0)
    if np.count_nonzero(left):
        rank = np.argsort(np.argsort(-remainder, axis=1, kind="stable"), axis=1, kind="stable")
        parts = parts + (rank < left[:, None])
    return parts


def floors(quota: Whole, floor_ppm: int) -> Whole:
    """The floors of all live brokers together: `floor_fraction` of the quota (law 1)."""
    # Divided first, because quota * floor_ppm may not fit an int64.
    whole: Whole = quota // PPM * floor_ppm + quota % PPM * floor_ppm // PPM
    return whole
