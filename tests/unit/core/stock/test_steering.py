"""The arithmetic of steering, by examples; its laws are in tests/property/test_stock_steering.py."""

import numpy as np

from rgd.core.stock.steering import (
    evened,
)

GROUP = np.array([0, 0, 0, 1])
IS_STOCK = np.array([True, False, True, False])
WANTED = np.array([[90, 0], [7, 7], [11, 10], [5, 5]])


def test_stock_rows_of_a_group_have_the_mean_of_their_usage() -> None:
    assert evened(GROUP, WANTED, IS_STOCK, 2).tolist() == [[51, 5], [7, 7], [51, 5], [5, 5]]
