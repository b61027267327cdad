"""From the usage map to the share in force, in every mode.

Not covered: when the mode changes (test_standing.py), what a policy does (tests/unit/core/shares),
any sequence of targets (tests/property/test_settling.py).
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import pytest

from rgd.core.broker.link import Link
from rgd.core.broker.settings import BrokerSettings
from rgd.core.broker.sharing import Mode, SettlingRate, Sharing
from rgd.core.buckets.level import GroupKey
from rgd.core.errors import InvariantBroken
from rgd.core.exchange.messages import Speaker, UsageRow
from rgd.core.exchange.peers import Peers
from rgd.core.exchange.usage_map import UsageMap
from rgd.core.policies.book import PolicyBook
from rgd.core.policies.model import BLOCKED, UNLIMITED, Group, Limit, Rates, SharePolicyName
from rgd.core.units import Kind, Nanos
from tests.unit.core.values import key, ms, rates, report, usage

SETTINGS = BrokerSettings(Speaker("b1", 1), floor_ppm=10_000)
START = Nanos(0)


@dataclass
class House:
    """A Sharing with what it reads, and what it told the limiter."""

    settings: BrokerSettings = SETTINGS
    usage: UsageMap = field(default_factory=UsageMap)
    peers: Peers = field(default_factory=lambda: Peers(0))
    link: Link = field(default_factory=lambda: Link(ms(1100), ms(100)))
    applied: list[tuple[GroupKey, Rates, Nanos]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.sharing = Sharing(
            self.settings,
            self.usage,
            self.peers,
            self.link,
            apply=lambda *told: self.applied.append(told),
        )
        self.sharing.mode = Mode.LIVE

    def quota(self, messages: float | None = 100, size: float | None = None) -> Group:
        """Put a group of this quota in force, in place of every other."""
        group = Group("gold", Limit(rates(messages, size), rates(messages, size)))
        self.sharing.book = PolicyBook({"gold": group})
        return group

    def use(self, messages: float | None = 100, size: float | None = None) -> Rates:
        """Ask for the group for the first time."""
        return self.sharing.share_of(self.quota(messages, size), Kind.PUBLISH, START)

    def peer(self, *rows: UsageRow, broker: str = "b2", weight: int = 1000) -> None:
        """Let a peer tell rows."""
        told = report(broker, *rows, weight=weight)
        self.peers.hear(told.speaker, START)
        self.peers.advance(told)
        self.usage.apply(told)

    def due(self) -> Nanos | None:
        """When the next raise comes into force."""
        return self.sharing.settles_at

    def own(self, *rows: UsageRow) -> None:
        """Read our own rows back."""
        self.usage.apply(report("b1", *rows))


@pytest.fixture
def house() -> Iterator[House]:
    made = House()
    yield made
    made.sharing.validate()


# Live: the usage map.


def test_a_share_is_what_the_policy_makes_of_the_map(house: House) -> None:
    house.own(usage(90))
    house.peer(usage(30))
    assert house.use() == rates(70)
    assert house.sharing.shares(key()) == {"b1": rates(70), "b2": rates(30)}


def test_a_live_broker_without_a_row_has_its_floor(house: House) -> None:
    house.own(usage(200))
    house.peer()
    assert house.sharing.brokers == ["b1", "b2"]
    assert house.use() == rates(99.5)


def test_each_dimension_is_shared_by_its_own_rates(house: House) -> None:
    house.own(usage(90, size=100))
    house.peer(usage(90, size=1000))
    assert house.use(100, 400) == rates(50, 100)


def test_an_unlimited_dimension_is_not_shared(house: House) -> None:
    house.peer(usage(90, size=1000))
    assert house.use(None, 400) == rates(None, 2)


def test_weights_count_ours_too() -> None:
    house = House(replace(SETTINGS, weight=3000, floor_ppm=0))
    house.own(usage(200))
    house.peer(usage(200), weight=1000)
    assert house.use() == rates(75)


def test_a_groups_own_policy_stands_above_the_daemons() -> None:
    house = House(replace(SETTINGS, policy=SharePolicyName.PROPORTIONAL, floor_ppm=0))
    house.own(usage(200, 75))
    house.peer(usage(200, 25))
    assert house.use() == rates(75)
    house.sharing.book = PolicyBook(
        {"gold": replace(house.quota(), policy=SharePolicyName.MAX_MIN)}
    )
    assert house.sharing.shares(key())["b1"] == rates(50)


def test_a_group_that_does_not_exist_is_unlimited(house: House) -> None:
    assert house.sharing.quota(key("gone")) == UNLIMITED
    assert house.sharing.shares(key("gone")) == {"b1": UNLIMITED}


def test_shares_can_be_reckoned_with_another_row_in_place_of_ours(house: House) -> None:
    house.own(usage(30))
    house.peer(usage(90))
    house.use()
    assert house.sharing.shares_if(key(), usage(200)) == (50_000, 50_000)
    assert house.sharing.shares_if(key(), usage(0)) == (5_250, 94_750)
    # The map is as it was.
    assert house.sharing.shares(key())["b1"] == rates(30)


def test_shares_of_a_limited_dimension_alone_are_compared(house: House) -> None:
    house.peer(usage(90))
    house.use(100, None)
    assert len(house.sharing.shares_if(key(), usage(1))) == 2


# Who is known.


@pytest.mark.parametrize(
    ("expected", "stored", "known"),
    [
        pytest.param(1, frozenset[str](), 2, id="heard"),
        pytest.param(5, frozenset({"b3"}), 5, id="expected"),
        pytest.param(1, frozenset({"b2", "b3", "b4"}), 4, id="stored"),
    ],
)
def test_known_are_never_fewer_than_expected_stored_or_heard(
    expected: int, stored: frozenset[str], known: int
) -> None:
    house = House(replace(SETTINGS, expected_brokers=expected, stored_peers=stored))
    house.peer()
    assert house.sharing.known_brokers() == known


# The other modes.


def test_while_starting_the_floor_is_granted_as_for_everybody_known() -> None:
    house = House(replace(SETTINGS, expected_brokers=4))
    house.sharing.mode = Mode.STARTING
    # 1 % of 100 and of 999.1, for four: the smallest part, so that four of them are never more.
    assert house.use(100, 999.1) == Rates(250, 2497)
    assert House().use(100) == rates(100)


def test_cut_off_and_equal_the_part_is_the_quota_over_everybody_known() -> None:
    house = House(replace(SETTINGS, stored_peers=frozenset({"b2", "b3"})))
    house.own(usage(5))
    house.sharing.mode = Mode.EQUAL
    assert house.use(100, None) == Rates(33_333, None)


@pytest.mark.parametrize("mode", [Mode.HOLDING, Mode.HOLD])
def test_cut_off_and_holding_the_map_goes_on_to_count(house: House, mode: Mode) -> None:
    house.own(usage(90))
    house.peer(usage(30))
    house.sharing.mode = mode
    assert house.use() == rates(70)


def test_cut_off_and_open_nothing_is_limited_but_what_is_blocked(house: House) -> None:
    house.sharing.mode = Mode.OPEN
    assert house.use(100, 100) == UNLIMITED
    house.sharing.book = PolicyBook({"gold": replace(house.quota(), blocked=True)})
    house.sharing.refresh_all(START)
    assert house.applied == [(key(), BLOCKED, START)]


@pytest.mark.parametrize("mode", Mode)
def test_the_modes_of_one_cut_off_are_told_from_the_others(mode: Mode) -> None:
    assert mode.is_isolated is (mode not in {Mode.STARTING, Mode.LIVE})


# Settling.


def test_a_cut_is_in_force_at_once_and_a_raise_when_it_has_settled(house: House) -> None:
    house.peer(usage(90))
    house.own(usage(90))
    assert house.use() == rates(50)
    house.usage.apply(report("b2", usage(20), sequence=2))
    house.sharing.refresh([key()], ms(1000))
    assert house.applied == [(key(), rates(50), ms(1000))]
    assert house.due() == ms(1100)
    house.sharing.settle(ms(1099))
    assert len(house.applied) == 1
    house.sharing.settle(ms(1100))
    assert house.applied[1:] == [(key(), rates(80), ms(1100))]
    assert house.due() is None
    house.usage.apply(report("b2", usage(90), sequence=3))
    house.sharing.refresh([key()], ms(1200))
    assert house.applied[2:] == [(key(), rates(50), ms(1200))]


def test_each_dimension_settles_by_itself(house: House) -> None:
    house.peer(usage(90, size=90))
    house.own(usage(90, size=90))
    assert house.use(100, 100) == rates(50, 50)
    house.usage.apply(report("b2", usage(20, size=200), sequence=2))
    house.usage.apply(report("b1", usage(90, size=20), sequence=2))
    house.sharing.refresh([key()], ms(1000))
    assert house.applied == [(key(), rates(50, 20), ms(1000))]
    house.sharing.settle(ms(1100))
    assert house.applied[1:] == [(key(), rates(80, 20), ms(1100))]


def test_the_earliest_raise_of_any_group_is_waited_for(house: House) -> None:
    groups = {name: Group(name, Limit(rates(100))) for name in ("gold", "trial")}
    house.sharing.book = PolicyBook(groups)
    house.peer(usage(100, group="gold"), usage(100, group="trial"))
    for group in groups.values():
        house.sharing.share_of(group, Kind.PUBLISH, START)
    house.usage.apply(report("b2", usage(40, group="gold"), sequence=2))
    house.sharing.refresh([key("gold")], ms(20))
    house.usage.apply(report("b2", usage(40, group="trial"), sequence=3))
    house.sharing.refresh([key("trial")], ms(10))
    assert house.due() == ms(110)


def test_a_raise_waits_as_long_as_reports_take(house: House) -> None:
    house.link.said(1, ms(0))
    house.link.heard(1, ms(30))
    house.peer(usage(90))
    house.own(usage(90))
    house.use()
    house.usage.apply(report("b2", usage(20), sequence=2))
    house.sharing.refresh([key()], ms(1000))
    assert house.due() == ms(1030)


def test_a_new_book_does_not_hasten_a_raise(house: House) -> None:
    house.peer(usage(90))
    house.own(usage(90))
    house.use()
    house.usage.apply(report("b2", usage(20), sequence=2))
    house.sharing.refresh([key()], ms(1000))
    # As the limiter asks for every group in use when the book changes.
    assert house.sharing.share_of(house.quota(), Kind.PUBLISH, ms(1050)) == rates(50)
    assert house.due() == ms(1100)


def test_a_quota_that_comes_cuts_at_once_and_one_that_goes_settles_first(house: House) -> None:
    assert house.use(None) == UNLIMITED
    house.quota(100)
    house.sharing.refresh_all(ms(0))
    house.quota(None)
    house.sharing.refresh_all(ms(1000))
    house.sharing.settle(ms(1100))
    assert [share for _, share, _ in house.applied] == [rates(100), rates(100), UNLIMITED]


def test_a_group_that_is_not_in_use_is_not_reckoned(house: House) -> None:
    house.quota()
    house.sharing.refresh([key()], START)
    assert house.applied == []


def test_a_group_that_is_gone_is_forgotten_and_settles_anew_when_it_is_back(house: House) -> None:
    house.peer(usage(90))
    house.own(usage(90))
    house.use()
    house.sharing.book = PolicyBook()
    house.sharing.refresh_all(ms(1000))
    assert house.applied == []
    house.usage.apply(report("b2", usage(20), sequence=2))
    assert house.sharing.share_of(house.quota(), Kind.PUBLISH, ms(2000)) == rates(80)


def test_a_share_that_was_not_reckoned_anew_is_a_bug() -> None:
    house = House()
    house.use()
    house.peer(usage(90))
    with pytest.raises(InvariantBroken, match="settles on"):
        house.sharing.validate()


# One rate.


def test_a_rate_in_force_is_the_first_of_rising_targets() -> None:
    rate = SettlingRate(10, ms(0))
    rate.aim(20, ms(5))
    rate.aim(30, ms(7))
    assert (rate.at(ms(14), ms(10)), rate.next_at(ms(10)), rate.target) == (10, ms(15), 30)
    assert (rate.at(ms(15), ms(10)), rate.next_at(ms(10))) == (20, ms(17))
    assert (rate.at(ms(99), ms(10)), rate.next_at(ms(10))) == (30, None)


def test_the_same_target_again_is_not_put_off() -> None:
    rate = SettlingRate(10, ms(0))
    for now in range(5, 15):
        rate.aim(20, ms(now))
    assert rate.at(ms(15), ms(10)) == 20


def test_a_cut_forgets_the_raises_above_it_alone() -> None:
    rate = SettlingRate(10, ms(0))
    for now, target in ((1, 20), (2, 30), (3, None), (4, 25)):
        rate.aim(target, ms(now))
    assert rate.at(ms(11), ms(10)) == 20
    # It was at least 25 since the target of 30.
    assert rate.at(ms(12), ms(10)) == 25
    rate.aim(5, ms(15))
    assert rate.at(ms(15), ms(10)) == 5
