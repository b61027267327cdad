"""The arithmetic of steering, by examples; its laws are in tests/property/test_stock_steering.py."""

import numpy as np
import pytest

from rgd.core.shares.columns_sums import FLOAT_EXACT_MAX
from rgd.core.stock.steering import (
    BLOCKED_TIMES,
    evened,
    foreign_usage,
    hungry,
    is_hungry,
    rate_of,
    split,
)
from rgd.core.units import COUNT_MAX, NS_PER_S
from sim.rivals.pulsar_shipped import local_quota

PERIOD_NS = 5 * NS_PER_S
GROUP = np.array([0, 0, 0, 1])
IS_STOCK = np.array([True, False, True, False])
WANTED = np.array([[90, 0], [7, 7], [11, 10], [5, 5]])


def whole(own: int, quota: int, part: int) -> int:
    """What rgd as a whole reports in one dimension."""
    figures = np.array([quota]), np.array([part])
    return int(foreign_usage(np.array([float(own)]), *figures, PERIOD_NS)[0])


@pytest.mark.parametrize(
    ("own", "quota", "part", "reported"),
    [
        pytest.param(500, 100, 50, 700, id="half: w is 1.2"),
        pytest.param(500, 100, 100, 100, id="alone: only the refilled buckets"),
        pytest.param(1, 100, 50, 1, id="rounded-to-the-nearest"),
        pytest.param(0, 100, 50, 0, id="idle"),
        pytest.param(500, -1, -1, 0, id="unlimited"),
        pytest.param(500, 0, 0, 500 * BLOCKED_TIMES, id="blocked"),
        pytest.param(COUNT_MAX, 100, 1, FLOAT_EXACT_MAX, id="bounded"),
    ],
)
def test_what_rgd_reports_as_a_whole(own: int, quota: int, part: int, reported: int) -> None:
    assert whole(own, quota * 1000, part * 1000) == reported


@pytest.mark.parametrize("part", [10, 25, 50, 75, 99])
def test_the_shipped_formula_then_admits_the_part(part: int) -> None:
    own = 5 * 6_000
    others = whole(own, 10_000_000, part * 100_000)
    limit = local_quota(10_000, own, own + others)
    assert limit * 6 / 5 == pytest.approx(part * 100, rel=0.01)


def test_stock_rows_of_a_group_have_the_mean_of_their_usage() -> None:
    assert evened(GROUP, WANTED, IS_STOCK, 2).tolist() == [[51, 5], [7, 7], [51, 5], [5, 5]]


def test_hungry_stock_rows_want_the_quota_in_their_own_mix() -> None:
    even = evened(GROUP, WANTED, IS_STOCK, 2)
    limited = hungry(GROUP, even, IS_STOCK, np.array([[510, 25], [1, 1]]))
    assert limited.tolist() == [[255, 25], [7, 7], [255, 25], [5, 5]]
    one = hungry(GROUP, even, IS_STOCK, np.array([[510, -1], [1, 1]]))
    assert one.tolist() == [[510, 50], [7, 7], [510, 50], [5, 5]]


def test_stock_brokers_are_hungry_when_they_use_nearly_what_they_may() -> None:
    group, parts = np.array([0, 0, 1, 2]), np.array([[50, -1], [50, -1], [100, -1], [0, -1]])
    used = np.array([[46, 9], [45, 9], [89, 9], [0, 0]])
    assert is_hungry(group, used, parts, 3).tolist() == [True, False, False]


def test_rates_of_counts_are_bounded() -> None:
    assert rate_of(500, PERIOD_NS) == 100_000
    assert rate_of(COUNT_MAX, 1) == 1 << 52


def test_a_split_without_weights_is_even() -> None:
    parts = [split(np.array([10.0]), np.zeros((3, 1), np.int64), at).tolist() for at in range(3)]
    assert parts == [[3], [3], [4]]
