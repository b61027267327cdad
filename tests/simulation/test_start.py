"""N daemons that start at the same moment never grant N quotas.

The real core under the simulator's clock. Not covered: an exchange that cannot
be reached at all, which test_isolation.py covers.
"""

import pytest

from rgd.core.broker.mode import Mode
from rgd.core.units import NS_PER_S
from tests.simulation.worlds import Cluster, watch_conservation

pytestmark = pytest.mark.slow

QUOTA = 1000.0


@pytest.mark.parametrize(("count", "seed"), [(2, 0), (2, 1), (3, 2), (3, 3), (10, 4), (40, 5)])
def test_before_their_first_shares_n_daemons_grant_at_most_the_quota_and_a_request_each(
    count: int, seed: int
) -> None:
    cluster = Cluster([5 * QUOTA / count] * count, quota=QUOTA, seed=seed)
    while any(member.broker.mode is Mode.STARTING for member in cluster.members):
        cluster.run_s(0.05)
        granted = sum(load.admitted for load in cluster.loads)
        assert granted <= QUOTA * cluster.world.now / NS_PER_S + count
    # And it was not for want of asking.
    assert all(load.wanted > 0 for load in cluster.loads)


@pytest.mark.parametrize("seed", range(5))
def test_started_together_they_settle_on_equal_parts(seed: int) -> None:
    cluster = Cluster([900.0] * 4, quota=QUOTA, seed=seed)
    cluster.run_s(5)
    assert cluster.shares() == pytest.approx([250.0] * 4, rel=0.02)
    admitted = cluster.admitted_s(3, 5)
    assert admitted == pytest.approx([250.0] * 4, rel=0.05)


def test_once_all_have_answered_they_do_not_wait_two_rounds() -> None:
    cluster = Cluster([900.0] * 3, quota=QUOTA)
    missing_one = Cluster(
        [900.0] * 3,
        quota=QUOTA,
        settings=type(cluster.settings)(cluster.settings.sender, expected_brokers=4),
    )
    cluster.run_s(1)
    missing_one.run_s(1.9)
    assert {member.broker.mode for member in cluster.members} == {Mode.LIVE}
    assert {member.broker.mode for member in missing_one.members} == {Mode.STARTING}


def test_a_daemon_alone_has_the_whole_quota_after_two_rounds() -> None:
    cluster = Cluster([2000.0], quota=QUOTA)
    cluster.run_s(5)
    assert cluster.shares() == [1000.0]


def test_a_joiner_is_fair_within_two_rounds_of_going_live() -> None:
    cluster = Cluster([900.0, 900.0], quota=QUOTA)
    cluster.run_s(5)
    cluster.add(900.0)
    cluster.run_s(3)
    assert cluster.shares() == pytest.approx([333.3] * 3, rel=0.02)


@pytest.mark.parametrize("frozen_s", [2.5, 10])
def test_a_joiner_that_stands_still_as_it_waits_asks_again(frozen_s: float) -> None:
    cluster = Cluster([900.0, 900.0], quota=QUOTA)
    cluster.run_s(5.5)
    sums = watch_conservation(cluster)
    joiner = cluster.add(900.0)
    # It is reached, and nobody has answered yet.
    cluster.run_s(0.02)
    cluster.world.freeze(joiner, round(frozen_s * NS_PER_S))
    # What the peers send meanwhile is lost.
    cluster.world.network.cut = {(member.name, joiner.name) for member in cluster.members[:2]}
    cluster.run_s(frozen_s)
    cluster.heal()
    cluster.run_s(4)
    assert max(sums) <= 1.02
    assert cluster.shares() == pytest.approx([333.3] * 3, rel=0.02)
