"""An ASGI application whose callers are limited by tenant, which their header `X-Tenant` names.

    uvicorn examples.asgi_app:app

RGD_URL says where the daemon is. By itself the script plays the server for some requests, and prints
how many were let through.
"""

import asyncio
import os
from typing import Any

from rgd.client import Client, ClientSettings, Limiter, Name
from rgd.client.asgi import LimitedApp, Receive, Scope, Send

REQUESTS = 40

client = Client(
    ClientSettings(when_away="open", url=os.environ.get("RGD_URL", "http://127.0.0.1:7700"))
)
limiters: dict[str, Limiter] = {}


def limiter_of(scope: Scope) -> Limiter | None:
    """One limiter for each tenant that the daemon knows; a real application knows its tenants."""
    tenant = dict(scope["headers"]).get(b"x-tenant", b"acme").decode()
    if tenant not in {"acme", "globex"}:
        return None
    if tenant not in limiters:
        limiters[tenant] = client.limiter(Name(tenant, "requests"), leased=True)
    return limiters[tenant]


async def hello(scope: Scope, receive: Receive, send: Send) -> None:
    """The application; it opens the client when it starts and closes it when it ends."""
    if scope["type"] == "lifespan":
        await receive()
        async with client:
            await send({"type": "lifespan.startup.complete"})
            await receive()
        await send({"type": "lifespan.shutdown.complete"})
        return
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"hello"})


app = LimitedApp(hello, limiter_of)


async def main() -> None:
    """Play the server."""
    statuses: list[int] = []

    async def send(message: Any) -> None:
        if message["type"] == "http.response.start":
            statuses.append(message["status"])

    async def receive() -> Any:
        return {"type": "http.request", "body": b""}

    async with client:
        for _ in range(REQUESTS):
            await app({"type": "http", "headers": [(b"x-tenant", b"acme")]}, receive, send)
    print(f"{statuses.count(200)} of {REQUESTS} let through, {statuses.count(429)} refused")


if __name__ == "__main__":
    asyncio.run(main())
