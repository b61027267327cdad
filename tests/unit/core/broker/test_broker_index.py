"""Who shares with whom: broker_index by name, weights, and another row in place of our own.

Not covered: what a policy does (tests/unit/core/shares), when shares are reckoned (test_sharing.py).
"""

from dataclasses import dataclass, field, replace

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


def test_ranks_are_places_in_the_order_of_names_whatever_the_order_of_hearing() -> None:
    house = House()
    for broker in ("z", "a", "q"):
        house.tell(broker)
    assert house.broker_index.names() == ["a", "m", "q", "z"]
    assert house.broker_index.own == 1
    house.peers.leave(Sender("a", 1), ms(0))
    house.broker_index.renew()
    assert (house.broker_index.names(), house.broker_index.own) == (["m", "q", "z"], 0)


def test_each_row_counts_for_its_broker_and_the_others_have_what_is_left() -> None:
    house = House()
    house.tell("z", usage(10), usage(60, group="trial"))
    house.tell("a", usage(20))
    house.tell("m", usage(40), usage(5, group="trial"))
    assert house.shares("gold", "trial", "nobody") == [
        {"a": 30, "m": 50, "z": 20},
        {"a": 11.667, "m": 16.667, "z": 71.666},
        {"a": 33.334, "m": 33.333, "z": 33.333},
    ]


def test_one_group_more_than_once_and_in_any_order() -> None:
    house = House()
    house.tell("a", usage(20), usage(90, group="trial"))
    house.tell("m", usage(90))
    gold, trial = house.shares("gold", "trial")
    assert house.shares("trial", "gold", "trial") == [trial, gold, trial]


def test_remainders_go_to_the_first_by_name() -> None:
    house = House()
    for broker in ("z", "b", "a"):
        house.tell(broker, usage(500))
    house.tell("m", usage(500))
    assert house.shares("gold", quota=0.006) == [{"a": 0.002, "b": 0.002, "m": 0.001, "z": 0.001}]


def test_weights_are_those_of_the_brokers_whatever_their_numbers() -> None:
    house = House(replace(SETTINGS, weight=2000))
    house.tell("z", usage(500), weight=5000)
    house.tell("a", usage(500), weight=1000)
    house.tell("m", usage(500))
    assert house.shares("gold", quota=80) == [{"a": 10, "m": 20, "z": 50}]


def test_a_weight_that_changes_counts_when_ranks_are_made_anew() -> None:
    house = House()
    house.tell("a", usage(500))
    house.tell("m", usage(500))
    assert house.shares("gold", quota=80) == [{"a": 40, "m": 40}]
    house.tell("a", usage(500), weight=3000, sequence=2)
    assert house.shares("gold", quota=80) == [{"a": 60, "m": 20}]


@pytest.mark.parametrize("has_row", [True, False])
def test_shares_are_reckoned_with_another_row_in_place_of_ours_alone(has_row: bool) -> None:
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


@pytest.mark.parametrize(
    ("policy", "shares"),
    [
        # PIP-82's own numbers: 10/50/30 of 100.
        (SharePolicyName.RESIDUAL, {"a": 20, "m": 60, "z": 40}),
        (SharePolicyName.PROPORTIONAL, {"a": 11.111, "m": 55.556, "z": 33.333}),
    ],
)
def test_another_policy_is_asked_with_a_row_of_every_live_broker(
    policy: SharePolicyName, shares: dict[str, float]
) -> None:
    house = House()
    house.tell("z", usage(30, group="other"), usage(30))
    house.tell("a", usage(10))
    house.tell("m", usage(50))
    assert house.shares("other", "gold", policy=policy)[1] == shares
    other = {"a": 0, "m": 0, "z": 100}
    assert house.shares("other", "gold", policy=policy)[0] == other


def test_another_policy_is_asked_with_another_row_in_place_of_ours_group_by_group() -> None:
    house = House()
    house.tell("a", usage(10), usage(30, group="other"))
    house.tell("m", usage(90))
    admitted = np.array([[30_000, 0], [10_000, 0]])
    shares = house.shares(
        "other", "gold", policy=SharePolicyName.PROPORTIONAL, own=OwnRates(admitted, admitted)
    )
    assert shares == [{"a": 50, "m": 50}, {"a": 50, "m": 50}]
