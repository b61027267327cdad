"""An aiohttp application that is limited as one name.

    python examples/aiohttp_app.py [--once]

RGD_URL says where the daemon is. With `--once` it asks itself some times, prints how many requests were let
through, and ends.
"""

import asyncio
import os
import sys
from collections.abc import AsyncIterator

import aiohttp
from aiohttp import web

from rgd.client import Client, ClientSettings, Limiter, Name
from rgd.client.web import limited

REQUESTS = 40

LIMITER: web.AppKey[Limiter] = web.AppKey("limiter", Limiter)


async def hello(_: web.Request) -> web.Response:
    """The handler."""
    return web.Response(text="hello")


async def opened(app: web.Application) -> AsyncIterator[None]:
    """Open the client when the application starts, and close it when it ends."""
    url = os.environ.get("RGD_URL", "http://127.0.0.1:7700")
    async with Client(ClientSettings(when_away="open", url=url)) as client:
        app[LIMITER] = client.limiter(Name("acme", "requests"), leased=True)
        yield


def make_app() -> web.Application:
    """The application."""
    app = web.Application(middlewares=[limited(lambda request: request.app[LIMITER])])
    app.router.add_get("/", hello)
    app.cleanup_ctx.append(opened)
    return app


async def ask_once() -> None:
    """Serve on a free port, and ask."""
    runner = web.AppRunner(make_app())
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    port = runner.addresses[0][1]
    statuses = []
    async with aiohttp.ClientSession() as session:
        for _ in range(REQUESTS):
            async with session.get(f"http://127.0.0.1:{port}/") as answer:
                statuses.append(answer.status)
    await runner.cleanup()
    print(f"{statuses.count(200)} of {REQUESTS} let through, {statuses.count(429)} refused")


if __name__ == "__main__":
    if "--once" in sys.argv:
        asyncio.run(ask_once())
    else:
        web.run_app(make_app(), port=8080)
