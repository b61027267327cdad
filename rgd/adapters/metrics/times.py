"""A histogram of what happens a hundred thousand times a second.

Law: the figures are those of `prometheus_client.Histogram`; only counting is cheaper, because it is done by one
thread (the event loop) and needs no lock.
"""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from typing import Final

from prometheus_client.core import HistogramMetricFamily

from rgd.adapters.metrics.metric import Metric

#: What the last bucket is called, in which everything is.
_INFINITY: Final = "+Inf"


class Times:
    """Counts durations of one metric without labels."""

    def __init__(self, metric: Metric) -> None:
        self._metric = metric
        self._bounds: Sequence[float] = metric.buckets
        self._counts = [0] * (len(self._bounds) + 1)
        self._sum_s = 0.0

    def observe_answer(self, route: str, status: int, seconds: float) -> None:
        """Count an answer of the HTTP server; of which call it was is not shown."""
        del route, status
        self._counts[bisect_left(self._bounds, seconds)] += 1
        self._sum_s += seconds

    def collect(self) -> Iterator[HistogramMetricFamily]:
        """The family as it stands now."""
        buckets, total = [], 0
        for bound, count in zip((*map(str, self._bounds), _INFINITY), self._counts, strict=True):
            total += count
            buckets.append((bound, float(total)))
        yield HistogramMetricFamily(
            self._metric.name, self._metric.help, buckets=buckets, sum_value=self._sum_s
        )
