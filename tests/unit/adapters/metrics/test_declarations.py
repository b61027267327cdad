"""The declarations of metrics keep the house's rules; tests/tidy/test_pages.py has docs/metrics.md.

Not covered: whether a metric's figures are right; that is tested where they are counted.
"""

import re

import pytest

from rgd.adapters.metrics.labels import BOUNDS, TOPIC_BOUNDS
from rgd.adapters.metrics.metric import Bound, Metric, MetricType
from rgd.adapters.metrics.registry import METRICS


@pytest.mark.parametrize("metric", METRICS, ids=lambda metric: metric.name)
def test_names_and_labels_keep_the_rules(metric: Metric) -> None:
    assert re.fullmatch(r"(rgd|pulsar)_[a-z_]+", metric.name)
    # Pulsar has counters without `_total`.
    assert (metric.type is MetricType.UNKNOWN) <= metric.name.startswith("pulsar_")
    assert metric.name.endswith("_total") == (metric.type is MetricType.COUNTER)
    assert metric.help.endswith(".")
    known = {*BOUNDS, *(TOPIC_BOUNDS if metric.bound is Bound.TOPICS else ())}
    assert metric.bound is Bound.SOURCE or set(metric.labels) <= known
    assert bool(metric.buckets) == (metric.type is MetricType.HISTOGRAM)
    assert list(metric.buckets) == sorted(set(metric.buckets))
