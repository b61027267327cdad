"""Columns that grow together: one row for each group in use on this broker."""

from collections.abc import Iterable
from dataclasses import fields
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from rgd.core.runs import Places


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
        """Append `more` rows of zeros."""
        for field in fields(self):  # type: ignore[arg-type]  # subclasses are dataclasses
            column = getattr(self, field.name)
            fresh = np.zeros((more, *column.shape[1:]), column.dtype)
            setattr(self, field.name, np.concatenate((column, fresh)))

    def _columns(self) -> Iterable[NDArray[Any]]:
        # Twice as fast as `dataclasses.fields`.
        names: Iterable[str] = self.__dataclass_fields__  # type: ignore[attr-defined]
        return [getattr(self, name) for name in names]
