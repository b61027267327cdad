"""A histogram of counts that somebody else keeps (`answer_times`), perhaps in another process."""

from itertools import accumulate
from typing import Final

from prometheus_client.core import HistogramMetricFamily

from rgd.adapters.metrics.answer_times import Counts
from rgd.adapters.metrics.metric import Metric

#: What the last bucket is called, in which everything is.
_INFINITY: Final = "+Inf"


def family_of(metric: Metric, counts_of: Counts) -> HistogramMetricFamily:
    """The durations of one metric by route and class of statuses, as they stand now."""
    by_class: dict[tuple[str, str], list[float]] = {}
    for (route, status), counts in counts_of.items():
        labels = route, f"{status // 100}xx"
        summed = by_class.get(labels, [0.0] * len(counts))
        by_class[labels] = [one + other for one, other in zip(summed, counts, strict=True)]
    family = HistogramMetricFamily(metric.name, metric.help, labels=metric.labels)
    names = (*map(str, metric.buckets), _INFINITY)
    for labels, (*counts, sum_s) in by_class.items():
        family.add_metric(labels, list(zip(names, accumulate(counts), strict=True)), sum_s)
    return family
