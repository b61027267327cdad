"""`stats` and `partitioned-stats` of topics, and `brokers/backlog-quota-check`.

Law: the fields have Pulsar's names and meanings (PIP-323, PIP-406), so that `pulsar-admin topics
stats` prints them, and rgd's own level, the resource group, has two beside the six of PIP-406. What rgd does not see
(producers, consumers, rates) is absent. A topic exists while its backlog is reported or its dispatch was throttled lately;
a subscription whose backlog was not reported has one of 0. Of several partitions all counts are summed. No number is
beyond Java's `long`.
"""

import asyncio
from collections import defaultdict
from collections.abc import Iterable, Mapping
from operator import add
from typing import Annotated, Any, Final

from msgspec import Meta, Struct

from rgd.adapters.http.endpoint import Endpoint, read
from rgd.adapters.http.errors import CallError
from rgd.adapters.http.pulsar_admin.places import Naming, topic_named
from rgd.adapters.http.reply import NO_CONTENT, Call, Reply, json_reply
from rgd.core.buckets.decision import Level
from rgd.core.units import COUNT_MAX, Dimension
from rgd.ports.backlogs import BacklogDoor
from rgd.ports.daemon import Daemon
from rgd.ports.door import Scope
from rgd.views.topic_stats import TopicStats, with_partition

#: The counters of PIP-406, in the order of their fields.
_THROTTLED: Final = tuple(
    (level, dimension)
    for level in (Level.SUBSCRIPTION, Level.TOPIC, Level.BROKER, Level.RESOURCE_GROUP)
    for dimension in (Dimension.MESSAGES, Dimension.BYTES)
)


class SubscriptionStatsAnswer(Struct, rename="camel", frozen=True):
    """Of Pulsar's SubscriptionStats what rgd knows of one subscription."""

    msg_backlog: int
    msg_backlog_no_delayed: int
    #: How often a limit lowered a read of this subscription's dispatcher.
    dispatch_throttled_msg_events_by_subscription_limit: int = 0
    dispatch_throttled_bytes_events_by_subscription_limit: int = 0
    dispatch_throttled_msg_events_by_topic_limit: int = 0
    dispatch_throttled_bytes_events_by_topic_limit: int = 0
    dispatch_throttled_msg_events_by_broker_limit: int = 0
    dispatch_throttled_bytes_events_by_broker_limit: int = 0
    dispatch_throttled_msg_events_by_resource_group_limit: int = 0
    dispatch_throttled_bytes_events_by_resource_group_limit: int = 0


class TopicStatsAnswer(Struct, rename="camel", frozen=True):
    """Of Pulsar's TopicStats what rgd knows of one topic."""

    #: Estimated, as PIP-323 defines it: whole ledgers.
    backlog_size: int
    storage_size: int
    #: The quota in force; -1 is unlimited.
    backlog_quota_limit_size: int
    backlog_quota_limit_time: int
    #: At the last check; -1: there is none, or it is not known.
    oldest_backlog_message_age_seconds: int
    oldest_backlog_message_subscription_name: str | None
    earliest_msg_publish_time_in_backlogs: int
    owner_broker: str
    publishers: list[None] = []
    subscriptions: dict[str, SubscriptionStatsAnswer] = {}
    replication: dict[str, None] = {}


class PartitionedMetadata(Struct, frozen=True):
    """How many partitions are known."""

    partitions: int


class PartitionedStatsAnswer(TopicStatsAnswer, rename="camel", frozen=True, kw_only=True):
    """All known partitions of a topic together, and each with `perPartition=true`."""

    metadata: PartitionedMetadata
    partitions: dict[str, TopicStatsAnswer] = {}


class PartitionsQuery(Struct, rename="camel"):
    """How much is shown."""

    per_partition: Annotated[bool, Meta(title="Whether each partition is shown too.")] = True


class TopicStatsCalls:
    """Shows the stats of topics of one domain.

    Args:
        daemon: what is known of backlogs, and of throttled dispatch.
        domain: `persistent` or `non-persistent`; of the latter no backlog is ever known.
    """

    def __init__(self, daemon: Daemon, domain: str) -> None:
        self._daemon = daemon
        self._door = daemon.backlogs
        self._naming: Naming = topic_named(domain)

    @read("/stats", TopicStatsAnswer, 404, 412)
    async def stats(self, call: Call) -> Reply:
        """The backlog of {place}, or of one partition."""
        topic = self._naming(call).topic
        stats, counts = self._stats_of(topic)
        if stats is None:
            raise _missing("Topic", topic)
        return json_reply(self._shown(stats, counts))

    @read("/partitioned-stats", PartitionedStatsAnswer, 404, 412, query=(PartitionsQuery,))
    async def partitioned_stats(self, call: Call) -> Reply:
        """The backlogs of the partitions of {place}, together and each."""
        topic = self._naming(call).topic
        names = {*self._door.partitions_of(topic), *self._daemon.throttled_partitions(topic)}
        if not names:
            raise _missing("Partitioned topic", topic)
        # As in Pulsar, each is shown unless that is declined.
        is_each = call.query.get("perPartition", "true").lower() != "false"
        whole, counts = self._door.no_partitions(topic), _Counts()
        partitions: dict[str, TopicStatsAnswer] = {}
        for name in sorted(names):
            stats, own = self._stats_of(name)
            if stats is not None:
                whole = with_partition(whole, stats)
                for subscription, more in own.items():
                    counts.add(subscription, more)
                if is_each:
                    partitions[name] = self._shown(stats, own)
            # There may be as many as a broker keeps topics.
            await asyncio.sleep(0)
        return json_reply(
            PartitionedStatsAnswer(
                **self._fields(whole),
                subscriptions=_subscriptions(whole, counts),
                metadata=PartitionedMetadata(len(names)),
                partitions=partitions,
            )
        )

    def _stats_of(self, topic: str) -> "tuple[TopicStats | None, _Counts]":
        """A topic's backlog, and what throttled its subscriptions; None if neither is known."""
        counts = _Counts()
        for one in self._daemon.throttled(topic):
            counts.add(
                one.subscription, [one.events(level, dimension) for level, dimension in _THROTTLED]
            )
        stats = self._door.stats(topic)
        if stats is None and counts:
            # Nothing but the quota in force is known of its backlog.
            stats = self._door.no_partitions(topic)
        return stats, counts

    def _shown(self, stats: TopicStats, counts: "_Counts") -> TopicStatsAnswer:
        return TopicStatsAnswer(**self._fields(stats), subscriptions=_subscriptions(stats, counts))

    def _fields(self, stats: TopicStats) -> dict[str, Any]:
        """The fields of a topic's answer but for its subscriptions."""
        return {
            "backlog_size": min(stats.size_bytes, COUNT_MAX),
            "storage_size": min(stats.storage_bytes, COUNT_MAX),
            "backlog_quota_limit_size": stats.limit_size,
            "backlog_quota_limit_time": stats.limit_time,
            "oldest_backlog_message_age_seconds": stats.age_s,
            "oldest_backlog_message_subscription_name": stats.oldest,
            "earliest_msg_publish_time_in_backlogs": stats.published_ms,
            "owner_broker": self._daemon.broker,
        }


class _Counts(defaultdict[str, tuple[int, ...]]):
    """By subscription, its throttled events in the order of the answer's fields."""

    def __init__(self) -> None:
        super().__init__(lambda: (0,) * len(_THROTTLED))

    def add(self, subscription: str, more: Iterable[int]) -> None:
        """Add events of a subscription."""
        self[subscription] = tuple(map(add, self[subscription], more))


def _subscriptions(
    stats: TopicStats, counts: Mapping[str, tuple[int, ...]]
) -> dict[str, SubscriptionStatsAnswer]:
    messages = dict.fromkeys(counts, 0) | stats.messages
    bounded = ((name, min(one, COUNT_MAX)) for name, one in sorted(messages.items()))
    return {name: SubscriptionStatsAnswer(one, one, *counts[name]) for name, one in bounded}


def _missing(what: str, topic: str) -> CallError:
    return CallError(404, f"{what} {topic} not found: its backlog was not reported lately")


class BacklogCheckCall:
    """Has all backlogs checked."""

    def __init__(self, door: BacklogDoor) -> None:
        self._door = door

    # It is work, and Pulsar wants a superuser for it.
    @Endpoint("GET", "/admin/v2/brokers/backlog-quota-check", Scope.ADMIN, {204: None})
    async def check(self, _call: Call) -> Reply:
        """Check all backlogs now; the answer comes when it is done."""
        await self._door.check()
        return NO_CONTENT
