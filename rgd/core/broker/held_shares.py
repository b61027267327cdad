"""Groups that keep the share that another plane gave them, until this broker can compute a better one.

They keep it while this broker starts and, where rows come in shards, while the group's shard cannot be relied on yet.
"""

import numpy as np

from rgd.core.broker.mode import Mode
from rgd.core.broker.shard_shares import ShardShares
from rgd.core.exchange.columns import Flags, Ints
from rgd.core.exchange.group_index import grown


class HeldShares:
    """Which groups do; by slot id.

    Args:
        resumes: whether there was another plane; without one there are none.
        shards: the shards of groups.
    """

    def __init__(self, shards: ShardShares, *, resumes: bool) -> None:
        self.resumes = resumes
        self._shards = shards
        self._are_held = np.zeros(0, np.bool_)

    def hold(self, slots: Ints) -> None:
        """Have some groups keep their shares."""
        self._make_room(slots)
        self._are_held[slots] = True

    def end(self, slots: Ints) -> None:
        """Have them keep them no longer."""
        self._make_room(slots)
        self._are_held[slots] = False

    def kept(self, slots: Ints, mode: Mode) -> Flags:
        """[slots] whether a group keeps its share in a mode."""
        self._make_room(slots)
        held = self._are_held[slots]
        if mode is Mode.STARTING:
            return held
        are_cold = self._shards.are_cold(slots) if mode.believes_map else np.False_
        kept: Flags = held & are_cold
        return kept

    def is_resuming(self, mode: Mode) -> bool:
        """Whether the gate goes on as it is, because this broker does not know any share yet."""
        return self.resumes and mode is Mode.STARTING

    def _make_room(self, slots: Ints) -> None:
        self._are_held = grown(self._are_held, int(slots.max(initial=-1)) + 1)
