"""Sums and remainders by group, over rows that are sorted by their group.

Law: what comes out for a group depends on its own rows alone, not on which other groups are in
the call: daemons compute different groups together and have to agree to the last `Milli`. So
floats are added one after the other within their group (`bincount`), never as differences of one
running sum; whole numbers, for which a running sum is exact, may be.
"""

from typing import Final

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

#: Up to here every whole number is a float64.
FLOAT_EXACT_MAX: Final = 1 << 53

#: Remainders that differ by less than this part of a `Milli` count as equal.
_FRACTION_BITS: Final = 20


def float_sums(group: Ints, amount: Floats | Ints, groups: int) -> Floats:
    """[groups] sums in float64, in the order of the rows."""
    return np.bincount(group, amount, groups).astype(np.float64, copy=False)


def whole_sums(group: Ints, amount: Ints, groups: int) -> Ints:
    """[groups] exact sums of what is not negative, as long as each fits an int64."""
    in_floats = np.bincount(group, amount, groups)
    if in_floats.max(initial=0.0) < FLOAT_EXACT_MAX:
        return in_floats.astype(np.int64)
    # The running sum may overflow; the differences fit, and wrap back to what they are.
    running = np.zeros(len(group) + 1, np.int64)
    np.cumsum(amount, out=running[1:])
    sums: Ints = running[np.bincount(group, minlength=groups).cumsum()]
    sums[1:] -= sums[:-1].copy()
    return sums


def largest_first(group: Ints, fraction: Floats | None, left: Ints, places_max: int) -> Flags:
    """Who gets one of what is left over: the largest fractions, equal ones in the order of rows.

    Args:
        group: [rows] ascending.
        fraction: [rows] in 0 to 1; None: all equal.
        left: [groups] how many rows of each group get one.
        places_max: no group has more rows.
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
    # No two keys are equal, so that any way of sorting finds the same order.
    key.sort()
    chosen = np.empty(len(group), np.bool_)
    chosen[start + (key & ((1 << place_bits) - 1))] = is_first
    return chosen
