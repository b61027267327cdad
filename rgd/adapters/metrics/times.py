"""A histogram of what happens a hundred thousand times a second.

Law: the figures are those of `prometheus_client.Histogram`; only counting is cheaper, because it is done by one
thread (the event loop) and needs no lock.
"""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import Final

from prometheus_client.core import HistogramMetricFamily

from rgd.adapters.metrics.metric import Metric

#: What the last bucket is called, in which everything is.
_INFINITY: Final = "+Inf"


class Times:
    """Counts durations of one metric by route and status."""

    def __init__(self, metric: Metric) -> None:
        self._metric = metric
        self._bounds: Sequence[float] = metric.buckets
        #: By route and status: how many were in each bucket, and last the sum of all, in seconds.
        self._counts: dict[tuple[str, int], list[float]] = {}

    def observe_answer(self, route: str, status: int, seconds: float) -> None:
        """Count an answer of the HTTP server."""
        counts = self._counts.get((route, status))
        if counts is None:
            counts = self._counts[route, status] = [0.0] * (len(self._bounds) + 2)
        counts[bisect_left(self._bounds, seconds)] += 1
        counts[-1] += seconds

    def collect(self) -> Iterator[HistogramMetricFamily]:
        """The family as it stands now."""
        by_class: dict[tuple[str, str], list[float]] = {}
        for (route, status), counts in self._counts.items():
            labels = route, f"{status // 100}xx"
            summed = by_class.get(labels, [0.0] * len(counts))
            by_class[labels] = [one + other for one, other in zip(summed, counts, strict=True)]
        family = HistogramMetricFamily(
            self._metric.name, self._metric.help, labels=self._metric.labels
        )
        names = (*map(str, self._bounds), _INFINITY)
        for labels, (*counts, sum_s) in by_class.items():
            family.add_metric(labels, list(zip(names, accumulate(counts), strict=True)), sum_s)
        yield family
