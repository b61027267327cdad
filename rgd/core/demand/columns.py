"""Columns that grow together: one row for each group that is in use here."""

from collections.abc import Iterable
from dataclasses import fields
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from rgd.core.runs import Places


class Columns:
    """The base of a dataclass whose fields are arrays with one row each for every group."""

    def rows(self, places: Places) -> Self:
        """Some rows: views of a slice, copies of places."""
        if isinstance(places, slice):
            return type(self)(*(column[places] for column in self._columns()))
        # Numpy takes several times as long for pairs where the index is in brackets.
        return type(self)(*(column.take(places, 0) for column in self._columns()))

    def put(self, places: NDArray[np.int64], rows: Self) -> None:
        """Write rows back to their places."""
        for column, values in zip(self._columns(), rows._columns(), strict=True):
            column[places] = values

    def reset(self, places: NDArray[np.int64] | NDArray[np.bool_]) -> None:
        """Make rows as if they had never been asked for."""
        for column in self._columns():
            column[places] = 0

    def extend(self, more: int) -> None:
        """Append fresh rows."""
        for field in fields(self):  # type: ignore[arg-type]  # subclasses are dataclasses
            column = getattr(self, field.name)
            fresh = np.zeros((more, *column.shape[1:]), column.dtype)
            setattr(self, field.name, np.concatenate((column, fresh)))

    def _columns(self) -> Iterable[NDArray[Any]]:
        # Twice as fast as `dataclasses.fields`.
        names: Iterable[str] = self.__dataclass_fields__  # type: ignore[attr-defined]
        return [getattr(self, name) for name in names]
