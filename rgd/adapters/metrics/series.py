"""The series of one scrape: labels bounded, what is beyond them folded into `other`, written as lines.

Law: a line is what Prometheus's own client would write, and the same in both formats; a test holds them
together. A series stands once, whichever sources have a part of it.

The client's own writer takes some 8 microseconds a line, because it knows names and timestamps of all
sorts; with this one a scrape is a matter of milliseconds.
"""

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Final

from prometheus_client.utils import floatToGoString

from rgd.adapters.metrics.labels import BOUNDS, OTHER, Carried, Places
from rgd.adapters.metrics.registry import BY_NAME, Fold, Metric, MetricType
from rgd.errors import RgdError
from rgd.ports.metrics import Sample

Labels = tuple[str, ...]

_FOLDS: Final[dict[Fold, Callable[[float, float], float]]] = {
    Fold.SUM: lambda left, right: left + right,
    Fold.MAX: max,
}

_ESCAPES: Final = str.maketrans({"\\": r"\\", "\n": r"\n", '"': r"\""})


class UndeclaredMetric(RgdError):
    """A source gave a sample that no metric declares: a bug of the source."""


class Series:
    """What a scrape shows of the declared metrics, histograms apart."""

    def __init__(self) -> None:
        self._places = {label: Places(most) for label, most in BOUNDS.items()}
        self._places_of = {
            name: tuple(self._places[label] for label in metric.labels)
            for name, metric in BY_NAME.items()
            if metric.type is not MetricType.HISTOGRAM
        }
        self._carried: dict[tuple[str, Labels], Carried] = {}
        self._values: dict[str, dict[Labels, float]] = {}
        #: Counters of this scrape that are shown as `other`.
        self._folded: set[tuple[str, Labels]] = set()

    def begin(self) -> None:
        """A scrape begins."""
        self._values = {name: {} for name in self._places_of}
        self._folded.clear()
        for places in self._places.values():
            places.begin()

    def take(self, samples: Iterable[Sample]) -> None:
        """Take up a slice of the samples.

        Raises:
            UndeclaredMetric: one of them is of no declared metric.
        """
        for name, labels, value in samples:
            places = self._places_of.get(name)
            if places is None or len(places) != len(labels):
                raise UndeclaredMetric(_fault(name, labels))
            shown = tuple([place.shown(label) for place, label in zip(places, labels, strict=True)])
            series = self._values[name]
            held = series.get(shown)
            series[shown] = value if held is None else _FOLDS[BY_NAME[name].fold](held, value)
            if OTHER in shown and BY_NAME[name].type is MetricType.COUNTER:
                self._folded.add((name, shown))

    def end(self) -> None:
        """All samples were taken up: keep the counters of `other` from falling, also an empty one's."""
        for places in self._places.values():
            places.end()
        for name, labels in self._folded | self._carried.keys():
            carried = self._carried.setdefault((name, labels), Carried())
            series = self._values[name]
            series[labels] = carried.total(series.get(labels, 0.0))

    def lines(self, metric: Metric, count: int) -> Iterator[bytes]:
        """The lines of one metric, so many at a time."""
        series = iter(self._values[metric.name].items())
        # The client writes labels in the order of their names.
        order = sorted(range(len(metric.labels)), key=metric.labels.__getitem__)
        names = [f'{metric.labels[at]}="' for at in order]
        while part := list(islice(series, count)):
            yield "".join(
                _line(metric.name, names, [labels[at] for at in order], value)
                for labels, value in part
            ).encode()


def _line(name: str, names: list[str], values: list[str], value: float) -> str:
    shown_value: str = floatToGoString(value)  # type: ignore[no-untyped-call]
    if not names:
        return f"{name} {shown_value}\n"
    labels = '",'.join(
        [label + shown.translate(_ESCAPES) for label, shown in zip(names, values, strict=True)]
    )
    return f'{name}{{{labels}"}} {shown_value}\n'


def _fault(name: str, labels: Labels) -> str:
    metric = BY_NAME.get(name)
    if metric is None or metric.type is MetricType.HISTOGRAM:
        return f"{name} is not a metric that samples may have"
    return f"{name} has labels {metric.labels}, got {labels}"
