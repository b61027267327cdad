"""One Pulsar client with one reader and one producer on one topic, for one side of rgd.

Law: nothing here blocks the event loop, and no callback of the client's threads can raise
(an exception in a send's callback would end the process). Once `open` has returned, every message
published on the topic is delivered, unless the broker drops it. A closed session
leaves no thread and no descriptor behind.
How: the client's calls run in threads, and a send's answer returns through `call_soon_threadsafe`
into a future. Reading has a thread and a connection of its own, by rgd's own code (`pulsar_reader`), because messages
of strangers can end the process inside the client. Each session has its own client, because a broker
that throttles a producer pauses the whole connection. The reader joins first, so that no client is created while no broker
answers: one whose first call times out is not always freed (3.13: of 12 clients of a refusing port 3 kept a thread and
three descriptors for ever). A session whose reader lost its connection is over, though its producer would reconnect.
`rgd.adapters.exchange.pulsar` handles deliveries, `pulsar_errors` converts faults, `pulsar_client`
creates clients.
"""

import asyncio
import contextlib
import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Final

import pulsar

from rgd.adapters.exchange.pulsar_client import PulsarSettings, close_after, connect
from rgd.adapters.exchange.pulsar_connection import ConnectionLost, Refused
from rgd.adapters.exchange.pulsar_errors import check_topic, translate
from rgd.adapters.exchange.pulsar_log import is_logged, log, log_bug
from rgd.adapters.exchange.pulsar_reader import Delivery, Position, PulsarReader
from rgd.adapters.exchange.seal import Seal, seal_of
from rgd.config.plain_files import Fingerprint, fingerprint
from rgd.errors import RgdError
from rgd.ports.exchange import PAYLOAD_BYTES_MAX, UNAUTHENTICATED, ExchangeClosed, PayloadTooLarge

__all__ = ["Delivery", "Position", "PulsarSession", "PulsarSettings"]

#: Most sends that wait for the broker's answer; a further one fails at once.
PENDING_MAX: Final = 100
#: Longest time that a table's record waits to be batched.
BATCH_DELAY_MS: Final = 1
#: Longest time of leaving; after it only a thread keeps waiting for the broker's answer.
CLOSE_TIMEOUT_S: Final = 2.0
#: Longest time of one read, for which leaving waits.
READ_WAIT_S: Final = 0.2
#: Most clients of this process that are being opened at one time, and most that are being closed; both
#: block while a broker does not answer. Further ones wait for their turn, so this also bounds half-closed clients.
#: They have threads of their own, because decoding reports must not wait for a broker, nor opening for closing.
CHANGING_MAX: Final = 8
_opening: Final = ThreadPoolExecutor(CHANGING_MAX, thread_name_prefix="rgd-pulsar-opening")
_closing: Final = ThreadPoolExecutor(CHANGING_MAX, thread_name_prefix="rgd-pulsar-closing")
#: What the client says of a send when its producer may never work again.
_FINAL_FAULTS: Final = frozenset(
    {
        "AlreadyClosed",
        "AuthenticationError",
        "AuthorizationError",
        "ProducerFenced",
        "ProducerNotInitialized",
        "TopicNotFound",
        "TopicTerminated",
    }
)


@dataclass(slots=True)
class _Link:
    """The objects of an open session; the type checker does not know the client's types."""

    client: Any
    producer: Any
    reader: PulsarReader
    reading: threading.Thread

    def close(self, rest_s: float) -> None:
        """Close; blocks while a broker does not answer. The reading thread ends by itself, and closes its reader.

        Args:
            rest_s: after this time the client is closed, and the producer before; 0: both now.
        """
        self.reader.stop()
        if rest_s:
            with contextlib.suppress(pulsar.PulsarException):
                self.producer.close()
            _close_late(self.client, rest_s)
        else:
            # A dead broker does not answer, but everything is closed all the same.
            close_after(self.client, 0)
        self.reading.join(CLOSE_TIMEOUT_S)
        # The client frees threads and descriptors when nothing refers to it. The traceback of a failed send still
        # refers to this link, and the garbage collector runs seldom.
        self.client = self.producer = None


class PulsarSession:
    """A client, a reader and a producer; opened once, closed once.

    Args:
        url: `pulsar://host:port[,host:port...]` or `pulsar+ssl://...`.
        topic: the full name of the topic.
        settings: how to reach the broker.
        dropped: counts messages that are not handed on, by reason (`rgd.ports.exchange.DROPS`).
    """

    def __init__(
        self, url: str, topic: str, settings: PulsarSettings, dropped: Counter[str]
    ) -> None:
        self._url = url
        self._topic = topic
        self._settings = settings
        self._dropped = dropped
        self._lock = threading.Lock()  # between the opening thread and `close`
        self._closing = threading.Event()
        self._link: _Link | None = None
        self._unanswered: set[asyncio.Future[Position]] = set()
        self._seal: Seal | None = None
        self._reader: PulsarReader | None = None
        #: The credential files as they were just before they were read.
        self.credentials: Fingerprint = ()
        #: Why it does not read any more.
        self._reading_fault: str | None = None
        #: Why it does not send, and may never do so again; None from the next success on.
        self._sending_fault: str | None = None

    async def open(self, listener: Callable[[Delivery], None], *, from_start: bool) -> None:
        """Join the topic; `listener` is called in the reading thread, and must not raise.

        Args:
            listener: receives each message in the topic's order, sometimes one twice.
            from_start: read a compacted topic from its start, otherwise only new messages.

        Raises:
            ExchangeDown: the broker is unreachable, or refuses us.
            ConfigError: the URL or the topic is invalid.
            ExchangeClosed: it was closed meanwhile.
        """
        check_topic(self._topic)
        loop = asyncio.get_running_loop()
        try:
            await loop.run_in_executor(_opening, self._open, listener, from_start)
        except pulsar.PulsarException as exc:
            raise self._refused(type(exc).__name__, "") from exc

    async def send(self, payload: bytes, *, key: str | None = None) -> Position:
        """Publish, in the order of the calls; returns the message's position once the broker has answered.

        Raises:
            ExchangeDown: there was no answer within the send timeout, or a bad one.
            ExchangeClosed: the session is not open.
            PayloadTooLarge: as it says.
        """
        if len(payload) > PAYLOAD_BYTES_MAX:
            raise PayloadTooLarge(len(payload))
        sent = payload if self._seal is None else self._seal.sealed(payload, key or "")
        answer = self._begin_send(sent, key)
        try:
            return await answer
        finally:
            self._unanswered.discard(answer)

    def _begin_send(self, sent: bytes, key: str | None) -> asyncio.Future[Position]:
        link = self._link
        if link is None:
            raise ExchangeClosed(f"{self._topic} is not open")
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[Position] = loop.create_future()

        def on_answer(result: Any, message_id: Any) -> None:  # in the client's thread
            with contextlib.suppress(RuntimeError):  # the loop is closed, so no caller waits
                loop.call_soon_threadsafe(self._settle, answer, result, message_id)

        self._unanswered.add(answer)
        try:
            link.producer.send_async(sent, on_answer, partition_key=key)
        except pulsar.PulsarException as exc:
            self._unanswered.discard(answer)
            raise self._translated(type(exc).__name__) from exc
        return answer

    @property
    def fault(self) -> str | None:
        """Why this session may never work again; None while it works."""
        return self._reading_fault or self._sending_fault

    async def answered(self) -> None:
        """Wait until the broker has answered every send so far, or until the send timeout."""
        unanswered = set(self._unanswered)
        if unanswered:
            await asyncio.wait(unanswered, timeout=self._settings.send_timeout_ms / 1000)

    async def close(self, *, is_replaced: bool = False) -> None:
        """Leave; waiting sends end with ExchangeClosed. Idempotent; never fails.

        Args:
            is_replaced: this process continues, and needs its descriptors back.
        """
        with self._lock:
            self._closing.set()
            link, self._link, reader = self._link, None, self._reader
        if reader is not None:
            reader.stop()
        for answer in self._unanswered:
            if not answer.done():
                answer.set_exception(ExchangeClosed(f"{self._topic} was closed meanwhile"))
        if link is None:
            return
        # The client waits for an answer as long as a step of joining may take, but we do not. (Its
        # `shutdown` would not wait, but blocks with the interpreter's lock held.) The thread is not
        # cancelled after that time, because a client that is never closed keeps its threads and descriptors.
        rest_s = self._settings.open_timeout_s if is_replaced else 0
        closing = asyncio.get_running_loop().run_in_executor(_closing, link.close, rest_s)
        await asyncio.wait({closing}, timeout=CLOSE_TIMEOUT_S)

    def _open(self, listener: Callable[[Delivery], None], from_start: bool) -> None:  # noqa: FBT001 - run_in_executor's argument
        if self._settings.seal is not None:
            self._seal = seal_of(self._settings.seal, self._topic, must_be_fresh=not from_start)
        self.credentials = fingerprint(self._settings.credential_files)
        reader = PulsarReader(
            self._url, self._topic, self._settings, self._dropped, from_start=from_start
        )
        self._reader = reader
        self._join(reader)
        client = None
        try:
            client = connect(self._url, self._settings)
            producer = self._producer_of(client, is_batching=from_start)
            reading = threading.Thread(
                target=self._read, args=(reader, listener), name="rgd-pulsar-reader", daemon=True
            )
            reading.start()
        except (pulsar.Timeout, pulsar.ConnectError):
            reader.close()
            # Its next retry is due within the total time of the retries so far.
            _close_late(client, self._settings.open_timeout_s)
            raise
        except BaseException:
            reader.close()
            if client is not None:
                close_after(client, 0)
            raise
        link = _Link(client, producer, reader, reading)
        with self._lock:
            is_wanted = not self._closing.is_set()
            if is_wanted:
                self._link = link
        if not is_wanted:
            link.close(0)
            raise ExchangeClosed(f"{self._topic} was closed while it was opened")

    def _join(self, reader: PulsarReader) -> None:
        """Open the reader.

        Raises:
            ExchangeDown: as `open`.
        """
        try:
            reader.open()
        except Refused as exc:
            raise self._refused(exc.fault, exc.reason, needs="consume") from exc
        except ConnectionLost as exc:
            raise self._refused("ConnectError", str(exc)) from exc

    def _producer_of(self, client: Any, *, is_batching: bool) -> Any:
        try:
            return client.create_producer(
                self._topic,
                send_timeout_millis=self._settings.send_timeout_ms,
                max_pending_messages=PENDING_MAX,
                block_if_queue_full=False,
                compression_type=(
                    pulsar.CompressionType.LZ4
                    if self._settings.is_compressed
                    else pulsar.CompressionType.NONE
                ),
                # A table receives thousands of small records at once; a report is one message.
                batching_enabled=is_batching,
                batching_max_messages=PENDING_MAX,
                batching_max_publish_delay_ms=BATCH_DELAY_MS,
            )
        except pulsar.AuthorizationError as exc:
            raise self._refused("AuthorizationError", "", needs="produce") from exc

    def _refused(self, fault: str, reason: str, needs: str = "") -> RgdError:
        return translate(fault, url=self._url, topic=self._topic, reason=reason, needs=needs)

    def _read(self, reader: PulsarReader, listener: Callable[[Delivery], None]) -> None:
        """Deliver messages until the session is closed, or the connection lost; the reading thread."""
        try:
            while not self._closing.is_set():
                for delivery in reader.read(READ_WAIT_S):
                    self._hand_on(delivery, listener)
        except ConnectionLost as exc:
            self._reading_fault = f"reading: {exc}"
        except Exception as exc:  # noqa: BLE001 -- the boundary of a thread
            # Reading has stopped, and nothing else would detect it.
            self._reading_fault = f"reading ended: {type(exc).__name__}"
            log_bug(self._topic, "the reading thread", exc)
        finally:
            reader.close()

    def _hand_on(self, delivery: Delivery, listener: Callable[[Delivery], None]) -> None:
        if self._seal is not None:
            payload = self._seal.opened(delivery.payload, delivery.key)
            if payload is None:
                self._dropped[UNAUTHENTICATED] += 1
                count = self._dropped[UNAUTHENTICATED]
                if is_logged(count):
                    log.warning(
                        "%s: ignored %d messages that no daemon of this broker's folder sealed",
                        self._topic,
                        count,
                    )
                return
            delivery = delivery._replace(payload=payload)
        listener(delivery)

    def _settle(self, answer: asyncio.Future[Position], result: Any, message_id: Any) -> None:
        if answer.done():
            return
        if result == pulsar.Result.Ok:
            self._sending_fault = None
            answer.set_result(_position(message_id))
        else:
            answer.set_exception(self._translated(result.name))

    def _translated(self, fault: str) -> RgdError:
        """The error for a failed send; stores a fault after which the client seldom sends again."""
        if fault in _FINAL_FAULTS:
            self._sending_fault = f"sending failed: {fault}"
        return translate(fault, url=self._url, topic=self._topic)


def _close_late(client: Any, rest_s: float) -> None:
    """Close a client after this time, in a thread.

    A client that is closed while its producer's connection breaks, or with a pending retry, is not always freed
    (3.13: a thread and three descriptors each): after cut-offs by a firewall a third of them were not.
    """
    _closing.submit(close_after, client, rest_s)


def _position(message_id: Any) -> Position:
    return message_id.ledger_id(), message_id.entry_id(), message_id.batch_index()
