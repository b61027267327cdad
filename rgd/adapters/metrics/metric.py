"""What the declaration of a metric says: name, help, labels, and how its series are bounded."""

from dataclasses import dataclass
from enum import StrEnum


class MetricType(StrEnum):
    """Prometheus's types, as far as rgd has them; a metric's follows from its name."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"
    #: A counter of Pulsar's without `_total`, which the formats do not allow of a counter.
    UNKNOWN = "unknown"


class Fold(StrEnum):
    """How series beyond a label's bound become the one of `other`."""

    SUM = "sum"
    MAX = "max"
    #: Not at all: neither the sum nor the largest of them says anything.
    NONE = "none"


class Bound(StrEnum):
    """How the number of a metric's series is bounded."""

    #: Labels of what users name have a maximum number of values (`labels.BOUNDS`).
    LABELS = "labels"
    #: The labels name one topic or subscription together, from the cluster inwards. So a label is
    #: bounded together with those before it (`labels.TOPIC_BOUNDS`), and one that is "" is left out:
    #: the series is that of a namespace.
    TOPICS = "topics"
    #: The source has a maximum and an `other` itself; its samples are written as they come.
    SOURCE = "source"


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric."""

    #: As shown; a histogram's without `_bucket`, `_sum` and `_count`.
    name: str
    help: str
    labels: tuple[str, ...] = ()
    fold: Fold = Fold.SUM
    bound: Bound = Bound.LABELS
    #: A histogram's upper bounds in the unit of its name; +Inf is added.
    buckets: tuple[float, ...] = ()

    @property
    def type(self) -> MetricType:
        """What the name and the buckets say: `_total` is on counters and on nothing else."""
        if self.buckets:
            return MetricType.HISTOGRAM
        if self.name.endswith("_total"):
            return MetricType.COUNTER
        return MetricType.UNKNOWN if self.name.endswith("_events") else MetricType.GAUGE
