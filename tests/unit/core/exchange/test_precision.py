"""Rates as reports have them: near the exact rates, in their order, and each with a code.

Not covered: their bytes (tests/unit/wire/test_rate_columns.py).
"""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rgd.core.exchange.precision import EXACT_MAX, RATE_MAX, RATES, codes_of, rounded
from rgd.core.units import COUNT_MAX

rates = st.integers(0, 12_000) | st.integers(0, COUNT_MAX)
columns = st.lists(st.tuples(rates, rates), min_size=1, max_size=20).map(
    lambda pairs: np.array(pairs, np.int64)
)


@given(columns)
def test_a_rounded_rate_is_near_and_the_nearest(exact: np.ndarray) -> None:
    near = rounded(exact)
    is_large = exact > RATE_MAX
    assert (near[is_large] == RATE_MAX).all()
    away = np.abs(near - exact)[~is_large]
    assert (away <= exact[~is_large] // 800).all()
    assert (near[exact < EXACT_MAX] == exact[exact < EXACT_MAX]).all()
    nearest = np.abs(RATES[:, None] - exact[~is_large]).min(axis=0)
    assert (away == nearest).all()


@given(columns)
def test_rounding_keeps_the_order_and_rounds_nothing_twice(exact: np.ndarray) -> None:
    near = rounded(exact)
    assert (np.diff(rounded(np.sort(exact.ravel()))) >= 0).all()
    assert (rounded(near) == near).all()
    assert ((near == 0) == (exact == 0)).all()


@given(columns)
def test_a_code_is_of_its_rate_alone(exact: np.ndarray) -> None:
    codes = codes_of(rounded(exact))
    assert codes is not None
    assert (RATES[codes] == rounded(exact)).all()
    is_rounded = (rounded(exact) == exact).all()
    assert (codes_of(exact) is not None) == is_rounded


def test_codes_are_in_the_order_of_rates_and_fit_16_bits() -> None:
    codes = codes_of(RATES)
    assert codes is not None
    assert codes.tolist() == list(range(len(RATES)))
    assert (np.diff(RATES) > 0).all()


@pytest.mark.parametrize(
    ("exact", "near"),
    [
        pytest.param(1_010_000, 1_010_000, id="what-people-write"),
        pytest.param(142_857, 142_800, id="down"),
        pytest.param(142_900, 143_000, id="half-way-up"),
        pytest.param(1_999, 2_000, id="to-the-next-step"),
        pytest.param(99_960, 100_000, id="to-the-next-unit"),
    ],
)
def test_rates_are_rounded_in_decimal_steps(exact: int, near: int) -> None:
    assert rounded(np.array([exact])).tolist() == [near]


def test_a_negative_rate_has_no_code() -> None:
    assert codes_of(np.array([[1, -1]])) is None
