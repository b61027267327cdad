"""The exchange on Pulsar, Apache's or the embedded one.

Law: as the port says. An exchange hears from its `open` on all that the broker does not drop.
How: the session's reading thread puts messages into one bounded queue.
Connecting, sending and closing are in `rgd.adapters.exchange.pulsar_session`, the policies table in
`rgd.adapters.exchange.pulsar_table`.
"""

import asyncio
from typing import Final

from rgd.adapters.exchange.inbox import Inbox
from rgd.adapters.exchange.pulsar_session import PulsarSession, PulsarSettings
from rgd.ports.exchange import ExchangeClosed

__all__ = ["PulsarExchange", "PulsarSettings"]

USAGE_TOPIC: Final = "non-persistent://public/rgd/usage"

#: Messages that wait for `receive`; then the oldest goes.
QUEUE_MAX: Final = 10_000

_DEFAULTS: Final = PulsarSettings()


class PulsarExchange:
    """A member of an exchange topic; fulfils `rgd.ports.exchange.Exchange`.

    Args:
        url: `pulsar://host:port[,host:port...]` or `pulsar+ssl://...`.
        topic: a non-persistent topic, by its full name.
        settings: how to reach the broker.
        queue_max: messages that wait for `receive`; then the oldest goes and is counted.
    """

    def __init__(
        self,
        url: str,
        topic: str = USAGE_TOPIC,
        *,
        settings: PulsarSettings = _DEFAULTS,
        queue_max: int = QUEUE_MAX,
    ) -> None:
        self._url = url
        self._topic = topic
        self._settings = settings
        self._queue_max = queue_max
        self._session: PulsarSession | None = None
        self._inbox: Inbox[bytes] | None = None
        self._is_closed = False

    @property
    def dropped(self) -> int:
        return self._inbox.dropped if self._inbox else 0

    async def open(self) -> None:
        if self._is_closed:
            raise ExchangeClosed(f"{self._topic} was closed")
        assert self._session is None, "opened twice"
        inbox: Inbox[bytes] = Inbox(asyncio.get_running_loop(), self._queue_max)
        self._session = PulsarSession(self._url, self._topic, self._settings)
        try:
            await self._session.open(lambda delivery: inbox.put(delivery.payload), from_start=False)
        except BaseException:
            await self._session.close()
            self._session = None
            raise
        self._inbox = inbox

    async def publish(self, payload: bytes) -> None:
        if self._session is None or self._is_closed:
            raise ExchangeClosed(f"{self._topic} is not open")
        await self._session.send(payload)

    async def receive(self) -> list[bytes]:
        if self._inbox is None or self._is_closed:
            raise ExchangeClosed(f"{self._topic} is not open")
        return await self._inbox.take()

    async def close(self) -> None:
        self._is_closed = True
        if self._inbox:
            self._inbox.close()
        if self._session:
            await self._session.close()
