"""The arithmetic of steering, by examples; its laws are in tests/property/test_stock_steering.py."""

import numpy as np

from rgd.core.stock.steering import evened, is_hungry

GROUP = np.array([0, 0, 0, 1])
IS_STOCK = np.array([True, False, True, False])
WANTED = np.array([[90, 0], [7, 7], [11, 10], [5, 5]])


def test_stock_rows_of_a_group_have_the_mean_of_their_usage() -> None:
    assert evened(GROUP, WANTED, IS_STOCK, 2).tolist() == [[51, 5], [7, 7], [51, 5], [5, 5]]


def test_stock_brokers_are_hungry_when_they_use_nearly_what_they_may() -> None:
    group, parts = np.array([0, 0, 1, 2]), np.array([[50, -1], [50, -1], [100, -1], [0, -1]])
    used = np.array([[46, 9], [45, 9], [89, 9], [0, 0]])
    assert is_hungry(group, used, parts, 3).tolist() == [True, False, False]
