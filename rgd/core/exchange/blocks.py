"""Rows that come in blocks, joined as they come: joining 100,000 at once would take 20 ms.

Law: the rows are those of the joins in `rgd.core.exchange.columns`, in the order of the blocks.
"""

from dataclasses import fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rgd.core.exchange.columns import NO_SHARES, NO_USAGE, ShareColumns, UsageColumns


class UsageBlocks:
    """Joined rows of usage."""

    def __init__(self, rows_max: int = 0) -> None:
        self._groups: list[str] = []
        #: Their room is zeros that the system maps when they are first written.
        self._columns = {
            name: _room(rows_max, column) for name, column in _arrays(NO_USAGE).items()
        }

    def add(self, rows: UsageColumns) -> None:
        """Append a block."""
        begin = len(self._groups)
        self._groups += rows.groups
        _fill(self._columns, begin, _arrays(rows))

    def join(self) -> UsageColumns:
        """The rows of all blocks."""
        count = len(self._groups)
        columns = {name: column[:count] for name, column in self._columns.items()}
        return UsageColumns(groups=tuple(self._groups), **columns)


class ShareBlocks:
    """Joined rows of shares."""

    def __init__(self, rows_max: int = 0) -> None:
        self._usage = UsageBlocks(rows_max)
        self._columns = {
            name: _room(rows_max, column) for name, column in _arrays(NO_SHARES).items()
        }
        self._count = 0
        self._has_levels = False

    def add(self, rows: ShareColumns) -> None:
        """Append a block; without a breakdown by level, its levels are 0."""
        self._usage.add(rows.usage)
        columns = _arrays(rows)
        if not len(rows.refused_by):
            del columns["refused_by"]
        self._has_levels |= len(rows.refused_by) > 0
        _fill(self._columns, self._count, columns)
        self._count += len(rows)

    def join(self) -> ShareColumns:
        """The rows of all blocks."""
        columns = {name: column[: self._count] for name, column in self._columns.items()}
        if not self._has_levels:
            columns["refused_by"] = NO_SHARES.refused_by
        return ShareColumns(usage=self._usage.join(), **columns)


def _arrays(rows: UsageColumns | ShareColumns) -> dict[str, NDArray[Any]]:
    names = [field.name for field in fields(rows) if field.name not in {"groups", "usage"}]
    return {name: getattr(rows, name) for name in names}


def _room(rows_max: int, like: NDArray[Any]) -> NDArray[Any]:
    return np.zeros((rows_max, *like.shape[1:]), like.dtype)


def _fill(room: dict[str, NDArray[Any]], begin: int, columns: dict[str, NDArray[Any]]) -> None:
    for name, column in columns.items():
        room[name][begin : begin + len(column)] = column
