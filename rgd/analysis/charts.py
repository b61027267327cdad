"""Draws the windows of one group, kind and dimension: three plots over one time axis, as inline SVG.

Law: the SVG works in any HTML page: it has no fonts, scripts, identifiers or addresses, and no colours of its
own, but CSS variables of the page, which have a value for light and for dark. Text stays text.

The first plot has the admitted rates, stacked by broker, with the demand and the quota. The second has each
broker's share and its max-min part, and the third Jain's index and the lowest ratio. At most `POINTS_MAX` points
are drawn: means of the windows between them, or the minimum for the lowest ratio.

Decision 70 says why no library draws them.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Final

import numpy as np

from rgd.analysis import figures
from rgd.analysis.row_columns import Floats
from rgd.analysis.window_tables import Plotted
from rgd.core.exchange.columns import Ints

#: Most points on the time axis; a screen has not many more pixels.
POINTS_MAX: Final = 400

#: Brokers with a colour of their own; the rest are drawn together.
COLOURS: Final = 8

#: Units of the drawing; a page scales it.
_WIDTH: Final = 792
_HEIGHTS: Final = (194, 122, 86)
_LEFT, _RIGHT, _TOP, _BOTTOM, _GAP = 56, 8, 22, 36, 32
_FONT: Final = 9
#: Between the lines of a hatch.
_HATCH: Final = 4

#: Most steps of an axis.
_STEPS_MAX: Final = 5
_TIME_STEPS_MAX: Final = 10

_INK: Final = "var(--ink)"
_MUTED: Final = "var(--muted)"
_REST: Final = "var(--rest)"


@dataclass(frozen=True, slots=True)
class Chart:
    """A drawing, and the meaning of its colours."""

    #: What is inside the SVG element, and how high it is; it is `width` wide.
    drawing: str
    height: float
    #: Brokers with a colour: the number in the variable `--broker-N`, and the broker's name.
    colours: tuple[tuple[int, str], ...]
    #: Number of brokers that are drawn together in `--rest`.
    rest: int
    #: Whether a step, or a window known from totals only, is marked.
    has_steps: bool
    has_recovered: bool
    width: ClassVar[int] = _WIDTH
    font_size: ClassVar[int] = _FONT


def draw(
    plotted: Plotted, *, window_ms: int, steps: Sequence[tuple[int, str]], coloured: Sequence[str]
) -> Chart:
    """Draw one dimension.

    Args:
        plotted: its windows.
        window_ms: length of a window.
        steps: moments to mark, each with its cause.
        coloured: brokers in the order of colours, at most `COLOURS`.
    """
    dimension, origin = plotted.dimension, int(plotted.start_ms[0])
    unit_s, unit = _time_unit(plotted, window_ms)
    edges_ms, points = gather(plotted, window_ms)
    numbers = {name: number for number, name in enumerate(coloured, 1)}
    colours = {
        index: numbers[name] for index, name in enumerate(plotted.brokers) if name in numbers
    }
    has_quota = bool(np.isfinite(points.quota).any())
    span = float(edges_ms[-1]) / 1000 / unit_s
    x = _LEFT + edges_ms / edges_ms[-1] * (_WIDTH - _LEFT - _RIGHT)
    plots = [_amounts(x, points, colours, dimension)]
    if has_quota:
        plots += [_shares(x, points, colours, dimension), _fairness(x, points)]
    bottom = _TOP + sum(_HEIGHTS[: len(plots)]) + _GAP * (len(plots) - 1)
    marks = [((at - origin) / 1000 / unit_s / span, cause) for at, cause in steps]
    drawn = [
        *plots,
        _times(span, bottom, f"{unit} since {figures.moment(origin)} UTC"),
        *_marks([mark for mark in marks if 0 <= mark[0] <= 1], bottom),
    ]
    return Chart(
        drawing="".join(drawn),
        height=bottom + _BOTTOM,
        colours=tuple((number, plotted.brokers[index]) for index, number in colours.items()),
        rest=len(plotted.brokers) - len(colours),
        has_steps=bool(steps),
        has_recovered=bool((points.recovered > 0).any()),
    )


def gather(plotted: Plotted, window_ms: int) -> tuple[Floats, Plotted]:
    """Group the windows into at most `POINTS_MAX` points, evenly over the time.

    Returns:
        (P + 1,) where points begin and the last one ends, ms since the first begins; and what is drawn of them.
    """
    numbers = (plotted.start_ms - plotted.start_ms[0]) // window_ms
    span = int(numbers[-1]) + 1
    windows_a_point = -(-span // POINTS_MAX)
    size = -(-span // windows_a_point)
    fill = _Fill(numbers // windows_a_point, size, plotted.seconds)
    edges = np.append(np.arange(size) * windows_a_point, span)
    amounts = ("admitted", "wanted", "part", "recovered")
    means: dict[str, Any] = {
        name: np.nan_to_num(fill.mean(getattr(plotted, name))) for name in amounts
    }
    means |= {name: fill.mean(getattr(plotted, name)) for name in ("share", "quota", "jain")}
    return edges * float(window_ms), replace(plotted, lowest=fill.least(plotted.lowest), **means)


@dataclass(frozen=True, slots=True)
class _Fill:
    """Windows into points; NaN where no window has a value."""

    point: Ints
    size: int
    seconds: Floats

    def mean(self, values: Floats) -> Floats:
        """The mean by time, of each broker where `values` has them; (P,) or (P, B)."""
        is_known = np.isfinite(values)
        weight = np.where(is_known, self.seconds.reshape(-1, *[1] * (values.ndim - 1)), 0.0)
        total = self._sums(np.where(is_known, values, 0.0) * weight)
        weights = self._sums(weight)
        return np.where(weights > 0, total / np.where(weights > 0, weights, 1.0), np.nan)

    def _sums(self, values: Floats) -> Floats:
        sums = np.zeros((self.size, *values.shape[1:]))
        np.add.at(sums, self.point, values)
        return sums

    def least(self, values: Floats) -> Floats:
        """The least; (P,)."""
        lowest = np.full(self.size, np.inf)
        np.minimum.at(lowest, self.point, np.where(np.isfinite(values), values, np.inf))
        return np.where(np.isfinite(lowest), lowest, np.nan)


@dataclass(frozen=True, slots=True)
class _Plot:
    """One plot: lines and areas in steps, over an axis that begins at 0."""

    #: (P + 1,); where points begin, and the last one ends.
    x: Floats
    #: Where the plot begins and ends.
    top: float
    height: float
    #: The value at its upper end.
    most: float

    @classmethod
    def of(cls, x: Floats, place: int, *values: Floats) -> "_Plot":
        """The plot at a place from above, high enough for some values."""
        top = _TOP + sum(_HEIGHTS[:place]) + _GAP * place
        known = [column[np.isfinite(column)] for column in values]
        most = max((float(column.max()) for column in known if column.size), default=0.0)
        return cls(x, top, _HEIGHTS[place], 1.05 * most if most > 0 else 1.0)

    def y(self, values: Floats) -> Floats:
        """Where values are."""
        heights: Floats = self.top + self.height * (1 - values / self.most)
        return heights

    def line(self, values: Floats, colour: str, width: float, dashes: str = "") -> str:
        """A line in steps, with a gap where there is no value."""
        dashed = f";stroke-dasharray: {dashes}" if dashes else ""
        style = f"fill: none;stroke: {colour};stroke-width: {width}{dashed}"
        return f'<path d="{_path(self.x, self.y(values))}" style="{style}"/>'

    def area(self, low: Floats, high: Floats, colour: str) -> str:
        """What is between two lines in steps."""
        there = _path(self.x, self.y(high))
        back = _path(self.x[::-1], self.y(low)[::-1], follows=True)
        return f'<path d="{there}{back}Z" style="fill: {colour};fill-opacity: 0.75"/>'

    def hatch(self, high: Floats, where: Ints) -> str:
        """Upright lines over some points, from the axis to a height."""
        foot, heads = self.top + self.height, self.y(high)
        lines = "".join(
            f"M{x:.1f} {foot:.1f}V{heads[point]:.1f}"
            for point in where.tolist()
            for x in np.arange(self.x[point], self.x[point + 1], _HATCH)
        )
        return f'<path d="{lines}" style="stroke: {_INK};stroke-width: 0.6"/>'

    def axis(self, title: str, dimension: str) -> str:
        """The grid with its numbers, and the title."""
        steps = _even(self.most, _STEPS_MAX)
        numbers = "".join(
            f'<path d="M{_LEFT} {y:.1f}H{_WIDTH - _RIGHT}" style="stroke: var(--grid);stroke-width: 0.6"/>'
            + _text(_LEFT - 5, y + 3, figures.amount(at, dimension), "end")
            for at, y in zip(steps, self.y(np.array(steps)).tolist(), strict=True)
        )
        heading = f'font-size="10" font-weight="bold" style="fill: {_INK}"'
        return f'{numbers}<text x="{_LEFT}" y="{self.top - 8}" {heading}>{title}</text>'


def _amounts(x: Floats, points: Plotted, colours: dict[int, int], dimension: str) -> str:
    wanted = points.wanted.sum(axis=1)
    plot = _Plot.of(x, 0, points.admitted.sum(axis=1), wanted, points.quota)
    layers = [(points.admitted[:, index], _colour(number)) for index, number in colours.items()]
    others = [index for index in range(points.admitted.shape[1]) if index not in colours]
    if others:
        layers.append((points.admitted[:, others].sum(axis=1), _REST))
    under = (
        "what was wanted and the quota" if np.isfinite(points.quota).any() else "what was wanted"
    )
    drawn = [plot.axis(f"Admitted by broker, under {under} ({dimension}/s)", dimension)]
    ground = np.zeros(len(wanted))
    for amount, colour in layers:
        drawn.append(plot.area(ground, ground + amount, colour))
        ground = ground + amount
    return "".join(
        [
            *drawn,
            plot.hatch(ground, np.flatnonzero(points.recovered > 0)),
            plot.line(wanted, _INK, 1.6),
            plot.line(points.quota, _INK, 1.4, "8 4"),
        ]
    )


def _shares(x: Floats, points: Plotted, colours: dict[int, int], dimension: str) -> str:
    drawn = list(colours)
    plot = _Plot.of(x, 1, points.share[:, drawn], points.part[:, drawn])
    title = f"Each broker's share, and dotted its max-min part of what was wanted ({dimension}/s)"
    lines = (
        plot.line(points.share[:, index], _colour(number), 1.8)
        + plot.line(points.part[:, index], _colour(number), 1.2, "1.2 1.8")
        for index, number in colours.items()
    )
    return plot.axis(title, dimension) + "".join(lines)


def _fairness(x: Floats, points: Plotted) -> str:
    plot = _Plot.of(x, 2, points.lowest, np.ones(1))
    title = "Jain's index, and dotted the lowest ratio of admitted to part (1 is fair)"
    return (
        plot.axis(title, "")
        + plot.line(np.ones(len(points.jain)), _MUTED, 0.8)
        + plot.line(points.jain, _INK, 1.6)
        + plot.line(points.lowest, _INK, 1.2, "1.2 1.2")
    )


def _times(span: float, bottom: float, title: str) -> str:
    """The axis of time below all plots."""
    width = _WIDTH - _LEFT - _RIGHT
    numbers = (
        _text(_LEFT + at / span * width, bottom + 12, f"{at:g}", "middle")
        for at in _even(span, _TIME_STEPS_MAX)
    )
    return "".join(numbers) + _text(_LEFT + width / 2, bottom + 27, title, "middle")


def _marks(steps: Sequence[tuple[float, str]], bottom: float) -> Iterator[str]:
    """A dotted line through all plots at each part of the time, with its cause beside it if there is room."""
    style = f"stroke: {_MUTED};stroke-width: 0.9;stroke-dasharray: 0.9 2.7"
    named_x = -math.inf
    for part, cause in steps:
        x = _LEFT + part * (_WIDTH - _LEFT - _RIGHT)
        yield f'<path d="M{x:.1f} {_TOP}V{bottom}" style="{style}"/>'
        if x - named_x > _FONT:
            named_x = x
            yield (
                f'<text transform="translate({x + 3:.1f} {_TOP + 2}) rotate(90)" '
                f'style="fill: {_INK};stroke: var(--card);stroke-width: 2;paint-order: stroke">{cause}</text>'
            )


def _path(x: Floats, y: Floats, *, follows: bool = False) -> str:
    """Steps from left to right or back: each of `y` from one of `x` to the next; NaN is a gap.

    A tenth of a unit is finer than any screen.
    """
    steps: list[str] = []
    is_down, last = follows, ""
    ends = [f"{at:.1f}" for at in x.tolist()]
    for begin, end, at in zip(ends, ends[1:], y.tolist(), strict=False):
        level = f"{at:.1f}"
        if math.isnan(at):
            is_down = False
        elif is_down and level == last:
            steps[-1] = f"H{end}"
        else:
            steps += [f"V{level}" if is_down else f"M{begin} {level}", f"H{end}"]
            is_down, last = True, level
    return "".join(steps)


def _even(most: float, steps_max: int) -> list[float]:
    """Round numbers from 0 to `most`: 1, 2 or 5 times a power of ten apart."""
    power = 10.0 ** math.floor(math.log10(most / steps_max))
    step = next(power * times for times in (1, 2, 5, 10) if most <= power * times * steps_max)
    return [round(step * number, 12) for number in range(math.floor(most / step) + 1)]


def _text(x: float, y: float, words: str, anchor: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" style="fill: {_MUTED}">{words}</text>'


def _colour(number: int) -> str:
    return f"var(--broker-{number})"


def _time_unit(plotted: Plotted, window_ms: int) -> tuple[float, str]:
    """Seconds in a unit of the axis, and its name."""
    span_s = (plotted.start_ms[-1] + window_ms - plotted.start_ms[0]) / 1000
    if span_s <= 600:
        return 1.0, "seconds"
    if span_s <= 6 * 3600:
        return 60.0, "minutes"
    return 3600.0, "hours"
