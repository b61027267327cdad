"""From the usage map to the share in force, in every mode.

Not covered: when the mode changes (test_exchange_state.py), what a policy does (tests/unit/core/shares),
any sequence of targets (tests/property/test_damping.py), who has which index (test_broker_index.py).
"""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from rgd.core.broker.mode import Mode
from rgd.core.exchange.suppression import OwnRates
from rgd.core.policies.model import BLOCKED, UNLIMITED, Group, Limit, Rates, SharePolicyName
from rgd.core.shares.columns import NO_RATE
from rgd.core.units import Kind
from tests.unit.core.broker.sharing_house import SETTINGS, START, House
from tests.unit.core.values import key, rates, report, usage


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


def test_both_dimensions_are_shared_as_one_decision() -> None:
    house = House(replace(SETTINGS, floor_ppm=0))
    house.own(usage(100, size=50))
    house.peer(usage(50, size=100))
    # Law 5 of docs/architecture.md.
    assert house.use(100, 100) == Rates(66_667, 33_333)
    assert house.sharing.shares(key())["b2"] == Rates(33_333, 66_667)


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
    house.change(replace(house.quota(), policy=SharePolicyName.MAX_MIN))
    assert house.sharing.shares(key())["b1"] == rates(50)


@pytest.mark.parametrize("policy", [SharePolicyName.MAX_MIN, SharePolicyName.PROPORTIONAL])
def test_admitted_work_moves_shares_under_the_policies_that_count_it(
    policy: SharePolicyName,
) -> None:
    house = House(replace(SETTINGS, policy=policy))
    house.own(usage(200, 75))
    house.peer(usage(200, 25))
    house.use()
    assert len(house.usage.apply(report("b2", usage(300, 25)))) == 1
    told = house.usage.apply(report("b2", usage(300, 50)))
    assert len(told) == (policy is not SharePolicyName.MAX_MIN)


def test_a_group_that_does_not_exist_is_unlimited(house: House) -> None:
    assert house.sharing.quota(key("gone")) == UNLIMITED
    assert house.sharing.shares(key("gone")) == {"b1": UNLIMITED}


def test_the_shares_of_many_groups_are_reckoned_each_by_its_own_rows(house: House) -> None:
    groups = [Group(f"g{place}", Limit(rates(100 + place))) for place in range(5)]
    house.change(*groups)
    house.own(*(usage(90, group=group.name) for group in groups[1:]))
    house.peer(*(usage(10 * place, group=f"g{place}") for place in range(1, 5)))
    in_use = {group.name: house.sharing.first_share(group, Kind.PUBLISH, START) for group in groups}
    assert in_use == {
        # Of nobody, evenly; and what nobody wants, evenly.
        "g0": rates(50),
        "g1": rates(90.5),
        "g2": rates(82),
        "g3": rates(73),
        "g4": rates(64),
    }


# Whether a change of ours moves a share.


def test_a_change_of_ours_that_moves_anybodys_share_by_more_than_a_percent_is_seen(
    house: House,
) -> None:
    house.own(usage(30))
    house.peer(usage(90))
    house.use()
    # What we leave is b2's: 70 it has of us wanting 30.
    assert not house.moves_share(usage(30), usage(30))
    assert not house.moves_share(usage(30), usage(30.2))
    assert house.moves_share(usage(30), usage(31))
    assert house.moves_share(usage(30), usage(29))
    # Beyond the equal part more of the same moves nothing.
    assert not house.moves_share(usage(60), usage(600))
    # The map is as it was.
    assert house.sharing.shares(key())["b1"] == rates(30)


def test_a_share_of_another_that_moves_counts_as_ours_does() -> None:
    house = House(replace(SETTINGS, floor_ppm=0))
    house.own(usage(95))
    house.peer(usage(90))
    house.use(1000)
    # Both want less than there is; what is left is halved.
    assert house.moves_share(usage(10), usage(60))
    house.quota(10_000)
    assert not house.moves_share(usage(10), usage(60))


def test_a_share_that_comes_out_of_nothing_moves(house: House) -> None:
    house = House(replace(SETTINGS, floor_ppm=0))
    house.peer(usage(500))
    house.use()
    assert house.moves_share(usage(0), usage(0.001))


def test_in_an_unlimited_dimension_nothing_moves(house: House) -> None:
    house.peer(usage(90))
    house.use(None, 400)
    assert not house.moves_share(usage(1), usage(1000))
    assert house.moves_share(usage(1, size=1), usage(1, size=100))


def test_whether_a_group_moves_does_not_depend_on_the_others_asked_for(house: House) -> None:
    house.change(*(Group(f"g{place}", Limit(rates(100))) for place in range(3)))
    house.peer(*(usage(90, group=f"g{place}") for place in range(3)))
    for group in house.sharing.snapshot.groups.values():
        house.sharing.first_share(group, Kind.PUBLISH, START)
    wanted = np.array([[30_000, 0]] * 3)
    more = np.array([[30_000, 0], [35_000, 0], [30_000, 0]])
    places = house.slots(*(key(f"g{place}") for place in range(3)))
    moves = house.sharing.moves_share(places, OwnRates(wanted, wanted), OwnRates(more, more))
    assert moves.tolist() == [False, True, False]


# Whether a group is short.


@pytest.mark.parametrize(
    ("messages", "size", "is_short"),
    [
        pytest.param(50, 0, False, id="all-of-it"),
        pytest.param(50.001, 0, True, id="messages"),
        pytest.param(1, 101, True, id="bytes"),
        pytest.param(1, 100, False, id="bytes-all-of-it"),
    ],
)
def test_a_group_is_short_of_which_more_is_wanted_than_there_is(
    house: House, messages: float, size: float, is_short: bool
) -> None:
    house.own(usage(50, size=100))
    house.peer(usage(messages, 0, size=size))
    house.use(100, 200)
    assert house.sharing.is_short(house.slots(key())).tolist() == [is_short]


def test_what_is_unlimited_is_never_short_nor_what_is_not_in_use(house: House) -> None:
    house.peer(usage(10**9), usage(10**9, group="other"))
    house.use(None, 100)
    assert house.sharing.is_short(house.slots(key(), key("other"), key("new"))).tolist() == (
        [False] * 3
    )


def test_quotas_are_those_of_the_snapshot_and_unlimited_where_nothing_is_in_use(
    house: House,
) -> None:
    house.use(100, None)
    assert house.sharing.quotas(house.slots(key(), key("other"))).tolist() == [
        [100_000, -1],
        [-1, -1],
    ]
    house.quota(None, 7)
    assert house.sharing.quotas(house.slots(key())).tolist() == [[-1, 7_000]]
    # Many more than there was room for at first.
    others = house.slots(*(key(f"g{place}") for place in range(500)))
    assert (house.sharing.quotas(others) == NO_RATE).all()
    house.peer(*(usage(5, group=f"g{place}") for place in range(500)))
    assert not house.sharing.is_short(others).any()
    assert house.sharing.quotas(house.slots(key())).tolist() == [[-1, 7_000]]


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
    assert house.gate.live_brokers == known


# The other modes.


def test_while_starting_the_floor_is_granted_as_for_everybody_known() -> None:
    house = House(replace(SETTINGS, expected_brokers=4))
    house.sharing.mode = Mode.STARTING
    # 1 % of 100 and of 999.1, for four: the smallest part, so that four of them are never more.
    assert house.use(100, 999.1) == Rates(250, 2497)
    assert House().use(100) == rates(100)


@pytest.mark.parametrize("mode", [Mode.EQUAL, Mode.REJOINING])
def test_cut_off_and_equal_the_part_is_the_quota_over_everybody_known(mode: Mode) -> None:
    house = House(replace(SETTINGS, stored_peers=frozenset({"b2", "b3"})))
    house.own(usage(5))
    house.sharing.mode = mode
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
    house.change(replace(house.quota(), blocked=True))
    assert house.applied[-1][:2] == (key(), BLOCKED)


@pytest.mark.parametrize("mode", Mode)
def test_the_modes_of_one_cut_off_are_told_from_the_others(mode: Mode) -> None:
    others = {Mode.STARTING, Mode.LIVE, Mode.REJOINING, Mode.YIELDING}
    assert mode.is_isolated is (mode not in others)
    assert mode.is_on_floor is (mode in {Mode.STARTING, Mode.YIELDING})
    assert mode.is_waiting is (mode in {Mode.STARTING, Mode.REJOINING})
    assert mode.believes_map is (mode in {Mode.LIVE, Mode.HOLDING, Mode.HOLD})
