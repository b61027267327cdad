"""The exchange on Pulsar, Apache's or the embedded one.

Law: that of the port. From its `open` on, an exchange receives all messages that the broker does not drop.
How: the session's reading thread puts messages into one bounded queue.
Connecting, sending and closing are in `rgd.adapters.exchange.pulsar_session`; a session that is dead is
replaced by a new one (`pulsar_lasting`). The policies table is in `pulsar_table`.
"""

import asyncio
from typing import Final

from rgd.adapters.exchange.inbox import WAITING_BYTES_MAX, PayloadInbox
from rgd.adapters.exchange.pulsar_lasting import LastingSession, Prepare
from rgd.adapters.exchange.pulsar_session import PulsarSettings
from rgd.ports.exchange import ExchangeClosed, Received

__all__ = ["PulsarExchange", "PulsarSettings"]

USAGE_TOPIC: Final = "non-persistent://public/rgd/usage"

#: Most messages that wait for `receive`; beyond that the oldest is dropped.
QUEUE_MAX: Final = 10_000

_DEFAULTS: Final = PulsarSettings()


class PulsarExchange:
    """A member of an exchange topic; fulfils `rgd.ports.exchange.Exchange`.

    Args:
        url: `pulsar://host:port[,host:port...]` or `pulsar+ssl://...`.
        topic: a non-persistent topic, by its full name.
        settings: how to reach the broker.
        queue_max: most messages that wait for `receive`; beyond that the oldest is dropped and counted.
        queue_bytes_max: most bytes of them; the same.
        prepare: creates the topic's namespace.
    """

    def __init__(
        self,
        url: str,
        topic: str = USAGE_TOPIC,
        *,
        settings: PulsarSettings = _DEFAULTS,
        queue_max: int = QUEUE_MAX,
        queue_bytes_max: int = WAITING_BYTES_MAX,
        prepare: Prepare | None = None,
    ) -> None:
        self._topic = topic
        self._queue_max = queue_max
        self._queue_bytes_max = queue_bytes_max
        self._session = LastingSession(url, topic, settings, prepare=prepare)
        self._inbox: PayloadInbox | None = None
        self._is_closed = False

    @property
    def dropped(self) -> int:
        return self._inbox.dropped if self._inbox else 0

    @property
    def unauthenticated(self) -> int:
        return self._session.unauthenticated

    @property
    def unreadable(self) -> int:
        return self._session.unreadable

    @property
    def trouble(self) -> str | None:
        return self._session.trouble

    @property
    def attempts(self) -> int:
        """Attempts to open another session, after the first one was open."""
        return self._session.attempts

    async def open(self) -> None:
        if self._is_closed:
            raise ExchangeClosed(f"{self._topic} was closed")
        assert self._inbox is None, "opened twice"
        inbox = PayloadInbox(asyncio.get_running_loop(), self._queue_max, self._queue_bytes_max)
        await self._session.open(
            lambda delivery: inbox.put(Received(delivery.payload, delivery.published_ms))
        )
        self._inbox = inbox

    async def publish(self, payload: bytes) -> None:
        await self._session.publish(payload)

    async def receive(self) -> list[bytes]:
        return [received.payload for received in await self.receive_dated()]

    async def receive_dated(self) -> list[Received]:
        if self._inbox is None or self._is_closed:
            raise ExchangeClosed(f"{self._topic} is not open")
        return await self._inbox.take()

    async def close(self) -> None:
        self._is_closed = True
        if self._inbox:
            self._inbox.close()
        await self._session.close()
