"""Daemons that come, go, crash, come back and share a name, while all the others serve.

The table of docs/operations.md. Not covered: start-ups of many at once (test_start.py), the exchange out of reach
(test_isolation.py).
"""

from random import Random

import pytest

from rgd.core.broker.effects import AlarmCode
from rgd.core.units import NS_PER_MS
from sim.network import Network
from tests.simulation.worlds import Cluster, assert_no_overshoot, watch_conservation

pytestmark = pytest.mark.slow

QUOTA = 300.0


def busy(count: int, *, seed: int = 0, network: Network | None = None) -> Cluster:
    """So many members that each want the whole quota, five rounds old."""
    cluster = Cluster([QUOTA] * count, quota=QUOTA, seed=seed, network=network)
    cluster.run_s(5)
    return cluster


def alarms(cluster: Cluster, code: AlarmCode) -> int:
    return sum(alarm.code is code for member in cluster.members for alarm in member.alarms)


def test_what_one_leaves_behind_with_a_goodbye_is_shared_at_once() -> None:
    cluster = busy(3)
    sums = watch_conservation(cluster)
    cluster.leave(2)
    # A message's way, and as long again until it has settled.
    cluster.run_s(0.05)
    assert cluster.shares()[:2] == pytest.approx([150] * 2, rel=0.01)
    cluster.run_s(3)
    assert cluster.shares()[:2] == pytest.approx([150] * 2, rel=0.01)
    assert max(sums) <= 1.01
    assert alarms(cluster, AlarmCode.PEER_LEFT) == 2
    assert alarms(cluster, AlarmCode.PEER_EXPIRED) == 0
    assert cluster.members[0].remembered == ("broker-1",)


def test_what_one_leaves_behind_without_a_word_is_kept_for_expiry_rounds_and_then_shared() -> None:
    cluster = busy(3)
    sums = watch_conservation(cluster)
    cluster.crash(2)
    # Last heard a moment after 5.
    cluster.run_s(3.0)
    assert cluster.shares()[:2] == pytest.approx([100] * 2, rel=0.01)
    cluster.run_s(0.5)
    assert cluster.shares()[:2] == pytest.approx([150] * 2, rel=0.01)
    assert max(sums) <= 1.01
    assert alarms(cluster, AlarmCode.PEER_EXPIRED) == 2


def test_late_messages_do_not_bring_back_one_that_has_left() -> None:
    network = Network(delay_min_ns=NS_PER_MS, delay_max_ns=100 * NS_PER_MS, duplication=1.0)
    for seed in range(8):
        cluster = busy(3, seed=seed, network=network)
        # A report of the round, and the goodbye in the same moment: either may come first.
        cluster.leave(2)
        cluster.run_s(0.3)
        assert [len(member.broker.peers) for member in cluster.members[:2]] == [1, 1]


def test_one_that_crashed_and_is_back_at_once_has_its_part_again() -> None:
    cluster = busy(3)
    sums = watch_conservation(cluster)
    cluster.crash(2)
    again = cluster.add(QUOTA, name="broker-2")
    cluster.run_s(3.2)
    assert again.halted is None
    assert cluster.agrees()
    assert [*cluster.shares()[:2], cluster.shares()[3]] == pytest.approx([100] * 3, rel=0.02)
    assert max(sums) <= 1.01
    assert alarms(cluster, AlarmCode.PEER_RESTARTED) == 2


def test_a_duplicate_is_refused_and_takes_nothing_of_anybodys_share() -> None:
    cluster = busy(3)
    sums = watch_conservation(cluster)
    owner = cluster.members[1]
    namesake = cluster.add(QUOTA, name=owner.name)
    # The world knows members by name: let the owner hear as well.
    cluster.world.members[owner.name] = owner
    cluster.world.members["the other"] = namesake
    cluster.run_s(3)
    assert namesake.halted is not None
    assert owner.halted is None
    assert cluster.agrees()
    # All that was handed out beyond the quota is the namesake's floor, for a moment.
    assert max(sums) <= 1.011
    assert alarms(cluster, AlarmCode.PEER_RESTARTED) == 0


def test_an_idle_daemon_is_a_member_too_and_may_start_on_its_floor() -> None:
    cluster = Cluster([QUOTA, QUOTA, 0], quota=QUOTA)
    cluster.run_s(5)
    assert cluster.shares()[:2] == pytest.approx([149.5] * 2, rel=0.001)
    cluster.loads[2].set_rate(QUOTA)
    # Its first refusals are reported at once, and it is served long before the round is over.
    cluster.run_s(0.4)
    assert cluster.shares() == pytest.approx([100] * 3, rel=0.05)


@pytest.mark.parametrize("seed", range(4))
def test_whoever_comes_and_goes_those_that_agree_never_hand_out_more_than_there_is(
    seed: int,
) -> None:
    dice = Random(seed)
    cluster = Cluster([QUOTA] * 3, quota=QUOTA, seed=seed)
    watch_conservation(cluster)
    for _ in range(12):
        cluster.run_s(dice.uniform(0.1, 3))
        places = [place for place, member in enumerate(cluster.members) if member.is_up]
        deed = dice.choice(["add", "leave", "crash", "restart", "load"])
        place = dice.choice(places)
        if deed == "add" or len(places) == 1:
            cluster.add(QUOTA)
        elif deed == "load":
            cluster.loads[place].set_rate(dice.choice([0, 15, QUOTA]))
        elif deed == "leave":
            cluster.leave(place)
        else:
            cluster.crash(place)
            if deed == "restart":
                cluster.add(QUOTA, name=cluster.members[place].name)
    for load, member in zip(cluster.loads, cluster.members, strict=True):
        load.set_rate(QUOTA if member.is_up else 0)
    cluster.run_s(8)
    assert cluster.agrees()
    part = QUOTA / len(cluster.live)
    shares = [
        share for share, one in zip(cluster.shares(), cluster.members, strict=True) if one.is_up
    ]
    assert shares == pytest.approx([part] * len(shares), rel=0.02)
    assert_no_overshoot(cluster, QUOTA, cluster.now_s - 3, cluster.now_s)
