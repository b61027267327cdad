"""Names of groups as numbers in a sender's table (dictionary encoding).

Law: a number of a table never refers to another name; the table only grows.
"""

from collections.abc import Iterator, Sequence
from typing import overload

import numpy as np
from numpy.typing import NDArray

from rgd.core.pairs import Places

Ints = NDArray[np.int64]


class NumberedNames(Sequence[str]):
    """Names of rows, decoded to text only when read."""

    __slots__ = ("numbers", "table")

    def __init__(self, table: Sequence[str | None], numbers: Ints) -> None:
        #: The names by number; every number in `numbers` has a name.
        self.table = table
        self.numbers = numbers

    def __len__(self) -> int:
        return len(self.numbers)

    def __iter__(self) -> Iterator[str]:
        return (self._name(number) for number in self.numbers.tolist())

    @overload
    def __getitem__(self, at: int) -> str: ...

    @overload
    def __getitem__(self, at: slice) -> "NumberedNames": ...

    def __getitem__(self, at: int | slice) -> "str | NumberedNames":
        return self.take(at) if isinstance(at, slice) else self._name(int(self.numbers[at]))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and tuple(self) == tuple(other)

    __hash__ = None  # type: ignore[assignment]  # a table grows

    def take(self, places: Places) -> "NumberedNames":
        """The names at these indexes."""
        return NumberedNames(self.table, self.numbers[places])

    def _name(self, number: int) -> str:
        name = self.table[number]
        assert name is not None, "a number without a name"
        return name
