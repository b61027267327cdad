"""The stats of a topic, of one partition or of all (Pulsar's `stats` and `partitioned-stats`).

Law: of several partitions, sizes and counts are summed, and the age is the largest with its
subscription's name. The limits are those in force for the partitioned topic, not a partition's.
"""

from dataclasses import dataclass, replace

from rgd.core.backlog.store import BacklogStore
from rgd.views.backlog import age_s, quota_of, size_bytes


@dataclass(frozen=True, slots=True)
class TopicStats:
    """One topic, or all partitions of one."""

    topic: str
    size_bytes: int
    storage_bytes: int
    #: The quota in force; -1 is unlimited.
    limit_size: int
    limit_time: int
    #: At the last check; -1 and None if there is no backlog, or its age is not known.
    age_s: int
    oldest: str | None
    #: When the oldest message was published, ms since 1970; -1 if not known.
    published_ms: int
    #: Each subscription's unacknowledged messages that are not delayed.
    messages: dict[str, int]


def topic_stats(store: BacklogStore, topic: str) -> TopicStats | None:
    """The stats of one topic; None if its backlog is not known."""
    state = store.get(topic)
    if state is None:
        return None
    quota, checked, published_ms = quota_of(store, topic), state.checked, -1
    if checked is not None and checked.is_precise and checked.time_ms is not None:
        published_ms = checked.time_ms
    return TopicStats(
        topic=topic,
        size_bytes=size_bytes(state),
        storage_bytes=sum(ledger.bytes for ledger in state.report.ledgers),
        limit_size=quota.limit_bytes,
        limit_time=quota.limit_s,
        age_s=age_s(state),
        oldest=None if checked is None else checked.subscription,
        published_ms=published_ms,
        messages=dict(state.messages()),
    )


def no_partitions(store: BacklogStore, topic: str) -> TopicStats:
    """The stats of a partitioned topic, to which no partition was added yet."""
    quota = quota_of(store, topic)
    return TopicStats(topic, 0, 0, quota.limit_bytes, quota.limit_s, -1, None, -1, {})


def with_partition(known: TopicStats, one: TopicStats) -> TopicStats:
    """The stats of a partitioned topic with a further partition; its messages are added in place."""
    messages = known.messages
    for name, count in one.messages.items():
        messages[name] = messages.get(name, 0) + count
    is_oldest = one.oldest is not None and (known.oldest is None or one.age_s > known.age_s)
    oldest = one if is_oldest else known
    return replace(
        known,
        size_bytes=known.size_bytes + one.size_bytes,
        storage_bytes=known.storage_bytes + one.storage_bytes,
        age_s=oldest.age_s,
        oldest=oldest.oldest,
        published_ms=oldest.published_ms,
    )
