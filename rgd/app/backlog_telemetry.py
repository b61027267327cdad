"""The figures of backlogs, with Pulsar's names and labels (PIP-323); see docs/metrics.md.

Law: figures are those of the last report and the last check, so that a scrape does no work beyond
reading them. The samples of one topic are of one moment; others may have changed meanwhile.
"""

from collections import Counter
from collections.abc import Iterator
from typing import Final

from rgd.app.daemon import Agreeing
from rgd.core.backlog.model import QuotaType, Source
from rgd.core.backlog.store import BacklogStore
from rgd.core.backlog.topic import TopicState
from rgd.core.buckets.throttled import OTHER
from rgd.core.gate import looks
from rgd.core.policies.model import BacklogAction
from rgd.core.policies.names import namespace_of_topic
from rgd.ports.metrics import Sample
from rgd.views.backlog import age_s, quota_of, size_bytes

_AGE: Final = "pulsar_storage_backlog_age_seconds"
_SIZE: Final = "pulsar_storage_backlog_size"
_LIMIT: Final = "pulsar_storage_backlog_quota_limit"
_LIMIT_TIME: Final = "pulsar_storage_backlog_quota_limit_time"
_EVICTIONS: Final = "pulsar_storage_backlog_quota_exceeded_evictions_total"
_MESSAGES: Final = "pulsar_subscription_back_log_no_delayed"
_PRODUCERS: Final = "rgd_storage_backlog_quota_exceeded_producers_total"
_BROKER_EVICTIONS: Final = "pulsar_broker_storage_backlog_quota_exceeded_evictions_total"


class BacklogTelemetry:
    """A daemon's figures of backlogs.

    Args:
        daemon: whose.
        by_topic: whether topics have figures, or only namespaces
            (`exposeTopicLevelMetricsInPrometheus`).
    """

    def __init__(self, daemon: Agreeing, *, by_topic: bool) -> None:
        self._daemon = daemon
        self._by_topic = by_topic

    def samples(self) -> Iterator[Sample]:
        """Every figure as it stands when it is its turn."""
        yield from self._of_broker()
        store = self._daemon.core.backlogs
        yield from self._of_topics(store) if self._by_topic else self._of_namespaces(store)
        yield from self._of_producers()

    def _of_broker(self) -> Iterator[Sample]:
        store = self._daemon.core.backlogs
        blocked = self._daemon.core.gate.ask(looks.blocks)
        for which in QuotaType:
            labels = (self._daemon.cluster, which.value)
            yield Sample(_BROKER_EVICTIONS, labels, store.evicted[which])
            yield Sample("rgd_backlog_evictions_named_total", (which,), store.named[which])
            for action in BacklogAction:
                exceeded = store.exceeded[which, action]
                yield Sample("rgd_backlog_quota_exceeded_total", (which, action), exceeded)
            for held in (True, False):
                refused = blocked.requests.get((which, held), 0)
                labels = (which.value, str(held).lower())
                yield Sample("rgd_backlog_refused_total", labels, refused)
        for source in Source:
            yield Sample("rgd_backlog_reports_total", (source,), store.reported[source])
        yield Sample("rgd_backlog_topics", (), len(store))
        yield Sample("rgd_backlog_blocked_topics", (), blocked.topics)
        yield Sample("rgd_backlog_topics_refused_total", (), store.refused)
        yield Sample("rgd_backlog_topics_expired_total", (), store.expired)

    def _of_topics(self, store: BacklogStore) -> Iterator[Sample]:
        for topic in store.names():
            if (state := store.get(topic)) is not None:
                yield from self._of_topic(store, topic, state)

    def _of_topic(self, store: BacklogStore, topic: str, state: TopicState) -> Iterator[Sample]:
        labels = (self._daemon.cluster, namespace_of_topic(topic), topic)
        quota = state.quota if state.backlogs is store.backlogs else None
        quota = quota or quota_of(store, topic)
        yield Sample(_AGE, labels, age_s(state))
        yield Sample(_SIZE, labels, size_bytes(state))
        yield Sample(_LIMIT, labels, quota.limit_bytes)
        yield Sample(_LIMIT_TIME, labels, quota.limit_s)
        for which, evicted in zip(QuotaType, state.evicted, strict=True):
            yield Sample(_EVICTIONS, (*labels, which.value), evicted)
        for subscription, messages in state.messages():
            yield Sample(_MESSAGES, (*labels, subscription), messages)

    def _of_producers(self) -> Iterator[Sample]:
        cluster, gate = self._daemon.cluster, self._daemon.core.gate
        for topic, counts in looks.listed(gate, looks.blocked_requests):
            place = (OTHER, OTHER) if topic == OTHER else (namespace_of_topic(topic), topic)
            labels = (cluster, *place) if self._by_topic else (cluster, place[0], "")
            for of, count in counts.items():
                yield Sample(_PRODUCERS, (*labels, *of), count)

    def _of_namespaces(self, store: BacklogStore) -> Iterator[Sample]:
        cluster = self._daemon.cluster
        limits: dict[str, tuple[int, int]] = {}
        for topic in store.names():
            # The series are summed where they are written: they differ in nothing.
            if (state := store.get(topic)) is not None:
                namespace = namespace_of_topic(topic)
                yield Sample(_SIZE, (cluster, namespace, ""), size_bytes(state))
                quota, most = quota_of(store, topic), limits.get(namespace, (-1, -1))
                limits[namespace] = max(most[0], quota.limit_bytes), max(most[1], quota.limit_s)
        for namespace, (limit_bytes, limit_s) in limits.items():
            # The largest of its topics, as Pulsar's namespaces have it.
            yield Sample(_LIMIT, (cluster, namespace, ""), limit_bytes)
            yield Sample(_LIMIT_TIME, (cluster, namespace, ""), limit_s)
        for namespace in Counter(store.namespaces):
            for which in QuotaType:
                labels_of_type = (cluster, namespace, "", which.value)
                yield Sample(_EVICTIONS, labels_of_type, store.evicted_in[namespace, which])
