"""Max-min shares of many groups at once: from columns of rows to columns of shares.

Laws (1 to 3 and 5 of docs/architecture.md): in each limited dimension the shares of all live brokers, with
or without a row, sum to the quota exactly. Every daemon computes the same from the same rows,
regardless of their order and of the other groups in the call.

First every live broker gets its floor, inside the quota. The rest is filled over the demand of rows
above their floors (`columns_single` in one dimension, `columns_dual` in two at once). What is left
is split evenly over all live brokers; remainders go to the first of them in the order of names.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from rgd.core.shares import columns_dual, columns_single
from rgd.core.shares.columns_sums import Flags, Ints, whole_sums
from rgd.core.shares.model import PPM

#: The value of an unlimited rate.
NO_RATE: Final = -1

#: Rows computed at once: the columns of more rows would not fit the cache.
SPAN_ROWS: Final = 32_768

_SHORT_MAX: Final = np.iinfo(np.uint16).max

Columns = tuple[Ints, Ints]


@dataclass(slots=True, eq=False)
class Rows:
    """The demand of brokers for groups; each (group, broker) occurs once.

    Attributes:
        group: [rows] index into the quotas, ascending.
        broker_index: [rows] the broker's index among live brokers, in the order of names.
        wanted: [rows, 2] Milli per second, messages and bytes, 0 to 2**62.
        weight: [rows] thousandths, 1 to 2**31.
    """

    group: Ints
    broker_index: Ints
    wanted: Ints
    weight: Ints

    def of(self, rows: Ints) -> "Rows":
        """The rows at these indexes."""
        return Rows(
            self.group.take(rows),
            self.broker_index.take(rows),
            self.wanted.take(rows, 0),
            self.weight.take(rows),
        )

    def span(self, begin: int, end: int, group: int) -> "Rows":
        """The rows from `begin` to before `end`; their group indexes are relative to `group`."""
        some = slice(begin, end)
        return Rows(
            self.group[some] - group, self.broker_index[some], self.wanted[some], self.weight[some]
        )


@dataclass(slots=True, eq=False)
class Evenly:
    """An even split of one dimension of all groups: `base`, plus 1 for the first `more` brokers."""

    total: Ints
    base: Ints
    more: Ints

    @classmethod
    def split(cls, total: Ints, brokers: int) -> "Evenly":
        """Split [groups] totals over `brokers` brokers."""
        base = total // brokers
        return cls(total, base, total - base * brokers)

    @classmethod
    def joined(cls, parts: Sequence["Evenly"]) -> "Evenly":
        """The splits of some groups, then of others."""
        return cls(
            np.concatenate([part.total for part in parts]),
            np.concatenate([part.base for part in parts]),
            np.concatenate([part.more for part in parts]),
        )

    def of(self, group: Ints, broker_index: Ints) -> Ints:
        """[asked] the part of each broker, by group and index among live brokers."""
        part: Ints = self.base.take(group) + (broker_index < self.more.take(group))
        return part


@dataclass(slots=True, eq=False)
class Shares:
    """Shares in Milli per second, `NO_RATE` where a dimension is unlimited.

    Attributes:
        of_rows: [rows, 2] in the order of the rows.
        is_limited: each dimension, [groups].
        floors: each dimension, what every live broker has, with or without a row; `spare` likewise.
    """

    of_rows: Ints
    is_limited: tuple[Flags, Flags]
    floors: tuple[Evenly, Evenly]
    spare: tuple[Evenly, Evenly]

    @classmethod
    def joined(cls, parts: Sequence["Shares"]) -> "Shares":
        """The shares of some groups, then of others."""
        limited = [[part.is_limited[k] for part in parts] for k in (0, 1)]
        floors = [[part.floors[k] for part in parts] for k in (0, 1)]
        spare = [[part.spare[k] for part in parts] for k in (0, 1)]
        return cls(
            np.concatenate([part.of_rows for part in parts]),
            (np.concatenate(limited[0]), np.concatenate(limited[1])),
            (Evenly.joined(floors[0]), Evenly.joined(floors[1])),
            (Evenly.joined(spare[0]), Evenly.joined(spare[1])),
        )

    def idle_at(self, index: int) -> Ints:
        """[groups, 2] what `idle` gives the broker with this index in each group."""
        shares = np.full((len(self.is_limited[0]), 2), NO_RATE)
        for k, limited in enumerate(self.is_limited):
            if np.count_nonzero(limited):
                floors, spare = self.floors[k], self.spare[k]
                share = floors.base + spare.base
                share += index < floors.more
                share += index < spare.more
                if np.count_nonzero(limited) < len(limited):
                    share[~limited] = NO_RATE
                shares[:, k] = share
        return shares

    def idle(self, group: Ints, broker_index: Ints) -> Ints:
        """[asked, 2] the shares of live brokers that have no row."""
        return np.stack(
            [
                np.where(
                    limited[group],
                    floors.of(group, broker_index) + spare.of(group, broker_index),
                    NO_RATE,
                )
                for limited, floors, spare in zip(
                    self.is_limited, self.floors, self.spare, strict=True
                )
            ],
            axis=1,
        )


def share_out(rows: Rows, quota: Ints, *, brokers: int, floor_ppm: int) -> Shares:
    """Share quotas over the live brokers by max-min.

    Args:
        rows: of brokers with demand; others need none.
        quota: [groups, 2] Milli per second, 0 to 9e18, `NO_RATE` for unlimited.
        brokers: number of live brokers, >= 1.
        floor_ppm: the floors' part of the quota in millionths (`shares.floor_fraction`).
    """
    if len(rows.group) <= SPAN_ROWS:
        return _share_span(rows, quota, brokers, floor_ppm)
    ends = np.bincount(rows.group, minlength=len(quota)).cumsum()
    parts, group, row = [], 0, 0
    while group < len(quota):
        group_end = max(group + 1, int(np.searchsorted(ends, row + SPAN_ROWS, side="right")))
        row_end = int(ends[group_end - 1])
        span = rows.span(row, row_end, group)
        parts.append(_share_span(span, quota[group:group_end], brokers, floor_ppm))
        group, row = group_end, row_end
    return Shares.joined(parts)


def _share_span(rows: Rows, quota: Ints, brokers: int, floor_ppm: int) -> Shares:
    order = _order(rows, brokers)
    if order is not None:
        rows = rows.of(order)
    is_limited = (quota[:, 0] >= 0, quota[:, 1] >= 0)
    are_both = np.count_nonzero(is_limited[0]) and np.count_nonzero(is_limited[1])
    share = _share_both if are_both else _share_one
    shares = share(rows, quota, is_limited, brokers, floor_ppm)
    if order is not None:
        at = np.empty_like(order)
        at[order] = np.arange(len(order))
        shares.of_rows = shares.of_rows.take(at, 0)
    return shares


def _share_one(
    rows: Rows, quota: Ints, is_limited: tuple[Flags, Flags], brokers: int, floor_ppm: int
) -> Shares:
    """Share out groups that have a limit in the same dimension, or none; the same as `_share_both`.

    Few rows cost as much as the calls of numpy, so the other dimension gets none.
    """
    k = 1 if np.count_nonzero(is_limited[1]) else 0
    group, limited = rows.group, is_limited[k]
    whole = np.maximum(quota[:, k], 0)
    floors = _floors(whole, brokers, floor_ppm)
    supply = whole - floors.total
    share = floors.of(group, rows.broker_index)
    asked = np.maximum(rows.wanted[:, k] - share, 0)
    handed = columns_single.fill(
        group, asked, weight=rows.weight, supply=supply, places_max=brokers
    )
    spare = _spare(group, handed, supply, brokers)
    share += handed
    share += spare.of(group, rows.broker_index)
    if np.count_nonzero(limited) < len(limited):
        share[~limited.take(group)] = NO_RATE
    shares = np.full(rows.wanted.shape, NO_RATE)
    shares[:, k] = share
    zeros = np.zeros_like(whole)
    nothing = Evenly(zeros, zeros, zeros)
    if k == 0:
        return Shares(shares, is_limited, (floors, nothing), (spare, nothing))
    return Shares(shares, is_limited, (nothing, floors), (nothing, spare))


def _share_both(
    rows: Rows, quota: Ints, is_limited: tuple[Flags, Flags], brokers: int, floor_ppm: int
) -> Shares:
    """Share out groups in both dimensions, whichever of them each group has a limit in."""
    whole = (np.maximum(quota[:, 0], 0), np.maximum(quota[:, 1], 0))
    floors = (_floors(whole[0], brokers, floor_ppm), _floors(whole[1], brokers, floor_ppm))
    floor = (
        floors[0].of(rows.group, rows.broker_index),
        floors[1].of(rows.group, rows.broker_index),
    )
    supply = (whole[0] - floors[0].total, whole[1] - floors[1].total)
    handed = _Filling(rows, whole, supply, is_limited, brokers).handed(floor)
    shares = np.full(rows.wanted.shape, NO_RATE)
    spare = (
        _spare(rows.group, handed[0], supply[0], brokers),
        _spare(rows.group, handed[1], supply[1], brokers),
    )
    for k, limited in enumerate(is_limited):
        if not limited.any():
            continue
        share = floor[k] + handed[k] + spare[k].of(rows.group, rows.broker_index)
        if not limited.all():
            share[~limited.take(rows.group)] = NO_RATE
        shares[:, k] = share
    return Shares(shares, is_limited, floors, spare)


def _order(rows: Rows, brokers: int) -> Ints | None:
    """Indexes that sort each group's rows by the brokers' names; None if they are sorted."""
    key = rows.group * brokers + rows.broker_index
    if np.count_nonzero(key[1:] > key[:-1]) == max(0, len(key) - 1):
        return None
    # All keys are distinct; numpy sorts short integers by radix, in a fifth of the time.
    is_short = int(key[-1]) + brokers <= _SHORT_MAX
    return np.argsort(key.astype(np.uint16) if is_short else key, kind="stable")


def _floors(quota: Ints, brokers: int, floor_ppm: int) -> Evenly:
    """The floors in one dimension."""
    if not np.count_nonzero(quota):
        return Evenly(quota, quota, quota)
    millions, rest = np.divmod(quota, PPM)
    # Divided first, because quota * floor_ppm would overflow.
    total = millions * floor_ppm + rest * floor_ppm // PPM
    return Evenly.split(total, brokers)


def _spare(group: Ints, handed: Ints, supply: Ints, brokers: int) -> Evenly:
    """The supply of one dimension that filling leaves, split evenly."""
    if not np.count_nonzero(supply):
        return Evenly(supply, supply, supply)
    return Evenly.split(supply - whole_sums(group, handed, len(supply)), brokers)


class _Filling:
    """Fills the supply over the demand above the floors, each group in one or two dimensions."""

    def __init__(
        self,
        rows: Rows,
        quota: Columns,
        supply: Columns,
        is_limited: tuple[Flags, Flags],
        brokers: int,
    ) -> None:
        self._rows = rows
        self._quota = quota
        self._supply = supply
        self._brokers = brokers
        has_supply = (supply[0] | supply[1]) > 0
        self._is_dual = is_limited[0] & is_limited[1] & has_supply

    def handed(self, floors: Columns) -> Columns:
        """Each [rows]: the amounts above the floors; `floors` are each [rows] too."""
        wanted = self._rows.wanted
        asked = (
            np.maximum(wanted[:, 0] - floors[0], 0),
            np.maximum(wanted[:, 1] - floors[1], 0),
        )
        if self._is_dual.all():
            return self._dual(self._rows.group, asked, self._rows.weight)
        if not self._is_dual.any():
            return self._single(self._rows.group, asked, self._rows.weight)
        handed = (np.empty_like(asked[0]), np.empty_like(asked[1]))
        is_dual = self._is_dual[self._rows.group]
        for fill, some in ((self._dual, is_dual), (self._single, ~is_dual)):
            rows = some.nonzero()[0]
            parts = fill(
                self._rows.group[rows], (asked[0][rows], asked[1][rows]), self._rows.weight[rows]
            )
            for column, part in zip(handed, parts, strict=True):
                column[rows] = part
        return handed

    def _dual(self, group: Ints, asked: Columns, weight: Ints) -> Columns:
        return columns_dual.fill(
            group,
            asked,
            weight=weight,
            supply=self._supply,
            quota=self._quota,
            places_max=self._brokers,
        )

    def _single(self, group: Ints, asked: Columns, weight: Ints) -> Columns:
        """Fill groups that have a supply in at most one dimension; the other gets nothing."""
        nothing = np.zeros_like(group)
        supply = self._supply
        for k in range(2):
            if not supply[1 - k].any():
                handed = columns_single.fill(
                    group, asked[k], weight=weight, supply=supply[k], places_max=self._brokers
                )
                return (handed, nothing) if k == 0 else (nothing, handed)
        has_first = supply[0] > 0
        is_second = ~has_first[group]
        one = np.where(is_second, asked[1], asked[0])
        either = np.where(has_first, supply[0], supply[1])
        handed = columns_single.fill(
            group, one, weight=weight, supply=either, places_max=self._brokers
        )
        return np.where(is_second, nothing, handed), np.where(is_second, handed, nothing)
