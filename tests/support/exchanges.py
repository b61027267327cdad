"""What tests of an exchange wait for, on every backend."""

import asyncio
import contextlib

from rgd.ports.exchange import Exchange, ExchangeDown

#: Far more than anything takes here; only a fault reaches it.
TIMEOUT_S = 60


async def hears_itself(member: Exchange) -> None:
    """Publish until it is read: a broker drops what comes while it may not send to the reader."""

    async def listen() -> None:
        while b"hello" not in await member.receive():
            pass

    async with asyncio.timeout(TIMEOUT_S), asyncio.TaskGroup() as tasks:
        listening = tasks.create_task(listen())
        while not listening.done():
            with contextlib.suppress(ExchangeDown):
                await member.publish(b"hello")
            await asyncio.wait({listening}, timeout=0.1)
