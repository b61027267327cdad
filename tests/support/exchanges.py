"""What tests of an exchange start and wait for, on every backend."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import TypeVar

from rgd.adapters.exchange.embedded import EmbeddedBroker
from rgd.ports.exchange import Exchange, ExchangeDown
from tests.support import components

#: Far more than anything takes here; only a fault reaches it.
TIMEOUT_S = 60

_T = TypeVar("_T")


@contextlib.asynccontextmanager
async def embedded_exchange(folder: Path) -> AsyncIterator[EmbeddedBroker]:
    """An embedded broker that serves until the end, unless it is stopped before."""
    components.embedded_broker()
    broker = EmbeddedBroker(folder)
    try:
        await broker.ensure()
        yield broker
    finally:
        await broker.stop()


async def opened(opening: Callable[[], Awaitable[_T]]) -> _T:
    """Open until that succeeds: a broker that has just come back, or is busy, may need longer than one attempt has."""
    async with asyncio.timeout(TIMEOUT_S):
        while True:
            with contextlib.suppress(ExchangeDown):
                return await opening()


async def heard(sender: Exchange, *listeners: Exchange, word: bytes = b"hello") -> None:
    """Publish until all have read it: a broker drops what comes while it may not send to a reader."""

    async def listen(listener: Exchange) -> None:
        while word not in await listener.receive():
            pass

    async with asyncio.timeout(TIMEOUT_S), asyncio.TaskGroup() as tasks:
        listening = [tasks.create_task(listen(listener)) for listener in listeners]
        while not all(task.done() for task in listening):
            with contextlib.suppress(ExchangeDown):
                await sender.publish(word)
            await asyncio.wait(listening, timeout=0.1)


async def hears_itself(member: Exchange, word: bytes = b"hello") -> None:
    """Publish until it has read it."""
    await heard(member, member, word=word)
