"""Columns that grow together: one row for each group in use on this broker."""

from collections.abc import Iterable
from dataclasses import fields
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from rgd.core.runs import Places, capacity_for


class Columns:
    """The base of a dataclass whose fields are arrays with one row for each group."""

    def rows(self, places: Places) -> Self:
        """The rows at these indexes: views of a slice, copies of an index array."""
        if isinstance(places, slice):
            return type(self)(*(column[places] for column in self._columns()))
        # An index in brackets takes numpy several times as long for pairs.
        return type(self)(*(column.take(places, 0) for column in self._columns()))

    def put(self, places: NDArray[np.int64], rows: Self) -> None:
        """Write rows back to their indexes."""
        for column, values in zip(self._columns(), rows._columns(), strict=True):
            column[places] = values

    def reset(self, places: NDArray[np.int64] | NDArray[np.bool_]) -> None:
        """Reset rows to zero, as before their first use."""
        for column in self._columns():
            column[places] = 0

    def extend(self, more: int) -> None:
        """Append `more` rows of zeros; not to what `rows` gave, which may share its memory."""
        for field in fields(self):  # type: ignore[arg-type]  # subclasses are dataclasses
            column = getattr(self, field.name)
            setattr(self, field.name, _extended(column, len(column) + more))

    def _columns(self) -> Iterable[NDArray[Any]]:
        # Twice as fast as `dataclasses.fields`.
        names: Iterable[str] = self.__dataclass_fields__  # type: ignore[attr-defined]
        return [getattr(self, name) for name in names]


def _extended(column: NDArray[Any], count: int) -> NDArray[Any]:
    """A column with `count` rows, the new ones zero: more of the same memory where it has room."""
    room = column.base
    if room is None or not _has_room(room, column, count):
        room = np.zeros((capacity_for(count), *column.shape[1:]), column.dtype)
        room[: len(column)] = column
    return room[:count]


def _has_room(room: Any, column: NDArray[Any], count: int) -> bool:
    """Whether `room` is what `_extended` made for this column, and has so many rows."""
    return (
        isinstance(room, np.ndarray)
        and room.shape[1:] == column.shape[1:]
        and room.ctypes.data == column.ctypes.data
        and len(room) >= count
    )
