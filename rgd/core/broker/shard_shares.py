"""The shards of groups in use, and the shares of groups whose shard cannot be relied on."""

import numpy as np

from rgd.core.broker.mode import Mode
from rgd.core.broker.mode_shares import ModeShares
from rgd.core.broker.settings import BrokerSettings
from rgd.core.broker.shard_phase import CODES, Phase, ShardsInUse
from rgd.core.exchange.columns import Flags, Ints
from rgd.core.exchange.group_index import GroupIndex
from rgd.core.exchange.shards import Shard, numbers_of
from rgd.core.units import Nanos


class ShardShares:
    """Nothing, where rows do not come in shards."""

    def __init__(self, settings: BrokerSettings, index: GroupIndex, by_mode: ModeShares) -> None:
        self._count = settings.shards
        self._index = index
        self._by_mode = by_mode
        isolated = Mode(settings.on_isolation)
        #: What a phase gives in place of the map's shares.
        self._modes = {Phase.COLD: Mode.STARTING, Phase.CUT_OFF: isolated}
        #: The shards that are read, where rows come in shards.
        self.reader: ShardsInUse | None = None

    def use(self, slots: Ints, now: Nanos) -> None:
        """Note that the groups of these slot ids are in use."""
        if self.reader is not None:
            counts = np.bincount(self._numbers(slots), minlength=self._count)
            self.reader.use(np.flatnonzero(counts).tolist(), now)

    def of_shard(self, slots: Ints, shard: Shard) -> Ints:
        """Those of some slot ids whose groups are in a shard."""
        of_shard: Ints = slots[self._numbers(slots) == shard.number]
        return of_shard

    def are_cold(self, slots: Ints) -> Flags:
        """[slots] whether a group's shard was joined and cannot be relied on yet."""
        if self.reader is None:
            return np.zeros(len(slots), np.bool_)
        cold: Flags = self.reader.codes(self._index, slots) == CODES[Phase.COLD]
        return cold

    def by_phase(self, slots: Ints, quota: Ints, targets: Ints) -> Ints:
        """[slots, 2] the map's shares `targets`, but for groups whose shard is not warm."""
        if self.reader is None:
            return targets
        codes = self.reader.codes(self._index, slots)
        for phase, mode in self._modes.items():
            at = np.flatnonzero(codes == CODES[phase])
            if len(at) and not mode.believes_map:
                targets[at] = self._by_mode.shares(mode, quota[at])
        return targets

    def _numbers(self, slots: Ints) -> Ints:
        return numbers_of(self._index.name_hashes[slots], self._count)
