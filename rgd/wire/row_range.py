"""The rows of one record among those of many that were read together.

Law: `columns` of a range is what its record alone would have been read as.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Final

from rgd.core.exchange.columns import NO_SHARES, ShareColumns


@dataclass(slots=True)
class RowRange:
    """The rows of one record among those of many: to cut them out takes longer than to read them."""

    of: ShareColumns
    begin: int
    end: int
    has_levels: bool

    def __len__(self) -> int:
        return self.end - self.begin

    @property
    def columns(self) -> ShareColumns:
        """These rows alone."""
        rows = self.of.take(slice(self.begin, self.end))
        return rows if self.has_levels else replace(rows, refused_by=NO_SHARES.refused_by)

    @staticmethod
    def join(ranges: Iterable["RowRange"]) -> ShareColumns:
        """The rows of all ranges, one after another; of neighbours together."""
        runs: list[list[Any]] = []
        for one in ranges:
            if runs and runs[-1][0] is one.of and runs[-1][2] == one.begin:
                runs[-1][2] = one.end
            else:
                runs.append([one.of, one.begin, one.end])
        return ShareColumns.join([of.take(slice(*run)) for of, *run in runs] or [NO_SHARES])


#: Of what is no record, or is read without its rows.
NO_ROWS: Final = RowRange(NO_SHARES, 0, 0, has_levels=False)
