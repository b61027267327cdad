"""Estimates of one and many rows: steady, stepping, noisy, drifting, idle.

Not covered: shares made of them, and the meters (test_meter.py).
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from rgd.core.demand.estimator import (
    STEP_SIGMAS,
    Estimates,
    History,
    Seen,
    end_round,
    report_early,
)
from rgd.core.demand.marks import Floats
from rgd.core.demand.settings import DemandSettings
from rgd.core.shares.columns import NO_RATE, Rows, share_out
from rgd.core.units import MILLI, NS_PER_S

SETTINGS = DemandSettings()


def seen(
    offered: Sequence[float] | Floats,
    *,
    requests: int | None = None,
    elapsed_s: float = 1.0,
    held: float = 0,
    slot_noise: float = 0,
) -> Seen:
    """What rows showed of messages, in units per second; of bytes, ten times as much."""
    rates = np.outer(np.array(offered, np.float64), [MILLI, 10 * MILLI])
    rows = len(offered)
    counts = rates[:, 0] / MILLI if requests is None else np.full(rows, requests)
    return Seen(
        offered=rates,
        requests=counts.astype(np.int64),
        elapsed_ns=np.full(rows, round(elapsed_s * NS_PER_S)),
        held=np.full((rows, 2), held * MILLI),
        slot_noise=np.full((rows, 2), slot_noise * MILLI),
    )


class House:
    """The history of one row."""

    def __init__(self) -> None:
        self.history = History.empty(1)
        self.estimates: Estimates | None = None

    def show(
        self,
        rate: float,
        *,
        is_round: bool = True,
        elapsed_s: float = 1.0,
        slot_noise: float = 0,
    ) -> float:
        """Wanted after one more rate, in messages per second."""
        what = seen(
            [rate],
            elapsed_s=elapsed_s,
            slot_noise=slot_noise,
        )
        estimate = end_round if is_round else report_early
        self.estimates = estimate(self.history, what, SETTINGS)
        return float(self.estimates.wanted[0, 0]) / MILLI

    @property
    def threshold(self) -> float:
        """A jump of messages per second."""
        assert self.estimates is not None
        return float(self.estimates.threshold[0, 0]) / MILLI


def noisy(rounds: int, rows: int = 20, *, seed: int = 1, mean: float = 100) -> Floats:
    """Independent normal rates of 30 %, [rounds, rows]."""
    return np.clip(np.random.default_rng(seed).normal(mean, 0.3 * mean, (rounds, rows)), 1, None)


def wanted_of(rates: Floats) -> NDArray[np.float64]:
    """Wanted messages per second after each round, [rounds, rows]."""
    columns = History.empty(rates.shape[1])
    rows = [end_round(columns, seen(row), SETTINGS).wanted[:, 0] / MILLI for row in rates]
    return np.array(rows)


def test_the_first_report_believes_what_was_seen() -> None:
    assert House().show(37.5) == 37.5
    assert House().show(37.5, is_round=False, elapsed_s=0.1) == 37.5


@pytest.mark.parametrize("rate", [0.5, 10, 1e6])
def test_a_steady_rate_is_exact(rate: float) -> None:
    house = House()
    for _ in range(50):
        assert house.show(rate) == pytest.approx(rate, rel=0.005)


@pytest.mark.parametrize("before", range(1, 12))
@pytest.mark.parametrize("step", [(300, 10), (10, 300), (100, 103), (100, 97)])
def test_a_step_of_a_steady_rate_is_believed_at_once(
    before: int, step: tuple[float, float]
) -> None:
    house = House()
    for _ in range(before):
        house.show(step[0])
    assert house.show(step[1]) == pytest.approx(step[1], rel=0.005)
    assert house.show(step[1]) == pytest.approx(step[1], rel=0.005)


def test_steps_of_a_steady_rate_are_no_noise() -> None:
    house = House()
    for rate in (300, 10, 300, 10, 80):
        for _ in range(4):
            assert house.show(rate) == pytest.approx(rate, rel=0.005)


def test_a_step_is_believed_by_an_early_report() -> None:
    house = House()
    for _ in range(6):
        house.show(300)
    assert house.show(100, is_round=False, elapsed_s=0.1) == 100
    assert house.show(100) == 100


def test_first_moments_of_a_step_give_way_to_what_is_seen_next() -> None:
    house = House()
    for rate in (*[100] * 6, 3000, 1200):
        # A restless history, in which 350 and 100 are the same.
        house.show(rate)
    house.show(350, elapsed_s=0.1)
    assert house.show(100) == 100
    house.show(3000, is_round=False, elapsed_s=0.1)
    assert house.show(2900, is_round=False, elapsed_s=0.2) == 2900


def test_the_slot_of_a_step_teaches_no_noise() -> None:
    thresholds = []
    for of_noise in (None, 100.0):
        history = History.empty(1)
        threshold = np.int64(0)
        for rate, elapsed_s in ((100, 1.0),) * 6 + ((870, 0.1),) + ((3000, 1.0),) * 3:
            what = seen([rate], elapsed_s=elapsed_s)
            if rate == 870 and of_noise is not None:
                what = replace(what, of_noise=np.array([[of_noise * MILLI, 10 * of_noise * MILLI]]))
            threshold = end_round(history, what, SETTINGS).threshold[0, 0]
        thresholds.append(float(threshold) / MILLI)
    assert thresholds[0] > 300
    assert thresholds[1] < 30


def test_a_lone_step_of_a_row_watched_for_long_teaches_no_noise() -> None:
    house = House()
    for order in range(12):
        house.show(500 + 3 * (order // 2 % 2))
    before = house.threshold
    for _ in range(3):
        for rate in (560, 560, 560, 500, 500, 500):
            house.show(rate)
    assert house.threshold <= 1.1 * before


def test_rounding_does_not_add_up_but_chance_does() -> None:
    halves = []
    for slot_noise in (8.0, 24.0):
        house = House()
        for _ in range(6):
            house.show(500, slot_noise=slot_noise)
        assert house.estimates is not None
        halves.append(float(house.estimates.half_threshold[0, 0]) / MILLI)
    assert halves[0] == pytest.approx(STEP_SIGMAS * 8 / 5, abs=0.01)
    assert halves[1] == pytest.approx(STEP_SIGMAS * 24 / 5**0.5, abs=0.01)


def test_one_unit_in_a_part_of_a_round_is_no_step() -> None:
    house = House()
    for _ in range(6):
        house.show(100)
    assert house.show(94.3, is_round=False, elapsed_s=0.1) == 100
    # A whole round shows it.
    assert house.show(101) == 101


def test_noise_moves_the_estimate_little() -> None:
    rates = noisy(400)
    wanted = wanted_of(rates)[50:]
    assert np.mean(np.abs(wanted / 100 - 1)) < 0.1
    assert np.mean(np.abs(np.diff(wanted, axis=0))) < 0.15 * np.mean(np.abs(np.diff(rates, axis=0)))


def test_noise_is_known_after_a_few_rounds() -> None:
    wanted = wanted_of(noisy(40, rows=100))
    change = np.mean(np.abs(np.diff(wanted, axis=0)), axis=1)
    assert np.mean(change[8:]) < 0.3 * np.mean(change[:3])


def test_a_step_above_the_noise_is_believed_at_once() -> None:
    rates = noisy(101)
    rates[100] = 1000
    assert wanted_of(rates)[-1] == pytest.approx(np.full(20, 1000))


def test_a_small_change_that_lasts_is_found() -> None:
    rates = np.concatenate((noisy(100), noisy(25, seed=2, mean=160)))
    assert np.mean(wanted_of(rates)[-1]) == pytest.approx(160, rel=0.1)


def test_noisy_brokers_use_their_quota_and_hardly_move_it() -> None:
    """Twenty brokers that want 1.25 of the quota, each with 30 % of noise, without any burst."""
    quota = 2_000_000
    demand = noisy(1000, mean=125) * MILLI
    columns, shares = History.empty(20), np.full(20, quota / 20)
    used = could = moved = 0.0
    for row in demand:
        used += np.minimum(row, shares).sum()
        could += min(quota, row.sum())
        wanted = end_round(columns, seen(row / MILLI), SETTINGS).wanted[:, 0]
        wants = np.stack((wanted, np.zeros_like(wanted)), axis=1)
        rows = Rows(np.zeros(20, np.int64), np.arange(20), wants, np.full(20, 1000))
        quotas = np.array([[quota, NO_RATE]])
        out = share_out(rows, quotas, brokers=20, floor_ppm=10_000)
        after = out.of_rows[:, 0].astype(np.float64)
        moved += np.abs(after - shares).sum() / quota
        shares = after
    assert used / could >= 0.92
    assert moved / 1000 <= 0.035


def test_early_reports_of_noise_change_nothing() -> None:
    house, before = House(), 0.0
    for rate in noisy(60, rows=1)[:, 0]:
        before = house.show(rate)
    assert house.show(before * 1.5, is_round=False, elapsed_s=0.2) == before
    assert house.threshold > 0.5 * before


def test_a_drift_is_followed() -> None:
    moments = np.arange(200)
    rates = 100 + 50 * np.sin(moments * 2 * np.pi / 60)
    wanted = wanted_of(np.repeat(rates[:, None], 3, axis=1))
    assert np.max(np.abs(wanted[10:, 0] / rates[10:] - 1)) < 0.05


def test_on_and_off_are_believed_each_time() -> None:
    house = House()
    for _ in range(5):
        for _ in range(3):
            assert house.show(100) == 100
        for _ in range(3):
            assert house.show(0) == 0


def test_a_flash_crowd_is_believed_and_so_is_its_end() -> None:
    house = House()
    for rate in [10] * 10 + [5000] * 3 + [10] * 3:
        assert house.show(rate) == pytest.approx(rate, rel=0.005)


def test_what_is_held_back_is_wanted_and_not_remembered() -> None:
    history = History.empty(1)
    held = end_round(history, seen([100], held=30), SETTINGS)
    after = end_round(history, seen([100]), SETTINGS)
    assert (held.wanted[0, 0], after.wanted[0, 0]) == (130 * MILLI, 100 * MILLI)


def test_what_is_unknown_is_taken_for_random_requests() -> None:
    house = House()
    house.show(100, slot_noise=float("nan"))
    # Three standard deviations of a hundred requests.
    assert 100 < house.show(130, slot_noise=float("nan")) < 130
    assert house.threshold > 100


def test_places_are_apart_and_may_come_in_any_order() -> None:
    history = History.empty(6)

    def show(places: list[int], rates: list[float]) -> Estimates:
        index = np.array(places, np.int64)
        rows = history.rows(index)
        estimates = end_round(rows, seen(rates), SETTINGS)
        history.put(index, rows)
        return estimates

    show([5, 2], [50, 20])
    assert show([2, 5], [20, 50]).wanted[:, 0].tolist() == [20 * MILLI, 50 * MILLI]
    nobody = show([], [])
    assert nobody.wanted.shape == (0, 2)


def test_a_forgotten_place_is_fresh() -> None:
    house = House()
    for rate in noisy(50, rows=1)[:, 0]:
        house.show(rate)
    house.history.reset(np.array([0]))
    assert house.show(3) == 3


def test_rows_of_a_slice_are_changed_in_place() -> None:
    columns = History.empty(4)
    end_round(columns.rows(slice(1, 3)), seen([10, 20]), SETTINGS)
    assert columns.level[:, 0].tolist() == [0, 10 * MILLI, 20 * MILLI, 0]
