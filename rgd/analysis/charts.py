"""Draws the windows of one group, kind and dimension: three plots over one time axis, as inline SVG.

Law: the SVG works in any HTML page: it has no external fonts, scripts, identifiers or addresses,
and no colours of its own. Each colour is drawn as a placeholder and replaced by a CSS variable of the
page, which has a value for light and for dark. Text stays text.

The first plot has the admitted rates, stacked by broker, with the demand and the quota. The second has each
broker's share and its max-min part, and the third Jain's index and the lowest ratio. At most `POINTS_MAX` points
are drawn: means of the windows between them, or the minimum for the lowest ratio.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from io import StringIO
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from rgd.analysis.chunks import Floats
from rgd.analysis.fairness import Judged
from rgd.analysis.figures import moment
from rgd.analysis.windows import GroupWindows, Rates
from rgd.core.exchange.columns import Ints

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: Most points on the time axis; a screen has not many more pixels.
POINTS_MAX: Final = 400

#: Brokers with a colour of their own; the rest are drawn together.
COLOURS: Final = 8

#: Stand-ins for the page's variables, as matplotlib writes them.
_INK: Final = "#010101"
_MUTED: Final = "#020202"
_GRID: Final = "#030303"
_REST: Final = "#040404"
_SERIES: Final = tuple(f"#0a0a{number:02x}" for number in range(1, COLOURS + 1))
_VARIABLES: Final = {
    _INK: "var(--ink)",
    _MUTED: "var(--muted)",
    _GRID: "var(--grid)",
    _REST: "var(--rest)",
    **{stand_in: f"var(--broker-{index})" for index, stand_in in enumerate(_SERIES, 1)},
}

_LONG_NUMBER: Final = re.compile(r"(\.\d\d)\d+")

_WIDTH_IN: Final = 11.0
_HEIGHTS_IN: Final = (2.7, 1.7, 1.2)
_LEFT_IN, _RIGHT_IN, _TOP_IN, _BOTTOM_IN, _GAP_IN = 0.72, 0.1, 0.3, 0.5, 0.42
_STYLE: Final[dict[Any, Any]] = {
    "svg.fonttype": "none",
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 9,
    "text.color": _INK,
    "axes.edgecolor": _GRID,
    "axes.labelcolor": _MUTED,
    "axes.titlesize": 10,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.spines.left": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.grid.axis": "y",
    "grid.color": _GRID,
    "grid.linewidth": 0.6,
    "xtick.color": _MUTED,
    "ytick.color": _MUTED,
    "xtick.major.size": 0,
    "ytick.major.size": 0,
    "lines.linewidth": 1.5,
    "lines.solid_capstyle": "butt",
    "hatch.linewidth": 0.6,
}


@dataclass(frozen=True, slots=True)
class Chart:
    """A drawing, and the meaning of its colours."""

    svg: str
    #: Brokers with a colour: the number in the variable `--broker-N`, and the broker's name.
    colours: tuple[tuple[int, str], ...]
    #: Number of brokers that are drawn together in `--rest`.
    rest: int
    #: Whether a step, or a window known from totals only, is marked.
    has_steps: bool
    has_recovered: bool


@dataclass(frozen=True, slots=True)
class Points:
    """The drawn points of the windows; P points, B brokers."""

    #: (P + 1,); the beginnings of points and the end of the last, in the axis's unit.
    edges: Floats
    #: (P, B)
    admitted: Floats
    share: Floats
    part: Floats
    #: (P,)
    wanted: Floats
    quota: Floats
    jain: Floats
    lowest: Floats
    recovered: Floats


def draw(
    windows: GroupWindows,
    judged: Judged,
    *,
    window_ms: int,
    steps_ms: Sequence[int],
    coloured: Sequence[str],
) -> Chart:
    """Draw one dimension.

    Args:
        windows: the windows; the first dimension in them is drawn.
        judged: the result of `fairness`.
        window_ms: length of a window.
        steps_ms: moments to mark.
        coloured: brokers in the order of colours, at most `COLOURS`.
    """
    import matplotlib as mpl

    dimension, rates = next(iter(windows.rates.items()))
    unit_s, unit = _time_unit(windows, window_ms)
    origin = int(windows.start_ms[0])
    points = gather(windows, rates, judged, window_ms=window_ms, unit_ms=unit_s * 1000)
    indices = [windows.brokers.index(name) for name in coloured if name in windows.brokers]
    colours = [_SERIES[coloured.index(windows.brokers[index])] for index in indices]
    others = [index for index in range(len(windows.brokers)) if index not in indices]
    with mpl.rc_context(_STYLE | {"svg.hashsalt": f"{windows.group}/{windows.kind}/{dimension}"}):
        figure, axes = _panels(has_quota=bool(np.isfinite(points.quota).any()))
        _draw_amounts(axes[0], points, (indices, colours, others), dimension)
        if len(axes) > 1:
            _draw_shares(axes[1], points, (indices, colours), dimension)
            _draw_fairness(axes[2], points)
        for axis in axes:
            for at in steps_ms:
                position = (at - origin) / 1000 / unit_s
                axis.axvline(position, color=_MUTED, linewidth=0.9, linestyle=(0, (1, 3)))
            axis.margins(x=0)
        axes[-1].set_xlabel(f"{unit} since {moment(origin)} UTC")
        svg = StringIO()
        figure.savefig(svg, format="svg", transparent=True, metadata={"Date": None})
    return Chart(
        svg=adopt(svg.getvalue()),
        colours=tuple(
            (coloured.index(windows.brokers[index]) + 1, windows.brokers[index])
            for index in indices
        ),
        rest=len(others),
        has_steps=bool(steps_ms),
        has_recovered=bool((points.recovered > 0).any()),
    )


def adopt(svg: str) -> str:
    """Adapt matplotlib's SVG for embedding in a page."""
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>\s*", "", svg, flags=re.DOTALL)
    svg = re.sub(r"<defs>\s*<style.*?</style>\s*</defs>\s*", "", svg, flags=re.DOTALL)
    svg = re.sub(r' xmlns(:\w+)?="[^"]*"| version="[^"]*"', "", svg)
    svg = re.sub(r'(<svg)( [^>]*?)(width|height)="[^"]*" (width|height)="[^"]*"', r"\1\2", svg)
    svg = re.sub(r'<g id="[^"]*">', "<g>", svg)
    # A hundredth of a point is finer than any screen, and halves the page's size.
    svg = re.sub(r' d="[^"]*"', lambda path: _LONG_NUMBER.sub(r"\1", path[0]), svg)
    svg = svg.replace("xlink:href", "href").replace(" font-family: 'DejaVu Sans', sans-serif;", "")
    return re.sub("|".join(_VARIABLES), lambda found: _VARIABLES[found[0]], svg)


def gather(
    windows: GroupWindows, rates: Rates, judged: Judged, *, window_ms: int, unit_ms: float
) -> Points:
    """Group the windows into at most `POINTS_MAX` points, evenly over the time."""
    numbers = (windows.start_ms - windows.start_ms[0]) // window_ms
    span = int(numbers[-1]) + 1
    windows_a_point = -(-span // POINTS_MAX)
    point = numbers // windows_a_point
    size = -(-span // windows_a_point)
    seconds = windows.seconds
    fill = _Fill(point, size, seconds)
    return Points(
        edges=np.append(np.arange(size) * windows_a_point, span) * window_ms / unit_ms,
        admitted=np.nan_to_num(fill.means(rates.admitted)),
        share=fill.means(rates.share),
        part=np.nan_to_num(fill.means(judged.part)),
        wanted=np.nan_to_num(fill.mean(rates.wanted.sum(axis=1))),
        quota=fill.mean(rates.quota),
        jain=fill.mean(judged.jain),
        lowest=fill.least(judged.lowest),
        recovered=np.nan_to_num(fill.mean(rates.recovered)),
    )


@dataclass(frozen=True, slots=True)
class _Fill:
    """Windows into points; NaN where no window has a value."""

    point: Ints
    size: int
    seconds: Floats

    def mean(self, values: Floats) -> Floats:
        """The mean by time; (P,)."""
        weight = np.where(np.isfinite(values), self.seconds, 0.0)
        total = np.bincount(self.point, np.nan_to_num(values) * weight, self.size)
        weights = np.bincount(self.point, weight, self.size)
        return np.where(weights > 0, total / np.where(weights > 0, weights, 1.0), np.nan)

    def means(self, values: Floats) -> Floats:
        """The mean by time of each broker; (P, B)."""
        return np.stack([self.mean(column) for column in values.T], axis=1)

    def least(self, values: Floats) -> Floats:
        """The least; (P,)."""
        lowest = np.full(self.size, np.inf)
        np.minimum.at(lowest, self.point, np.where(np.isfinite(values), values, np.inf))
        return np.where(np.isfinite(lowest), lowest, np.nan)


def _panels(*, has_quota: bool) -> tuple["Figure", "list[Axes]"]:
    """The plots, one above the other; without a quota there are no shares and no verdict."""
    from matplotlib.figure import Figure

    heights = _HEIGHTS_IN if has_quota else _HEIGHTS_IN[:1]
    # Inches, so that text has the same space in every plot. matplotlib's own layouts draw twice.
    height = _TOP_IN + sum(heights) + _GAP_IN * (len(heights) - 1) + _BOTTOM_IN
    figure = Figure(figsize=(_WIDTH_IN, height))
    grid = figure.add_gridspec(
        len(heights),
        1,
        left=_LEFT_IN / _WIDTH_IN,
        right=1 - _RIGHT_IN / _WIDTH_IN,
        top=1 - _TOP_IN / height,
        bottom=_BOTTOM_IN / height,
        hspace=_GAP_IN * len(heights) / sum(heights),
        height_ratios=heights,
    )
    axes: Any = grid.subplots(sharex=True, squeeze=False)
    return figure, list(axes[:, 0])


def _draw_amounts(
    axis: "Axes", points: Points, brokers: tuple[list[int], list[str], list[int]], dimension: str
) -> None:
    indices, colours, others = brokers
    layers = [
        (points.admitted[:, index], colour) for index, colour in zip(indices, colours, strict=True)
    ]
    if others:
        layers.append((points.admitted[:, others].sum(axis=1), _REST))
    ground = np.zeros(len(points.wanted))
    for amount, colour in layers:
        axis.fill_between(
            points.edges,
            _to_edge(ground),
            _to_edge(ground + amount),
            step="post",
            color=colour,
            alpha=0.75,
            linewidth=0,
        )
        ground = ground + amount
    axis.step(points.edges, _to_edge(points.wanted), where="post", color=_INK, linewidth=1.6)
    axis.step(
        points.edges,
        _to_edge(points.quota),
        where="post",
        color=_INK,
        linewidth=1.4,
        linestyle=(0, (6, 3)),
    )
    recovered = _to_edge(points.recovered) > 0
    if recovered.any():
        axis.fill_between(
            points.edges,
            _to_edge(ground),
            where=recovered.tolist(),
            step="post",
            facecolor="none",
            edgecolor=_INK,
            hatch="////",
            linewidth=0,
        )
    axis.set_ylim(bottom=0)
    limits = (
        "what was wanted and the quota" if np.isfinite(points.quota).any() else "what was wanted"
    )
    axis.set_title(f"Admitted by broker, under {limits} ({dimension}/s)")
    _scale(axis, dimension)


def _draw_shares(
    axis: "Axes", points: Points, brokers: tuple[list[int], list[str]], dimension: str
) -> None:
    for index, colour in zip(*brokers, strict=True):
        axis.step(
            points.edges,
            _to_edge(points.share[:, index]),
            where="post",
            color=colour,
            linewidth=1.8,
        )
        axis.step(
            points.edges,
            _to_edge(points.part[:, index]),
            where="post",
            color=colour,
            linewidth=1.2,
            linestyle=(0, (1, 1.5)),
        )
    axis.set_ylim(bottom=0)
    axis.set_title(
        f"Each broker's share, and dotted its max-min part of what was wanted ({dimension}/s)"
    )
    _scale(axis, dimension)


def _draw_fairness(axis: "Axes", points: Points) -> None:
    axis.axhline(1.0, color=_MUTED, linewidth=0.8)
    axis.step(points.edges, _to_edge(points.jain), where="post", color=_INK, linewidth=1.6)
    axis.step(
        points.edges,
        _to_edge(points.lowest),
        where="post",
        color=_INK,
        linewidth=1.2,
        linestyle=(0, (1, 1)),
    )
    top = np.nanmax(np.append(points.lowest, 1.0))
    axis.set_ylim(0, max(1.1, float(top) * 1.05))
    axis.set_title("Jain's index, and dotted the lowest ratio of admitted to part (1 is fair)")


def _scale(axis: "Axes", dimension: str) -> None:
    from matplotlib.ticker import EngFormatter, StrMethodFormatter

    is_large = axis.get_ylim()[1] >= 10_000
    axis.yaxis.set_major_formatter(
        EngFormatter(unit="B" if dimension == "bytes" else "")
        if is_large or dimension == "bytes"
        else StrMethodFormatter("{x:,g}")
    )


def _to_edge(values: Floats) -> Floats:
    """One more value, so that the last step is as wide as the others."""
    return np.append(values, values[-1:])


def _time_unit(windows: GroupWindows, window_ms: int) -> tuple[float, str]:
    """Seconds in a unit of the axis, and its name."""
    span_s = (windows.start_ms[-1] + window_ms - windows.start_ms[0]) / 1000
    if span_s <= 600:
        return 1.0, "seconds"
    if span_s <= 6 * 3600:
        return 60.0, "minutes"
    return 3600.0, "hours"
