"""A histogram of counts that somebody else keeps (`answer_times`), perhaps in another process."""

from collections.abc import Callable, Iterator
from itertools import accumulate
from typing import Final

from prometheus_client.core import HistogramMetricFamily

from rgd.adapters.metrics.answer_times import Counts
from rgd.adapters.metrics.metric import Metric

#: What the last bucket is called, in which everything is.
_INFINITY: Final = "+Inf"


class Times:
    """The durations of one metric by route and status.

    Args:
        metric: its declaration.
        read: gives the counts.
    """

    def __init__(self, metric: Metric, read: Callable[[], Counts]) -> None:
        self._metric = metric
        self.read = read

    def collect(self) -> Iterator[HistogramMetricFamily]:
        """The family as it stands now."""
        by_class: dict[tuple[str, str], list[float]] = {}
        for (route, status), counts in self.read().items():
            labels = route, f"{status // 100}xx"
            summed = by_class.get(labels, [0.0] * len(counts))
            by_class[labels] = [one + other for one, other in zip(summed, counts, strict=True)]
        family = HistogramMetricFamily(
            self._metric.name, self._metric.help, labels=self._metric.labels
        )
        names = (*map(str, self._metric.buckets), _INFINITY)
        for labels, (*counts, sum_s) in by_class.items():
            family.add_metric(labels, list(zip(names, accumulate(counts), strict=True)), sum_s)
        yield family
