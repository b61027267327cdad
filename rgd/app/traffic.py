"""Messages in and out of the exchange: a bounded outbox, encoding and decoding.

Law: a peer's messages cost this daemon time only in small pieces. A message is decoded on the event loop
only if its decompressed size, which is known beforehand, is at most `INLINE_BYTES_MAX`. Requests are
served between any two messages. Undecodable messages are counted and dropped. A message that cannot be
sent is counted and dropped too, because every report is absolute and a later one repeats it.
There is one for each dialect that the daemon speaks. The core interprets messages; the adapters reach the
exchange; the dialect (`rgd.wire.dialect`) has the bytes.
"""

import asyncio
from collections import Counter, deque
from collections.abc import Collection
from contextlib import suppress
from typing import Final, Generic, Protocol, TypeVar

import structlog

from rgd.app.containment import InternalErrors
from rgd.ports.exchange import ExchangeClosed, ExchangeError
from rgd.wire.dialect import Dialect
from rgd.wire.errors import WireError

#: Most messages that wait to be sent; beyond that the oldest is dropped, because a later one repeats it.
OUTBOX_MAX: Final = 256

#: More rows than this are encoded in a thread, and more decompressed bytes are decoded in one,
#: because inline they would delay requests by more than a millisecond.
INLINE_ROWS_MAX: Final = 1_000
INLINE_BYTES_MAX: Final = 16 * 1024

#: Longest time to send a goodbye.
GOODBYE_S: Final = 1.0

#: The reason of a drop where too many messages waited to be sent.
OUTBOX: Final = "outbox"
#: The reason of a drop where decoding met a bug in rgd.
FAULT: Final = "internal_error"

_log = structlog.get_logger("rgd.daemon")

M = TypeVar("M")


class Publishes(Protocol):
    """The exchange of a dialect, as far as it takes messages."""

    async def publish(self, payload: bytes) -> None:
        """As `rgd.ports.exchange.Exchange.publish`."""


class Traffic(Generic[M]):
    """The messages of one dialect that this daemon sends and receives."""

    def __init__(
        self,
        exchange: Publishes,
        dialect: Dialect[M],
        errors: InternalErrors,
        outbox_max: int = OUTBOX_MAX,
    ) -> None:
        self._exchange = exchange
        self._dialect = dialect
        self._errors = errors
        #: Dropped reports, by reason; failed sends under `unsent`, a full queue of own ones under `outbox`.
        self.dropped: Counter[str] = Counter()
        #: Senders whose names are kept, if others are to be removed before the next message.
        self._kept: frozenset[str] | None = None
        self._outbox: deque[M] = deque(maxlen=outbox_max)
        self._has_outgoing = asyncio.Event()
        self._is_reached = asyncio.Event()
        self._is_sent = asyncio.Event()
        self._is_sent.set()

    @property
    def is_reached(self) -> bool:
        """Whether the exchange was ever reached."""
        return self._is_reached.is_set()

    def reached(self) -> None:
        """Note that the exchange was reached, so that waiting messages may be sent."""
        self._is_reached.set()

    def post(self, message: M) -> None:
        """Queue a message to be sent; counts the one that a full queue drops for it."""
        if len(self._outbox) == self._outbox.maxlen:
            self.dropped[OUTBOX] += 1
        self._outbox.append(message)
        self._has_outgoing.set()

    async def send(self) -> None:
        """Send queued messages until cancelled or closed."""
        # What waited for the exchange meanwhile is old, but a hello of it is as good as a new one.
        await self._is_reached.wait()
        while True:
            await self._has_outgoing.wait()
            self._has_outgoing.clear()
            while self._outbox:
                try:
                    await self._send_one(self._outbox.popleft())
                except ExchangeClosed:
                    return
            self._is_sent.set()

    async def flush(self) -> None:
        """Wait for a bounded time until the queue is sent; return at once if the exchange was never reached."""
        if not self._is_reached.is_set():
            return
        self._is_sent.clear()
        self._has_outgoing.set()
        with suppress(TimeoutError):
            async with asyncio.timeout(GOODBYE_S):
                await self._is_sent.wait()

    def keep_names(self, brokers: Collection[str]) -> None:
        """Remove the dictionaries of all other senders, which have left."""
        # Deferred, because a thread may be decoding a message now.
        self._kept = frozenset(brokers)

    async def decoded(self, payload: bytes) -> M | None:
        """The message of a payload; None, and counted, if it is invalid."""
        if self._kept is not None:
            self._dialect.keep(self._kept)
            self._kept = None
        try:
            if self._dialect.cost(payload) > INLINE_BYTES_MAX:
                return await asyncio.to_thread(self._dialect.decode, payload)
            return self._dialect.decode(payload)
        except WireError as error:
            self.dropped[error.reason] += 1
            _log.debug("dropped a report", reason=str(error))
            return None
        except Exception as error:  # noqa: BLE001 -- what one sender's bytes do is no reason to stop
            self.dropped[FAULT] += 1
            self._errors.note("decode", error, may_end=False)
            return None

    async def _send_one(self, message: M) -> None:
        try:
            for payload in await self._encoded(message):
                await self._exchange.publish(payload)
        except ExchangeClosed:
            raise
        except WireError as error:
            self.dropped["unsent"] += 1
            _log.error("cannot send a report", reason=str(error))
        except ExchangeError as error:
            # A lost message is repeated, because every report is absolute.
            self.dropped["unsent"] += 1
            _log.debug("lost a report", reason=str(error))
        except Exception as error:  # noqa: BLE001 -- the next message has nothing to do with it
            self.dropped["unsent"] += 1
            self._errors.note("send", error, about=type(message).__name__)

    async def _encoded(self, message: M) -> tuple[bytes, ...]:
        if self._dialect.rows(message) > INLINE_ROWS_MAX:
            return await asyncio.to_thread(self._dialect.encode, message)
        return self._dialect.encode(message)
