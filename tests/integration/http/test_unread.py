"""Clients that send and never read, and bodies that come slowly: what the daemon holds for them is bounded."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

import pytest

from rgd.adapters.http.byte_limits import FREE_BYTES
from rgd.adapters.http.connection import UNCOUNTED_UNREAD_BYTES
from rgd.adapters.http.settings import HttpSettings
from tests.integration.http.door import Door, check, open_door, read_answer
from tests.integration.http.test_connections import ended, figure
from tests.support.policy_tables import until

pytestmark = pytest.mark.slow

#: Its answer, some 100 kB, costs nothing to make; the header makes the request itself large.
REQUEST = b"GET /openapi.json HTTP/1.1\r\nHost: x\r\nX-Padding: " + b"x" * 4000 + b"\r\n\r\n"
MANY = REQUEST * 2000
#: Answers that the operating system may take in before anything waits here.
TAKEN_MAX = 200
#: That the system keeps of requests that the daemon does not read.
RECEIVED_BYTES = 64 << 10


@asynccontextmanager
async def deaf(door: Door) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """A client with a small buffer that reads nothing unless it is told to."""
    sock = socket.socket()
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    sock.setblocking(False)
    await asyncio.get_running_loop().sock_connect(sock, ("127.0.0.1", door.server.port))
    reader, writer = await asyncio.open_connection(sock=sock, limit=1024)
    transport = writer.transport
    transport.pause_reading()  # type: ignore[attr-defined]  # a socket's transport reads
    try:
        yield reader, writer
    finally:
        transport.abort()


def unread(door: Door) -> float:
    return figure(door, "rgd_http_unread_bytes")


async def test_who_reads_nothing_is_soon_read_no_more() -> None:
    async with AsyncExitStack() as opened:
        door = await opened.enter_async_context(open_door(HttpSettings(port=0)))
        # Connections inherit it. Otherwise the system grows its buffer to as much as all that is sent.
        for listening in door.server._listeners[0].sockets:
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVED_BYTES)
        reader, writer = await opened.enter_async_context(deaf(door))
        writer.write(MANY)
        await until(lambda: unread(door) > 0)
        # Others are served as ever; no more is answered to this one than the system takes in, nor read of it.
        for _ in range(50):
            assert (await door.call("GET", "/healthz")).status == 200
        answered = len(door.observed) - 50
        assert answered <= TAKEN_MAX
        assert unread(door) <= 1_000_000
        assert writer.transport.get_write_buffer_size() > len(MANY) // 4

        # Once it reads, it gets every answer in order.
        reader._transport.resume_reading()  # type: ignore[attr-defined]  # what `deaf` paused
        async with asyncio.timeout(240):
            for _ in range(answered + 50):
                assert (await read_answer(reader)).json["openapi"] == "3.1.0"
        assert len(door.observed) > answered + 50


async def test_unread_answers_of_all_are_bounded_and_the_longest_waiting_ends() -> None:
    # More than one answer, and less than what so many callers leave unread at least.
    most, callers = 400_000, 1 + 400_000 // UNCOUNTED_UNREAD_BYTES
    async with (
        open_door(HttpSettings(port=0, unread_max_bytes=most)) as door,
        AsyncExitStack() as clients,
    ):
        first, writer = await clients.enter_async_context(deaf(door))
        writer.write(MANY)
        await until(lambda: unread(door) > 0)
        for _ in range(callers):
            _, other = await clients.enter_async_context(deaf(door))
            other.write(MANY)
        await until(lambda: figure(door, "rgd_http_connections_closed_total", "unread_limit") >= 1)
        assert unread(door) <= most
        first._transport.resume_reading()  # type: ignore[attr-defined]  # what `deaf` paused
        assert await ended(first)


async def test_an_answer_that_is_not_read_in_time_ends_its_connection() -> None:
    async with (
        open_door(HttpSettings(port=0, answer_timeout_s=0.05)) as door,
        deaf(door) as (_, writer),
    ):
        writer.write(MANY)
        await until(lambda: figure(door, "rgd_http_connections_closed_total", "slow_reader") == 1)
        await until(lambda: figure(door, "rgd_http_connections") == 0)
        assert unread(door) == 0


async def test_a_client_that_goes_away_with_its_answer_unread_is_not_counted_any_more() -> None:
    async with open_door(HttpSettings(port=0)) as door:
        async with deaf(door) as (_, writer):
            writer.write(MANY)
            await until(lambda: unread(door) > 0)
        await until(lambda: unread(door) == 0)
        assert (await door.call("GET", "/healthz")).status == 200


# --- bodies --------------------------------------------------------------------------------------------

HEAD = b"POST /v1/acquire HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n"
CHUNKED = b"POST /v1/acquire HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"


async def test_bodies_at_once_are_bounded_in_all() -> None:
    settings = HttpSettings(port=0, body_max_bytes=300_000, bodies_max_bytes=300_000)
    body = b"[" + b" " * 20_000 + b'{"group":"gold"}]'
    async with open_door(settings) as door:
        reader, writer = await asyncio.open_connection("127.0.0.1", door.server.port)
        size = 300_000
        writer.write(HEAD % size + b"[")
        await until(lambda: figure(door, "rgd_http_body_bytes") == size - FREE_BYTES)

        # One large body that does not come holds all there is, and ordinary questions pass.
        assert (await door.call("POST", "/v1/acquire", body)).status == 200
        refused = await door.raw(HEAD % size + b"[")
        check(door.description, "POST", "/v1/acquire", refused)
        assert (refused.status, refused.headers["Retry-After"]) == (503, "1")
        assert "http.bodies_max_bytes" in refused.reason
        chunk = b"%x\r\n%s\r\n" % (size, b" " * size)
        assert (await door.raw(CHUNKED + chunk)).status == 503

        writer.write(b'{"group":"gold"}' + b" " * (size - 18) + b"]")
        async with asyncio.timeout(240):
            answered = await read_answer(reader)
        assert answered.status in {200, 400}
        await until(lambda: figure(door, "rgd_http_body_bytes") == 0)
        writer.close()


async def test_a_body_that_ends_early_gives_its_bytes_back(door: Door) -> None:
    _, writer = await asyncio.open_connection("127.0.0.1", door.server.port)
    writer.write(HEAD % (FREE_BYTES + 100_000) + b"[")
    await until(lambda: figure(door, "rgd_http_body_bytes") == 100_000)

    writer.transport.abort()

    await until(lambda: figure(door, "rgd_http_body_bytes") == 0)


async def test_arrays_whose_answers_nobody_reads_wait(door: Door) -> None:
    body = b"[" + b",".join([b'{"group":"idle"}'] * 1000) + b"]"
    count = 200
    async with deaf(door) as (reader, writer):
        writer.write((HEAD % len(body) + body) * count)
        await until(lambda: unread(door) > 0)
        # The array that is under way is answered to its end.
        answered = -1
        while answered != len(door.observed):
            answered = len(door.observed) + 1
            assert (await door.call("GET", "/healthz")).status == 200
        assert answered < count
        for _ in range(20):
            assert (await door.call("GET", "/healthz")).status == 200
        assert len(door.observed) == answered + 20
        assert unread(door) <= 1_000_000

        reader._transport.resume_reading()  # type: ignore[attr-defined]  # what `deaf` paused
        async with asyncio.timeout(240):
            for _ in range(count):
                assert len((await read_answer(reader)).json) == 1000
    await until(lambda: unread(door) == 0)
