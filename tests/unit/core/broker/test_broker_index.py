"""Who shares with whom: broker_index by name, weights, and another row in place of our own.

Not covered: what a policy does (tests/unit/core/shares), when shares are reckoned (test_sharing.py).
"""

from dataclasses import dataclass, field

import numpy as np
import pytest

from rgd.core.broker.broker_index import BrokerIndex
from rgd.core.broker.settings import BrokerSettings
from rgd.core.exchange.messages import Sender
from rgd.core.exchange.peers import Peers
from rgd.core.exchange.rows import UsageRow
from rgd.core.exchange.suppression import OwnRates
from rgd.core.exchange.usage_map import UsageMap
from rgd.core.policies.model import SharePolicyName
from rgd.core.shares.columns import NO_RATE
from tests.unit.core.values import key, ms, report, usage

#: Neither the first nor the last by name.
SETTINGS = BrokerSettings(Sender("m", 1), floor_ppm=0)


@dataclass
class House:
    """BrokerIndex over a map; quotas are messages a second, bytes unlimited."""

    settings: BrokerSettings = SETTINGS
    usage: UsageMap = field(default_factory=UsageMap)
    peers: Peers = field(default_factory=lambda: Peers(0))

    def __post_init__(self) -> None:
        self.broker_index = BrokerIndex(self.settings, self.usage, self.peers)

    def tell(self, broker: str, *rows: UsageRow, weight: int = 1000, sequence: int = 1) -> None:
        """Let a broker tell rows; it has joined if it is not us."""
        told = report(broker, *rows, weight=weight, sequence=sequence)
        if broker != self.settings.sender.broker:
            self.peers.receive(told.sender, ms(0))
            self.peers.advance(told)
        self.broker_index.renew()
        self.usage.apply(told)

    def shares(
        self,
        *groups: str,
        quota: float = 100,
        policy: SharePolicyName = SharePolicyName.MAX_MIN,
        own: OwnRates | None = None,
    ) -> list[dict[str, float]]:
        """Everybody's share of messages of each group."""
        places = np.array([self.usage.index.slot(key(group)) for group in groups])
        quotas = np.full((len(groups), 2), [int(quota * 1000), NO_RATE])
        shared = self.broker_index.share_out(places, quotas, [policy] * len(groups), own=own)
        table = shared.of_all()
        assert (table[:, :, 1] == NO_RATE).all()
        for rank, _ in enumerate(self.broker_index.names()):
            assert (shared.of_index(rank) == table[:, rank]).all()
        names = self.broker_index.names()
        return [dict(zip(names, (row[:, 0] / 1000).tolist(), strict=True)) for row in table]


@pytest.mark.parametrize("has_row", [True, False])
def test_shares_are_computed_with_another_row_in_place_of_ours_alone(has_row: bool) -> None:
    house = House()
    house.tell("z", usage(90), usage(10, group="trial"))
    house.tell("a", usage(10))
    if has_row:
        house.tell("m", usage(80), usage(70, group="trial"))
    before = house.shares("gold", "trial")
    wanted = np.array([[20_000, 0], [50_000, 0]])
    assert house.shares("gold", "trial", own=OwnRates(wanted, wanted)) == [
        {"a": 10, "m": 20, "z": 70},
        {"a": 13.334, "m": 63.333, "z": 23.333},
    ]
    assert house.shares("gold", "trial") == before
