"""Reads one topic of a Pulsar, by rgd's own code: whatever was published there, the process goes on.

Law: once `open` has returned, every message published on the topic is returned by `read`, unless the broker
drops it; of a topic that is read from its start each once, in its order, because the embedded broker sends
entries several times while others are published or permits come. An entry that cannot be read is skipped, counted and logged, however it is broken
(`rgd.wire.pulsar_delivery`). A closed reader leaves no descriptor behind.
Why: pulsar-client trusts the sizes that a message declares, and a false one ends the process
(`docs/decisions/0042-rgd-reads-pulsar-itself.md`). rgd still publishes with pulsar-client.
How: a lookup finds the topic's broker, through Pulsar's proxies too; the subscription is exclusive, not durable,
and of a new name each time. The broker may send `RECEIVER_QUEUE_MAX` messages ahead; as many permits as it
counted go back to it, also for what was skipped, or it would stop sending. A broker that sends nothing for `PING_S` is
asked for a sign of life, and one that gives none in time has lost the connection.
One thread calls everything but `stop`.
"""

import threading
import uuid
from collections import Counter, deque
from collections.abc import Iterator
from itertools import count
from typing import Final, NamedTuple
from urllib.parse import urlsplit

from rgd.adapters.exchange.deadline import Deadline
from rgd.adapters.exchange.pulsar_client import PulsarSettings
from rgd.adapters.exchange.pulsar_connection import (
    Address,
    ConnectionLost,
    PulsarConnection,
    Refused,
)
from rgd.adapters.exchange.pulsar_errors import invalid_url
from rgd.adapters.exchange.pulsar_log import is_logged, log
from rgd.ports.exchange import UNREADABLE
from rgd.wire import pulsar_commands as wire
from rgd.wire.api_pb2 import (
    BaseCommand,
    CommandFlow,
    CommandLookupTopic,
    CommandLookupTopicResponse,
    CommandPing,
    CommandSubscribe,
)
from rgd.wire.pulsar_commands import Frame
from rgd.wire.pulsar_delivery import read_delivery

#: Most messages that the broker may send ahead.
RECEIVER_QUEUE_MAX: Final = 1000
#: A broker that is silent for so long is asked for a sign of life.
PING_S: Final = 1.0

_TLS_SCHEME: Final = "pulsar+ssl"
#: The default ports of a URL without one, as the client's.
_PORTS: Final = {"pulsar": 6650, _TLS_SCHEME: 6651}
_CONSUMER_ID: Final = 1
_BEFORE_ALL: Final = (-1, -1)
#: The broker may answer otherwise a moment later.
_RETRIABLE: Final = frozenset(
    {"BrokerMetadataError", "BrokerPersistenceError", "ServiceUnitNotReady", "ConsumerAssignError",
     "TooManyLookupRequestException", "UnknownError"}
)  # fmt: skip

#: The position of a message in its topic: ledger, entry, index in its batch (-1: no batch). Ordered.
Position = tuple[int, int, int]


class Delivery(NamedTuple):
    """A message from the reader."""

    position: Position
    #: "" when the message has no key.
    key: str
    #: b"" for a tombstone.
    payload: bytes
    #: By the clock of whoever sent it.
    published_ms: int = 0


class PulsarReader:
    """A reader of one topic; opened once.

    Args:
        url: `pulsar://host:port[,host:port...]` or `pulsar+ssl://...`.
        topic: the full name of the topic.
        settings: how to reach the broker.
        dropped: counts entries that cannot be read, and are skipped (`UNREADABLE`).
        from_start: read a compacted topic from its start, otherwise only new messages.

    Raises:
        ConfigError: the URL is none.
    """

    def __init__(
        self,
        url: str,
        topic: str,
        settings: PulsarSettings,
        dropped: Counter[str],
        *,
        from_start: bool,
    ) -> None:
        self._service = _addresses_of(url)
        self._topic = topic
        self._settings = settings
        self._dropped = dropped
        self._from_start = from_start
        self._closing = threading.Event()
        self._connection: PulsarConnection | None = None
        self._waiting: deque[Frame] = deque()
        #: When the broker is asked for a sign of life, and once it was, when that has to be there.
        self._ping_due = Deadline(PING_S)
        self._sign_due: Deadline | None = None
        #: Bytes that had come when the connection was looked at last.
        self._received_bytes = 0
        self._permits = 0
        #: The last entry (ledger, entry) of a topic that is read from its start.
        self._last = _BEFORE_ALL
        self._request_ids = count(1)

    def open(self) -> None:
        """Join the topic; takes a few times the open timeout at most, whatever brokers answer.

        Raises:
            Refused: the broker does not let us read, or does not answer ("Timeout").
            ConnectionLost: no broker can be reached.
            ExchangeDown: the token or a certificate cannot be read.
        """
        deadline = Deadline(self._settings.open_timeout_s)
        while True:
            try:
                return self._open_once(deadline)
            except Refused as refused:
                pause_s = self._settings.retry_pause_s
                is_late = deadline.rest_s < pause_s
                if refused.fault not in _RETRIABLE or is_late or self._closing.wait(pause_s):
                    raise

    def read(self, timeout_s: float) -> Iterator[Delivery]:
        """The next messages; none after the timeout.

        Raises:
            ConnectionLost: the connection broke, or the broker no longer serves the topic, or is silent.
        """
        connection = self._connection
        if connection is None:
            raise ConnectionLost("not open")
        try:
            if not self._waiting:
                self._waiting.extend(connection.receive(timeout_s))
            self._watch(connection)
            while self._waiting:
                yield from self._take(connection, self._waiting.popleft())
        except ConnectionLost:
            self._disconnect()
            raise

    def stop(self) -> None:
        """End an `open` after its present step; from any thread."""
        self._closing.set()

    def close(self) -> None:
        """Leave. Idempotent; never fails."""
        self._closing.set()
        self._disconnect()

    # Reading.

    def _watch(self, connection: PulsarConnection) -> None:
        """Ask a silent broker for a sign of life; any byte of it is one."""
        before, self._received_bytes = self._received_bytes, connection.received_bytes
        if self._waiting or self._received_bytes != before:
            self._ping_due, self._sign_due = Deadline(PING_S), None
        elif self._sign_due is not None:
            if self._sign_due.rest_s <= 0:
                raise ConnectionLost(f"no answer within {self._settings.sign_timeout_s:g} s")
        elif self._ping_due.rest_s <= 0:
            connection.send(BaseCommand(type=wire.PING, ping=CommandPing()))
            self._sign_due = Deadline(self._settings.sign_timeout_s)

    def _take(self, connection: PulsarConnection, frame: Frame) -> Iterator[Delivery]:
        command, entry = frame
        if command.type == wire.CLOSE_CONSUMER:
            raise ConnectionLost("the broker no longer serves the topic")
        if command.type != wire.MESSAGE:
            return
        at = command.message.message_id
        if entry is None:
            self._skip("larger than any that Pulsar takes by default")
            return self._return_permits(connection, 1)
        delivered = read_delivery(entry)
        if not self._is_repeated((at.ledgerId, at.entryId)):
            if delivered.fault is not None:
                self._skip(str(delivered.fault))
            for index, key, payload in delivered.messages:
                position = (at.ledgerId, at.entryId, index)
                yield Delivery(position, key, payload, delivered.published_ms)
        self._return_permits(connection, delivered.permits)

    def _is_repeated(self, entry: tuple[int, int]) -> bool:
        is_repeated = self._from_start and entry <= self._last
        self._last = max(self._last, entry)
        return is_repeated

    def _skip(self, reason: str) -> None:
        self._dropped[UNREADABLE] += 1
        skipped = self._dropped[UNREADABLE]
        if is_logged(skipped):
            log.warning("%s: skipped %d unreadable messages: %s", self._topic, skipped, reason)

    def _return_permits(self, connection: PulsarConnection, permits: int) -> None:
        """Let the broker send more, in portions."""
        self._permits += permits
        if self._permits >= RECEIVER_QUEUE_MAX // 2:
            self._flow(connection, self._permits)
            self._permits = 0

    def _flow(self, connection: PulsarConnection, permits: int) -> None:
        flow = CommandFlow(consumer_id=_CONSUMER_ID, messagePermits=permits)
        connection.send(BaseCommand(type=wire.FLOW, flow=flow))

    def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()
        self._waiting.clear()

    # Joining.

    def _open_once(self, deadline: Deadline) -> None:
        """Join once; no lookup begins after the deadline."""
        connection = self._owner(deadline)
        try:
            self._subscribe(connection)
        except BaseException:
            connection.close()
            raise
        self._connection = connection
        if self._closing.is_set():
            self._disconnect()
            raise ConnectionLost("closed meanwhile")
        self._received_bytes = connection.received_bytes
        self._ping_due, self._sign_due = Deadline(PING_S), None
        self._waiting.extend(connection.early)
        connection.early.clear()

    def _subscribe(self, connection: PulsarConnection) -> None:
        subscribe = CommandSubscribe(
            topic=self._topic,
            subscription=f"rgd-{uuid.uuid4().hex}-reader",
            subType=0,
            consumer_id=_CONSUMER_ID,
            request_id=next(self._request_ids),
            durable=False,
            start_message_id=wire.EARLIEST if self._from_start else wire.LATEST,
            read_compacted=self._from_start,
        )
        connection.send(BaseCommand(type=wire.SUBSCRIBE, subscribe=subscribe))
        connection.answer(wire.SUCCESS)
        # The broker processes a connection's commands in order, so its answer to a ping proves that it has
        # the permits, without which it would drop messages published from now on.
        self._flow(connection, RECEIVER_QUEUE_MAX)
        connection.send(BaseCommand(type=wire.PING, ping=CommandPing()))
        connection.answer(wire.PONG)

    def _owner(self, deadline: Deadline) -> PulsarConnection:
        """A connection to the topic's broker."""
        connection, is_authoritative = self._any_of_service(), False
        most = self._settings.redirects_max
        for _ in range(most):
            try:
                found = self._lookup(connection, deadline, is_authoritative=is_authoritative)
                address, broker = _target(found, connection.address), ""
                if found.proxy_through_service_url:
                    address, broker = connection.address, address.authority
                if broker or address != connection.address:
                    former = connection
                    connection = PulsarConnection(address, self._settings, broker)
                    former.close()
            except BaseException:
                connection.close()
                raise
            if found.response == wire.OWNER:
                return connection
            is_authoritative = found.authoritative
        connection.close()
        raise Refused("BrokerMetadataError", f"more than {most} redirects")

    def _lookup(
        self, connection: PulsarConnection, deadline: Deadline, *, is_authoritative: bool
    ) -> CommandLookupTopicResponse:
        if self._closing.is_set():
            raise ConnectionLost("closed meanwhile")
        if deadline.rest_s <= 0:
            raise Refused("Timeout", "lookups lead on for too long")
        lookup = CommandLookupTopic(
            topic=self._topic,
            request_id=next(self._request_ids),
            authoritative=is_authoritative,
            advertised_listener_name=self._settings.listener_name,
        )
        connection.send(BaseCommand(type=wire.LOOKUP, lookupTopic=lookup))
        found = connection.answer(wire.LOOKUP_RESPONSE).lookupTopicResponse
        if found.response not in {wire.REDIRECT, wire.OWNER}:
            raise Refused.by(found.error, found.message)
        return found

    def _any_of_service(self) -> PulsarConnection:
        """A connection to one of the URL's brokers, another one first after each loss."""
        self._service.append(self._service.pop(0))
        for address in self._service[:-1]:
            try:
                return PulsarConnection(address, self._settings)
            except ConnectionLost as lost:
                log.debug("%s: trying another address: %s", self._topic, lost)
        return PulsarConnection(self._service[-1], self._settings)


def _target(found: CommandLookupTopicResponse, asked: Address) -> Address:
    """The broker that a lookup named, with TLS as we have it."""
    url = found.brokerServiceUrlTls if asked.is_tls else found.brokerServiceUrl
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        host = port = None
    if not host or not port:
        raise Refused("BrokerMetadataError", f"the lookup named {url[:100]!r}")
    return Address(host, port, asked.is_tls)


def _addresses_of(url: str) -> list[Address]:
    """The brokers of a service URL.

    Raises:
        ConfigError: it is none.
    """
    scheme, _, hosts = url.partition("://")
    if scheme not in _PORTS:
        raise invalid_url(url, "unknown scheme")
    addresses = []
    for host in hosts.rstrip("/").split(","):
        try:
            parts = urlsplit(f"//{host}")
            port = parts.port or _PORTS[scheme]
        except ValueError as exc:
            raise invalid_url(url, str(exc)) from exc
        addresses.append(Address(parts.hostname or "", port, scheme == _TLS_SCHEME))
    return addresses
