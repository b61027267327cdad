"""Rates as reports have them: near the exact rates, in their order, and each with a code.

Not covered: their bytes (tests/unit/wire/test_rate_columns.py).
"""

import numpy as np
import pytest

from rgd.core.exchange.precision import RATES, codes_of, rounded


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
