"""PIP-323's metrics of a daemon: names, labels and values; topics or namespaces.

How series are bounded and written is in tests/unit/adapters/metrics.
"""

from dataclasses import replace
from pathlib import Path

import pytest

from rgd.adapters.metrics.registry import BY_NAME
from rgd.app.backlog_telemetry import BacklogTelemetry
from rgd.core.backlog.store import BacklogStore
from rgd.core.buckets.decision import Request
from rgd.core.policies.model import BacklogQuota, BacklogQuotas, Backlogs
from rgd.core.policies.snapshot import PolicySnapshot
from tests.support.running_daemon import memory_daemon
from tests.support.whole_daemon import RgdDaemon
from tests.unit.core.backlog.topics import EU, EVICT, HOLD, NAMESPACE, report, s, sub

US = EU.replace("/eu", "/us")
PLACE = ("standalone", NAMESPACE)
Samples = dict[tuple[str, tuple[str, ...]], float]


@pytest.fixture
def daemon(tmp_path: Path) -> RgdDaemon:
    return memory_daemon(tmp_path, PolicySnapshot())


def check(store: BacklogStore, at: float) -> None:
    done = store.checks + 1
    store.ask()
    while store.checks < done:
        for named in store.work(s(at)):
            store.evicted_now(named)


def filled(daemon: RgdDaemon) -> BacklogStore:
    """Two topics of a namespace; one evicts by size, the other holds by time."""
    store = daemon.core.backlogs
    by_size = BacklogQuotas(BacklogQuota(50, -1, EVICT))
    by_time = BacklogQuotas(age=BacklogQuota(-1, 30, HOLD))
    store.backlogs = Backlogs(topics={EU: by_size, US: by_time})
    full = report(sub("a", (1, 4), 60), sub("b", (1, 9)), sub("idle", None))
    store.report(full, s(0))
    store.report(replace(full, topic=US), s(0))
    return store


def figures(daemon: RgdDaemon, *, by_topic: bool = True) -> Samples:
    samples = list(BacklogTelemetry(daemon, by_topic=by_topic).samples())
    for sample in samples:
        assert len(sample.labels) == len(BY_NAME[sample.name].labels), sample
        assert all(isinstance(label, str) for label in sample.labels)
    assert not daemon.errors.counts
    found: Samples = {}
    for name, labels, value in samples:
        found[name, labels] = found.get((name, labels), 0.0) + value
    return found


def test_a_topic_has_its_figures_from_its_first_report_on(daemon: RgdDaemon) -> None:
    filled(daemon)
    shown = figures(daemon)
    assert shown["pulsar_storage_backlog_age_seconds", (*PLACE, EU)] == -1
    check(daemon.core.backlogs, 1.5)
    shown = figures(daemon)
    assert shown["pulsar_storage_backlog_age_seconds", (*PLACE, EU)] == 61
    assert shown["pulsar_storage_backlog_size", (*PLACE, EU)] == 100
    assert shown["pulsar_storage_backlog_quota_limit", (*PLACE, EU)] == 50
    assert shown["pulsar_storage_backlog_quota_limit_time", (*PLACE, EU)] == -1
    assert shown["pulsar_storage_backlog_quota_limit_time", (*PLACE, US)] == 30
    evictions = "pulsar_storage_backlog_quota_exceeded_evictions_total"
    assert shown[evictions, (*PLACE, EU, "size")] == 1
    assert shown[evictions, (*PLACE, EU, "time")] == 0
    messages = "pulsar_subscription_back_log_no_delayed"
    of_eu = {labels[-1]: value for (name, labels), value in shown.items() if name == messages}
    assert of_eu == {"a": 6, "b": 1, "idle": 0}


def test_a_namespace_has_sums_its_largest_limits_and_no_age(daemon: RgdDaemon) -> None:
    check(filled(daemon), 1)
    shown = figures(daemon, by_topic=False)
    assert shown["pulsar_storage_backlog_size", (*PLACE, "")] == 200
    assert shown["pulsar_storage_backlog_quota_limit", (*PLACE, "")] == 50
    assert shown["pulsar_storage_backlog_quota_limit_time", (*PLACE, "")] == 30
    evictions = "pulsar_storage_backlog_quota_exceeded_evictions_total"
    assert shown[evictions, (*PLACE, "", "size")] == 1
    assert shown[evictions, (*PLACE, "", "time")] == 0
    names = {name for name, _ in shown}
    assert "pulsar_storage_backlog_age_seconds" not in names
    assert "pulsar_subscription_back_log_no_delayed" not in names


@pytest.mark.parametrize("by_topic", [True, False])
def test_held_and_refused_producers_are_counted_by_topic_quota_type_and_policy(
    daemon: RgdDaemon, *, by_topic: bool
) -> None:
    """PIP-323: "no means to know if it happened, when and how many times"."""
    check(filled(daemon), 1)
    # The last one, beyond `backlog.hold_max_s`, is refused; its policy is the same.
    for at in (2, 2, 60):
        daemon.core.limiter.acquire(Request(namespace=NAMESPACE, topic=US), s(at))
    counted = {
        labels: value
        for (name, labels), value in figures(daemon, by_topic=by_topic).items()
        if name == "rgd_storage_backlog_quota_exceeded_producers_total"
    }
    place = US if by_topic else ""
    assert counted == {(*PLACE, place, "time", "producer_request_hold"): 3}


def test_the_broker_counts_all_evictions_and_what_blocked_producers(daemon: RgdDaemon) -> None:
    check(filled(daemon), 1)
    daemon.core.limiter.acquire(Request(namespace=NAMESPACE, topic=US), s(2))
    shown = figures(daemon)
    of_broker = "pulsar_broker_storage_backlog_quota_exceeded_evictions_total"
    assert shown[of_broker, ("standalone", "size")] == 1
    assert shown[of_broker, ("standalone", "time")] == 0
    exceeded = "rgd_backlog_quota_exceeded_total"
    assert shown[exceeded, ("time", "producer_request_hold")] == 1
    assert shown[exceeded, ("size", "consumer_backlog_eviction")] == 1
    assert shown[exceeded, ("size", "producer_exception")] == 0
    assert shown["rgd_backlog_refused_total", ("time", "true")] == 1
    assert shown["rgd_backlog_reports_total", ("pushed",)] == 2
    assert (shown["rgd_backlog_topics", ()], shown["rgd_backlog_blocked_topics", ()]) == (2, 1)
