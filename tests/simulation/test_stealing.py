"""PIP-82's stealing over time, on the daemon's own core: the demands that its text speaks of.

What must hold: once the quota is reached it stays used, whoever wants less than its even part, and brokers that want
more come to equal shares. The limits may pass the quota for a round, which the PIP says of itself.
"""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from rgd.core.policies.model import SharePolicyName
from rgd.core.units import NS_PER_S
from tests.simulation.worlds import SETTINGS, Cluster

QUOTA = 1000.0


def used_over(
    before: Sequence[float], demand: Sequence[float], seconds: int
) -> tuple[list[float], list[float]]:
    """After a step from one demand to another: what is admitted each second, by the quota; and each one's last rate."""
    stealing = replace(SETTINGS, policy=SharePolicyName.STEAL)
    cluster = Cluster(before, quota=QUOTA, settings=stealing)
    cluster.run_s(8)
    for load, rate in zip(cluster.loads, demand, strict=True):
        load.set_rate(rate)
    begin_s = cluster.now_s
    cluster.run_s(seconds)

    def admitted(place: int, second: int) -> int:
        first_ns = (begin_s + second) * NS_PER_S
        grants = cluster.loads[place].grants
        return sum(count for at, count in grants if first_ns <= at < first_ns + NS_PER_S)

    places = range(len(demand))
    sums = [sum(admitted(place, second) for place in places) / QUOTA for second in range(seconds)]
    return sums, [float(admitted(place, seconds - 1)) for place in places]


def test_two_that_want_80_come_to_equal_shares() -> None:
    sums, rates = used_over([800, 200], [800, 800], 12)
    assert rates == pytest.approx([500, 500], rel=0.02)
    assert max(sums) <= 1.35
    assert min(sums) >= 0.98


@pytest.mark.parametrize("dominant", [800.0, 2000.0])
@pytest.mark.slow
def test_one_that_wants_20_costs_the_other_nothing(dominant: float) -> None:
    """Both split evenly before; the PIP's own "not under-utilized", 80/20 at a quota of 100."""
    sums, rates = used_over([500, 500], [dominant, 200], 20)
    assert min(sums[6:]) >= 0.98
    assert max(sums) <= 1.02
    assert rates == pytest.approx([800, 200], rel=0.02)


@pytest.mark.slow
def test_beside_nine_that_want_little_one_has_the_rest() -> None:
    sums, rates = used_over([100.0] * 10, [2000.0, *[20.0] * 9], 20)
    assert min(sums[6:]) >= 0.98
    assert rates[0] == pytest.approx(820, rel=0.02)


@pytest.mark.slow
def test_ten_that_all_want_more_come_to_equal_shares() -> None:
    sums, rates = used_over([910.0, *[10.0] * 9], [2000.0] * 10, 30)
    assert rates == pytest.approx([100.0] * 10, rel=0.05)
    assert max(sums) <= 1.5
    assert min(sums[1:]) >= 0.95


@pytest.mark.slow
def test_a_newcomer_has_its_part_soon_although_what_is_used_is_never_exactly_the_quota() -> None:
    sums, rates = used_over([0.0, *[160.0] * 9], [160.0] * 10, 14)
    assert rates == pytest.approx([100.0] * 10, rel=0.06)
    assert min(sums) >= 0.98
    assert max(sums) <= 1.1
