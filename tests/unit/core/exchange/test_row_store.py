"""Rows by number: read and written alike, whether the numbers are a run or not.

Not covered: which rows a report is about (test_usage_map.py, test_usage_map_steady.py).
"""

import numpy as np
import pytest

from rgd.core.exchange.columns import Ints
from rgd.core.exchange.row_store import Amounts, BrokerRows, RowStore
from rgd.core.runs import Places

COUNT = 6
TOPICS = np.arange(1, COUNT + 1)
ADMITTED = np.arange(2 * COUNT).reshape(COUNT, 2)
WANTED = ADMITTED * 10 + 5


def store() -> RowStore:
    """A store with a few rows of one broker."""
    made = RowStore()
    rows = made.new(0, np.arange(100, 100 + COUNT))
    assert rows.tolist() == list(range(COUNT))
    made.write(rows, Amounts(TOPICS, ADMITTED, WANTED))
    return made


def test_the_rows_of_a_holding_span_a_run_in_whatever_order_they_were_told() -> None:
    holding = BrokerRows()
    assert len(holding.rows[holding.span]) == 0
    holding.add(np.array([5, 1, 3]), np.array([10, 11, 12]))
    assert holding.span == slice(10, 13)
    holding.add(np.array([4]), np.array([14]))
    assert sorted(np.arange(20)[holding.span].tolist()) == [10, 11, 12, 14]


@pytest.mark.parametrize("rows", [slice(1, 4), np.array([1, 2, 3]), np.array([4, 0, 2])])
@pytest.mark.parametrize("order", ["C", "F"])
def test_what_is_written_into_rows_is_in_those_rows_alone(rows: Places, order: str) -> None:
    written = store()
    count = 3
    amounts = Amounts(
        np.array([7, 8, 9]),
        np.array([[1, 2], [3, 4], [5, 6]], order=order),  # type: ignore[call-overload]
        np.array([[10, 20], [30, 40], [50, 60]], order=order),  # type: ignore[call-overload]
    )
    written.write(rows, amounts)
    numbers = np.arange(COUNT)[rows].tolist()
    for name, before in (("topics", TOPICS), ("admitted", ADMITTED), ("wanted", WANTED)):
        expected: Ints = before.copy()
        for place in range(count):
            expected[numbers[place]] = getattr(amounts, name)[place]
        # Topics are one column, rates are two: [2, rows].
        assert getattr(written, name).T[:COUNT].tolist() == expected.tolist()


@pytest.mark.parametrize("rows", [slice(1, 4), np.array([4, 0, 2])])
@pytest.mark.parametrize("order", ["C", "F"])
def test_rows_differ_by_demand_or_by_admitted_work_and_not_by_topics(
    rows: Places, order: str
) -> None:
    held = store()
    for name in ("admitted", "wanted"):
        for dimension in (0, 1):
            amounts = {"admitted": ADMITTED[rows].copy(), "wanted": WANTED[rows].copy()}
            amounts[name][1, dimension] += 1
            ordered = {
                key: np.asarray(value, order=order)  # type: ignore[call-overload]
                for key, value in amounts.items()
            }
            told = Amounts(topics=np.zeros(3, np.int64), **ordered)
            differs = dict(zip(("wanted", "admitted"), held.differs(rows, told), strict=True))
            assert differs.pop(name).tolist() == [False, True, False]
            assert [flags.any() for flags in differs.values()] == [False]
    same = Amounts(np.zeros(3, np.int64), ADMITTED[rows], WANTED[rows])
    assert not np.any(held.differs(rows, same))


def test_a_run_hashes_like_its_numbers() -> None:
    held = store()
    keys = np.random.default_rng(1).integers(0, 1 << 63, 200).astype(np.uint64)
    assert held.hash_of(slice(1, 4), keys) == held.hash_of(np.array([3, 1, 2]), keys) != 0
    assert held.hash_of(np.zeros(0, np.int64), keys) == 0
