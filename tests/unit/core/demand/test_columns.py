"""Columns that grow: what was written stays, and what is new is zero."""

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


@pytest.mark.parametrize("rooms", [[4], [64, 65, 5000], [200_000]])
def test_growing_keeps_what_is_there_and_adds_zeros(rooms: list[int]) -> None:
    columns, length = empty(3), 0
    for room in rooms:
        columns.level[length:] = 7.0
        columns.count[length:] = 9
        length = len(columns.count)
        columns.grow(room)
        assert len(columns.level) == len(columns.count) == room
        assert (columns.level[:length] == 7.0).all()
        assert (columns.count[:length] == 9).all()
        assert not columns.level[length:].any()
        assert not columns.count[length:].any()


def test_room_is_never_less_than_what_is_needed() -> None:
    for count in (1, *(size + more for size in CAPACITIES for more in (-1, 0, 1)), 10**7):
        assert capacity_for(count) >= count
