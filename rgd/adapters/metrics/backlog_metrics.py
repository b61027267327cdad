"""The metrics of backlogs.

PIP-323's, and those beside which they are read, have Pulsar's names and labels to the letter.
"""

from typing import Final

from rgd.adapters.metrics.metric import Bound, Fold, Metric

BACKLOG_CHECK_SECONDS: Final = Metric(
    "pulsar_storage_backlog_quota_check_duration_seconds",
    "Duration of a check of all backlogs, from its begin to its end; one observation a check.",
    ("cluster",),
    buckets=(0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0),
)

_TOPIC: Final = ("cluster", "namespace", "topic")

#: Of every source.
BACKLOG_METRICS: Final = (
    Metric(
        "pulsar_storage_backlog_age_seconds",
        "Age of the oldest unacknowledged message at the last check; -1: there is none, or it is not known.",
        _TOPIC,
        fold=Fold.MAX,
        bound=Bound.TOPICS,
    ),
    Metric(
        "pulsar_storage_backlog_size",
        "Bytes of the ledgers from the oldest unacknowledged message's to the current one.",
        _TOPIC,
        bound=Bound.TOPICS,
    ),
    Metric(
        "pulsar_storage_backlog_quota_limit",
        "Backlog quota of the topic in bytes; -1: unlimited.",
        _TOPIC,
        fold=Fold.NONE,
        bound=Bound.TOPICS,
    ),
    Metric(
        "pulsar_storage_backlog_quota_limit_time",
        "Backlog quota of the topic in seconds; -1 or 0: unlimited.",
        _TOPIC,
        fold=Fold.NONE,
        bound=Bound.TOPICS,
    ),
    Metric(
        "pulsar_storage_backlog_quota_exceeded_evictions_total",
        "Times a backlog was evicted because it exceeded its quota, once for each report that shows it: of a pushed topic "
        "once its broker has confirmed (`POST /v1/evictions`), of a polled one once Pulsar has taken the eviction.",
        (*_TOPIC, "quota_type"),
        bound=Bound.TOPICS,
    ),
    Metric(
        "rgd_storage_backlog_quota_exceeded_producers_total",
        "Requests to publish that were held (`producer_request_hold`) or refused (`producer_exception`) because the topic's "
        "backlog exceeded its quota. Topics beyond 10,000 count as `other`.",
        (*_TOPIC, "quota_type", "policy"),
        bound=Bound.TOPICS,
    ),
    Metric(
        "pulsar_subscription_back_log_no_delayed",
        "Unacknowledged messages of the subscription that are not delayed.",
        (*_TOPIC, "subscription"),
        bound=Bound.TOPICS,
    ),
    Metric(
        "pulsar_broker_storage_backlog_quota_exceeded_evictions_total",
        "The evictions of all topics since the start.",
        ("cluster", "quota_type"),
    ),
    BACKLOG_CHECK_SECONDS,
    Metric("rgd_backlog_topics", "Topics whose backlogs are reported here."),
    Metric(
        "rgd_backlog_reports_total",
        "Backlogs of topics that were reported: `pushed` or `polled`.",
        ("source",),
    ),
    Metric(
        "rgd_backlog_topics_refused_total",
        "Reports refused because too many topics, subscriptions or ledgers are known already.",
    ),
    Metric(
        "rgd_backlog_topics_expired_total",
        "Topics forgotten because their backlog was not reported for `backlog.stale_after_s`.",
    ),
    Metric(
        "rgd_backlog_quota_exceeded_total",
        "Times a check found a topic's quota exceeded, by the limit and its policy.",
        ("quota_type", "policy"),
    ),
    Metric(
        "rgd_backlog_evictions_named_total",
        "Evictions that were named to whoever carries them out, once for each report that needs one.",
        ("quota_type",),
    ),
    Metric("rgd_backlog_blocked_topics", "Topics to which publishing is held or refused now."),
    Metric(
        "rgd_backlog_refused_total",
        "Requests to publish that were refused because of a backlog; `held`: the caller was asked to wait.",
        ("quota_type", "held"),
    ),
)

#: Backlogs of a stock Pulsar; only with `backlog.poll`.
BACKLOG_POLL_METRICS: Final = (
    Metric("rgd_backlog_polls_total", "Polls of Pulsar's backlogs."),
    Metric(
        "rgd_backlog_poll_failures_total",
        "Polls without a list of the broker's topics: Pulsar did not answer or refused, or the broker is not alive.",
    ),
    Metric("rgd_backlog_poll_seconds", "How long the last poll took."),
    Metric(
        "rgd_backlog_topics_owned",
        "Topics (partitions, too) that the broker beside this daemon owns; summed over all daemons, all topics once.",
    ),
    Metric(
        "rgd_backlog_topics_unreadable",
        "Owned topics that the last poll could not read, at most 100.",
    ),
    Metric(
        "rgd_backlog_evictions_total",
        "Evictions of polled topics by what became of them: done, passed (the subscription was further), gone "
        "(moved or deleted), failed (tried again), dropped (too many), dry_run (`backlog.enforce` is false).",
        ("outcome",),
    ),
)
