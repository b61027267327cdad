"""An admin API that plays what Apache Pulsar 4.0.8 answered (recorded.json), and what goes wrong.

A real HTTP server on the loopback: what a client library makes of a redirect, a cut connection or a
hanging call is part of what is tested. Paths are as they arrive, still quoted, below `/admin/v2/`.
It keeps nothing: a test says each answer.
"""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Self

from aiohttp import web
from aiohttp.test_utils import TestServer

from rgd.adapters.stock.client import StockClient
from rgd.adapters.stock.reader import StockAdmin
from rgd.config.settings import ExchangeSettings

RECORDED: dict[str, dict[str, Any]] = json.loads(
    (Path(__file__).parent / "recorded.json").read_text()
)
#: Pulsar's own, for what was not recorded.
NOT_THERE = {"status": 404, "type": "application/json", "body": '{"reason":"Not there"}'}
PREFIX = "/admin/v2/"


class PretendPulsar:
    """Answers by path; an async context manager."""

    def __init__(self, answers: dict[str, dict[str, Any]] | None = None) -> None:
        self.answers = dict(RECORDED if answers is None else answers)
        #: Calls in order, and the headers of the last one.
        self.calls: list[str] = []
        self.headers: dict[str, str] = {}
        #: Posted bodies by path, the last one of each.
        self.posted: dict[str, str] = {}
        #: Paths that are never answered, and paths whose connection is cut.
        self.hanging: set[str] = set()
        self.cut: set[str] = set()
        self.url = ""

    async def __aenter__(self) -> Self:
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", self._answer)
        self._server = TestServer(app)
        await self._server.start_server(shutdown_timeout=0.1)
        self.url = f"http://127.0.0.1:{self._server.port}"
        return self

    async def __aexit__(self, *_exception: object) -> None:
        await self.stop()

    async def stop(self) -> None:
        """Close the port: from now on calls are refused."""
        await self._server.close()

    def say(
        self,
        path: str,
        body: object = "",
        *,
        status: int = 200,
        kind: str = "",
        headers: dict[str, str] | None = None,
    ) -> None:
        """Answer a path from now on; what is no text goes as JSON."""
        text = body if isinstance(body, str) else json.dumps(body)
        said = {"status": status, "type": kind or "application/json", "body": text}
        self.answers[path] = {**said, "headers": headers or {}}

    def redirect(self, path: str, target: str) -> None:
        """Send callers of a path elsewhere, as Pulsar does to a topic's broker."""
        self.answers[path] = {"status": 307, "type": "", "body": "", "location": target}

    def edit(self, path: str, **changes: object) -> None:
        """Change fields of the JSON object that a path answers."""
        said = json.loads(self.answers[path]["body"])
        self.say(path, {**said, **changes})

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        path = request.raw_path.removeprefix(PREFIX)
        self.calls.append(path)
        self.headers = dict(request.headers)
        if request.method == "POST":
            self.posted[path] = await request.text()
        if path in self.hanging:
            await asyncio.Event().wait()
        if path in self.cut:
            assert request.transport is not None
            request.transport.close()
        said = self.answers.get(path, NOT_THERE)
        headers = {"Content-Type": said["type"]} if said["type"] else {}
        headers |= said.get("headers", {})
        if "location" in said:
            headers["Location"] = said["location"]
        return web.Response(status=said["status"], body=said["body"].encode(), headers=headers)


@asynccontextmanager
async def admin(url: str, **files: Any) -> AsyncIterator[StockAdmin]:
    """What asks an admin API, with files of the settings."""
    made = StockAdmin(StockClient(ExchangeSettings(admin_url=url, **files)), "standalone")
    try:
        yield made
    finally:
        await made.close()
