"""The declarations of metrics keep the house's rules; tests/tidy/test_pages.py has docs/metrics.md.

Not covered: whether a metric's figures are right; that is tested where they are counted.
"""

import re

import pytest

from rgd.adapters.metrics.metric import Metric, MetricType
from rgd.adapters.metrics.registry import METRICS


@pytest.mark.parametrize("metric", METRICS, ids=lambda metric: metric.name)
def test_names_and_labels_keep_the_rules(metric: Metric) -> None:
    assert re.fullmatch(r"(rgd|pulsar)_[a-z_]+", metric.name)
    # Pulsar has counters without `_total`.
    assert (metric.type is MetricType.UNKNOWN) <= metric.name.startswith("pulsar_")
    assert metric.help.endswith(".")
    assert list(metric.buckets) == sorted(set(metric.buckets))
