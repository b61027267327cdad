"""Clients that end their side of a connection: all that they asked before is answered, then ours ends, too."""

import asyncio
import re
import socket

import pytest

from rgd.adapters.http.fast_lane import PIPELINED_MAX
from rgd.adapters.http.turns import SLICE_WORK
from tests.integration.http.door import Door
from tests.integration.http.test_connections import figure
from tests.support.policy_tables import until

ITEM = b'{"group":"idle"}'
BODY = b'{"group":"gold"}'
#: More than one slice of work, and one whose answer is large.
LONG = b"[" + b",".join([ITEM] * (3 * SLICE_WORK) + [b"{}"]) + b"]"
WIDE = b"[" + b",".join([ITEM] * SLICE_WORK) + b"]"


def post(body: bytes, headers: bytes = b"") -> bytes:
    head = b"POST /v1/acquire HTTP/1.1\r\nHost: x\r\n%bContent-Length: %d\r\n\r\n"
    return head % (headers, len(body)) + body


GET = b"GET /v1/groups/gold HTTP/1.1\r\nHost: x\r\n\r\n"
CHUNKED = (
    b"POST /v1/acquire HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n10\r\n"
    + BODY
    + b"\r\n0\r\n\r\n"
)


async def answers_to(door: Door, sent: bytes) -> list[bytes]:
    """The statuses of all answers to a client that ends its side with its last byte."""
    reader, writer = await asyncio.open_connection("127.0.0.1", door.server.port)
    try:
        async with asyncio.timeout(60):
            writer.write(sent)
            writer.write_eof()
            return statuses(await reader.read())
    finally:
        writer.transport.abort()


def statuses(got: bytes) -> list[bytes]:
    return re.findall(rb"HTTP/1\.1 (\d{3}) ", got)


@pytest.mark.parametrize(
    ("sent", "expected"),
    [
        pytest.param(post(LONG) + post(BODY) * 2, 3, id="behind a long array"),
        pytest.param(post(BODY) * PIPELINED_MAX + post(LONG), PIPELINED_MAX + 1, id="a long array"),
        pytest.param(post(BODY) * 40 + GET + CHUNKED + post(BODY), 43, id="on the other path"),
        pytest.param(post(LONG) + GET, 2, id="then the other path"),
    ],
)
async def test_whatever_kind_they_are(door: Door, sent: bytes, expected: int) -> None:
    assert await answers_to(door, sent) == [b"200"] * expected


@pytest.mark.parametrize(
    "rest",
    [
        pytest.param(b"POST /v1/acq", id="a head"),
        pytest.param(post(BODY)[:-1], id="a body"),
        pytest.param(post(b"[" + b" " * 100_000)[:-1], id="a large body"),
        pytest.param(CHUNKED[:-5], id="chunks"),
        pytest.param(post(BODY, b"Expect: 100-continue\r\n")[:-1], id="a body that is waited for"),
    ],
)
async def test_a_request_whose_end_never_comes_ends_the_connection_after_the_others(
    door: Door, rest: bytes
) -> None:
    # By its own time limit it would end much later than this waits.
    for count in (0, 1, PIPELINED_MAX + 8):
        assert await answers_to(door, post(BODY) * count + rest) in (
            [b"200"] * count,
            [b"200"] * count + [b"100"],
        )
    await until(lambda: figure(door, "rgd_http_connections") == 0)
    assert figure(door, "rgd_http_body_bytes") == 0


@pytest.mark.slow
async def test_who_reads_late_gets_them_all(door: Door) -> None:
    sock = socket.socket()
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    sock.setblocking(False)
    loop = asyncio.get_running_loop()
    await loop.sock_connect(sock, ("127.0.0.1", door.server.port))
    # So that arrays cost next to nothing: their answers have to be more than buffers take in.
    door.daemon.grants_together = True
    count, got = 1000, bytearray()

    async def send() -> None:
        await loop.sock_sendall(sock, post(WIDE) * count)
        sock.shutdown(socket.SHUT_WR)

    async with asyncio.timeout(60):
        sending = asyncio.create_task(send())
        while not figure(door, "rgd_http_unread_bytes"):  # noqa: ASYNC110 -- as `until`, for longer
            await asyncio.sleep(0)
        while data := await loop.sock_recv(sock, 1 << 16):
            got += data
        await sending
    sock.close()
    assert statuses(bytes(got)) == [b"200"] * count
