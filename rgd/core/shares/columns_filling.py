"""Max-min over one or two dimensions at once, for all groups together (dominant-resource fairness).

Law (5 of docs/architecture.md): all rows of a group rise in step of (their larger fraction of the quota) /
weight. A row stops at its demand, or when a dimension that it wants is spent. Rows without demand
in the spent dimension continue to rise in the other (Ghodsi et al., NSDI 2011, section 4). In one dimension this is
water-filling (Bertsekas & Gallager, Data Networks 6.5.2).

The use of each dimension is a concave function of the level, so Newton's steps from below never
overshoot; the smaller of the dimensions' steps is taken. Levels are float64, computed in
an order that depends on the group's own rows only. Results are whole `Milli`: rounded
down, and the remainder goes to the largest fractions.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Final

import numpy as np

from rgd.core.shares.columns_sums import (
    FLOAT_EXACT_MAX,
    Flags,
    Floats,
    Ints,
    float_sums,
    largest_first,
    whole_sums,
)

#: One for each dimension.
Columns = Sequence[Ints]
_FloatColumns = list[Floats]

#: A group is filled if its demand, in float64, is above this part of its supply.
NEARLY: Final = 1 - 2.0**-30

#: A dimension counts as spent if at most this part of the quota is left. Less may be rounding
#: error, which would let rows rise that want almost nothing of the dimension.
_SPENT: Final = 2.0**-44


def fill(
    group: Ints,
    asked: Columns,
    *,
    weight: Ints,
    supply: Columns,
    quota: Columns,
    places_max: int,
) -> Columns:
    """Distribute a supply over requested amounts in all dimensions.

    Args:
        group: [rows] ascending; within a group in the order in which remainders go.
        asked: each dimension, [rows] Milli per second, 0 to 2**62.
        weight: [rows] 1 to 2**31.
        supply: each [groups] Milli per second, 0 to 9e18, at most the quota.
        quota: each [groups], the denominator of fractions.
        places_max: the most rows of any group.

    Returns:
        Each [rows], at most `asked`; sums to at most the supply.
    """
    groups = len(supply[0])
    is_short = np.zeros(groups, np.bool_)
    for want, most in zip(asked, supply, strict=True):
        is_short |= float_sums(group, want, groups) > most * NEARLY
    rows = (is_short.take(group) & (reduce(np.bitwise_or, asked) > 0)).nonzero()[0]
    if len(rows) == 0:
        return asked
    short = _Short(
        group.take(rows),
        [want.take(rows) for want in asked],
        weight=weight.take(rows),
        supply=supply,
        quota=quota,
        places_max=places_max,
    )
    handed = [want.copy() for want in asked]
    for column, part in zip(handed, short.parts(), strict=True):
        column[rows] = part
    return handed


@dataclass(slots=True, eq=False)
class _Rising:
    """Rows that rise together.

    Attributes:
        group: [rows]
        at_full: [rows] the level at which a row has all it asks for.
        use: each [rows], the fraction of the quota that the row uses at that level.
        pull: each [rows], the fraction of the quota that the row uses per unit of the level.
    """

    group: Ints
    at_full: Floats
    use: _FloatColumns
    pull: _FloatColumns

    def of(self, rows: Ints) -> "_Rising":
        """The rows at these indexes."""
        return _Rising(
            self.group.take(rows),
            self.at_full.take(rows),
            [use.take(rows) for use in self.use],
            [pull.take(rows) for pull in self.pull],
        )

    def levels(self, left: _FloatColumns) -> tuple[Floats, Flags]:
        """Raise the level until a dimension is spent.

        Args:
            left: each [groups], fractions of the quota; modified in place.

        Returns:
            [groups] the level at which the first dimension is spent, inf for never; and whether
            that dimension is the second.
        """
        groups = len(left[0])
        rising = self
        level = np.zeros(groups)
        is_second = np.zeros(groups, np.bool_)
        has_changed = np.ones(groups, np.bool_)
        while True:
            steps = [
                _divided(some, float_sums(rising.group, pull, groups))
                for some, pull in zip(left, rising.pull, strict=True)
            ]
            is_second = np.where(has_changed, steps[-1] < steps[0], is_second)
            nearer = np.maximum(level, reduce(np.minimum, steps))
            level = np.where(has_changed, nearer, level)
            rises = rising.at_full > level.take(rising.group)
            full = (~rises).nonzero()[0]
            if len(full) == 0:
                return level, is_second
            full_group = rising.group.take(full)
            for k, use in enumerate(rising.use):
                left[k] -= float_sums(full_group, use.take(full), groups)
            has_changed = np.zeros(groups, np.bool_)
            has_changed[full_group] = True
            rising = rising.of((rises & has_changed.take(rising.group)).nonzero()[0])


class _Short:
    """Rows of the groups whose supply is less than they ask for."""

    def __init__(
        self,
        group: Ints,
        asked: Columns,
        *,
        weight: Ints,
        supply: Columns,
        quota: Columns,
        places_max: int,
    ) -> None:
        self._group = group
        self._asked = asked
        self._supply = supply
        self._places_max = places_max
        whole = [np.maximum(one, 1) for one in quota]
        #: In one dimension, [rows] what a row gets per unit of the level: the same, to the last digit, for rows of equal
        #: weight. Their remainders are equal, too, and need not be sorted.
        self._pull = 1.0 * weight * whole[0].take(group) if len(asked) == 1 else None
        self._is_even = self._pull is not None and weight.min() == weight.max()
        self._left = [some / one for some, one in zip(supply, whole, strict=True)]
        fraction = [want / one.take(group) for want, one in zip(asked, whole, strict=True)]
        dominant = reduce(np.maximum, fraction)
        # No row can have more than the whole quota. A larger request is scaled down, in all
        # dimensions alike, so that sums of fractions stay small and exact enough.
        self._scale = 1.0 / np.maximum(dominant, 1.0)
        by_level = weight / dominant
        self._rows = _Rising(
            group,
            self._scale / by_level,
            [one * self._scale for one in fraction],
            [one * by_level for one in fraction],
        )

    def parts(self) -> Columns:
        """What each row gets: each dimension, [rows]."""
        spent, is_second = self._rows.levels([left.copy() for left in self._left])
        level, is_spent = self._go_on(spent, is_second)
        part = np.minimum(level / self._rows.at_full, 1.0) * self._scale
        exact = [one * part for one in self._asked]
        if self._pull is not None:
            exact = [np.minimum(level * self._pull, self._asked[0])]
        return [self._whole(k, part, exact[k], flags) for k, flags in enumerate(is_spent)]

    def _go_on(self, spent: Floats, is_second: Flags) -> tuple[Floats, list[Flags]]:
        """[rows] each row's level, and [groups] whether each dimension is spent in the end.

        Rows without demand in the dimension that was spent first continue in the other.
        """
        group, use = self._rows.group, self._rows.use
        level = spent.take(group)
        is_finite = np.isfinite(spent)
        if len(use) == 1:
            return level, [is_finite]
        is_spent = [is_finite & ~is_second, is_finite & is_second]
        of_second = is_second.take(group)
        wants_none = ((use[0] == 0) & ~of_second) | ((use[1] == 0) & of_second)
        rows = (wants_none & (level < self._rows.at_full)).nonzero()[0]
        if len(rows) == 0:
            return level, is_spent
        groups = len(spent)
        used = np.minimum(1.0, level / self._rows.at_full)
        used[rows] = 0.0
        left = [
            some - float_sums(group, one * used, groups)
            for some, one in zip(self._left, use, strict=True)
        ]
        further, _ = self._rows.of(rows).levels(left)
        has_gone_on = np.zeros(groups, np.bool_)
        has_gone_on[group.take(rows)] = True
        is_spent_too = has_gone_on & np.isfinite(further)
        level[rows] = np.maximum(level.take(rows), further.take(group.take(rows)))
        return level, [flags | is_spent_too for flags in is_spent]

    def _whole(self, k: int, part: Floats, exact: Floats, is_spent: Flags) -> Ints:
        """One dimension in whole numbers: rounded down, the rest to the largest remainders."""
        group, asked, supply = self._group, self._asked[k], self._supply[k]
        handed = np.minimum(exact.astype(np.int64), asked)
        if asked.max() > FLOAT_EXACT_MAX:
            np.copyto(handed, asked, where=part == 1.0)
        left = supply - whole_sums(group, handed, len(supply))
        if left.min() < 0:
            left = self._take_back(handed, asked, left)
        is_below = handed < asked
        counts = np.bincount(group, is_below, len(supply)).astype(np.int64)
        # Rounding remainders are distributed; more than that only if the dimension is spent.
        left *= is_spent | (left <= counts)
        rows = (is_below & (left > 0).take(group)).nonzero()[0]
        if len(rows) == 0:
            return handed
        group, floor = group.take(rows), handed.take(rows)
        more = left // np.maximum(counts, 1)
        fraction = None if self._is_even else np.minimum(exact.take(rows) - floor, 1.0)
        is_chosen = largest_first(group, fraction, left - more * counts, self._places_max)
        handed[rows] = np.minimum(floor + more.take(group) + is_chosen, asked.take(rows))
        return handed

    def _take_back(self, handed: Ints, asked: Ints, left: Ints) -> Ints:
        """Take back from the largest row what rounding added too much, with a huge quota.

        A row that got less than it asked for is preferred, if it has enough.
        """
        for over in (left < 0).nonzero()[0].tolist():
            begin, end = np.searchsorted(self._group, [over, over + 1])
            some = handed[begin:end]
            of_short = some * (some < asked[begin:end])
            giver = of_short.argmax()
            if of_short[giver] + left[over] < 0:
                giver = some.argmax()
            some[giver] += left[over]
        return np.maximum(left, 0)


def _divided(left: Floats, pull: Floats) -> Floats:
    """How far the level can rise; inf if no row uses the dimension."""
    level = np.full(len(left), np.inf)
    np.divide(left * (left > _SPENT), pull, out=level, where=pull > 0)
    return level
