"""The figures of docs/simulator.md, on recordings made by hand.

Not covered: how a recording comes about (test_scenarios.py).
"""

from dataclasses import replace

import numpy as np
import pytest

from rgd.core.units import NS_PER_S
from sim import metrics
from sim.recording import Floats, Recording, Segment

QUOTA = 100.0


def recording_of(
    shares: list[list[float]],
    meant: list[list[float]],
    *,
    segments: tuple[Segment, ...] | None = None,
) -> Recording:
    """One group of messages: shares and true demand by (boundary, broker); all wanted, all served."""
    boundaries, brokers = len(shares), len(shares[0])

    def wide(rows: list[list[float]]) -> Floats:
        array = np.zeros((boundaries, 1, brokers, 2))
        array[:, 0, :, 0] = rows
        return array

    wanted = wide(meant)[:-1].astype(np.int64)
    return Recording(
        brokers=tuple(f"b{place}" for place in range(brokers)),
        groups=("g",),
        round_ns=NS_PER_S,
        warmup=0,
        quota=np.array([QUOTA, np.nan]),
        floor_ppm=0,
        wanted=wanted,
        admitted=np.minimum(wanted, np.nan_to_num(wide(shares)[:-1]).astype(np.int64)),
        shares=wide(shares),
        tokens=np.zeros((boundaries, 1, 2)),
        meant=wide(meant),
        is_up=np.ones((boundaries, brokers), dtype=np.bool_),
        segments=segments or (Segment(0, boundaries),),
        has_faults=False,
    )


FAIR, UNFAIR = [50.0, 50.0], [70.0, 30.0]
HUNGRY = [200.0, 200.0]


@pytest.mark.parametrize(
    ("shares", "rounds"),
    [
        ([FAIR, FAIR, FAIR, FAIR], 0),
        ([UNFAIR, FAIR, FAIR, FAIR], 1),
        ([UNFAIR, FAIR, UNFAIR, FAIR], 3),
        ([FAIR, FAIR, FAIR, UNFAIR], None),
        ([[51.0, 49.0]] * 4, 0),
        ([[51.1, 48.9]] * 4, None),
    ],
)
def test_rounds_to_fair_count_from_the_first_boundary_to_the_one_from_which_all_stay_fair(
    shares: list[list[float]], rounds: int | None
) -> None:
    recording = recording_of(shares, [HUNGRY] * 4)
    assert metrics.figures_of(recording).rounds_to_fair == rounds


def test_of_several_steps_the_worst_counts_and_never_is_worse_than_anything() -> None:
    segments = (Segment(0, 3), Segment(3, 6))
    recording = recording_of(
        [UNFAIR, FAIR, FAIR, FAIR, FAIR, FAIR], [HUNGRY] * 6, segments=segments
    )
    assert metrics.figures_of(recording).rounds_to_fair == 1
    recording.shares[5, 0, :, 0] = UNFAIR
    assert metrics.figures_of(recording).rounds_to_fair is None


def test_parts_are_those_of_the_true_demand_at_the_boundary() -> None:
    demand = [[200.0, 20.0], [20.0, 200.0]]
    recording = recording_of([[80.0, 20.0], [20.0, 80.0]], demand)
    assert metrics.figures_of(recording).rounds_to_fair == 0
    assert recording.parts[..., 0].ravel().tolist() == [80, 20, 20, 80]


def test_with_faults_one_wrong_share_in_a_thousand_is_let_pass() -> None:
    shares = [[QUOTA / 100] * 100 for _ in range(20)]
    shares[10][5] = 2.0
    recording = recording_of(shares, [[5.0] * 100] * 20)
    assert metrics.figures_of(recording).rounds_to_fair == 11
    faulty = replace(recording, has_faults=True)
    assert metrics.figures_of(faulty).rounds_to_fair == 0
    faulty.shares[10, 0, 6, 0] = 2.0
    faulty.shares[10, 0, 7, 0] = 2.0
    assert metrics.figures_of(faulty).rounds_to_fair == 11


def test_a_broker_that_is_down_or_has_no_share_is_not_judged() -> None:
    recording = recording_of([[100.0, np.nan]] * 3, [[200.0, 0.0]] * 3)
    assert metrics.figures_of(recording).rounds_to_fair == 0
    recording = recording_of([[100.0, 7.0]] * 3, [[200.0, 0.0]] * 3)
    assert metrics.figures_of(recording).rounds_to_fair is None
    recording = recording_of([[100.0, 7.0]] * 3, [[200.0, 0.0]] * 3)
    recording.is_up[:, 1] = False
    assert metrics.figures_of(recording).rounds_to_fair == 0


def test_utilisation_is_admitted_by_what_could_be() -> None:
    # 40 wanted and 40 served; then 400 wanted and 60 served.
    recording = recording_of([[60.0, 0.0]] * 3, [[40.0, 0.0], [200.0, 200.0], [0.0, 0.0]])
    assert metrics.utilisation(recording) == pytest.approx((40 + 60) / (40 + 100))
    assert metrics.utilisation(replace(recording, warmup=1)) == pytest.approx(0.6)


def test_of_two_dimensions_the_one_that_is_used_more_counts() -> None:
    recording = recording_of([FAIR] * 3, [HUNGRY] * 3)
    recording.quota[1] = 1000
    recording.wanted[..., 1] = 600
    recording.admitted[..., 0] = 45
    recording.admitted[..., 1] = 300
    # 90 of 100 messages, 600 of 1000 bytes.
    assert metrics.utilisation(recording) == pytest.approx(0.9)


def test_movement_is_the_mean_of_all_changes_of_shares() -> None:
    recording = recording_of([FAIR, UNFAIR, UNFAIR], [HUNGRY] * 3)
    assert metrics.movement(recording) == pytest.approx((40 / QUOTA + 0) / 2)


def test_overshoot_is_the_worst_window_without_the_tokens_at_its_start() -> None:
    recording = recording_of([FAIR] * 25, [HUNGRY] * 25)
    recording.admitted[7, 0, 0, 0] += 30
    recording.tokens[7, 0, 0] = 20
    assert metrics.overshoot(recording, 1) == pytest.approx(1.1)
    # Windows of ten that begin before round 7 begin without tokens.
    assert metrics.overshoot(recording, 10) == pytest.approx(1.03)


def test_the_lowest_ratio_is_looked_for_from_fair_on() -> None:
    recording = recording_of([UNFAIR, FAIR, FAIR, FAIR], [HUNGRY] * 4)
    recording.admitted[0, 0, 1, 0] = 1
    recording.admitted[2, 0, 1, 0] = 45
    assert metrics.figures_of(recording).lowest_ratio == pytest.approx(0.9)


def test_where_shares_are_never_fair_the_starved_show_all_the_same() -> None:
    recording = recording_of([[99.0, 1.0]] * 4, [HUNGRY] * 4)
    figures = metrics.figures_of(recording)
    assert figures.rounds_to_fair is None
    assert figures.lowest_ratio == pytest.approx(0.02)
