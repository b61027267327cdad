"""Two daemons under one name: stopped, cut off or split off and back.

What must hold: over ten rounds no more is admitted than the stated bound, and when it is over one
daemon of each name is left. Not covered: real processes (tests/e2e/test_one_name.py).
"""

from collections import Counter

import pytest

from rgd.core.broker.effects import AlarmCode
from rgd.core.broker.mode import Mode
from rgd.core.units import NS_PER_MS, NS_PER_S
from sim.fault import Deed
from sim.member import Member
from sim.network import Network
from sim.run import run
from sim.scenarios import SCENARIOS
from tests.simulation.worlds import Cluster, share_of

pytestmark = pytest.mark.slow

QUOTA = 300.0
#: What a name costs on its way to its other daemon: bursts, and a round of two shares at most.
TWO_FOR_A_ROUND = 0.05
#: What one cut off from its own words grants beside the others, of three: 1 / 3 (`equal`).
CUT_OFF = 1 / 3


def busy() -> Cluster:
    """Three members that each want the whole quota, five rounds old."""
    cluster = Cluster([QUOTA] * 3, quota=QUOTA)
    cluster.run_s(5)
    return cluster


def twin_of(cluster: Cluster, place: int) -> Member:
    """A second daemon under the name of a member."""
    name = cluster.members[place].name
    return cluster.add(QUOTA, name=name, address=f"{name}, too")


def stop(cluster: Cluster, place: int, seconds: float) -> None:
    """Stop a member, as SIGSTOP does, until SIGCONT."""
    cluster.world.freeze(cluster.members[place], round(seconds * NS_PER_S))


def most_admitted(cluster: Cluster, begin_s: float, *, window_s: float = 10) -> float:
    """The most admitted in any window, by the quota; windows begin every tenth of a second."""
    grants = [grant for load in cluster.loads for grant in load.grants]
    most, begin = 0.0, begin_s
    while begin + window_s <= cluster.now_s:
        first, end = begin * NS_PER_S, (begin + window_s) * NS_PER_S
        admitted = sum(count for at, count in grants if first <= at < end)
        most = max(most, admitted / (QUOTA * window_s))
        begin += 0.1
    return most


def is_over(member: Member) -> bool:
    return member.halted is not None


def has_yielded(member: Member) -> bool:
    return any(alarm.code is AlarmCode.NAME_YIELDED for alarm in member.alarms)


# Stopped, and back.


def test_one_that_was_stopped_yields_to_the_daemon_that_took_its_name_and_ends() -> None:
    cluster = busy()
    stop(cluster, 0, 10)
    cluster.run_s(5)
    twin = twin_of(cluster, 0)
    cluster.run_s(5.3)
    zombie = cluster.members[0]
    # A message's way there and back, and the shortest time between two reports.
    assert zombie.broker.mode is Mode.YIELDING
    assert share_of(zombie) <= 0.01 * QUOTA
    assert share_of(twin) == pytest.approx(100, rel=0.02)
    assert (zombie.halted, twin.halted) == (None, None)
    cluster.run_s(9)
    assert not is_over(zombie)
    cluster.run_s(1.5)
    assert zombie.halted is not None
    assert "another daemon speaks for broker 'broker-0'" in zombie.halted
    assert cluster.agrees()
    assert not has_yielded(twin)
    assert most_admitted(cluster, 5) <= 1 + TWO_FOR_A_ROUND


def test_one_that_was_stopped_for_less_than_the_expiry_finds_its_name_taken_too() -> None:
    cluster = busy()
    stop(cluster, 0, 2.9)
    twin = twin_of(cluster, 0)
    cluster.run_s(3.3)
    zombie = cluster.members[0]
    # Who has held the name for two rounds is no newcomer any more.
    assert has_yielded(zombie)
    cluster.run_s(11)
    assert zombie.halted is not None
    assert twin.halted is None
    assert cluster.agrees()
    assert most_admitted(cluster, 5, window_s=5) <= 1 + 2 * TWO_FOR_A_ROUND


def test_one_that_was_stopped_for_a_moment_keeps_its_name_and_the_newcomer_goes() -> None:
    cluster = busy()
    stop(cluster, 0, 0.9)
    twin = twin_of(cluster, 0)
    cluster.run_s(3)
    assert twin.halted is not None
    assert cluster.members[0].halted is None
    assert not has_yielded(cluster.members[0])
    cluster.run_s(4)
    assert cluster.agrees()


def test_the_other_one_gone_the_one_that_yielded_is_back() -> None:
    cluster = busy()
    stop(cluster, 0, 10)
    cluster.run_s(5)
    twin_of(cluster, 0)
    cluster.run_s(7)
    assert has_yielded(cluster.members[0])
    cluster.leave(3)
    cluster.run_s(5)
    assert cluster.members[0].broker.mode is Mode.LIVE
    assert cluster.agrees()
    assert cluster.shares()[:3] == pytest.approx([100] * 3, rel=0.02)
    cluster.run_s(10)
    assert cluster.members[0].halted is None


def test_both_were_stopped_and_one_of_them_stays() -> None:
    cluster = busy()
    stop(cluster, 0, 10)
    cluster.run_s(5)
    twin_of(cluster, 0)
    cluster.run_s(3)
    stop(cluster, 3, 6)
    cluster.run_s(25)
    live = [cluster.members[place] for place in (0, 3) if cluster.members[place].halted is None]
    assert len(live) == 1
    assert live[0].broker.mode is Mode.LIVE
    assert cluster.agrees()


# Cut off, and back.


def test_one_that_was_cut_off_yields_to_the_daemon_that_took_its_name() -> None:
    cluster = busy()
    cluster.cut_off(0)
    cluster.world.network.cut |= {("broker-0", "broker-0, too"), ("broker-0, too", "broker-0")}
    cluster.run_s(6)
    twin = twin_of(cluster, 0)
    cluster.run_s(6)
    assert not has_yielded(cluster.members[0])
    cluster.heal()
    cluster.run_s(1.5)
    zombie = cluster.members[0]
    assert has_yielded(zombie)
    assert share_of(zombie) <= 0.01 * QUOTA
    cluster.run_s(11)
    assert (zombie.halted is None, twin.halted is None) == (False, True)
    assert cluster.agrees()
    assert most_admitted(cluster, 5) <= 1 + CUT_OFF + TWO_FOR_A_ROUND


@pytest.mark.parametrize("seed", range(3))
def test_two_that_each_had_an_exchange_settle_it_when_it_is_one_again(seed: int) -> None:
    cluster = Cluster([QUOTA] * 3, quota=QUOTA, seed=seed)
    cluster.run_s(5)
    parts = [{"broker-0", "broker-1"}, {"broker-2", "broker-0, too"}]
    cluster.world.network.cut = {
        pair for one in parts[0] for two in parts[1] for pair in ((one, two), (two, one))
    }
    twin_of(cluster, 0)
    cluster.run_s(6)
    assert len(cluster.live) == 4
    cluster.heal()
    cluster.run_s(2.5)
    names = (cluster.members[0], cluster.members[3])
    low, high = sorted(names, key=lambda member: member.broker.identity.sender.incarnation)
    assert (has_yielded(low), has_yielded(high)) == (False, True)
    cluster.run_s(11)
    assert (low.halted is None, high.halted is None) == (True, False)
    assert cluster.agrees()


def test_a_third_daemon_of_the_name_changes_nothing() -> None:
    cluster = busy()
    stop(cluster, 0, 10)
    cluster.run_s(4)
    twin_of(cluster, 0)
    cluster.run_s(3)
    stop(cluster, 3, 10)
    cluster.run_s(2)
    cluster.add(QUOTA, name="broker-0", address="broker-0, the third")
    cluster.run_s(25)
    live = [member for member in cluster.members if member.halted is None]
    assert len(live) == 3
    assert cluster.agrees()


# Crashed, and back at once.


@pytest.mark.parametrize("seed", range(10))
def test_late_messages_of_a_crashed_daemon_do_not_stop_its_restart(seed: int) -> None:
    network = Network(delay_min_ns=NS_PER_MS, delay_max_ns=700 * NS_PER_MS, duplication=0.3)
    cluster = Cluster([QUOTA] * 2, quota=QUOTA, seed=seed, network=network)
    cluster.run_s(3 + seed / 20)
    # Its full state is still under way when it is back: somebody has just asked for it.
    asker = cluster.add(0)
    cluster.run_s(0.5)
    cluster.crash(1)
    again = cluster.add(QUOTA, name=cluster.members[1].name)
    cluster.run_s(4)
    assert (again.halted, asker.halted) == (None, None)


# All of it, by chance.


def test_the_scenario_of_one_zombie_breaks_no_law() -> None:
    outcome = run(SCENARIOS["zombie"], seed=0)
    assert outcome.violations == []
    assert outcome.figures.overshoot_10 is not None
    assert outcome.figures.overshoot_10 <= 1.02
    assert [member.halted is None for member in outcome.cluster.members if member] == [
        False,
        *[True] * 4,
    ]


@pytest.mark.parametrize("seed", range(4))
def test_whatever_zombies_do_one_daemon_of_each_name_is_left(seed: int) -> None:
    outcome = run(SCENARIOS["zombies"], seed=seed)
    assert outcome.violations == []
    live = outcome.cluster.live
    names = Counter(member.broker.settings.sender.broker for member in live)
    assert names == {"broker-000": 1, "broker-001": 1, "broker-002": 1}
    assert {member.broker.mode for member in live} == {Mode.LIVE}
    deeds = Counter(fault.deed for fault in outcome.cluster.faults)
    away = deeds[Deed.CUT] + deeds[Deed.SLOW]
    # One that is cut off has an equal part among the brokers that it still knew: stopped ones had expired.
    part = 1 / max(1, 3 - deeds[Deed.FREEZE])
    assert outcome.figures.overshoot_10 is not None
    assert outcome.figures.overshoot_10 <= 1 + away * part + TWO_FOR_A_ROUND
