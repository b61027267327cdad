"""How far a broker relies on each shard, and the shares of groups whose shard cannot be relied on."""

from enum import IntEnum

import numpy as np

from rgd.core.broker.mode import Mode
from rgd.core.broker.mode_shares import ModeShares
from rgd.core.broker.settings import BrokerSettings
from rgd.core.exchange.columns import Flags, Ints
from rgd.core.exchange.group_index import GroupIndex
from rgd.core.exchange.shards import numbers_of
from rgd.core.units import Nanos


class Phase(IntEnum):
    """How far this broker relies on a shard."""

    WARM = 0
    #: It was joined: its groups have their floor.
    COLD = 1
    #: Own reports do not come back, or did not lately: its groups have what `exchange.on_isolation` says.
    CUT_OFF = 2


class ShardShares:
    """The shards of this broker's layout; `rgd.core.broker.shard_reader` changes their phases."""

    def __init__(self, settings: BrokerSettings, index: GroupIndex, by_mode: ModeShares) -> None:
        self._index = index
        self._by_mode = by_mode
        self._count = settings.shards
        #: What a phase gives in place of the map's shares.
        self._modes = {Phase.COLD: Mode.STARTING, Phase.CUT_OFF: Mode(settings.on_isolation)}
        #: [shards] the phase of each; the only shard of the layout of one is always relied on.
        phase = Phase.WARM if settings.shards == 1 else Phase.COLD
        self.phases = np.full(settings.shards, phase, np.uint8)
        #: When groups of a shard were last in use; shards without such groups are not read.
        self.used_at: dict[int, Nanos] = {}

    def use(self, slots: Ints, now: Nanos) -> None:
        """Note that the groups of these slot ids are in use."""
        if self._count > 1:
            self.used_at.update(dict.fromkeys(np.unique(self._numbers(slots)).tolist(), now))

    def are_cold(self, slots: Ints) -> Flags:
        """[slots] whether a group's shard was joined and cannot be relied on yet."""
        cold: Flags = self.phases[self._numbers(slots)] == Phase.COLD
        return cold

    def by_phase(self, slots: Ints, quota: Ints, targets: Ints) -> Ints:
        """[slots, 2] the map's shares `targets`, but for groups whose shard is not warm."""
        if self._count > 1:
            phases = self.phases[self._numbers(slots)]
            for phase, mode in self._modes.items():
                at = np.flatnonzero(phases == phase)
                if len(at) and not mode.believes_map:
                    targets[at] = self._by_mode.shares(mode, quota[at])
        return targets

    def _numbers(self, slots: Ints) -> Ints:
        return numbers_of(self._index.name_hashes[slots], self._count)
