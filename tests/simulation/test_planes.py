"""A plane that is killed: the gate goes on, and the next plane takes over without a share, a row or a count moving.

Laws over whole runs are those of `sim.checkers`; here is what the members' maps and logs hold meanwhile.
Not covered: two processes.
"""

from dataclasses import replace
from itertools import pairwise

import pytest

from rgd.core.broker.effects import AlarmCode
from rgd.core.broker.mode import Mode
from rgd.core.policies.model import Rates
from rgd.core.units import NS_PER_MS, NS_PER_S
from sim import workloads
from sim.cluster import Cluster
from sim.fault import Deed, Fault
from sim.planes import ApartBrain
from sim.policies import maker_of
from sim.run import run
from sim.scenario import Scenario
from sim.scenarios import SCENARIOS
from tests.support.there import there

#: Nobody's demand moves in it, so no share may.
STEADY = replace(
    SCENARIOS["planes"],
    workload=workloads.steady(1.5, spread=0.6),
    bounds=replace(SCENARIOS["planes"].bounds, admitted_10=1.02),
)


def lost(
    *planes: tuple[int, float, float], cut: tuple[Fault, ...] = (), scenario: Scenario = STEADY
) -> Cluster:
    """A cluster in which planes of places are lost from one second to another."""
    faults = tuple(
        Fault(Deed.PLANE, (place,), round(at * NS_PER_S), round(end * NS_PER_S))
        for place, at, end in planes
    )
    scenario = replace(scenario, faults=lambda _ground: faults + cut)
    return Cluster(scenario, seed=1, make_brain=maker_of("max-min", are_apart=True))


def brain(cluster: Cluster, place: int = 0) -> ApartBrain:
    member = there(cluster.members[place])
    assert isinstance(member.brain, ApartBrain)
    return member.brain


def shares(cluster: Cluster) -> list[Rates | None]:
    return [brain(cluster, place).share(cluster.keys[0]) for place in range(4)]


@pytest.mark.parametrize("shards", [1, 3])
@pytest.mark.parametrize("planes", [[(0, 10.3, 11.1)], [(0, 10.3, 12.1), (1, 11.9, 12.6)]])
def test_a_plane_that_is_back_in_time_moves_nothing(
    planes: list[tuple[int, float, float]], shards: int
) -> None:
    cluster = lost(*planes, scenario=replace(STEADY, shards=shards))
    world, key = cluster.world, cluster.keys[0]
    world.run_until(10 * NS_PER_S)
    before, gate = shares(cluster), brain(cluster).gate
    peer, names = brain(cluster, 3), set(cluster.names)
    depth_ns = gate.group_burst_ns
    for moment in range(10 * NS_PER_S, 18 * NS_PER_S, 20 * NS_PER_MS):
        world.run_until(moment)
        assert set(peer.broker.usage.rows(key)) == names
        assert gate.group_burst_ns == depth_ns
        for share, was in zip(shares(cluster), before, strict=True):
            assert share is not None
            assert was is not None
            # A demand that is measured again differs by as much as reports are rounded.
            assert share.messages == pytest.approx(was.messages, rel=0.01)
    assert brain(cluster).broker.mode is Mode.LIVE
    codes = {one.code for member in cluster.live for one in member.alarms}
    # Sequences of a shard that were skipped are asked for.
    assert codes <= {AlarmCode.PEER_JOINED, AlarmCode.REPORTS_MISSED}


#: Place 0 reaches nobody.
CUT = Fault(Deed.CUT, (0,), round(10.2 * NS_PER_S), 14 * NS_PER_S)


@pytest.mark.parametrize(("back_s", "cut"), [(14.0, ()), (12.3, (CUT,))])
def test_a_plane_that_is_late_or_cut_off_leaves_its_gate_to_on_isolation(
    back_s: float, cut: tuple[Fault, ...]
) -> None:
    cluster = lost((0, 10.3, back_s), cut=cut)
    world = cluster.world
    world.run_until(round(13.2 * NS_PER_S))
    held = brain(cluster).share(cluster.keys[0])
    world.run_until(round(13.4 * NS_PER_S))
    assert held != brain(cluster).share(cluster.keys[0]) == Rates(1_000_000)
    member = there(cluster.members[0])
    assert [one.code for one in member.alarms].count(AlarmCode.ISOLATED) == 1
    world.run_until(18 * NS_PER_S)
    assert brain(cluster).share(cluster.keys[0]) == held


def test_the_log_has_what_came_since_and_totals_go_on() -> None:
    cluster = lost((0, 10.3, 11.1))
    cluster.world.run_until(15 * NS_PER_S)
    member = there(cluster.members[0])
    rows = [
        (record.sequence, next(iter(record.rows))) for record in member.records if len(record.rows)
    ]
    sequences = [sequence for sequence, _row in rows]
    assert sequences == sorted(set(sequences))
    admitted = [row.admitted_total.messages for _sequence, row in rows]
    wanted = [row.wanted_total.messages for _sequence, row in rows]
    assert wanted == sorted(wanted)
    share = there(there(member.brain.share(cluster.keys[0])).messages)
    grown = [after - before for before, after in pairwise(admitted)]
    for (_sequence, row), more in zip(rows[1:], grown, strict=True):
        # Only the open round of the plane that was lost is in no row.
        is_gap = more > 1.3 * share / 1000
        assert is_gap or row.usage.admitted.messages / 1000 == pytest.approx(more, rel=0.1)
    assert sum(more > 1.3 * share / 1000 for more in grown) == 1


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("scenario", [SCENARIOS["planes"], STEADY], ids=["planes", "steady"])
def test_whenever_planes_are_lost_no_law_is_broken(scenario: Scenario, seed: int) -> None:
    assert run(scenario, seed=seed).violations == []
