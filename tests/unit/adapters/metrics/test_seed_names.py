"""Metrics of the proposals, by their own types and labels (PIP-323, PIP-406, KIP-963).

Not covered: what they count (tests/unit/app), and further labels, which rgd or Pulsar adds.
"""

import pytest

from rgd.adapters.metrics.metric import MetricType
from rgd.adapters.metrics.registry import BY_NAME

THROTTLED = "cluster tenant namespace topic subscription reason"
#: Pulsar's own names of counters that do not end in `_total` have no type.
PROPOSED = {
    "pulsar_storage_backlog_age_seconds": (MetricType.GAUGE, "cluster namespace topic"),
    "pulsar_storage_backlog_quota_exceeded_evictions_total": (
        MetricType.COUNTER,
        "cluster namespace topic quota_type",
    ),
    "pulsar_storage_backlog_quota_check_duration_seconds": (MetricType.HISTOGRAM, "cluster"),
    "pulsar_broker_storage_backlog_quota_exceeded_evictions_total": (
        MetricType.COUNTER,
        "cluster quota_type",
    ),
    "pulsar_subscription_dispatch_throttled_msg_events": (MetricType.UNKNOWN, THROTTLED),
    "pulsar_subscription_dispatch_throttled_bytes_events": (MetricType.UNKNOWN, THROTTLED),
    "rgd_upload_tier_lag": (MetricType.GAUGE, "topic partition"),
    "rgd_delete_tier_lag": (MetricType.GAUGE, "topic partition"),
}


@pytest.mark.parametrize("name", PROPOSED)
def test_a_proposals_metric_has_its_type_and_labels(name: str) -> None:
    kind, labels = PROPOSED[name]
    assert BY_NAME[name].type is kind
    assert set(labels.split()) <= set(BY_NAME[name].labels)
