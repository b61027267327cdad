"""What the daemons of one world compute from the same numbers is computed once.

A report changes the same few rows at every daemon that hears it. Those that hold the same rows of a group then
compute the same shares, one after another.

Law: the core computes (`rgd.core.broker.broker_index`); what is remembered here
is what it computed from the same bytes, which are compared whole. A run with it is the run without it.
"""

from typing import Final

import numpy as np

from rgd.core.exchange.columns import Ints
from rgd.core.shares.columns import Rows, share_out

#: Most groups that are remembered: what 100 daemons report in some rounds. Then all are forgotten.
GROUPS_MAX: Final = 4096

#: Brokers, millionths for floors, the quota in both dimensions, and the rows.
_Key = tuple[int, int, int, int, bytes]


class SharedWork:
    """Results of the core's, by what they were computed from."""

    def __init__(self, groups_max: int = GROUPS_MAX) -> None:
        self._groups_max = groups_max
        #: [brokers, 2] the shares of all live brokers of a group.
        self._divided: dict[_Key, Ints] = {}

    def divide(self, rows: Rows, quota: Ints, *, brokers: int, floor_ppm: int, own: int) -> Ints:
        """As `own_shares`."""
        keys = _keys(rows, quota, brokers, floor_ppm)
        known = [self._divided.get(key) for key in keys]
        missing = [place for place, group in enumerate(known) if group is None]
        if missing:
            if len(self._divided) + len(missing) > self._groups_max:
                self._divided.clear()
            some = _of_groups(rows, np.array(missing), len(keys))
            divided = _divided(some, quota[missing], brokers, floor_ppm)
            for place, group in zip(missing, divided, strict=True):
                known[place] = self._divided[keys[place]] = group
        groups = [group for group in known if group is not None]
        shares = np.empty((len(groups), 2), np.int64)
        for place, group in enumerate(groups):
            shares[place] = group[own]
        return shares


def _keys(rows: Rows, quota: Ints, brokers: int, floor_ppm: int) -> list[_Key]:
    """[groups] everything that the shares of a group depend on."""
    parts = (rows.broker_index[:, None], rows.wanted, rows.weight[:, None])
    table = np.concatenate(parts, axis=1)
    told, row_bytes = table.tobytes(), table.itemsize * table.shape[1]
    ends = (np.bincount(rows.group, minlength=len(quota)).cumsum() * row_bytes).tolist()
    keys, begin = [], 0
    for (messages, size), end in zip(quota.tolist(), ends, strict=True):
        keys.append((brokers, floor_ppm, messages, size, told[begin:end]))
        begin = end
    return keys


def _of_groups(rows: Rows, groups: Ints, count: int) -> Rows:
    """The rows of some of `count` groups, which are numbered anew."""
    number = np.full(count, -1)
    number[groups] = np.arange(len(groups))
    some = rows.of((number.take(rows.group) >= 0).nonzero()[0])
    return Rows(number.take(some.group), some.broker_index, some.wanted, some.weight)


def _divided(rows: Rows, quota: Ints, brokers: int, floor_ppm: int) -> list[Ints]:
    """[groups] what the core computes."""
    shares = share_out(rows, quota, brokers=brokers, floor_ppm=floor_ppm).of_all()
    # Copies, because a view would keep the shares of all these groups.
    return [table.copy() for table in shares]
