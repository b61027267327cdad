"""The noise of slots: none of even ones, little of a step, known of random ones.

Not covered: how slots are cut (test_meter.py).
"""

import numpy as np
import pytest

from rgd.core.demand.noise import DIFFERENCES_MIN, SlotNoise


def taught(rates: list[float]) -> float | None:
    noise = SlotNoise()
    for rate in rates:
        noise.take(rate)
    return noise.sigma


def test_it_takes_three_differences_to_know() -> None:
    assert taught([100.0] * DIFFERENCES_MIN) is None
    assert taught([100.0] * (DIFFERENCES_MIN + 1)) == 0


@pytest.mark.parametrize("before", [1, 4, 30])
@pytest.mark.parametrize("between", [[], [180.0]])
def test_a_step_teaches_next_to_nothing(before: int, between: list[float]) -> None:
    sigma = taught([300.0] * before + between + [10.0] * 5)
    assert sigma is not None
    assert sigma < 1


def test_random_slots_are_known_as_such() -> None:
    rates = np.random.default_rng(1).normal(100, 20, 300).tolist()
    assert taught(rates) == pytest.approx(20, rel=0.3)
    few = [taught(np.random.default_rng(seed).normal(100, 20, 9).tolist()) for seed in range(20)]
    assert np.median([sigma for sigma in few if sigma is not None]) == pytest.approx(20, rel=0.6)
