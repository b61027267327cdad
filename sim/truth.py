"""Who should have what: the core's own max-min policy, over the demand that the load really has.

Law: no second implementation. What a broker would compute from perfect knowledge is what it is judged
by: the same function, floors, spare and order of names; two dimensions are filled at once.
"""

import numpy as np
from numpy.typing import NDArray

from rgd.core.shares.columns import NO_RATE, Rows, share_out
from rgd.core.shares.model import WEIGHT_ONE
from rgd.core.units import MILLI, to_milli

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

#: Most allocations kept; demand mostly stays the same from round to round.
_KEPT_MAX = 256


class Truth:
    """Max-min shares of one quota, for all groups that have it."""

    def __init__(self, quota: Floats, floor_ppm: int) -> None:
        """Take messages and bytes per second of the quota; nan is unlimited."""
        self._quota = [NO_RATE if np.isnan(one) else to_milli(float(one)) for one in quota]
        self._floor_ppm = floor_ppm
        self._kept: dict[tuple[bytes, bytes], Floats] = {}

    def shares_of_all(self, wanted: Floats, is_up: Bools) -> Floats:
        """Shares of demand by (group, place, dimension), units per second.

        Nan where a member is down, or a dimension without limit.
        """
        key = (wanted.tobytes(), is_up.tobytes())
        shares = self._kept.get(key)
        if shares is None:
            if len(self._kept) >= _KEPT_MAX:
                self._kept.clear()
            shares = self._kept[key] = self._fill(wanted, is_up)
        return shares

    def _fill(self, wanted: Floats, is_up: Bools) -> Floats:
        shares = np.full(wanted.shape, np.nan)
        brokers = int(is_up.sum())
        if brokers == 0:
            return shares
        groups = len(wanted)
        asked = np.rint(wanted[:, is_up] * MILLI).astype(np.int64).reshape(-1, 2)
        rows = Rows(
            group=np.repeat(np.arange(groups), brokers),
            broker_index=np.tile(np.arange(brokers), groups),
            wanted=asked,
            weight=np.full(len(asked), WEIGHT_ONE),
        )
        quota = np.tile(np.array(self._quota, dtype=np.int64), (groups, 1))
        shared = share_out(rows, quota, brokers=brokers, floor_ppm=self._floor_ppm).of_rows
        filled = np.where(shared == NO_RATE, np.nan, shared / MILLI)
        shares[:, is_up] = filled.reshape(groups, brokers, 2)
        return shares
