"""The exchange is out of reach: at the start, for some, for all, for a moment, and again in reach.

The table of docs/operations.md. Not covered: what a client library says of it (a broker believes only what it reads
back), processes and sockets (tests/e2e).
"""

from dataclasses import replace

import pytest

from rgd.core.broker.mode import Mode
from rgd.core.broker.settings import BrokerSettings
from rgd.core.policies.model import OnIsolation
from rgd.core.units import NS_PER_S
from tests.simulation.worlds import (
    SETTINGS,
    Cluster,
    assert_no_overshoot,
    share_of,
    watch_conservation,
)

pytestmark = pytest.mark.slow

QUOTA = 300.0


def cluster_of(
    count: int,
    *,
    on_isolation: OnIsolation = OnIsolation.EQUAL,
    settings: BrokerSettings = SETTINGS,
) -> Cluster:
    """So many members, each wanting the whole quota."""
    chosen = replace(settings, on_isolation=on_isolation)
    return Cluster([QUOTA] * count, quota=QUOTA, settings=chosen)


def start_cut_off(
    settings: BrokerSettings, *, stored_peers: frozenset[str] = frozenset()
) -> Cluster:
    """Three members that start with the exchange out of reach."""
    cluster = Cluster([], quota=QUOTA, settings=settings)
    names = [f"broker-{place}" for place in range(3)]
    cluster.world.network.cut = {(one, other) for one in names for other in names}
    for name in names:
        cluster.add(QUOTA, name=name, stored_peers=stored_peers - {name})
    return cluster


# At the start.


def test_out_of_reach_from_the_start_those_that_know_of_nobody_stay_on_their_floors() -> None:
    cluster = start_cut_off(SETTINGS)
    cluster.run_s(10)
    assert cluster.modes() == {Mode.STARTING}
    assert sum(cluster.admitted_s(0, 10)) <= 3 * 0.01 * QUOTA + 1
    cluster.heal()
    # The hello of the next round, two rounds for answers, a round to tell, and a moment.
    cluster.run_s(4.5)
    assert cluster.shares() == pytest.approx([100] * 3, rel=0.02)
    assert_no_overshoot(cluster, QUOTA, 0, 14.5)


@pytest.mark.parametrize("on_isolation", [OnIsolation.EQUAL, OnIsolation.HOLD])
@pytest.mark.parametrize("knows_by", ["expected", "stored"])
def test_out_of_reach_from_the_start_those_that_know_of_others_take_equal_parts(
    knows_by: str, on_isolation: OnIsolation
) -> None:
    settings = replace(SETTINGS, on_isolation=on_isolation)
    if knows_by == "expected":
        cluster = start_cut_off(replace(settings, expected_brokers=3))
    else:
        names = frozenset(f"broker-{place}" for place in range(3))
        cluster = start_cut_off(settings, stored_peers=names)
    cluster.run_s(1.9)
    assert cluster.modes() == {Mode.STARTING}
    cluster.run_s(0.3)
    assert cluster.modes() == {Mode.EQUAL}
    assert cluster.shares() == [100] * 3
    cluster.run_s(7.8)
    assert sum(cluster.admitted_s(4, 10)) == pytest.approx(QUOTA, rel=0.02)
    cluster.heal()
    cluster.run_s(3)
    assert cluster.agrees()
    assert cluster.shares() == pytest.approx([100] * 3, rel=0.02)
    assert_no_overshoot(cluster, QUOTA, 0, 13)


# For one of them.


@pytest.mark.parametrize(
    ("on_isolation", "share"),
    [(OnIsolation.EQUAL, 75), (OnIsolation.HOLD, 75), (OnIsolation.OPEN, -1)],
)
def test_one_cut_off_holds_its_share_and_then_acts_as_configured(
    on_isolation: OnIsolation, share: float
) -> None:
    cluster = cluster_of(4, on_isolation=on_isolation)
    sums = watch_conservation(cluster)
    cluster.run_s(5.5)
    cluster.cut_off(0)
    # Receipt last at 5; said at 6, missing at 7.1, held until the others give it up.
    cluster.run_s(1.5)
    assert cluster.mode_of(0) is Mode.LIVE
    cluster.run_s(0.9)
    assert cluster.mode_of(0) is Mode.HOLDING
    assert max(sums) <= 1.01
    # Silent since 5, and three rounds and a bit later forgotten.
    cluster.run_s(0.7)
    assert cluster.mode_of(0) == Mode(on_isolation)
    assert cluster.shares() == pytest.approx([share, 100, 100, 100], rel=0.01)
    cluster.run_s(5)
    assert cluster.shares() == pytest.approx([share, 100, 100, 100], rel=0.01)
    # quota x (1 + isolated / N), where those in reach are fair among themselves.
    assert max(sums) <= 1 + 1 / 4 + 0.01
    assert (cluster.admitted_s(10, 14)[0] > 0.8 * QUOTA) == (on_isolation is OnIsolation.OPEN)


def test_cut_off_with_more_than_its_part_it_goes_back_to_an_equal_one() -> None:
    cluster = Cluster([QUOTA, 30, 30], quota=QUOTA)
    cluster.run_s(5.5)
    assert cluster.shares()[0] == pytest.approx(240, rel=0.02)
    cluster.cut_off(0)
    cluster.run_s(4)
    assert cluster.shares()[0] == 100


@pytest.mark.parametrize("hold_rounds", [0, 3])
def test_how_long_shares_are_held_is_a_setting(hold_rounds: int) -> None:
    settings = replace(SETTINGS, isolation_hold_rounds=hold_rounds, expiry_rounds=6)
    cluster = cluster_of(2, settings=settings)
    cluster.run_s(5.5)
    cluster.cut_off(0)
    cluster.run_s(1.55 + hold_rounds)
    assert cluster.mode_of(0) is not Mode.EQUAL
    cluster.run_s(0.1)
    assert cluster.mode_of(0) is Mode.EQUAL


def test_one_that_is_heard_but_hears_nothing_is_cut_off_too() -> None:
    cluster = cluster_of(3)
    cluster.run_s(5.5)
    name = cluster.members[0].name
    cluster.world.network.cut = {(other, name) for other in cluster.world.members}
    cluster.run_s(5)
    assert cluster.mode_of(0) is Mode.EQUAL
    # The others hear it, and keep its part for it.
    assert cluster.shares() == pytest.approx([100] * 3, rel=0.01)


# For all of them.


def test_while_nobody_has_an_exchange_equal_parts_are_never_more_than_the_quota() -> None:
    cluster = Cluster([QUOTA, 30, 30, 0], quota=QUOTA)
    cluster.run_s(5.5)
    cluster.cut_off(0, 1, 2, 3)
    sums = watch_conservation(cluster)
    cluster.run_s(20)
    assert cluster.modes() == {Mode.EQUAL}
    assert cluster.shares()[:3] == [75] * 3
    # Each goes over to its equal part at a moment of its own.
    assert max(sums) <= 1.25
    assert sums[-1] <= 1.001
    assert_no_overshoot(cluster, QUOTA, 0, 25)
    cluster.heal()
    sums.clear()
    cluster.run_s(3)
    assert cluster.agrees()
    # Who has heard all of them goes by the map again while others still have their equal part.
    assert max(sums) <= 1.3
    assert sums[-1] <= 1.001
    assert cluster.shares()[:3] == pytest.approx([240, 30, 30], rel=0.02)


def test_two_parts_that_each_have_an_exchange_hand_out_one_quota_each_and_then_one() -> None:
    cluster = cluster_of(4)
    cluster.run_s(5.5)
    names = [member.name for member in cluster.members]
    parts = [set(names[:2]), set(names[2:])]
    cluster.world.network.cut = {
        (one, other) for part in parts for one in part for other in set(names) - part
    }
    cluster.run_s(6)
    assert cluster.modes() == {Mode.LIVE}
    assert cluster.shares() == pytest.approx([150] * 4, rel=0.02)
    cluster.heal()
    cluster.run_s(2.5)
    assert cluster.agrees()
    assert cluster.shares() == pytest.approx([75] * 4, rel=0.02)


# For a moment.


def test_an_outage_shorter_than_the_hold_changes_no_share_and_loses_nobody() -> None:
    cluster = cluster_of(3)
    cluster.run_s(5.5)
    cluster.cut_off(0, 1, 2)
    cluster.run_s(1.9)
    assert cluster.modes() == {Mode.HOLDING}
    cluster.heal()
    shares = cluster.shares()
    cluster.run_s(1.1)
    assert cluster.modes() == {Mode.LIVE}
    assert cluster.shares() == pytest.approx(shares, rel=0.01)
    assert all(len(member.broker.peers) == 2 for member in cluster.members)


# Again in reach.


def test_back_in_reach_the_peers_are_asked_first_and_there_is_no_burst() -> None:
    cluster = cluster_of(3)
    cluster.run_s(5.5)
    cluster.cut_off(0)
    cluster.run_s(10)
    assert cluster.shares() == pytest.approx([100, 150, 150], rel=0.02)
    cluster.heal()
    cluster.run_s(0.6)
    member = cluster.members[0]
    # Receipt again at 16, and what it may grant until the answers are in is its equal part.
    assert cluster.mode_of(0) is Mode.REJOINING
    assert share_of(member) == pytest.approx(QUOTA / 3)
    cluster.run_s(2)
    assert cluster.modes() == {Mode.LIVE}
    assert cluster.shares() == pytest.approx([100] * 3, rel=0.02)
    assert_no_overshoot(cluster, QUOTA, 16.1, 18.1)


def test_a_round_cut_off_is_marked_in_the_log() -> None:
    cluster = cluster_of(2)
    cluster.run_s(5.5)
    cluster.cut_off(0)
    cluster.run_s(3)
    marked = [
        record.isolated for record in cluster.members[0].records if record.period_ns == NS_PER_S
    ]
    assert marked[-1]
    assert not any(marked[:-1])
