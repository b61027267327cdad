"""What is passed on through a socket: whole, within its limits, and answered or refused when the plane ends.

What calls answer through it is tested by the tests of the calls (conftest.RELAYED), every order of events by
tests/property/test_relay.py.
"""

import asyncio
import hashlib
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import aiohttp
import pytest

from rgd.adapters.http.forward import Asked, Pieces, Stream
from rgd.adapters.http.frames import Kind
from rgd.adapters.http.front import Front
from rgd.adapters.http.lane_heads import HEADERS_MAX
from rgd.adapters.http.relay import Relay
from rgd.adapters.http.relay_plane import PlaneEnd
from rgd.adapters.http.reply import Reply
from rgd.adapters.http.route_table import Route
from rgd.adapters.http.settings import HttpSettings
from rgd.adapters.http.tokens import Tokens
from rgd.ports.door import Scope, digest_of
from tests.integration.http.door import read_answer
from tests.support.policy_tables import until
from tests.support.relayed_server import begin_plane
from tests.support.whole_daemon import observe_nothing
from tests.unit.adapters.http.small_daemon import SmallDaemon

SOON_S = 60
PAGE = bytes(range(256)) * (5 << 12)
#: More than a socket takes at once.
SNAPSHOT = b"data: %b\n\n" % (b"x" * 500_000)
STREAMS = 64
TOKEN = "a" * 32


def route(method: str, path: str, scope: Scope = Scope.READ) -> Route:
    return Route(method, path, scope, is_probe=False, takes_body=method == "PUT", takes_query=True)


ROUTES = (
    route("GET", "/page"),
    route("GET", "/slow"),
    route("GET", "/stream"),
    route("PUT", "/echo/{name}", Scope.ADMIN),
    route("PUT", "/slow", Scope.ADMIN),
)


class Door:
    """A front, the way from it, and what is behind."""

    def __init__(self, settings: HttpSettings, requests_max: int) -> None:
        self.relay = Relay(requests_max)
        self.front = Front(SmallDaemon(), settings, self.relay, observe=observe_nothing)
        self.front.serve(ROUTES)
        self.plane: PlaneEnd
        self.asked: list[Asked] = []
        self.go_on, self.may_send = asyncio.Event(), asyncio.Event()
        self.may_send.set()
        self.ended: list[str] = []
        self.session: aiohttp.ClientSession

    async def begin_plane(self) -> None:
        self.plane = await begin_plane(
            self.relay, self.forward, lambda asked: asked.method == "GET"
        )

    async def forward(self, asked: Asked) -> Pieces:
        self.asked.append(asked)
        try:
            if asked.route == "/stream":
                yield Stream({})
                await self.may_send.wait()
                while not self.go_on.is_set():
                    yield SNAPSHOT
                    await asyncio.sleep(0)
                return
            if asked.route == "/slow":
                await self.go_on.wait()
            yield Reply(body=PAGE if asked.route == "/page" else b"{}")
            self.ended.append("whole")
        except (asyncio.CancelledError, GeneratorExit):  # the latter between two messages
            self.ended.append("cancelled")
            raise

    def get(self, path: str) -> Any:
        return self.session.get(f"http://127.0.0.1:{self.front.port}{path}")

    async def status(self, path: str) -> int:
        async with self.get(path) as answer:
            return int(answer.status)


@asynccontextmanager
async def opened(
    settings: HttpSettings = HttpSettings(port=0),  # noqa: B008 -- immutable
    requests_max: int = 1024,
) -> AsyncIterator[Door]:
    door = Door(settings, requests_max)
    await door.begin_plane()
    connector, timeout = aiohttp.TCPConnector(limit=0), aiohttp.ClientTimeout(total=SOON_S)
    async with door.front, aiohttp.ClientSession(connector=connector, timeout=timeout) as session:
        door.session = session
        yield door
        door.go_on.set()
    await until(lambda: (door.relay.under_way, len(door.plane._requests)) == (0, 0))
    door.relay.close()


async def test_the_largest_request_crosses_as_it_came() -> None:
    settings = HttpSettings(
        port=0,
        body_max_bytes=8 << 20,
        tokens=Tokens({digest_of(TOKEN): frozenset({Scope.ADMIN})}, {digest_of(TOKEN): "alice"}),
    )
    body = PAGE[: 8 << 20] + PAGE[: (8 << 20) - len(PAGE)]
    names = [b"h%d" % number for number in range(HEADERS_MAX - 5)]
    headers = b"".join(b"%b: \xff%b\r\n" % (name, b"v" * 450) for name in names)
    head = (
        b"PUT /echo/a%%2Fb?x=1&x=%%C3%%A9&y= HTTP/1.1\r\nHost: x\r\naccept: text/\xff\r\n%bAccept: */*\r\n"
        b"Authorization: Bearer %b\r\nContent-Length: %d\r\n\r\n"
    ) % (headers, TOKEN.encode(), len(body))
    async with opened(settings) as door:
        reader, writer = await asyncio.open_connection("127.0.0.1", door.front.port)
        writer.write(head + body)
        async with asyncio.timeout(SOON_S):
            answer = await read_answer(reader)
        writer.close()
    assert answer.status == 200
    [asked] = door.asked
    assert asked[:5] == ("PUT", "/echo/{name}", "alice", {"name": "a/b"}, "/echo/a%2Fb")
    assert asked.query == [("x", "1"), ("x", "é"), ("y", "")]
    # Not UTF-8, as headers may be.
    assert asked.accept == "text/?, */*"
    assert hashlib.sha256(asked.body).digest() == hashlib.sha256(body).digest()


async def test_a_large_page_is_whole_beside_many_others() -> None:
    async with opened() as door:

        async def ask() -> None:
            async with door.get("/page") as answer:
                assert await answer.read() == PAGE

        async with asyncio.TaskGroup() as tasks:
            for _ in range(8):
                tasks.create_task(ask())


async def test_streams_share_messages_and_who_does_not_read_delays_nobody(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    kinds: list[int] = []
    send_long = PlaneEnd.send_long

    async def counted(end: PlaneEnd, kind: int, number: int, payload: bytes) -> None:
        kinds.append(kind)
        await send_long(end, kind, number, payload)

    monkeypatch.setattr(PlaneEnd, "send_long", counted)
    async with opened() as door, AsyncExitStack() as stack:
        door.may_send.clear()
        _, idle = await asyncio.open_connection("127.0.0.1", door.front.port, limit=1)
        idle.write(b"GET /stream HTTP/1.1\r\nHost: x\r\n\r\n")
        streams = [await stack.enter_async_context(door.get("/stream")) for _ in range(STREAMS - 1)]
        door.may_send.set()
        for _ in range(3):
            for stream in streams:
                assert await stream.content.readexactly(len(SNAPSHOT)) == SNAPSHOT
        assert await door.status("/page") == 200
        assert door.relay.under_way == STREAMS
        assert kinds.count(Kind.MESSAGE) == 1
        idle.transport.abort()


async def test_when_the_plane_ends_nobody_waits_and_the_next_one_answers() -> None:
    async with opened() as door:
        waiting = [asyncio.ensure_future(door.status("/slow")) for _ in range(3)]
        async with door.get("/stream") as stream:
            await stream.content.readexactly(len(SNAPSHOT))
            await until(lambda: len(door.asked) == len(waiting) + 1)
            door.plane.close()
            assert [await status for status in waiting] == [503] * len(waiting)
            while await stream.content.read(1 << 20):
                pass
        await until(lambda: door.ended == ["cancelled"] * (len(waiting) + 1))
        async with door.get("/page") as answer:
            assert (answer.status, answer.headers["Retry-After"]) == (503, "1")
        await door.begin_plane()
        assert await door.status("/page") == 200


async def test_what_a_change_does_is_done_though_its_plane_or_client_is_gone() -> None:
    async with opened() as door:
        url = f"http://127.0.0.1:{door.front.port}/slow"
        gone = asyncio.ensure_future(door.session.put(url))
        await until(lambda: len(door.asked) == 1)
        gone.cancel()
        change = asyncio.ensure_future(door.session.put(url))
        await until(lambda: len(door.asked) == 2)
        door.plane.close()
        assert (await change).status == 503
        door.go_on.set()
        await until(lambda: door.ended == ["whole"] * 2)


async def test_beyond_the_limit_a_request_is_503() -> None:
    async with opened(requests_max=1) as door:
        waiting = asyncio.ensure_future(door.status("/slow"))
        await until(lambda: len(door.asked) == 1)
        assert await door.status("/page") == 503
        door.go_on.set()
        assert await waiting == 200
        assert await door.status("/page") == 200
