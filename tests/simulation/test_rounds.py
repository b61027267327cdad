"""What the rounds of a whole cluster leave in its logs: every request, once.

Law: the cumulative counters of the last record are what the callers saw, whatever was lost between
the brokers and however early reports cut the windows. Not covered: bytes on a disk
(tests/unit/adapters/usagelog).
"""

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rgd.core.units import NS_PER_MS, NS_PER_S
from sim.load import Load
from sim.member import Member
from sim.network import Network
from tests.simulation.worlds import SETTINGS, Cluster

pytestmark = pytest.mark.slow

QUOTA = 100.0


def logged(member: Member) -> tuple[int, int]:
    """Admitted and wanted since the start, as the log says, having checked that both only grow."""
    admitted = wanted = 0
    for record in member.records:
        for row in record.rows:
            assert row.admitted_total.messages >= admitted
            assert row.wanted_total.messages >= wanted
            admitted = row.admitted_total.messages
            wanted = row.wanted_total.messages
    return admitted, wanted


def refused(member: Member) -> int:
    """Messages refused, by the log."""
    return sum(row.refused.messages for record in member.records for row in record.rows)


def check_logs(cluster: Cluster) -> None:
    for place, member in enumerate(cluster.members):
        if member.is_up:
            cluster.leave(place)
    for member, load in zip(cluster.members, cluster.loads, strict=True):
        assert logged(member) == (load.admitted, load.wanted)
        assert refused(member) == load.wanted - load.admitted
        covered = sum(record.period_ns for record in member.records if record.rows)
        assert covered <= cluster.world.now + SETTINGS.round_ns
        sequences = [record.sequence for record in member.records]
        assert sequences == sorted(set(sequences))


@pytest.mark.parametrize("seed", range(4))
def test_the_logs_hold_every_request_once_whatever_the_exchange_loses(seed: int) -> None:
    dice = Random(seed)
    network = Network(
        delay_min_ns=NS_PER_MS, delay_max_ns=90 * NS_PER_MS, loss=0.1 * seed, duplication=0.2
    )
    cluster = Cluster([50, 300, 0], quota=QUOTA, seed=seed, network=network)
    for _ in range(8):
        cluster.run_s(dice.uniform(0.05, 1.5))
        dice.choice(cluster.loads).set_rate(dice.choice([0, 5, 60, 400]))
    check_logs(cluster)


bursts = st.lists(
    st.tuples(st.integers(0, 1500), st.sampled_from([0, 3, 40, 150])), min_size=1, max_size=6
)


@settings(max_examples=25)
@given(first=bursts, second=bursts)
def test_the_logs_hold_every_request_once_however_demand_comes_and_goes(
    first: list[tuple[int, int]], second: list[tuple[int, int]]
) -> None:
    cluster = Cluster([0, 0], quota=20)
    for load, steps in zip(cluster.loads, (first, second), strict=True):
        moment = 0
        for gap_ms, rate in steps:
            moment += gap_ms * NS_PER_MS
            cluster.world.at(moment, lambda one=load, to=rate: one.set_rate(to))
        cluster.world.at(moment + NS_PER_S // 3, lambda one=load: one.set_rate(0))
    cluster.run_s(9.2)
    check_logs(cluster)


def test_a_member_cut_off_logs_on() -> None:
    cluster = Cluster([50, 300], quota=QUOTA)
    cluster.run_s(4.5)
    cluster.cut_off(1)
    cluster.run_s(10)
    cluster.heal()
    cluster.run_s(4.1)
    check_logs(cluster)


def test_a_retry_is_wanted_once_however_often_it_comes() -> None:
    cluster = Cluster([], quota=QUOTA)
    member = cluster.add(0)
    load = Load(cluster.world, member, cluster.loads[0].request, 150, retries=5).start()
    cluster.run_s(6)
    load.set_rate(0)
    cluster.run_s(6)
    cluster.leave(0)
    admitted, wanted = logged(member)
    assert admitted == load.admitted
    # A retry that is served in a later window than it was first refused in counts there again.
    assert load.wanted <= wanted <= load.wanted + load.admitted
    assert refused(member) > load.wanted
