"""What the daemons of one world compute from the same numbers is computed once.

A report changes the same few rows at every daemon that hears it. Those that hold the same rows of a group then
compute the same shares, and all compute the same hash, one after another.

Law: the core computes (`rgd.core.broker.broker_index`, `rgd.core.exchange.rows_hash`); what is remembered here
is what it computed from the same bytes, which are compared whole. A run with it is the run without it.
"""

from typing import Final, NamedTuple

import numpy as np

from rgd.core.broker.broker_index import OwnShares, SharedOut, are_short
from rgd.core.exchange.columns import Ints
from rgd.core.exchange.group_index import Hashes
from rgd.core.exchange.rows_hash import change_of
from rgd.core.shares.columns import Rows, share_out

#: Most groups, and most hashes, that are remembered: what 100 daemons report in some rounds. Then all are
#: forgotten.
GROUPS_MAX: Final = 4096
HASHES_MAX: Final = 1024

#: Brokers, millionths for floors, the quota in both dimensions, and the rows.
_Key = tuple[int, int, int, int, bytes]


class _Divided(NamedTuple):
    """One group: [brokers, 2] the shares of all live brokers, and whether it is short."""

    shares: Ints
    is_short: bool


class SharedWork:
    """Results of the core's, by what they were computed from."""

    def __init__(self, groups_max: int = GROUPS_MAX, hashes_max: int = HASHES_MAX) -> None:
        self._groups_max = groups_max
        self._hashes_max = hashes_max
        self._divided: dict[_Key, _Divided] = {}
        self._hash_changes: dict[tuple[bytes, bytes], int] = {}

    def divide(
        self, rows: Rows, quota: Ints, *, brokers: int, floor_ppm: int, own: int
    ) -> OwnShares:
        """As `own_shares`."""
        keys = _keys(rows, quota, brokers, floor_ppm)
        known = [self._divided.get(key) for key in keys]
        groups = [group for group in known if group is not None]
        if len(groups) < len(keys):
            groups = _divided(rows, quota, brokers, floor_ppm)
            if len(self._divided) + len(keys) > self._groups_max:
                self._divided.clear()
            self._divided.update(zip(keys, groups, strict=True))
        shares = np.empty((len(groups), 2), np.int64)
        for place, group in enumerate(groups):
            shares[place] = group.shares[own]
        return OwnShares(shares, np.array([group.is_short for group in groups], np.bool_))

    def hash_change(self, before: Hashes, after: Hashes) -> int:
        """As `change_of`."""
        key = before.tobytes(), after.tobytes()
        change = self._hash_changes.get(key)
        if change is None:
            if len(self._hash_changes) >= self._hashes_max:
                self._hash_changes.clear()
            change = self._hash_changes[key] = change_of(before, after)
        return change


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


def _divided(rows: Rows, quota: Ints, brokers: int, floor_ppm: int) -> list[_Divided]:
    """[groups] what the core computes."""
    columns = share_out(rows, quota, brokers=brokers, floor_ppm=floor_ppm)
    shares = SharedOut(rows, columns, len(quota), brokers, ()).of_all()
    short = are_short(rows.group, rows.wanted, quota).tolist()
    # Copies, because a view would keep the shares of all these groups.
    return [_Divided(table.copy(), is_short) for table, is_short in zip(shares, short, strict=True)]
