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

from rgd.core.pairs import Places
from rgd.core.shares.apportion import floors
from rgd.core.shares.columns_filling import fill
from rgd.core.shares.columns_sums import Flags, Ints, whole_sums

#: The value of an unlimited rate.
NO_RATE: Final = -1

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


@dataclass(slots=True, eq=False)
class Shares:
    """Shares in Milli per second, `NO_RATE` where a dimension is unlimited.

    Attributes:
        rows: of brokers with demand.
        of_rows: [rows, 2] in the order of the rows.
        is_limited: each dimension, [groups].
        evenly: each dimension, [groups] what every live broker has a part of, with or without a row: the floors, and
            what filling left; empty where nothing is limited.
        brokers: number of live brokers.
        others: (positions in the list of groups, [positions, brokers, 2] shares) of groups that another policy shares out.
    """

    rows: Rows
    of_rows: Ints
    is_limited: Sequence[Flags]
    evenly: Sequence[Sequence[Ints]]
    brokers: int
    others: Sequence[tuple[Ints, Ints]] = ()

    def of_index(self, index: int) -> Ints:
        """[groups, 2] the shares of one live broker."""
        shares = self._idle(np.array([index]))[:, 0]
        own = (self.rows.broker_index == index).nonzero()[0]
        shares[self.rows.group.take(own)] = self.of_rows.take(own, 0)
        for at, table in self.others:
            shares[at] = table[:, index]
        return shares

    def of_all(self) -> Ints:
        """[groups, brokers, 2] the shares of all live brokers."""
        shares = self._idle(np.arange(self.brokers))
        shares[self.rows.group, self.rows.broker_index] = self.of_rows
        for at, table in self.others:
            shares[at] = table
        return shares

    def _idle(self, broker_index: Ints) -> Ints:
        """[groups, brokers] what these brokers have without a row."""
        shares = np.full((len(self.is_limited[0]), len(broker_index), 2), NO_RATE)
        group = np.arange(len(shares))[:, None]
        for k, totals in enumerate(self.evenly):
            if totals:
                share = sum(_part(one, self.brokers, group, broker_index) for one in totals)
                shares[..., k] = np.where(self.is_limited[k][:, None], share, NO_RATE)
        return shares


def share_out(rows: Rows, quota: Ints, *, brokers: int, floor_ppm: int) -> Shares:
    """Share quotas over the live brokers by max-min.

    Args:
        rows: of brokers with demand; others need none.
        quota: [groups, 2] Milli per second, 0 to 9e18, `NO_RATE` for unlimited.
        brokers: number of live brokers, >= 1.
        floor_ppm: the floors' part of the quota in millionths (`shares.floor_fraction`).
    """
    given, order = rows, _order(rows, brokers)
    if order is not None:
        rows = rows.of(order)
    is_limited = quota[:, 0] >= 0, quota[:, 1] >= 0
    # Few rows cost as much as the calls of numpy, so a dimension in which nothing is limited gets none.
    limited = [k for k in (0, 1) if np.count_nonzero(is_limited[k])]
    dimensions = [_Dimension(rows, quota, k, brokers, floor_ppm) for k in limited]
    of_rows = np.full(rows.wanted.shape, NO_RATE)
    evenly: list[Sequence[Ints]] = [(), ()]
    handed = _handed(rows, dimensions, brokers)
    for k, one, above in zip(limited, dimensions, handed, strict=True):
        spare = one.supply - whole_sums(rows.group, above, len(quota))
        share = one.floor  # added to in place: it is the last use of it
        share += above
        share += _part(spare, brokers, rows.group, rows.broker_index)
        if not one.is_limited.all():
            share[~one.is_limited.take(rows.group)] = NO_RATE
        of_rows[:, k] = share
        evenly[k] = one.floors, spare
    if order is not None:
        of_rows[order] = of_rows.copy()
    return Shares(given, of_rows, is_limited, evenly, brokers)


def _part(total: Ints, brokers: int, group: Ints, broker_index: Ints) -> Ints:
    """What brokers have, by group and index, of [groups] totals that are split evenly; remainders go to the first."""
    base = total // brokers
    more = total - base * brokers
    part: Ints = base.take(group) + (broker_index < more.take(group))
    return part


class _Dimension:
    """A dimension in which some group has a limit, before its supply is handed out.

    Attributes:
        is_limited: [groups] whether there is a limit.
        whole, supply: [groups] the quota, 0 where there is no limit; what the floors leave of it.
        floors: [groups] of all live brokers together.
        floor, asked: [rows] the floor, and the demand above it.
    """

    __slots__ = ("asked", "floor", "floors", "is_limited", "supply", "whole")

    def __init__(self, rows: Rows, quota: Ints, k: int, brokers: int, floor_ppm: int) -> None:
        self.is_limited = quota[:, k] >= 0
        self.whole = np.maximum(quota[:, k], 0)
        self.floors: Ints = floors(self.whole, floor_ppm)
        self.supply: Ints = self.whole - self.floors
        self.floor = _part(self.floors, brokers, rows.group, rows.broker_index)
        self.asked: Ints = np.maximum(rows.wanted[:, k] - self.floor, 0)


def _order(rows: Rows, brokers: int) -> Ints | None:
    """Indexes that sort each group's rows by the brokers' names; None if they are sorted."""
    key = rows.group * brokers + rows.broker_index
    if np.count_nonzero(key[1:] > key[:-1]) == max(0, len(key) - 1):
        return None
    # All keys are distinct; numpy sorts short integers by radix, in a fifth of the time.
    is_short = int(key[-1]) + brokers <= _SHORT_MAX
    return np.argsort(key.astype(np.uint16) if is_short else key, kind="stable")


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
