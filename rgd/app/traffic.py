"""Messages in and out of a topic of the exchange: reaching it, sending, receiving, encoding and decoding.

Laws: a topic that cannot be reached is tried again every `RECONNECT_S`, which is logged once. Undecodable messages are counted and dropped. A message that cannot be
sent is counted and dropped too, because every report is absolute and a later one repeats it.
Messages are sent in the order in which they were posted. Up to `SENDS_MAX` of them wait for the exchange's answer at one time: one
after the other, a report of every 100 ms would be too many for an exchange that answers after 150 ms.
There is one for each topic. The core interprets messages; the adapters reach the
exchange; the dialect (`rgd.wire.dialect`) has the bytes; what waits is in `rgd.app.outbox`.
"""

import asyncio
import math
from collections import Counter
from collections.abc import Callable, Collection
from contextlib import suppress
from typing import Final, Generic, TypeVar

import structlog

from rgd.app.containment import InternalErrors
from rgd.app.outbox import Outbox
from rgd.ports.exchange import Exchange, ExchangeClosed, ExchangeDown, ExchangeError, Received
from rgd.wire.dialect import Dialect
from rgd.wire.errors import WireError

#: Most messages that wait to be sent; beyond that the oldest is dropped, because a later one repeats it. All parts of a
#: full report wait at once.
OUTBOX_MAX: Final = 256

#: Most payloads that wait for the exchange's answer, and most bytes of them; a larger one waits alone. Pulsar drops
#: messages of a non-persistent topic for a reader to whom more than 64 KiB are still to be written.
SENDS_MAX: Final = 32
SENDS_BYTES_MAX: Final = 64 << 10

#: Pause between two attempts to reach the topic.
RECONNECT_S: Final = 1.0
#: `Traffic.trouble` before the first attempt.
CONNECTING: Final = "connecting"

#: Longest time to send a goodbye.
GOODBYE_S: Final = 1.0

#: The reason of a drop where the exchange did not accept a message, or it cannot be written.
UNSENT: Final = "unsent"
#: The reason of a drop where decoding met a bug in rgd.
FAULT: Final = "internal_error"

_log = structlog.get_logger("rgd.daemon")

M = TypeVar("M")


class Traffic(Generic[M]):
    """The messages of one topic that this daemon sends and receives.

    Args:
        exchange: the topic, not open yet.
        dialect: has the format.
        errors: counts what a bug raises.
        outdated_s: as `Outbox`.
        name: of the topic, for the log.
    """

    def __init__(
        self,
        exchange: Exchange,
        dialect: Dialect[M],
        errors: InternalErrors,
        outdated_s: float = math.inf,
        *,
        name: str = "exchange",
    ) -> None:
        self.exchange = exchange
        self._name = name
        #: Why the topic is not reached yet.
        self._away: str | None = CONNECTING
        self._dialect = dialect
        self._errors = errors
        #: What was dropped of messages that were being sent or received, by reason.
        self._dropped: Counter[str] = Counter()
        self._outbox: Outbox[M] = Outbox(OUTBOX_MAX, outdated_s)
        #: The payloads that wait for an answer, and their bytes.
        self._sends = self._sends_bytes = 0
        self._is_closed = False
        self._has_outgoing = asyncio.Event()
        self._is_reached = asyncio.Event()
        self._is_answered = asyncio.Event()
        self._is_sent = asyncio.Event()
        self._is_sent.set()

    @property
    def dropped(self) -> Counter[str]:
        """Dropped messages, by reason: those of `Outbox`, `UNSENT` ones, received ones by what is wrong."""
        return self._dropped + self._outbox.dropped + self.exchange.dropped

    @property
    def trouble(self) -> str | None:
        """Why no message gets through, as far as is known."""
        return self._away or self.exchange.trouble

    @property
    def is_reached(self) -> bool:
        """Whether the exchange was ever reached."""
        return self._is_reached.is_set()

    def reached(self) -> None:
        """Note that the exchange was reached, so that waiting messages may be sent."""
        self._away = None
        self._is_reached.set()

    async def reach(self) -> None:
        """Try until the topic is joined; logs once that it cannot be, and once that it is."""
        while not self.is_reached:
            try:
                await self.exchange.open()
            except ExchangeDown as error:
                if self._away == CONNECTING:
                    _log.warning("cannot reach", what=self._name, reason=str(error))
                self._away = f"unreachable: {error}"
                await asyncio.sleep(RECONNECT_S)
            else:
                if self._away != CONNECTING:
                    _log.info("reached", what=self._name)
                self.reached()

    async def follow(self, take: Callable[[Received], None]) -> None:
        """Join the topic, and take what comes, oldest first, until it is closed."""
        await self.reach()
        with suppress(ExchangeClosed):
            while True:
                for received in await self.exchange.receive_dated():
                    take(received)
                    # What else is due comes between any two messages.
                    await asyncio.sleep(0)

    def post(self, message: M) -> None:
        """Queue a message to be sent."""
        self._outbox.put(message, _now_s())
        self._is_sent.clear()
        self._has_outgoing.set()

    async def send(self) -> None:
        """Send queued messages until cancelled or closed."""
        # What waited for the exchange meanwhile is old, but a hello of it is as good as a new one.
        await self._is_reached.wait()
        self._sends = self._sends_bytes = 0
        async with asyncio.TaskGroup() as tasks:
            while not self._is_closed:
                self._has_outgoing.clear()
                while (message := self._outbox.take(_now_s())) is not None:
                    await self._send_one(message, tasks)
                if not self._sends:
                    self._is_sent.set()
                await self._has_outgoing.wait()

    async def flush(self, timeout_s: float = GOODBYE_S) -> None:
        """Wait for a bounded time until the queue is sent; return at once if the exchange was never reached."""
        if self._is_closed or not self._is_reached.is_set():
            return
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                await self._is_sent.wait()

    def keep_names(self, brokers: Collection[str]) -> None:
        """Remove the dictionaries of all other senders, which have left."""
        self._dialect.keep(brokers)

    def decoded(self, payload: bytes) -> M | None:
        """The message of a payload; None, and counted, if it is invalid."""
        try:
            return self._dialect.decode(payload)
        except WireError as error:
            self._dropped[error.reason] += 1
            _log.debug("dropped a report", reason=str(error))
            return None
        except Exception as error:  # noqa: BLE001 -- what one sender's bytes do is no reason to stop
            self._dropped[FAULT] += 1
            self._errors.note("decode", error, may_end=False)
            return None

    async def _send_one(self, message: M, tasks: asyncio.TaskGroup) -> None:
        """Begin to send a message, when there is room for it among those that are being sent."""
        about = type(message).__name__
        try:
            payloads = self._dialect.encode(message)
        except WireError as error:
            self._dropped[UNSENT] += 1
            _log.error("cannot send a report", reason=str(error))
            return
        except Exception as error:  # noqa: BLE001 -- the next message has nothing to do with it
            self._dropped[UNSENT] += 1
            self._errors.note("send", error, about=about)
            return
        for payload in payloads:
            await self._room(len(payload))
            if self._is_closed:
                return
            self._sends += 1
            self._sends_bytes += len(payload)
            # Tasks begin in the order in which they are made.
            tasks.create_task(self._publish(payload, about))

    async def _room(self, size: int) -> None:
        while self._sends and (
            self._sends >= SENDS_MAX or self._sends_bytes + size > SENDS_BYTES_MAX
        ):
            self._is_answered.clear()
            await self._is_answered.wait()

    async def _publish(self, payload: bytes, about: str) -> None:
        try:
            await self.exchange.publish(payload)
        except ExchangeClosed:
            self._is_closed = True
            self._has_outgoing.set()
        except ExchangeError as error:
            # A lost message is repeated, because every report is absolute.
            self._dropped[UNSENT] += 1
            _log.debug("lost a report", reason=str(error))
        except Exception as error:  # noqa: BLE001 -- the next message has nothing to do with it
            self._dropped[UNSENT] += 1
            self._errors.note("send", error, about=about)
        finally:
            self._sends -= 1
            self._sends_bytes -= len(payload)
            self._is_answered.set()
            # The sender of messages finds out whether all are sent.
            if not self._sends:
                self._has_outgoing.set()


def _now_s() -> float:
    return asyncio.get_running_loop().time()
