"""The last ten minutes of the rows that the live view shows: a ring of columns.

Law: at most `ROWS_MAX` rows and `POINTS_MAX` points, 2.5 MB. A row begins when it is shown for the first time; where there are
more, the one that was not shown for the longest time makes room.
"""

from collections.abc import Iterable
from typing import Final

import numpy as np

from rgd.views.live_model import HistoryView, PressureView
from rgd.views.pressure import RowKey

ROWS_MAX: Final = 256
POINTS_MAX: Final = 600

_FIGURES: Final = ("quota", "wanted", "admitted", "lowest")


class History:
    """A point for each round."""

    def __init__(self) -> None:
        #: [points, rows, figures]; NaN where a row was not shown.
        self._values = np.full((POINTS_MAX, ROWS_MAX, len(_FIGURES)), np.nan, np.float32)
        self._unix_ms = np.zeros(POINTS_MAX, np.int64)
        self._points = 0
        #: The column of each row, in the order in which they were shown last.
        self._columns: dict[RowKey, int] = {}

    def add(self, rows: Iterable[tuple[RowKey, PressureView]], unix_ms: int) -> None:
        """Add a point of at most `ROWS_MAX` rows."""
        at = self._points % POINTS_MAX
        self._points += 1
        self._unix_ms[at] = unix_ms
        self._values[at] = np.nan
        for key, row in rows:
            values = self._values[at, self._column(key)]
            lowest = np.nan if row.lowest is None else row.lowest
            values[:] = (row.quota, row.wanted, row.admitted, lowest)

    def of(self, key: RowKey) -> HistoryView | None:
        """The points of a row since it was shown for the first time; None: there are none."""
        column = self._columns.get(key)
        if column is None:
            return None
        begin = max(0, self._points - POINTS_MAX)
        order = np.arange(begin, self._points) % POINTS_MAX
        values = self._values[order, column]
        known = np.flatnonzero(~np.isnan(values[:, 0]))
        if not len(known):
            return None
        first = int(known[0])
        figures = (
            tuple(None if value != value else round(value, 4) for value in column_of.tolist())  # noqa: PLR0124 -- NaN
            for column_of in values[first:].T
        )
        times = tuple(self._unix_ms[order[first:]].tolist())
        return HistoryView(key.key.kind, key.dimension, times, *figures)

    def _column(self, key: RowKey) -> int:
        column = self._columns.pop(key, None)
        if column is None:
            column = len(self._columns)
            if column == ROWS_MAX:
                column = self._columns.pop(next(iter(self._columns)))
            self._values[:, column] = np.nan
        self._columns[key] = column
        return column
