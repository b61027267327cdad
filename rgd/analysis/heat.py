"""The part of the page that shows where and when it was not fair: a row a group over the whole time of the log.

Law: each starved interval of the findings is drawn (`findings.STARVED_LISTED_MAX` a group), red, and the longest of a group
is in words beside it. Behind them is the lowest ratio of each stretch of time, darker the lower. Groups that were fair
all the time have no row; the page shows `ROWS_MAX`.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import Final

import numpy as np

from rgd.analysis.findings import WHOLE_PART_MIN, Finding
from rgd.analysis.log_facts import LogFacts
from rgd.analysis.row_columns import Floats
from rgd.analysis.window_tables import Plotted

#: Rows of the section; the table of groups has the others.
ROWS_MAX: Final = 50
#: Units in the whole time of the log.
WIDTH: Final = 1000
#: Most stretches of time in a row.
CELLS_MAX: Final = 100
#: A lowest ratio of less is drawn.
FAIR: Final = 0.9


@dataclass(frozen=True, slots=True)
class Row:
    """One group, kind and dimension; places and widths are parts of `WIDTH`."""

    finding: Finding
    #: Place, width and opacity of stretches of time that were not fair.
    shades: list[tuple[int, int, float]]
    #: Place and width of starved intervals.
    starved: list[tuple[int, int]]


def cells_of(plotted: Plotted, facts: LogFacts) -> Floats:
    """[cells] the lowest ratio of complete windows in each stretch of the log's time; 1 where there is none."""
    length = max(1, facts.to_ms - facts.from_ms)
    size = max(1, min(CELLS_MAX, round(length / facts.window_ms)))
    cells = np.ones(size)
    places = (plotted.start_ms - facts.from_ms) * size // length
    is_drawn = plotted.seconds * 1000 >= WHOLE_PART_MIN * facts.window_ms
    lowest = np.where(is_drawn, np.nan_to_num(plotted.lowest, nan=1.0), 1.0)
    np.minimum.at(cells, np.clip(places, 0, size - 1).astype(np.int64), lowest)
    return cells


def rows(drawn: Iterable[tuple[Finding, Floats]], facts: LogFacts) -> list[Row]:
    """The findings, with their cells, that were not fair all the time."""
    return [
        _row(finding, cells, facts)
        for finding, cells in drawn
        if finding["starved"] or (cells < FAIR).any()
    ]


def _row(finding: Finding, cells: Floats, facts: LogFacts) -> Row:
    length = max(1, facts.to_ms - facts.from_ms)
    intervals = [(one["from_ms"], one["to_ms"]) for one in finding["starved"]]
    starved = [
        # Wide enough to be seen.
        ((begin - facts.from_ms) * WIDTH // length, max(2, (end - begin) * WIDTH // length))
        for begin, end in intervals
    ]
    return Row(finding, list(_shades(cells)), starved)


def _shades(cells: Floats) -> Iterator[tuple[int, int, float]]:
    """The cells that were not fair; those of the same shade in a row are one."""
    shades = np.where(cells < FAIR, np.ceil((1 - np.clip(cells, 0, 1)) * 10) / 10, 0.0).tolist()
    end = 0
    for shade, run in groupby(shades):
        begin, end = end, end + sum(1 for _ in run)
        if shade:
            yield begin * WIDTH // len(cells), (end - begin) * WIDTH // len(cells), shade
