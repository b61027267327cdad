"""Columns that grow: what was written stays, what is new is zero, and growth seldom copies."""

from dataclasses import dataclass

import numpy as np
import pytest
from numpy.typing import NDArray

from rgd.core.demand.columns import Columns
from rgd.core.runs import CAPACITIES, capacity_for


@dataclass(slots=True)
class Pairs(Columns):
    level: NDArray[np.float64]
    count: NDArray[np.int64]


def empty(rows: int) -> Pairs:
    return Pairs(np.zeros((rows, 2)), np.zeros(rows, np.int64))


@pytest.mark.parametrize("steps", [[1] * 70, [64, 64, 128], [5000], [4096, 1, 8191, 200_000]])
def test_growing_keeps_what_is_there_and_adds_zeros(steps: list[int]) -> None:
    columns, length = empty(3), 3
    for more in steps:
        columns.extend(more)
        assert len(columns.level) == len(columns.count) == length + more
        assert not columns.level[length:].any()
        assert not columns.count[length:].any()
        columns.level[length:] = 7.0
        columns.count[length:] = 9
        length += more
    assert (columns.level[3:] == 7.0).all()
    assert (columns.count[3:] == 9).all()


def test_growing_within_its_room_copies_nothing() -> None:
    columns = empty(64)
    columns.extend(64)
    memory = columns.level.ctypes.data
    columns.extend(CAPACITIES[0] - 128)
    assert columns.level.ctypes.data == memory
    columns.extend(1)
    assert columns.level.ctypes.data != memory


def test_rows_of_other_columns_are_no_room() -> None:
    whole = empty(100)
    part = whole.rows(slice(10, 20))
    part.extend(5)
    part.level[...] = 1.0
    assert not whole.level.any()


def test_room_is_never_less_than_what_is_needed() -> None:
    for count in (1, *(size + more for size in CAPACITIES for more in (-1, 0, 1)), 10**7):
        assert capacity_for(count) >= count
