"""Sums and remainders by group, over rows that are sorted by their group.

Law: a group's result depends on its own rows alone, not on the other groups in the call, because
daemons compute different groups together and must agree to the last `Milli`. Floats are
therefore added one after another within their group (`bincount`), never as differences of one
running sum. For whole numbers a running sum is exact and is allowed.
"""

from typing import Final

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

#: Every whole number up to here is exact in float64.
FLOAT_EXACT_MAX: Final = 1 << 53

#: Remainders that differ by less than this part of a `Milli` count as equal.
_FRACTION_BITS: Final = 20


def float_sums(group: Ints, amount: Floats | Ints, groups: int) -> Floats:
    """[groups] sums in float64, in the order of the rows."""
    return np.bincount(group, amount, groups).astype(np.float64, copy=False)


def whole_sums(group: Ints, amount: Ints, groups: int) -> Ints:
    """[groups] exact sums of non-negative numbers, if each sum fits an int64."""
    in_floats = np.bincount(group, amount, groups)
    if in_floats.max(initial=0.0) < FLOAT_EXACT_MAX:
        return in_floats.astype(np.int64)
    # The running sum may overflow; the differences fit, because both terms wrap around.
    running = np.zeros(len(group) + 1, np.int64)
    np.cumsum(amount, out=running[1:])
    sums: Ints = running[np.bincount(group, minlength=groups).cumsum()]
    sums[1:] -= sums[:-1].copy()
    return sums


def largest_first(group: Ints, fraction: Floats | None, left: Ints, places_max: int) -> Flags:
    """[rows] whether a row gets one of the remaining units: largest fractions first, then row
    order.

    Args:
        group: [rows] ascending.
        fraction: [rows] in 0 to 1; None: all equal.
        left: [groups] number of rows in each group that get one.
        places_max: the most rows of any group.
    """
    counts = np.bincount(group, minlength=len(left))
    start = (counts.cumsum() - counts).take(group)
    place = np.arange(len(group)) - start
    is_first = place < left.take(group)
    if fraction is None:
        return is_first
    place_bits = places_max.bit_length()
    scale = 1 << _FRACTION_BITS
    missing = scale - (fraction * scale).astype(np.int64)
    key = (((group << (_FRACTION_BITS + 1)) | missing) << place_bits) | place
    # All keys are distinct, so any sorting method gives the same order.
    key.sort()
    chosen = np.empty(len(group), np.bool_)
    chosen[start + (key & ((1 << place_bits) - 1))] = is_first
    return chosen
