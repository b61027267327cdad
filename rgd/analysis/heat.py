"""The part of the page that shows where and when it was not fair: a row a group over the whole time of the log.

Law: each starved interval of the findings is drawn (`findings.STARVED_LISTED_MAX` a group), red, and the longest of a group
is in words beside it. Behind them is the lowest ratio of each stretch of time, darker the lower. Groups that were fair
all the time have no row; there are at most `ROWS_MAX`.
"""

from collections.abc import Sequence
from itertools import groupby
from typing import Final

import numpy as np

from rgd.analysis import figures
from rgd.analysis.chunks import Floats
from rgd.analysis.findings import WHOLE_PART_MIN, Finding
from rgd.analysis.log_facts import LogFacts
from rgd.analysis.page_tables import Cell, figures_of, table
from rgd.analysis.tables import Plotted
from rgd.analysis.wording import STARVED

#: Rows of the section; the table of groups has the others.
ROWS_MAX: Final = 50
#: Most stretches of time in a row.
CELLS_MAX: Final = 100
#: A lowest ratio of less is drawn.
FAIR: Final = 0.9
#: How finely times are drawn.
_STEPS: Final = 1000


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


def section(rows: Sequence[tuple[Finding, Floats]], facts: LogFacts) -> str:
    """The section, of findings with their cells, worst first; nothing where all was fair."""
    unfair = [row for row in rows if row[0]["starved"] or (row[1] < FAIR).any()]
    if not unfair:
        return ""
    more = len(unfair) - ROWS_MAX
    note = f" {more} more groups have such times." if more > 0 else ""
    ends = f"{figures.moment(facts.from_ms)} to {figures.moment(facts.to_ms)} UTC"
    columns = ("group", "kind, dimension", ends, "longest starved", "starved")
    drawn = table(columns, [_row(*row, facts) for row in unfair[:ROWS_MAX]], words=4)
    return (
        f'<section aria-labelledby="when"><h2 id="when">Lowest ratio over time</h2>{drawn}'
        f'<p class="note">The darker, the lower the lowest ratio; red is a starved broker.{note}</p></section>'
    )


def _row(finding: Finding, cells: Floats, facts: LogFacts) -> list[str | Cell]:
    starved = "".join(_interval(one["from_ms"], one["to_ms"], facts) for one in finding["starved"])
    svg = (
        f'<svg viewBox="0 0 {_STEPS} 10" preserveAspectRatio="none" aria-hidden="true">'
        f"{_shades(cells)}{starved}</svg>"
    )
    longest = figures.NOTHING
    if finding["starved"]:
        one = finding["starved"][0]
        longest = (
            f"{one['broker']}, {figures.moment(one['from_ms'])} to {figures.moment(one['to_ms'])}"
        )
    return [
        finding["group"],
        f"{finding['kind']}, {finding['dimension']}",
        Cell("", "when", html=svg),
        longest,
        *figures_of((STARVED,), finding),
    ]


def _shades(cells: Floats) -> str:
    """The cells that were not fair; those of the same shade in a row are one."""
    shades = np.where(cells < FAIR, np.ceil((1 - np.clip(cells, 0, 1)) * 10) / 10, 0.0).tolist()
    drawn, begin = [], 0
    for shade, run in groupby(shades):
        end = begin + sum(1 for _ in run)
        if shade:
            x, width = begin * _STEPS // len(cells), (end - begin) * _STEPS // len(cells)
            drawn.append(
                f'<rect class="low" x="{x}" width="{width}" height="10" opacity="{shade:g}"/>'
            )
        begin = end
    return "".join(drawn)


def _interval(from_ms: int, to_ms: int, facts: LogFacts) -> str:
    """A bar, wide enough to be seen."""
    length = max(1, facts.to_ms - facts.from_ms)
    begin = (from_ms - facts.from_ms) * _STEPS // length
    width = max(2, (to_ms - from_ms) * _STEPS // length)
    return f'<rect x="{begin}" width="{width}" height="10"/>'
