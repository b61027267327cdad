"""Columns that grow together: one row for each group in use on this broker."""

from collections.abc import Iterable
from dataclasses import field, fields
from typing import Any, Final, Self

import numpy as np
from numpy.typing import NDArray

#: Rows for which there is room as groups come into use. Room is zeros that the system maps when they are first
#: written, so it costs nothing before, while copying 65,000 wide rows takes 165 ms.
CAPACITIES: Final = (1 << 12, 1 << 17, 1 << 20)

#: The width of a column of pairs: one number for each dimension.
PAIR: Final = -1


def column(width: int = 0, dtype: type = np.float64) -> Any:
    """A field of `Columns`: a number of `dtype` a row, or `width` of them (`PAIR`)."""
    return field(metadata={"width": width, "dtype": dtype})


class Columns:
    """The base of a dataclass whose fields are arrays with one row for each group."""

    @classmethod
    def empty(cls, rows: int, dimensions: int = 2) -> Self:
        """Rows of zeros."""
        columns = []
        for one in fields(cls):  # type: ignore[arg-type]  # subclasses are dataclasses
            width = one.metadata["width"]
            shape = (rows, dimensions if width == PAIR else width) if width else (rows,)
            columns.append(np.zeros(shape, one.metadata["dtype"]))
        return cls(*columns)

    def rows(self, places: NDArray[np.int64]) -> Self:
        """Copies of the rows at these indexes."""
        # An index in brackets takes numpy several times as long for pairs.
        return type(self)(*(one.take(places, 0) for one in self._columns()))

    def put(self, places: NDArray[np.int64], rows: Self) -> None:
        """Write back what `rows` gave."""
        for one, values in zip(self._columns(), rows._columns(), strict=True):
            one[places] = values

    def reset(self, places: NDArray[np.int64] | NDArray[np.bool_]) -> None:
        """Reset rows to zero, as before their first use."""
        for one in self._columns():
            one[places] = 0

    def grow(self, count: int, kept: NDArray[np.int64]) -> None:
        """Make room for `count` rows; all but the kept ones are zeros."""
        rows = next((size for size in CAPACITIES if size >= count), count * 3 // 2)
        for one in fields(self):  # type: ignore[arg-type]  # subclasses are dataclasses
            before = getattr(self, one.name)
            room = np.zeros((rows, *before.shape[1:]), before.dtype)
            room[kept] = before[kept]
            setattr(self, one.name, room)

    def _columns(self) -> Iterable[NDArray[Any]]:
        # Twice as fast as `dataclasses.fields`.
        names: Iterable[str] = self.__dataclass_fields__  # type: ignore[attr-defined]
        return [getattr(self, name) for name in names]
