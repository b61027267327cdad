"""Reads the backlogs of the topics that one broker of a stock Pulsar owns, and evicts there.

Law: every call goes to this daemon's own broker, which answers for a topic only as long as it owns it.
An unreadable topic is reported as a fault and delivers nothing. Nothing is read twice that cannot have
changed: the close time of a ledger, and the times of the message at a position.

Calls of one poll: one for the broker's bundles, one for each bundle's topics, one for each topic's
ledgers and cursors. One more for a topic with newly closed ledgers, and in the precise mode one for a
topic whose oldest message changed. `backlog_answers` interprets the answers.
"""

from collections.abc import Callable, Mapping, Sequence
from http import HTTPStatus
from typing import Final, TypeVar
from urllib.parse import quote

from msgspec.json import Decoder
from typing_extensions import override

from rgd.adapters.stock import backlog_answers as answers
from rgd.adapters.stock.answers import NAMES
from rgd.adapters.stock.backlog_answers import Stamp
from rgd.adapters.stock.client import Missing, Moved, StockClient
from rgd.adapters.stock.parts import PartReads
from rgd.adapters.stock.paths import path_of, path_of_topic, quoted
from rgd.config.backlog_settings import BacklogSettings
from rgd.core.backlog.model import (
    Eviction,
    Ledger,
    Position,
    SubscriptionBacklog,
    TopicBacklog,
    check_backlog,
)
from rgd.core.bounds import BOUNDS
from rgd.core.policies.names import parse_namespace, partitioned_topic_of
from rgd.ports.stock import StockDown, StockError, StockRefused
from rgd.ports.stock_backlogs import (
    BacklogReading,
    BrokerAway,
    Deliver,
    EvictionOutcome,
    StockBacklogs,
)

#: Largest answer for one topic: 1,000 ledgers, and cursors with some 50,000 acknowledged ranges.
TOPIC_BYTES_MAX: Final = 4 << 20
#: Most evicted seconds that Pulsar takes: an int32.
SECONDS_MAX: Final = (1 << 31) - 1

_Answer = TypeVar("_Answer")


class StockBacklogReader(StockBacklogs):
    """One broker of a stock Pulsar.

    Args:
        client: makes the calls.
        settings: which broker, and how; without its address it is derived.
        unix_ms: returns the time now, ms since 1970.
        cluster: the cluster's name.
        broker: this daemon's `broker.name`, from which the address may be derived.
    """

    def __init__(
        self,
        client: StockClient,
        settings: BacklogSettings,
        unix_ms: Callable[[], int],
        *,
        cluster: str,
        broker: str,
    ) -> None:
        self._client = client
        self._settings = settings
        self._unix_ms = unix_ms
        self._cluster = cluster
        self._broker = broker
        #: `scheme://host:port` of the own broker, since it was found.
        self._at: str | None = None
        self._lists = PartReads()
        #: The topics of each bundle that the broker owns.
        self._bundles: dict[str, tuple[str, ...]] = {}
        #: By topic: close times by ledger, and the times of the message at the oldest position.
        self._closed_at: dict[str, dict[int, int]] = {}
        self._oldest: dict[str, tuple[Position, Stamp]] = {}

    @override
    async def owned(self) -> Sequence[str]:
        await self._client.prepare()
        address = self._settings.broker_address or await self._derived_address()
        path = f"brokers/{quoted(self._cluster)}/{quote(address, safe=':')}/ownedNamespaces"
        try:
            bundles, at = await self._client.locate(path, answers.BUNDLES)
        except Missing as exc:
            raise BrokerAway(f"broker {address} is not alive: {exc}") from exc
        self._at = at
        held = [name for name, bundle in (bundles or {}).items() if bundle.is_active]
        held = [name for name in held if _is_polled(name, address)]
        self._lists = PartReads()
        self._bundles = await self._lists.each(held, self._topics_of, self._bundles, path="bundles")
        return self._sorted_topics()

    @override
    async def read(self, topics: Sequence[str], deliver: Deliver, seconds: float) -> BacklogReading:
        async def read(topic: str) -> None:
            deliver(await self._report(topic))

        reads = PartReads()
        await reads.each(topics, read, {}, path="topics", seconds=seconds)
        return BacklogReading(reads.last, tuple(reads.gone), self._lists.faults | reads.faults)

    @override
    async def evict(self, eviction: Eviction) -> tuple[EvictionOutcome, str]:
        base = f"{path_of_topic(eviction.topic)}/subscription/{quoted(eviction.subscription)}"
        try:
            await self._client.prepare()
            upto = await self._last_evicted(eviction)
            if upto is None:
                return EvictionOutcome.PASSED, ""
            if eviction.published_before_ms is None:
                await self._client.send(
                    "POST",
                    f"{base}/expireMessages",
                    _message_id(eviction.topic, upto),
                    at=self._own,
                )
            else:
                age_ms = self._unix_ms() - eviction.published_before_ms
                seconds = min(max(1, -(-age_ms // 1000)), SECONDS_MAX)
                await self._client.send("POST", f"{base}/expireMessages/{seconds}", at=self._own)
        except (Moved, Missing) as error:
            return EvictionOutcome.GONE, str(error)
        except StockError as error:
            return EvictionOutcome.FAILED, str(error)
        return EvictionOutcome.DONE, ""

    @override
    async def close(self) -> None:
        await self._client.close()

    @property
    def _own(self) -> str:
        if self._at is None:
            raise StockDown("the broker was not read yet")
        return self._at

    # Topics.

    async def _derived_address(self) -> str:
        """The live broker at `exchange.admin_url`, or the one whose host is named as this daemon."""
        alive = await self._client.get("brokers", NAMES) or []
        # Of several addresses none is that of the broker beside this daemon in particular.
        admin, broker = self._client.only_address, self._broker
        by_rule = (
            [one for one in alive if admin and one == admin],
            # A broker is listed with one port, and may also be asked at its TLS port.
            [one for one in alive if admin and _host_of(one) == _host_of(admin)],
            [one for one in alive if broker in (one, _host_of(one), _host_of(one).split(".")[0])],
        )
        for same in by_rule:
            if len(same) == 1:
                return same[0]
        raise BrokerAway(
            f"expected one of the live brokers {', '.join(alive[:10])} at {admin or self._client.url} or named {broker}; "
            "set backlog.broker_address to the address of the broker beside this daemon"
        )

    async def _topics_of(self, bundle: str) -> tuple[str, ...]:
        namespace, _, bounds = bundle.rpartition("/")
        path = f"persistent/{path_of(parse_namespace(namespace))}?bundle={quoted(bounds)}"
        try:
            names = await self._client.get(path, NAMES, at=self._own)
        except Missing:
            return ()
        prefix = f"persistent://{namespace}/"
        return tuple(name for name in names or () if name.startswith(prefix))

    def _sorted_topics(self) -> list[str]:
        """The topics of all bundles; what is known of others is forgotten. In a thread: there may be many."""
        topics = sorted({topic for names in self._bundles.values() for topic in names})[
            : BOUNDS.backlog.topics_max
        ]
        kept = set(topics)
        for cache in (self._closed_at, self._oldest):
            for topic in [topic for topic in cache if topic not in kept]:
                del cache[topic]
        return topics

    # One topic.

    async def _report(self, topic: str) -> TopicBacklog:
        stats = await self._of_topic(topic, "internalStats", answers.STATS)
        read_at_ms = self._unix_ms()
        ledgers = answers.ledgers_of(stats)
        subscriptions = answers.subscriptions_of(stats, ledgers)
        if ledgers:
            ledgers = answers.closed(ledgers, await self._close_times(topic, ledgers))
        oldest = None
        if self._settings.preciseTimeBasedBacklogQuotaCheck:
            oldest = await self._stamp(topic, subscriptions)
        report = answers.report_of(topic, ledgers, subscriptions, oldest, read_at_ms)
        check_backlog(report)
        return report

    async def _of_topic(self, topic: str, what: str, decoder: Decoder[_Answer]) -> _Answer:
        path = f"{path_of_topic(topic)}/{what}"
        return await self._client.require(path, decoder, at=self._own, bytes_max=TOPIC_BYTES_MAX)

    async def _close_times(self, topic: str, ledgers: Sequence[Ledger]) -> Mapping[int, int]:
        """The close times of all ledgers but the last, which never change."""
        known = self._closed_at.get(topic, {})
        closed = [ledger.id for ledger in ledgers[:-1]]
        if any(one not in known for one in closed):
            info = await self._of_topic(topic, "internal-info", answers.INFO)
            closed_at = {one.ledger_id: one.timestamp for one in info.ledgers if one.timestamp > 0}
            known = known | closed_at
        # Without those that were deleted, and without the one that is written.
        kept = {one: known[one] for one in closed if one in known}
        if kept:
            self._closed_at[topic] = kept
        else:
            self._closed_at.pop(topic, None)
        return kept

    async def _stamp(
        self, topic: str, subscriptions: Sequence[SubscriptionBacklog]
    ) -> tuple[Position, Stamp] | None:
        """The times of the oldest unacknowledged message; None if there is none, or it is gone."""
        oldest = min((one.oldest for one in subscriptions if one.oldest is not None), default=None)
        if oldest is None:
            self._oldest.pop(topic, None)
            return None
        known = self._oldest.get(topic)
        if known is not None and known[0] == oldest:
            return known
        path = f"{path_of_topic(topic)}/ledger/{oldest.ledger}/entry/{oldest.entry}"
        try:
            stamp = answers.stamp_of(await self._client.head(path, at=self._own))
        except Missing:
            return None
        except StockRefused as error:
            # Pulsar cannot read its own message, or it has a time that is none: then its age is not known.
            if error.status not in {None, HTTPStatus.INTERNAL_SERVER_ERROR}:
                raise
            return None
        self._oldest[topic] = oldest, stamp
        return oldest, stamp

    async def _last_evicted(self, eviction: Eviction) -> Position | None:
        """The last entry to acknowledge; None if the subscription is past it."""
        stats = await self._of_topic(eviction.topic, "internalStats", answers.STATS)
        cursor = stats.cursors.get(eviction.subscription)
        if cursor is None:
            raise Missing(f"{eviction.topic} has no subscription {eviction.subscription}")
        entries = answers.Entries(answers.ledgers_of(stats))
        last = entries.at(entries.until(eviction.to) - 1)
        if last is None or answers.position_of(cursor.mark_delete_position) >= last:
            return None
        return last


def _message_id(topic: str, position: Position) -> dict[str, int]:
    # Pulsar refuses another partition's index (412); -1 is none.
    partition = topic.rpartition("-")[2] if partitioned_topic_of(topic) else -1
    return {
        "ledgerId": position.ledger,
        "entryId": position.entry,
        "partitionIndex": int(partition),
    }


def _host_of(address: str) -> str:
    return address.rpartition(":")[0] or address


def _is_polled(bundle: str, address: str) -> bool:
    """Whether a bundle is of a namespace that rgd knows.

    Not those of Pulsar's own checks of a broker, which are named after it, nor those of before
    Pulsar 2, `tenant/cluster/namespace`.
    """
    return bundle.count("/") == 2 and f"/{address}/" not in bundle
