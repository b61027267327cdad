"""Clusters whose rows come in shards: the same shares, repair of each shard, changes of their number."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest

from rgd.core.broker.mode import Mode
from rgd.core.broker.settings import BrokerSettings
from rgd.core.broker.shard_shares import Phase
from rgd.core.buckets.decision import Request
from rgd.core.exchange.messages import Sender
from rgd.core.exchange.shards import WHOLE, Shard, shard_of
from rgd.core.policies.model import Attachments, Group, GroupKey, Limit, Rates
from rgd.core.policies.snapshot import PolicySnapshot
from rgd.core.units import MILLI, NS_PER_S, Kind, to_milli
from sim.load import Load
from sim.member import Member
from sim.network import Network
from sim.run import run
from sim.scenarios import SCENARIOS
from sim.world import World

#: Groups of 100 messages a second each, in several of four shards.
GROUPS = ("gold", "silver", "iron", "tin")
QUOTA = 100
SNAPSHOT = PolicySnapshot(
    {name: Group(name, Limit(Rates(to_milli(QUOTA)))) for name in GROUPS},
    Attachments(namespaces={f"acme/{name}": name for name in GROUPS}),
)
#: What each member is asked for of each group, messages a second.
DEMAND = ({"gold": 80, "silver": 20, "iron": 150}, {"gold": 60, "silver": 120, "tin": 50})


def _slow(value: object) -> object:
    """A parameter for `make test` alone."""
    return pytest.param(value, marks=pytest.mark.slow)


class House:
    """Members with a load on some groups each, and with numbers of shards of their own."""

    def __init__(self, *, seed: int = 0, network: Network | None = None) -> None:
        self.world = World(seed=seed, network=network)
        self.members: list[Member] = []
        self.loads: dict[str, list[Load]] = {}

    def add(self, demand: Mapping[str, float], *, shards: int, name: str | None = None) -> Member:
        """Start a member under load; where the name is taken it is a restart."""
        broker = name or f"broker-{len(self.members)}"
        settings = replace(
            BrokerSettings(Sender(broker, self.world.dice.getrandbits(62))), shards=shards
        )
        member = self.world.add(settings, SNAPSHOT)
        self.members = [one for one in self.members if one.name != broker] + [member]
        self.world.start(member)
        self.loads[broker] = [
            Load(self.world, member, Request(namespace=f"acme/{group}"), rate).start()
            for group, rate in demand.items()
        ]
        return member

    def restart(self, place_name: str, demand: Mapping[str, float], *, shards: int) -> None:
        """Stop a member in order and start it again with another number of shards."""
        member = next(one for one in self.members if one.name == place_name)
        for load in self.loads[place_name]:
            load.set_rate(0)
        self.world.stop(member)
        self.add(demand, shards=shards, name=place_name)

    def run_s(self, seconds: float) -> None:
        """Let time pass; every member checks itself at the end."""
        self.world.run_until(round(self.world.now + seconds * NS_PER_S))
        for member in self.members:
            member.brain.validate()

    def shares(self, group: str) -> dict[str, float]:
        """The shares in force, messages a second, by member."""
        key = GroupKey(group, Kind.PUBLISH)
        shares = {one.name: one.brain.share(key) for one in self.members}
        return {
            name: share.messages / MILLI
            for name, share in shares.items()
            if share is not None and share.messages is not None
        }


def _house(
    numbers: Sequence[int], *, seed: int = 0, network: Network | None = None, seconds: float = 6
) -> House:
    house = House(seed=seed, network=network)
    for demand, shards in zip((*DEMAND, {}), numbers, strict=True):
        house.add(demand, shards=shards)
    house.run_s(seconds)
    return house


def _all_shares(house: House) -> dict[str, dict[str, float]]:
    return {group: house.shares(group) for group in GROUPS}


@pytest.fixture(scope="module")
def without() -> dict[str, dict[str, float]]:
    """The shares without shards, which have to be the same with any number of them."""
    return _all_shares(_house([1, 1, 1]))


def _assert_same(house: House, expected: Mapping[str, Mapping[str, float]]) -> None:
    for group, shares in _all_shares(house).items():
        assert shares == pytest.approx(expected[group], rel=0.03, abs=0.5)


@pytest.mark.parametrize("numbers", [(1, 4, 1), _slow((64, 64, 64)), _slow((2, 3, 1))])
def test_shares_are_the_same_with_any_number_of_shards(
    numbers: Sequence[int], without: Mapping[str, Mapping[str, float]]
) -> None:
    _assert_same(_house(numbers), without)


def test_a_daemon_reads_only_the_shards_of_its_groups() -> None:
    house = _house([4, 4, 4])
    for member, demand in zip(house.members, (*DEMAND, {}), strict=True):
        wanted = {shard_of(group, 4) for group in demand}
        assert member.shards == wanted
        usage = member.broker.usage
        for broker in usage.brokers():
            held = {shard_of(key.group, 4) for key in usage.rows_of(broker)}
            assert held <= wanted
    assert len({shard_of(group, 4) for group in GROUPS}) > 1


def test_a_late_group_is_granted_from_the_floor_until_its_shard_is_warm() -> None:
    house = _house([4, 4, 4])
    late = house.members[2]
    house.loads["broker-2"].append(
        Load(house.world, late, Request(namespace="acme/gold"), 60).start()
    )
    house.run_s(0.03)
    key, shard = GroupKey("gold", Kind.PUBLISH), shard_of("gold", 4)
    share = late.brain.share(key)
    assert share is not None
    assert share.messages == pytest.approx(0.01 * QUOTA * MILLI / 3, rel=0.1)
    house.run_s(4)
    assert late.broker.shard_reader.joined[shard.number].phase is Phase.WARM
    assert house.shares("gold") == pytest.approx(
        {"broker-0": 33.3, "broker-1": 33.3, "broker-2": 33.3}, rel=0.03
    )
    # The others are told of it, in the shard alone.
    assert late.shards == {shard}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["newcomer", "spare", "mix"])
def test_a_scenario_has_the_same_figures_with_shards(name: str) -> None:
    scenario = replace(SCENARIOS[name], daemons=4, groups=4, rounds=16)
    whole, sharded = (run(replace(scenario, shards=shards), seed=5) for shards in (1, 4))
    assert not sharded.violations
    assert sharded.figures.rounds_to_fair == whole.figures.rounds_to_fair
    assert sharded.figures.utilisation == pytest.approx(whole.figures.utilisation, abs=0.01)
    assert sharded.figures.overshoot_round == pytest.approx(whole.figures.overshoot_round, abs=0.02)


@pytest.mark.parametrize("seed", [0, *map(_slow, range(1, 4))])
def test_lost_reports_of_a_shard_are_repaired(
    seed: int, without: Mapping[str, Mapping[str, float]]
) -> None:
    network = Network(loss=0.2, duplication=0.1, straggling=0.1, straggle_max_ns=NS_PER_S)
    house = _house([4, 4, 4], seed=seed, network=network, seconds=8)
    network.loss = network.duplication = network.straggling = 0
    house.run_s(6.5)
    _assert_same(house, without)
    _assert_held(house)


def _assert_held(house: House) -> None:
    """Every member holds, of each shard that it reads, just what each other one advertises."""
    for member in house.members:
        for other in house.members:
            for shard in member.shards:
                held = member.broker.usage.hash_of(other.name, shard)
                assert held == other.broker.rounds.suppression.hash_of(shard)


def test_a_last_report_that_is_lost_is_missed() -> None:
    house = _house([4, 4, 4])
    shard = shard_of("gold", 4)
    house.world.network.down = {shard}
    for load in house.loads["broker-1"]:
        load.set_rate(0)
    # Long enough for all of it to be taken back, too short for the shard to count as cut off.
    house.run_s(2.9)
    house.world.network.down = set()
    # Before the sender notices by itself that its report did not come back.
    house.run_s(1.6)
    _assert_held(house)
    assert house.members[0].broker.usage.rows_of("broker-1") == {}
    assert house.shares("gold")["broker-0"] >= 80


def test_a_shard_that_is_cut_off_gives_equal_parts_and_comes_back(
    without: Mapping[str, Mapping[str, float]],
) -> None:
    house = _house([4, 4, 4])
    down = shard_of("gold", 4)
    house.world.network.down = {down}
    house.run_s(16)
    reader = house.members[0].broker.shard_reader
    assert reader.joined[down.number].phase is Phase.CUT_OFF
    assert house.shares("gold") == pytest.approx({"broker-0": 33.3, "broker-1": 33.3}, rel=0.01)
    assert house.members[0].broker.mode.value == "live"
    apart = next(group for group in ("silver", "iron") if shard_of(group, 4) != down)
    assert house.shares(apart) == pytest.approx(without[apart], rel=0.03, abs=0.5)
    house.world.network.down = set()
    house.run_s(5)
    assert reader.joined[down.number].phase is Phase.WARM
    _assert_same(house, without)


def test_an_outage_within_the_hold_changes_no_share(
    without: Mapping[str, Mapping[str, float]],
) -> None:
    house = _house([4, 4, 4], seconds=6.5)
    names = [member.name for member in house.members]
    house.world.network.cut = {(one, other) for one in names for other in names}
    house.run_s(2)
    assert {member.broker.mode for member in house.members} == {Mode.HOLDING}
    house.world.network.cut.clear()
    for _ in range(20):
        house.run_s(0.1)
        _assert_same(house, without)
    assert {member.broker.mode for member in house.members} == {Mode.LIVE}
    _assert_held(house)


@pytest.mark.parametrize("change", [(1, 4), _slow((4, 16)), _slow((4, 1))])
def test_the_number_of_shards_is_changed_by_a_rolling_restart_under_load(
    change: tuple[int, int], without: Mapping[str, Mapping[str, float]]
) -> None:
    before, after = change
    house = _house([before] * 3)
    for name, demand in zip(("broker-0", "broker-1", "broker-2"), (*DEMAND, {}), strict=True):
        house.restart(name, demand, shards=after)
        for _ in range(16):
            house.run_s(0.25)
            for group in GROUPS:
                assert sum(house.shares(group).values()) <= 1.02 * QUOTA
        _assert_same(house, without)
    layouts = {member.broker.shards.layouts for member in house.members}
    assert layouts == {(after,) if after > 1 else ()}
    assert all(shard.of == after for member in house.members for shard in member.shards)
    assert Shard(0, 1) == WHOLE
