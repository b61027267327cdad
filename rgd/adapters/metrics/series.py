"""The series of one scrape: labels bounded, what is beyond them folded into `other`.

Law: a series stands once, whichever sources have a part of it.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final

from prometheus_client.samples import Sample as Shown

from rgd.adapters.metrics.labels import BOUNDS, OTHER, TOPIC_BOUNDS, Carried, OwnSeries
from rgd.adapters.metrics.metric import Bound, Fold, Metric, MetricType
from rgd.adapters.metrics.registry import BY_NAME
from rgd.core.policies.names import partitioned_topic_of
from rgd.errors import RgdError
from rgd.ports.metrics import Sample

Labels = tuple[str, ...]

_FOLDS: Final[dict[Fold, Callable[[float, float], float]]] = {
    Fold.SUM: lambda left, right: left + right,
    Fold.MAX: max,
}


class UndeclaredMetric(RgdError):
    """A source gave a sample that no metric declares: a bug of the source."""


class Series:
    """What a scrape shows of the declared metrics, histograms apart."""

    def __init__(
        self, topic_bounds: Mapping[str, int] = TOPIC_BOUNDS, *, split_partitions: bool = False
    ) -> None:
        self._own = {label: OwnSeries(most) for label, most in BOUNDS.items()}
        #: Of labels that name a topic or subscription together.
        self._of_topics = {label: OwnSeries(most) for label, most in topic_bounds.items()}
        #: Who bounds each label of each metric; None: nobody has to, or its source has done so.
        self._labels_of = {
            name: tuple(self._owner(metric, label) for label in metric.labels)
            for name, metric in BY_NAME.items()
            if metric.type is not MetricType.HISTOGRAM
        }
        self._split_partitions = split_partitions
        self._carried: dict[tuple[str, Labels], Carried] = {}
        self._values: dict[str, dict[Labels, float]] = {}
        #: Counters of this scrape that are shown as `other`.
        self._folded: set[tuple[str, Labels]] = set()

    def _owner(self, metric: Metric, label: str) -> OwnSeries | None:
        if metric.bound is Bound.SOURCE:
            return None
        if metric.bound is Bound.TOPICS and label in self._of_topics:
            return self._of_topics[label]
        return self._own.get(label)

    def _shown_together(self, own: Sequence[OwnSeries | None], labels: Labels) -> Labels:
        """Labels that name a topic or subscription together: a subscription of `other` is `other`."""
        shown: list[str] = []
        subscriptions = self._of_topics["subscription"]
        for of_label, label in zip(own, labels, strict=True):
            if of_label is None or not label:
                shown.append(label)
            elif of_label is subscriptions:
                is_other = shown[-1] == OTHER
                shown.append(OTHER if is_other else of_label.shown(label, shown[-1]))
            else:
                shown.append(of_label.shown(label))
        return tuple(shown)

    def begin(self) -> None:
        """A scrape begins."""
        self._values = {name: {} for name in self._labels_of}
        self._folded.clear()
        for own in (*self._own.values(), *self._of_topics.values()):
            own.begin()

    def take(self, samples: Iterable[Sample]) -> None:
        """Take up a slice of the samples.

        Raises:
            UndeclaredMetric: one of them is of no declared metric.
        """
        for name, labels, value in samples:
            series = self._values.get(name)
            if series is None or len(BY_NAME[name].labels) != len(labels):
                raise UndeclaredMetric(_fault(name, labels))
            metric = BY_NAME[name]
            shown = self._shown(metric, labels)
            if OTHER in shown and metric.bound is not Bound.SOURCE:
                if metric.fold is Fold.NONE:
                    continue
                if metric.type is MetricType.COUNTER:
                    self._folded.add((name, shown))
            held = series.get(shown)
            series[shown] = value if held is None else _FOLDS[metric.fold](held, value)

    def _shown(self, metric: Metric, labels: Labels) -> Labels:
        own = self._labels_of[metric.name]
        if metric.bound is Bound.TOPICS:
            return self._shown_together(own, labels)
        return tuple(
            [
                label if of_label is None else of_label.shown(label)
                for of_label, label in zip(own, labels, strict=True)
            ]
        )

    def end(self) -> None:
        """All samples were taken up: keep the counters of `other` from falling, also an empty one's."""
        for own in (*self._own.values(), *self._of_topics.values()):
            own.end()
        for key in self._carried.keys() - self._folded:
            # All topics of a namespace are gone: its series vanish, too.
            if BY_NAME[key[0]].bound is Bound.TOPICS:
                del self._carried[key]
        for name, labels in self._folded | self._carried.keys():
            carried = self._carried.setdefault((name, labels), Carried())
            series = self._values[name]
            series[labels] = carried.total(series.get(labels, 0.0))

    def samples(self, metric: Metric) -> Iterator[Shown]:
        """The series of one metric, as Prometheus's client writes them; read once."""
        for labels, value in self._values.pop(metric.name).items():
            named = dict(zip(metric.labels, labels, strict=True))
            if metric.bound is Bound.TOPICS:
                named = {name: label for name, label in named.items() if label}
            # The usage log's metrics have a topic and a partition of their own, in no namespace.
            if self._split_partitions and {"namespace", "topic"} <= named.keys():
                named |= _split(named["topic"])
            yield Shown(metric.name, named, value)


def _split(name: str) -> dict[str, str]:
    """The partitioned topic in place of a partition, and its index beside it; -1: it is none."""
    topic = partitioned_topic_of(name)
    if topic is None:
        return {"topic": name, "partition": "-1"}
    return {"topic": topic, "partition": name[name.rindex("-") + 1 :]}


def _fault(name: str, labels: Labels) -> str:
    metric = BY_NAME.get(name)
    if metric is None or metric.type is MetricType.HISTOGRAM:
        return f"{name} is not a metric that samples may have"
    return f"{name} has labels {metric.labels}, got {labels}"
