"""A running door and a client that believes nothing: every answer is held against /openapi.json.

`Door.call` checks that the call's path, method and status are described and that the body is what
the description says; so each test of the door is also a test of the description. `Door.raw` speaks
bytes, for what no client library would send. The daemon behind is
tests/unit/adapters/http/small_daemon.py: the real limiter, one broker.
"""

import asyncio
import io
import re
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from functools import lru_cache
from typing import Any, NamedTuple

import aiohttp
import msgspec
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]  # ships no types

from rgd.adapters.http.connection import Connection
from rgd.adapters.http.reply import MetricsPage
from rgd.adapters.http.settings import HttpSettings
from rgd.ports.log_door import LogDoor
from tests.support.running_daemon import RunningDaemon
from tests.support.whole_daemon import HttpServer
from tests.unit.adapters.http.small_daemon import SmallDaemon

METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class Answer(NamedTuple):
    """What came back."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return msgspec.json.decode(self.body)

    @property
    def reason(self) -> str:
        told = self.json
        assert set(told) == {"reason"}
        assert isinstance(told["reason"], str)
        return str(told["reason"])


class Observed(NamedTuple):
    """What the observer was told."""

    route: str
    status: int


class Door:
    """A server, its daemon, and a client."""

    def __init__(
        self, server: HttpServer, daemon: SmallDaemon, session: aiohttp.ClientSession
    ) -> None:
        self.server = server
        self.daemon = daemon
        self.observed: list[Observed] = []
        self.seconds: list[float] = []
        self.session = session
        self.description: dict[str, Any] = {}

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.port}"

    def connections(self) -> list[Connection]:
        """Those that are open, but for those of probes alone."""
        return [one for lanes in self.server._lanes[:1] for one in lanes.open]

    def observe(self, route: str, status: int, seconds: float) -> None:
        self.observed.append(Observed(route, status))
        self.seconds.append(seconds)

    async def call(self, method: str, path: str, body: object = None, **told: Any) -> Answer:
        """Call a path that is described, as `send` does, and check the answer against its description."""
        answer = await self.send(method, path, body, **told)
        check(self.description, method, path, answer)
        return answer

    async def send(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        token: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        """Call any path."""
        data = body if isinstance(body, bytes | None) else msgspec.json.encode(body)
        told = dict(headers or {})
        if token is not None:
            told["Authorization"] = f"Bearer {token}"
        # A large body as a file, or the client warns.
        sent = io.BytesIO(data) if data is not None and len(data) > 1 << 20 else data
        async with self.session.request(
            method, self.url + path, data=sent, headers=told
        ) as response:
            return Answer(response.status, response.headers, await response.read())

    async def raw(self, sent: bytes) -> Answer:
        """Send bytes and read one answer; the server is expected to close."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.server.port)
        try:
            writer.write(sent)
            await writer.drain()
            async with asyncio.timeout(60):
                return await read_answer(reader)
        finally:
            writer.close()


async def read_answer(reader: asyncio.StreamReader) -> Answer:
    """Read one answer with a Content-Length."""
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    status_line, _, lines = head.partition("\r\n")
    headers = dict(line.split(": ", 1) for line in lines.split("\r\n") if line)
    body = await reader.readexactly(int(headers.get("Content-Length", 0)))
    return Answer(int(status_line.split()[1]), headers, body)


def check(description: Mapping[str, Any], method: str, path: str, answer: Answer) -> None:
    """Hold an answer against the description of its call."""
    operation = operation_of(description, method, path)
    assert str(answer.status) in operation["responses"], (method, path, answer)
    response = operation["responses"][str(answer.status)]
    for name, header in response.get("headers", {}).items():
        assert name in answer.headers or not header["required"], (method, path, answer)
    content = response.get("content", {})
    if not content:
        assert answer.body == b""
        return
    content_type = answer.headers["Content-Type"].partition(";")[0]
    assert content_type in content
    media = content[content_type]
    if method != "HEAD" and media["schema"] != {"type": "string"}:
        schema = {**media["schema"], "components": description["components"]}
        # An empty body is null, as in Pulsar.
        Draft202012Validator(schema).validate(answer.json if answer.body else None)


def operation_of(description: Mapping[str, Any], method: str, path: str) -> Any:
    """The description of a call; HEAD is described as GET."""
    called = "get" if method == "HEAD" else method.lower()
    for template, operations in description["paths"].items():
        pattern = re.sub(
            r"\{\w+\}", "[^/]+", re.escape(template).replace(r"\{", "{").replace(r"\}", "}")
        )
        if re.fullmatch(pattern, path.partition("?")[0]) and called in operations:
            return operations[called]
    raise AssertionError(f"{method} {path} is not described")


async def metrics(accept: str) -> tuple[bytes, str]:
    """A page that says what it was asked for."""
    return f"rgd_up 1 # {accept}\n".encode(), METRICS_TYPE


@asynccontextmanager
async def open_door(
    settings: HttpSettings,
    *,
    daemon: SmallDaemon | None = None,
    page: MetricsPage = metrics,
    log_door: LogDoor | None = None,
    server_type: type[HttpServer] = HttpServer,
) -> AsyncIterator[Door]:
    """Open a door on a free port."""
    served = daemon or SmallDaemon()
    doors: list[Door] = []

    def observe(route: str, status: int, seconds: float) -> None:
        doors[0].observe(route, status, seconds)

    server = server_type(served, settings, metrics=page, log_door=log_door, observe=observe)
    timeout = aiohttp.ClientTimeout(total=60)
    async with aiohttp.ClientSession(timeout=timeout) as session:
        doors.append(Door(server, served, session))
        async with server:
            doors[0].description = described(server.plane.description)
            yield doors[0]


@lru_cache(maxsize=8)
def described(body: bytes) -> dict[str, Any]:
    """A description as it was read; nobody changes it."""
    found: dict[str, Any] = msgspec.json.decode(body)
    return found


async def call(running: RunningDaemon, method: str, path: str, body: object = None) -> Answer:
    """Call a whole daemon, and check the answer against the description."""
    data = None if body is None else msgspec.json.encode(body)
    async with aiohttp.ClientSession() as session:
        async with session.get(f"{running.url}/openapi.json") as shown:
            description = described(await shown.read())
        async with session.request(method, running.url + path, data=data) as response:
            answer = Answer(response.status, response.headers, await response.read())
    check(description, method, path, answer)
    return answer
