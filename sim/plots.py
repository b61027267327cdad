"""Draws runs: who wanted, got and was allowed what over the rounds, and policies side by side.

Law: a picture shows a table (`sim.table`) and nothing else, and the same table gives the same bytes.

Few brokers are drawn in a colour of their own, the same in every panel, with their names at the ends
of their lines: those whose max-min part moves most. The others are drawn in grey behind them. Shares
are steps, because they hold for a round. matplotlib comes with the extra `test` and is imported
when something is drawn.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from sim.table import RoundTable

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Floats = NDArray[np.float64]

#: One for each broker that is drawn in colour; told apart by the colour-blind (Okabe & Ito).
COLOURS: Final = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")

#: Brokers in colour where several policies are compared in small panels.
COMPARED_MAX: Final = 3

_LONG_NUMBER: Final = re.compile(r"-?\d+\.\d\d+")

_INK: Final = "#222222"
_MUTED: Final = "#767676"
_GRID: Final = "#e6e6e6"
_REST: Final = "#c4c4c4"
_STYLE: Final[dict[Any, Any]] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "rgd",
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans", "sans-serif"],
    "font.size": 9,
    "figure.facecolor": "white",
    "text.color": _INK,
    "axes.edgecolor": _GRID,
    "axes.labelcolor": _MUTED,
    "axes.titlesize": 9.5,
    "axes.titlelocation": "left",
    "axes.titlecolor": _INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.spines.left": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.grid.axis": "y",
    "grid.color": _GRID,
    "grid.linewidth": 0.7,
    "xtick.color": _MUTED,
    "ytick.color": _MUTED,
    "xtick.labelsize": 8,
    "ytick.labelsize": 8,
    "xtick.major.size": 0,
    "ytick.major.size": 0,
    "lines.linewidth": 1.6,
    "path.simplify": True,
}


@dataclass(frozen=True, slots=True)
class Cell:
    """One policy in one scenario, in a comparison."""

    table: RoundTable
    #: Said above the curves: how it ended.
    verdict: str
    #: Rounds at which the demand moved.
    steps: Sequence[float] = ()


def draw_run(
    table: RoundTable,
    path: Path,
    *,
    title: str,
    group: str | None = None,
    steps: Sequence[float] = (),
) -> None:
    """Draw one group of a run: wanted, admitted and share by broker, and the lowest ratio.

    Args:
        table: the run.
        path: where to; the ending (`.svg` or `.png`) says what.
        title: above it all.
        group: which one; by default the first.
        steps: rounds to mark, at which the demand moved.
    """
    of_group = table.of_group(group or table.groups[0])
    rounds = of_group.rounds
    picked = picked_brokers(of_group, len(COLOURS))
    import matplotlib as mpl  # noqa: PLC0415 -- only who draws needs it

    with mpl.rc_context(_STYLE):
        figure, axes = _stack(4, heights=(2, 2, 2, 1.2), size=(9.5, 8.2))
        figure.suptitle(title, x=0.075, ha="left", fontsize=11, fontweight="bold")
        for axis, column in zip(axes, ("wanted", "admitted", "share"), strict=False):
            grid = of_group.grid(column)
            _draw_brokers(axis, rounds, grid, of_group.brokers, picked)
            axis.set_title(f"{column}, units a second", color=_MUTED)
            axis.set_ylim(0, _top(grid))
            _label_ends(axis, rounds, grid, of_group.brokers, picked)
        _draw_lowest(axes[3], rounds, of_group.lowest_ratio())
        for axis in axes:
            _mark(axis, steps)
            axis.set_xlim(rounds[0], rounds[-1] + 1)
        axes[3].set_xlabel("round")
        _save(figure, path)


def draw_comparison(cells: Mapping[str, Mapping[str, Cell]], path: Path) -> None:
    """Draw shares under several policies side by side.

    Args:
        cells: scenario -> policy -> what happened; every scenario has the same policies.
        path: where to; the ending says what.
    """
    scenarios = list(cells)
    policies = list(next(iter(cells.values())))
    import matplotlib as mpl  # noqa: PLC0415 -- only who draws needs it

    with mpl.rc_context(_STYLE):
        figure, axes = _lattice(len(scenarios), len(policies))
        for row, scenario in zip(axes, scenarios, strict=True):
            _draw_scenario(row, [cells[scenario][policy] for policy in policies])
            row[0].annotate(
                scenario,
                (0, 1.16),
                xycoords="axes fraction",
                fontsize=10.5,
                fontweight="bold",
                va="bottom",
            )
        for axis, policy in zip(axes[0], policies, strict=True):
            axis.annotate(
                policy,
                (0, 1.4),
                xycoords="axes fraction",
                fontsize=12,
                fontweight="bold",
                color=_MUTED,
                ha="left",
                va="bottom",
            )
        for axis in axes[-1]:
            axis.set_xlabel("round")
        figure.text(
            0.06,
            0.08 / figure.get_figheight(),
            "solid: share in force    dashed: max-min part of what it wants    dotted: demand moves",
            fontsize=8.5,
            color=_MUTED,
        )
        _save(figure, path)


def picked_brokers(table: RoundTable, most: int) -> list[str]:
    """The brokers to draw in colour, in the order of names: those whose part moves most.

    Of brokers that move as one, the first stands for all where there are enough others.
    """
    brokers = table.brokers
    part = np.nan_to_num(table.grid("part"))
    spread = part.max(axis=0) - part.min(axis=0)
    seen: set[bytes] = set()
    first: list[int] = []
    again: list[int] = []
    for place in np.argsort(-spread, kind="stable"):
        shape = np.round(part[:, place] / max(part.max(), 1e-9), 1).tobytes()
        (again if shape in seen else first).append(int(place))
        seen.add(shape)
    picked = (first + again)[: min(most, max(len(first), COMPARED_MAX))]
    return [brokers[place] for place in sorted(picked)]


def _draw_scenario(row: "Sequence[Axes]", cells: Sequence[Cell]) -> None:
    picked = picked_brokers(_first_group(cells[0]), COMPARED_MAX)
    top = 0.0
    for axis, cell in zip(row, cells, strict=True):
        table = _first_group(cell)
        rounds, brokers = table.rounds, table.brokers
        quota = np.nansum(table.grid("part"), axis=1).max()
        shares, part = table.grid("share") / quota * 100, table.grid("part") / quota * 100
        _draw_brokers(axis, rounds, shares, brokers, picked)
        for name, colour in zip(picked, COLOURS, strict=False):
            due = part[:, brokers.index(name)]
            _step(axis, rounds, due, color=colour, linewidth=1.0, linestyle=(0, (1.5, 1.5)))
        axis.set_title(cell.verdict, fontsize=8.5, color=_MUTED, pad=4)
        _mark(axis, cell.steps)
        axis.set_xlim(rounds[0], rounds[-1] + 1)
        top = max(top, _top(part), min(_top(shares), 2 * _top(part)))
    for axis in row:
        axis.set_ylim(0, top)
    row[0].set_ylabel("share, % of quota")
    last = _first_group(cells[-1])
    shares = last.grid("share") / np.nansum(last.grid("part"), axis=1).max() * 100
    _label_ends(row[-1], last.rounds, shares, last.brokers, picked)


def _first_group(cell: Cell) -> RoundTable:
    return cell.table.of_group(cell.table.groups[0])


def _draw_brokers(
    axis: "Axes",
    rounds: NDArray[np.int64],
    grid: Floats,
    brokers: Sequence[str],
    picked: Sequence[str],
) -> None:
    """One line a broker."""
    for place, name in enumerate(brokers):
        if name not in picked:
            _step(axis, rounds, grid[:, place], color=_REST, linewidth=0.8)
    for name, colour in zip(picked, COLOURS, strict=False):
        _step(axis, rounds, grid[:, brokers.index(name)], color=colour)


def _step(axis: "Axes", rounds: NDArray[np.int64], values: Floats, **style: Any) -> None:
    """Draw values that hold for a round each; only where they change, so that files stay small."""
    edges, ends = np.append(rounds, rounds[-1] + 1), np.append(values, values[-1])
    is_kept = np.ones(len(ends), np.bool_)
    is_kept[1:-1] = ends[1:-1] != ends[:-2]
    axis.step(edges[is_kept], ends[is_kept], where="post", **style)


def _label_ends(
    axis: "Axes",
    rounds: NDArray[np.int64],
    grid: Floats,
    brokers: Sequence[str],
    picked: Sequence[str],
) -> None:
    """Names at the ends of lines, moved apart where they would lie on one another."""
    low, high = axis.get_ylim()
    least = (high - low) * 0.11
    ends = sorted(
        (float(np.nan_to_num(grid[-1, brokers.index(name)])), name, colour)
        for name, colour in zip(picked, COLOURS, strict=False)
    )
    if len(brokers) > len(picked):
        others = [place for place, name in enumerate(brokers) if name not in picked]
        middle = float(np.nanmedian(grid[-1, others]))
        ends = sorted([*ends, (middle, f"{len(others)} others", _MUTED)])
    for height, (_, name, colour) in zip(
        _apart([end[0] for end in ends], least, high), ends, strict=True
    ):
        axis.annotate(
            name,
            (rounds[-1] + 1, height),
            xytext=(5, 0),
            textcoords="offset points",
            color=colour,
            fontsize=8,
            va="center",
            annotation_clip=False,
        )


def _apart(heights: Sequence[float], least: float, high: float) -> list[float]:
    """Heights, ascending, at least so far apart, and below `high` where there is room."""
    apart: list[float] = []
    for height in heights:
        apart.append(max(height, apart[-1] + least) if apart else height)
    limit = high
    for place in range(len(apart) - 1, -1, -1):
        apart[place] = min(apart[place], limit)
        limit = apart[place] - least
    return apart


def _draw_lowest(axis: "Axes", rounds: NDArray[np.int64], lowest: Floats) -> None:
    _step(axis, rounds, lowest, color=_INK)
    axis.axhline(1.0, color=_MUTED, linewidth=0.8, linestyle=(0, (2, 2)))
    axis.set_ylim(0, max(1.1, min(1.5, _top(lowest))))
    axis.set_title("lowest admitted / max-min part of all brokers", color=_MUTED)


def _mark(axis: "Axes", steps: Sequence[float]) -> None:
    for step in steps:
        axis.axvline(step, color=_MUTED, linewidth=0.9, linestyle=(0, (1, 3)))


def _top(grid: Floats) -> float:
    most = float(np.nanmax(grid)) if np.isfinite(grid).any() else 1.0
    return max(most * 1.08, 1e-9)


def _stack(
    count: int, *, heights: Sequence[float], size: tuple[float, float]
) -> "tuple[Figure, list[Axes]]":
    """Panels one above the other, with room for names at the right."""
    from matplotlib.figure import Figure  # noqa: PLC0415 -- only who draws needs it

    figure = Figure(figsize=size)
    grid = figure.add_gridspec(
        count, 1, left=0.075, right=0.89, top=0.91, bottom=0.06, hspace=0.36, height_ratios=heights
    )
    axes: Any = grid.subplots(sharex=True, squeeze=False)
    return figure, list(axes[:, 0])


def _lattice(rows: int, columns: int) -> "tuple[Figure, list[list[Axes]]]":
    """Small panels, a row for each scenario and a column for each policy."""
    from matplotlib.figure import Figure  # noqa: PLC0415 -- only who draws needs it

    height = 1.0 + 2.15 * rows
    figure = Figure(figsize=(2.75 * columns + 1.4, height))
    grid = figure.add_gridspec(
        rows,
        columns,
        left=0.06,
        right=0.905,
        top=1 - 0.78 / height,
        bottom=0.68 / height,
        hspace=0.58,
        wspace=0.08,
    )
    axes: Any = grid.subplots(sharey="row", squeeze=False)
    return figure, [list(row) for row in axes]


def _save(figure: "Figure", path: Path) -> None:
    if path.suffix != ".svg":
        figure.savefig(path, dpi=144)
        return
    svg = StringIO()
    figure.savefig(svg, format="svg", metadata={"Date": None, "Creator": None})
    # A tenth of a point is finer than a screen, and a third of the file.
    path.write_text(re.sub(r" (?:d|x|y)=\"[^\"]*\"", _shortened, svg.getvalue()))


def _shortened(numbers: re.Match[str]) -> str:
    return _LONG_NUMBER.sub(lambda found: f"{float(found[0]):.1f}", numbers[0])
