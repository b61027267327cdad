"""Max-min shares of many groups at once: from columns of rows to columns of shares.

Laws (1 to 3 and 5 of docs/architecture.md): in each limited dimension the shares of all live brokers, with
or without a row, sum to the quota exactly. Every daemon computes the same from the same rows,
regardless of their order and of the other groups in the call.

First every live broker gets its floor, inside the quota. The rest is filled over the demand of rows
above their floors, in one dimension or in two at once (`columns_filling`). What is left
is split evenly over all live brokers; remainders go to the first of them in the order of names.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from rgd.core.runs import Places
from rgd.core.shares.columns_filling import fill
from rgd.core.shares.columns_sums import Flags, Ints, whole_sums
from rgd.core.shares.model import PPM

#: The value of an unlimited rate.
NO_RATE: Final = -1

#: Rows computed at once: the columns of more rows would not fit the cache.
SPAN_ROWS: Final = 32_768

_SHORT_MAX: Final = np.iinfo(np.uint16).max


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

    def idle(self, group: Ints, broker_index: Ints) -> Ints:
        """[..., 2] the shares of live brokers that have no row, by group and index; both are broadcast."""
        shares = np.full((*np.broadcast_shapes(group.shape, broker_index.shape), 2), NO_RATE)
        for k, limited in enumerate(self.is_limited):
            if np.count_nonzero(limited):
                share = self.floors[k].of(group, broker_index)
                share += self.spare[k].of(group, broker_index)
                shares[..., k] = np.where(limited.take(group), share, NO_RATE)
        return shares

    def idle_all(self, brokers: int) -> Ints:
        """[groups, brokers, 2] what `idle` gives each broker in each group."""
        return self.idle(np.arange(len(self.is_limited[0]))[:, None], np.arange(brokers))


def share_out(
    rows: Rows, quota: Ints, *, brokers: int, floor_ppm: int, span_rows: int = SPAN_ROWS
) -> Shares:
    """Share quotas over the live brokers by max-min.

    Args:
        rows: of brokers with demand; others need none.
        quota: [groups, 2] Milli per second, 0 to 9e18, `NO_RATE` for unlimited.
        brokers: number of live brokers, >= 1.
        floor_ppm: the floors' part of the quota in millionths (`shares.floor_fraction`).
        span_rows: rows that are computed at once; no result depends on it.
    """
    if len(rows.group) <= span_rows:
        return _share_span(rows, quota, brokers, floor_ppm)
    ends = np.bincount(rows.group, minlength=len(quota)).cumsum()
    parts, group, row = [], 0, 0
    while group < len(quota):
        group_end = max(group + 1, int(np.searchsorted(ends, row + span_rows, side="right")))
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
    # Few rows cost as much as the calls of numpy, so a dimension in which nothing is limited gets none.
    counts = (np.count_nonzero(is_limited[0]), np.count_nonzero(is_limited[1]))
    limited = [k for k in (0, 1) if counts[k]]
    dimensions = [_Dimension(rows, quota, k, brokers, floor_ppm) for k in limited]
    handed = _handed(rows, dimensions, brokers)
    of_rows = np.full(rows.wanted.shape, NO_RATE)
    floors, spare = ([_nothing(len(quota))] * 2 for _ in range(2))
    for k, one, above in zip(limited, dimensions, handed, strict=True):
        floors[k], spare[k] = one.floors, _spare(rows.group, above, one.supply, brokers)
        share = one.floor  # added to in place: it is the last use of it
        share += above
        share += spare[k].of(rows.group, rows.broker_index)
        if counts[k] < len(quota):
            share[~is_limited[k].take(rows.group)] = NO_RATE
        of_rows[:, k] = share
    if order is not None:
        at = np.empty_like(order)
        at[order] = np.arange(len(order))
        of_rows = of_rows.take(at, 0)
    return Shares(of_rows, is_limited, (floors[0], floors[1]), (spare[0], spare[1]))


class _Dimension:
    """A dimension in which some group has a limit, before its supply is handed out.

    Attributes:
        is_limited: [groups] whether there is a limit.
        whole, supply: [groups] the quota, 0 where there is no limit; what the floors leave of it.
        floors: of all live brokers.
        floor, asked: [rows] the floor, and the demand above it.
    """

    __slots__ = ("asked", "floor", "floors", "is_limited", "supply", "whole")

    def __init__(self, rows: Rows, quota: Ints, k: int, brokers: int, floor_ppm: int) -> None:
        self.is_limited = quota[:, k] >= 0
        self.whole = np.maximum(quota[:, k], 0)
        self.floors = _floors(self.whole, brokers, floor_ppm)
        self.supply: Ints = self.whole - self.floors.total
        self.floor = self.floors.of(rows.group, rows.broker_index)
        self.asked: Ints = np.maximum(rows.wanted[:, k] - self.floor, 0)


def _order(rows: Rows, brokers: int) -> Ints | None:
    """Indexes that sort each group's rows by the brokers' names; None if they are sorted."""
    key = rows.group * brokers + rows.broker_index
    if np.count_nonzero(key[1:] > key[:-1]) == max(0, len(key) - 1):
        return None
    # All keys are distinct; numpy sorts short integers by radix, in a fifth of the time.
    is_short = int(key[-1]) + brokers <= _SHORT_MAX
    return np.argsort(key.astype(np.uint16) if is_short else key, kind="stable")


def _nothing(groups: int) -> Evenly:
    zeros = np.zeros(groups, np.int64)
    return Evenly(zeros, zeros, zeros)


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


def _handed(rows: Rows, dimensions: Sequence[_Dimension], brokers: int) -> Sequence[Ints]:
    """For each dimension [rows] the amounts above the floors; 0 where a group has no limit."""
    if not dimensions:
        return ()
    if all(one.is_limited.all() for one in dimensions):
        return _filled(rows, dimensions, slice(None), brokers)
    handed = [np.zeros_like(one.asked) for one in dimensions]
    has_first, has_last = dimensions[0].is_limited, dimensions[-1].is_limited
    # Groups with the same limits are filled together.
    for limited, some in (
        (dimensions, has_first & has_last),
        (dimensions[:1], has_first & ~has_last),
        (dimensions[1:], ~has_first & has_last),
    ):
        if some.any():
            at = some.take(rows.group).nonzero()[0]
            for one, part in zip(limited, _filled(rows, limited, at, brokers), strict=True):
                handed[dimensions.index(one)][at] = part
    return handed


def _filled(
    rows: Rows, dimensions: Sequence[_Dimension], at: Places, brokers: int
) -> Sequence[Ints]:
    """For each dimension the amounts above the floors of the rows `at`."""
    return fill(
        rows.group[at],
        [one.asked[at] for one in dimensions],
        weight=rows.weight[at],
        supply=[one.supply for one in dimensions],
        quota=[one.whole for one in dimensions],
        places_max=brokers,
    )
