"""Estimates of one and many rows: steady, stepping, noisy, drifting, idle.

Not covered: shares made of them, and the meters (test_meter.py).
"""

from collections.abc import Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

from rgd.core.demand.estimator import STEP_SIGMAS, Estimates, History, Seen, end_round, report_early
from rgd.core.demand.marks import Floats
from rgd.core.demand.settings import DemandSettings
from rgd.core.units import MILLI, NS_PER_S

SETTINGS = DemandSettings()


def seen(
    offered: Sequence[float] | Floats, *, elapsed_s: float = 1.0, slot_noise: float = 0
) -> Seen:
    """What rows showed of messages, in units per second; of bytes, ten times as much."""
    rates = np.outer(np.array(offered, np.float64), [MILLI, 10 * MILLI])
    rows = len(offered)
    counts = rates[:, 0] / MILLI
    return Seen(
        offered=rates,
        requests=counts.astype(np.int64),
        elapsed_ns=np.full(rows, round(elapsed_s * NS_PER_S)),
        held=np.zeros((rows, 2)),
        slot_noise=np.full((rows, 2), slot_noise * MILLI),
    )


class House:
    """The history of one row."""

    def __init__(self) -> None:
        self.history = History.empty(1)
        self.estimates: Estimates | None = None

    def show(
        self, rate: float, *, is_round: bool = True, elapsed_s: float = 1.0, slot_noise: float = 0
    ) -> float:
        """Wanted after one more rate, in messages per second."""
        what = seen([rate], elapsed_s=elapsed_s, slot_noise=slot_noise)
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


def test_first_moments_of_a_step_give_way_to_what_is_seen_next() -> None:
    house = House()
    for rate in (*[100] * 6, 3000, 1200):
        # A restless history, in which 350 and 100 are the same.
        house.show(rate)
    house.show(350, elapsed_s=0.1)
    assert house.show(100) == 100
    house.show(3000, is_round=False, elapsed_s=0.1)
    assert house.show(2900, is_round=False, elapsed_s=0.2) == 2900


def test_a_small_step_is_believed_where_only_rounding_came_after_a_larger_one() -> None:
    house = House()
    for rate in (*[170] * 4, 200, *[166, 167] * 4):
        house.show(rate)
    assert house.show(173) == 173


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


def test_a_drift_is_followed() -> None:
    moments = np.arange(200)
    rates = 100 + 50 * np.sin(moments * 2 * np.pi / 60)
    wanted = wanted_of(np.repeat(rates[:, None], 3, axis=1))
    assert np.max(np.abs(wanted[10:, 0] / rates[10:] - 1)) < 0.05


def test_a_forgotten_slot_is_fresh() -> None:
    house = House()
    for rate in noisy(50, rows=1)[:, 0]:
        house.show(rate)
    house.history.reset(np.array([0]))
    assert house.show(3) == 3
