"""Demand over time, and how it is cut into requests: exact, whatever the gaps.

Not covered: which rates make a workload (test_scenarios.py runs them all).
"""

import numpy as np
import pytest

from rgd.core.units import NS_PER_S
from sim.arrivals import PoissonArrivals, RegularArrivals
from sim.clock import DRIFT_PPB_MAX, Clock
from sim.schedule import Schedule

STEPPED = Schedule([0, NS_PER_S, 3 * NS_PER_S], [100, 0, 333.3], [10, 1000, 0])


def counts(schedule: Schedule, gap_ns: int, end_s: int) -> list[tuple[int, int, int]]:
    return list(RegularArrivals(schedule, gap_ns=gap_ns).stream(end_s * NS_PER_S))


@pytest.mark.parametrize("gap_ns", [1_000_000, 5_000_000, 7_777_777, 400_000_000])
def test_what_is_asked_for_is_the_integral_of_the_rates_whatever_the_gap(gap_ns: int) -> None:
    arrivals = counts(STEPPED, gap_ns, 6)
    last = max(moment for moment, _, _ in arrivals)
    for name, place in (("messages", 1), ("bytes", 2)):
        total = sum(arrival[place] for arrival in arrivals)
        expected = STEPPED.wanted_by(np.array([last]))[place - 1, 0]
        assert total == expected, name
    assert [moment for moment, _, _ in arrivals] == sorted({moment for moment, _, _ in arrivals})


def test_nobody_asks_for_nothing() -> None:
    arrivals = counts(Schedule([0, NS_PER_S], [0, 10]), 5_000_000, 3)
    assert len(arrivals) == 19
    assert {messages for _, messages, _ in arrivals} == {1}


def test_poisson_arrivals_have_the_rate_and_the_spread_of_poisson() -> None:
    schedule = Schedule([0, 50 * NS_PER_S, 60 * NS_PER_S], [200, 0, 50])
    arrivals = list(PoissonArrivals(schedule, np.random.default_rng(1)).stream(110 * NS_PER_S))
    seconds = np.bincount([moment // NS_PER_S for moment, _, _ in arrivals], minlength=110)
    assert seconds[:50].mean() == pytest.approx(200, rel=0.03)
    assert seconds[:50].var() == pytest.approx(200, rel=0.5)
    assert not seconds[51:60].any()
    assert seconds[60:].mean() == pytest.approx(50, rel=0.06)


def test_noise_is_judged_by_what_it_is_noise_around() -> None:
    noisy = Schedule([0, NS_PER_S], [7, 13], meant=([10, 10], [0, 0]))
    moments = np.array([0, NS_PER_S])
    assert noisy.meant_at(moments)[:, 0].tolist() == [10, 10]
    assert STEPPED.meant_at(moments).tolist() == [[100, 10], [0, 1000]]


@pytest.mark.parametrize("drift_ppb", [-DRIFT_PPB_MAX, -7, 0, 13, DRIFT_PPB_MAX])
@pytest.mark.parametrize("offset_ns", [0, -36_000 * NS_PER_S, 123_456_789])
def test_a_clock_is_read_back_to_the_first_moment_that_shows_a_time(
    drift_ppb: int, offset_ns: int
) -> None:
    clock = Clock(offset_ns=offset_ns, drift_ppb=drift_ppb)
    for local in (offset_ns, offset_ns + 1, offset_ns + 999_999_999, offset_ns + 3600 * NS_PER_S):
        moment = clock.world_time(local)
        assert clock.local_time(moment) >= local > clock.local_time(moment - 1)


def test_a_clock_that_drifts_by_a_thousandth_gains_a_millisecond_a_second() -> None:
    assert Clock(drift_ppb=DRIFT_PPB_MAX).local_time(NS_PER_S) == 1_001_000_000
