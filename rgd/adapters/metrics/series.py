"""The series of one scrape: labels bounded, what is beyond them folded into `other`, written as lines.

Law: a line is what Prometheus's own client would write, and the same in both formats; a test holds them
together. A series stands once, whichever sources have a part of it.

The client's own writer takes 5.8 microseconds a line, because it handles names and timestamps of all sorts; this one
takes 1.4.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import compress, islice
from typing import Final, NamedTuple

from prometheus_client.utils import floatToGoString

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

#: Values of labels that are kept as they are written: each stands in many lines.
ESCAPED_MAX: Final = 2048

#: Values that are freed in one slice.
FREED_AT_ONCE: Final = 512

_ESCAPES: Final = str.maketrans({"\\": r"\\", "\n": r"\n", '"': r"\""})


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
        self._labels_of = {
            name: tuple(self._owner(metric, label) for label in metric.labels)
            for name, metric in BY_NAME.items()
            if metric.type is not MetricType.HISTOGRAM and metric.bound is not Bound.SOURCE
        }
        self._split_partitions = split_partitions
        #: The metrics whose source bounds them, with the form of their lines: they are written as they
        #: are read, because they may be many.
        self._forms = {
            name: _form_of(metric, split_partitions=split_partitions)
            for name, metric in BY_NAME.items()
            if metric.bound is Bound.SOURCE
        }
        self._lines: dict[str, list[str]] = {}
        self._carried: dict[tuple[str, Labels], Carried] = {}
        self._values: dict[str, dict[Labels, float]] = {}
        #: Counters of this scrape that are shown as `other`.
        self._folded: set[tuple[str, Labels]] = set()

    def _owner(self, metric: Metric, label: str) -> OwnSeries:
        is_of_topics = metric.bound is Bound.TOPICS and label in self._of_topics
        return self._of_topics[label] if is_of_topics else self._own[label]

    def _shown_together(self, own: Sequence[OwnSeries], labels: Labels) -> Labels:
        """Labels that name a topic or subscription together: a subscription of `other` is `other`."""
        shown: list[str] = []
        subscriptions = self._of_topics["subscription"]
        for of_label, label in zip(own, labels, strict=True):
            if not label:
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
        self._lines = {name: [] for name in self._forms}
        self._folded.clear()
        for own in (*self._own.values(), *self._of_topics.values()):
            own.begin()

    def take(self, samples: Iterable[Sample]) -> None:
        """Take up a slice of the samples.

        Raises:
            UndeclaredMetric: one of them is of no declared metric.
        """
        for name, labels, value in samples:
            own = self._labels_of.get(name)
            if own is None and (form := self._forms.get(name)) and form.given == len(labels):
                self._lines[name].append(form.line(labels, value))
                continue
            if own is None or len(own) != len(labels):
                raise UndeclaredMetric(_fault(name, labels))
            metric = BY_NAME[name]
            if metric.bound is Bound.TOPICS:
                shown = self._shown_together(own, labels)
                if metric.fold is Fold.NONE and OTHER in shown:
                    continue
            else:
                shown = tuple(
                    [of_label.shown(label) for of_label, label in zip(own, labels, strict=True)]
                )
            series = self._values[name]
            held = series.get(shown)
            series[shown] = value if held is None else _FOLDS[metric.fold](held, value)
            if OTHER in shown and metric.type is MetricType.COUNTER:
                self._folded.add((name, shown))

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

    def lines(self, metric: Metric, count: int) -> Iterator[bytes]:
        """The lines of one metric, so many at a time."""
        if metric.bound is Bound.SOURCE:
            written = self._lines[metric.name]
            while written:
                lines = written[-count:]
                # Freed as they go: all at once would take long.
                del written[-count:]
                yield "".join(lines).encode()
            return
        split = self._split_partitions
        values, form = self._values[metric.name], _form_of(metric, split_partitions=split)
        series = iter(values.items())
        while part := list(islice(series, count)):
            if metric.bound is Bound.TOPICS:
                lines = [
                    _form_with(metric.name, tuple(map(bool, labels)), split_partitions=split).line(
                        labels, value
                    )
                    for labels, value in part
                ]
            else:
                lines = [form.line(labels, value) for labels, value in part]
            yield "".join(lines).encode()
        # Freed in slices, too: all at once would hold the loop.
        while values:
            for _ in range(min(len(values), FREED_AT_ONCE)):
                values.popitem()
            yield b""


class _Form(NamedTuple):
    """How a line of one metric is written."""

    text: str
    #: The order in which the line has the labels.
    order: tuple[int, ...]
    #: The labels of a sample.
    given: int
    #: The index of the topic's label whose partition becomes a label of its own, after those given; None: it stays.
    split: int | None

    def line(self, labels: Labels, value: float) -> str:
        if self.split is not None:
            labels = _split(labels, self.split)
        return self.text % (*[_escaped(labels[at]) for at in self.order], _written(value))


def _form_of(
    metric: Metric, *, split_partitions: bool, labels: Iterable[int] | None = None
) -> _Form:
    """The form of a line that has some of the labels, by their index; None: all of them."""
    has = [*range(len(metric.labels))] if labels is None else [*labels]
    names, split = metric.labels, None
    # The usage log's metrics have a topic and a partition of their own, in no namespace.
    if split_partitions and {"namespace", "topic"} <= {names[at] for at in has}:
        names, split = (*names, "partition"), names.index("topic")
        has.append(len(names) - 1)
    # The client writes labels in the order of their names.
    order = sorted(has, key=names.__getitem__)
    named = ",".join(f'{names[at]}="%s"' for at in order)
    text = f"{metric.name}{{{named}}} %s\n" if named else f"{metric.name} %s\n"
    return _Form(text, tuple(order), len(metric.labels), split)


@lru_cache(maxsize=64)
def _form_with(name: str, has: tuple[bool, ...], *, split_partitions: bool) -> _Form:
    """The form of a line that has only some of the labels."""
    return _form_of(
        BY_NAME[name], split_partitions=split_partitions, labels=compress(range(len(has)), has)
    )


def _split(labels: Labels, at: int) -> Labels:
    """The labels with the partitioned topic in place of a partition, and its index behind; -1: it is none."""
    name = labels[at]
    topic = partitioned_topic_of(name)
    index = "-1" if topic is None else name[name.rindex("-") + 1 :]
    return (*labels[:at], topic or name, *labels[at + 1 :], index)


def _written(value: float) -> str:
    written: str = floatToGoString(value)  # type: ignore[no-untyped-call]
    return written


@lru_cache(maxsize=ESCAPED_MAX)
def _escaped(label: str) -> str:
    return label.translate(_ESCAPES)


def _fault(name: str, labels: Labels) -> str:
    metric = BY_NAME.get(name)
    if metric is None or metric.type is MetricType.HISTOGRAM:
        return f"{name} is not a metric that samples may have"
    return f"{name} has labels {metric.labels}, got {labels}"
