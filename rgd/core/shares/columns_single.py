"""Water-filling in one dimension, for all groups together, exact to the `Milli`.

Law (Bertsekas & Gallager, Data Networks 6.5.2): a row whose demand is at most its part by weight
of what the others leave gets its demand; the others share the rest by weight. Remainders go to
the largest fractions.

The level is found by Newton's method. The amount used is a concave function of the level, so steps
from below never overshoot, and each step fills at least one more row. The steps use float64.
Whether each row is full, and its part, is then computed in whole numbers (a product of 63 and
31 bits by its quotient and remainder), so rounding does not affect the result.
"""

from typing import Final

import numpy as np

from rgd.core.shares.columns_sums import (
    Flags,
    Floats,
    Ints,
    float_sums,
    largest_first,
    whole_sums,
)

#: A group is computed exactly if its demand, in float64, is above this part of its supply.
NEARLY: Final = 1 - 2.0**-30

#: More than any supply, and well below the largest int64.
_FAR: Final = 9_100_000_000_000_000_000


def fill(group: Ints, asked: Ints, *, weight: Ints, supply: Ints, places_max: int) -> Ints:
    """Distribute a supply over requested amounts.

    Args:
        group: [rows] ascending; within a group in the order in which remainders go.
        asked: [rows] Milli per second, >= 0.
        weight: [rows] 1 to 2**31.
        supply: [groups] Milli per second, 0 to 9e18.
        places_max: the most rows of any group.

    Returns:
        [rows], at most `asked`; sums to the supply if the sum of `asked` is larger.
    """
    handed = np.minimum(asked, supply.take(group))
    is_short = float_sums(group, handed, len(supply)) > supply * NEARLY
    rows = (is_short.take(group) & (handed > 0)).nonzero()[0] if np.count_nonzero(is_short) else ()
    if len(rows):
        group, asked, weight = group.take(rows), handed.take(rows), weight.take(rows)
        is_full = _probably_full(group, asked, weight, supply)
        handed[rows] = _parts(
            group, asked, weight=weight, supply=supply, is_full=is_full, places_max=places_max
        )
    return handed


def _probably_full(group: Ints, asked: Ints, weight: Ints, supply: Ints) -> Flags:
    """[rows] whether a row gets all it asks for, except for rounding."""
    is_full = np.zeros(len(group), np.bool_)
    left = supply.astype(np.float64)
    rows = np.arange(len(group))
    level_at_full: Floats = asked / weight
    while len(rows):
        level = left / np.maximum(float_sums(group, weight, len(left)), 1.0)
        rises = level_at_full > level.take(group)
        filled = (~rises).nonzero()[0]
        is_full[rows.take(filled)] = True
        full_group = group.take(filled)
        left -= float_sums(full_group, asked.take(filled), len(left))
        has_changed = np.zeros(len(left), np.bool_)
        has_changed[full_group] = True
        stay = (rises & has_changed.take(group)).nonzero()[0]
        rows, group, asked = rows.take(stay), group.take(stay), asked.take(stay)
        weight, level_at_full = weight.take(stay), level_at_full.take(stay)
    return is_full


def _parts(
    group: Ints, asked: Ints, *, weight: Ints, supply: Ints, is_full: Flags, places_max: int
) -> Ints:
    """What each row gets, starting from an estimate of which rows are full and correcting it."""
    while True:
        left = supply - whole_sums(group, asked * is_full, len(supply))
        weight_left = whole_sums(group, weight * ~is_full, len(supply))
        part, remainder = _parts_by_weight(group, weight, left, weight_left)
        # If all rows are full but do not fit, the group starts again with none full.
        fits = asked <= part
        is_everybody = weight_left == 0
        if np.count_nonzero(is_everybody):
            fits = np.where(is_everybody.take(group), (left >= 0).take(group), fits)
        if np.array_equal(fits, is_full):
            break
        is_full = fits
    rising = (~is_full).nonzero()[0]
    group, part = group.take(rising), part.take(rising)
    left -= whole_sums(group, part, len(left))
    is_even = weight.min() == weight.max()
    fraction = None if is_even else remainder.take(rising) / weight_left.take(group)
    part += largest_first(group, fraction, left, places_max)
    asked[rising] = part
    return asked


def _parts_by_weight(group: Ints, weight: Ints, left: Ints, weight_left: Ints) -> tuple[Ints, Ints]:
    """Compute left * weight // weight_left, at most `_FAR`, and the remainder of that division."""
    divisor = np.maximum(weight_left, 1)
    quotient = left // divisor
    rest = left - quotient * divisor
    divisor_of_row = divisor.take(group)
    # The rest is less than the divisor, so the estimate is below 2**31 and off by at most one.
    extra = ((rest / divisor).take(group) * weight).astype(np.int64)
    # The products may overflow; their difference fits, because both wrap around.
    remainder = rest.take(group) * weight - extra * divisor_of_row
    correction = (remainder >= divisor_of_row).astype(np.int64) - (remainder < 0)
    part = quotient.take(group) * weight + extra + correction
    # For a full row, its part by weight may far exceed its demand and overflow, so it is bounded.
    is_far = (left / divisor).take(group) * weight > _FAR
    if np.count_nonzero(is_far):
        part[is_far] = _FAR
    return part, remainder - correction * divisor_of_row
