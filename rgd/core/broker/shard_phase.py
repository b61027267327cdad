"""How far a broker relies on a shard that it reads, as `rgd.core.broker.sharing` needs to know it."""

from collections.abc import Iterable
from enum import StrEnum
from typing import Final, Protocol

from rgd.core.exchange.columns import Codes, Ints
from rgd.core.exchange.group_index import GroupIndex
from rgd.core.units import Nanos


class Phase(StrEnum):
    """How far this broker relies on a shard."""

    #: It was joined: its groups have their floor.
    COLD = "cold"
    WARM = "warm"
    #: Own reports do not come back, or did not lately: its groups have what `exchange.on_isolation` says.
    CUT_OFF = "cut_off"


#: Phases as columns hold them.
CODES: Final = {Phase.WARM: 0, Phase.COLD: 1, Phase.CUT_OFF: 2}


class ShardsInUse(Protocol):
    """The shards that a broker reads (`rgd.core.broker.shard_reader`)."""

    def use(self, numbers: Iterable[int], now: Nanos) -> None:
        """Note that groups of these shards are in use."""

    def codes(self, index: GroupIndex, slots: Ints) -> Codes:
        """[slots] the code of the phase of each group's shard."""
