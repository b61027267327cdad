"""The bytes of connections: each request is answered as it is, whole or torn, hot or passed on, sound or not.

Files whose tests are about connections in general are listed in conftest.py.
"""

import asyncio
import re
import socket
import ssl
import struct
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import TypeVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rgd.adapters.http.connection import READ_AHEAD_BYTES
from rgd.adapters.http.fast_lane import HEADS_KEPT, PIPELINED_MAX
from rgd.adapters.http.settings import HttpSettings
from rgd.adapters.http.tokens import Tokens
from rgd.core.policies.records import Change
from rgd.ports.door import Scope, digest_of
from tests.integration.http.door import Door, open_door, read_answer
from tests.integration.http.test_connections import figure
from tests.support.policy_tables import until
from tests.support.relayed_server import RelayedServer
from tests.support.whole_daemon import HttpServer
from tests.unit.adapters.http.small_daemon import SmallDaemon

T = TypeVar("T")

LAST = b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
DATE = re.compile(rb"Date: [^\r]+")
SECRET = "query-token"
SECURED = Tokens({digest_of(SECRET): frozenset({Scope.QUERY})})


def reset(writer: asyncio.StreamWriter) -> None:
    """Close with a RST, as a killed client does."""
    sock: socket.socket = writer.get_extra_info("socket")
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.close()


def post(body: bytes, path: bytes = b"/v1/acquire", headers: bytes = b"") -> bytes:
    head = b"POST %s HTTP/1.1\r\nHost: x\r\n%bContent-Length: %d\r\n\r\n"
    return head % (path, headers, len(body)) + body


#: A body of these is read before they are answered, or they have none.
WHOLE_FIRST = [
    post(b'{"group":"gold"}'),
    post(b'{"group":"trial","messages":30}'),
    post(b'{"group":"nobody"}'),
    post(b'{"group":"gold","messages":2,"bytes":7}'),
    post(b'{"group":"gold","group":"gold"}'),
    post(b'{"messages":1.5}'),
    post(b"{"),
    post(b""),
    post(b'[{"group":"gold"},{"group":"nobody"},{}]'),
    post(b"[" + b",".join([b'{"group":"idle"}'] * 300) + b"]"),
    post(b"[" + b",".join([b"{}"] * 300) + b"]"),
    post(b'{"group":"gold","messages":1}', b"/v1/settle"),
    post(b'[{"group":"gold"},{"group":"nobody"}]', b"/v1/settle"),
    post(b'{"group":"gold"}', headers=b"Authorization: Bearer wrong\r\n"),
    post(b'{"group":"gold"}', headers=b"Connection: keep-alive\r\n"),
    post(b'{"group":"gold"}', b"/v1/acquire?why=not"),
    post(b'{"group":"gold"}', b"/v1/%61cquire"),
    b"GET /v1/check HTTP/1.1\r\nHost: x\r\nX-Rgd-Group: gold \t\r\n\r\n",
    b"GET /v1/acquire HTTP/1.1\r\nHost: x\r\n\r\n",
    b"GET /v1/groups/gold HTTP/1.1\r\nHost: x\r\n\r\n",
    b"HEAD /healthz HTTP/1.1\r\nHost: x\r\n\r\n",
    b"POST /v1/acquire HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
    b'10\r\n{"group":"gold"}\r\n0\r\n\r\n',
    b"POST /v1/acquire HTTP/1.1\r\nHost: x\r\n\r\n",
    b"GET /v1/check?group=gold HTTP/1.1\r\nHost: x\r\n\r\n",
    b"GET /v1/check/%ff/it?group=trial&messages=30&deny=403&q=100% HTTP/1.1\r\nHost: x\r\n\r\n",
    b"HEAD /v1/check?group=gold&why=%20 HTTP/1.1\r\nHost: x\r\n\r\n",
    b"PATCH /v1/check HTTP/1.1\r\nHost: x\r\nX-Rgd-Group: gold\r\n\r\n",
    b"GET /v1/check HTTP/1.1\r\nHost: x\r\nx-rgd-group: gold\r\nX-RGD-Messages: many\r\n\r\n",
    post(b'{"group":"nobody"}', b"/v1/leases"),
    post(b"{}", b"/v1/leases/unknown/renew"),
    post(b"{}", b"/v1/leases/a%20b/release"),
    post(b"", b"/v1/leases/unknown"),
]
#: These are answered once their head is there; what is said of the connection depends on whether the body is there too.
HEAD_ONLY = [
    post(b'{"group":"gold"}', b"/v1/acquire/"),
    post(b'{"group":"gold"}', b"/v1/acquire?%ff"),
    post(b'{"group":"gold"}', b"//v1/acquire"),
    post(b"{}", b"/v1/check?group=gold"),
]
SOUND = [*WHOLE_FIRST, *HEAD_ONLY]
#: What the requests of `SOUND` are answered on a door without tokens.
STATUSES = [
    200, 200, 404, 200, 400, 400, 400, 400, 200, 200, 200, 200, 200, 200, 200, 200, 200, 200, 405, 200, 200, 200, 400, 200, 400, 400, 200, 400, 404, 404, 404, 404, 404, 400, 404, 200,
]  # fmt: skip
BODY = b'{"group":"gold"}'


@st.composite
def damaged(draw: st.DrawFn) -> bytes:
    """A sound request, a byte of which is another one, missing, or there twice."""
    request = draw(st.sampled_from(SOUND))
    at = draw(st.integers(0, min(len(request) - 1, 120)))
    put = draw(st.sampled_from([b"", request[at : at + 1] * 2]) | st.binary(min_size=1, max_size=2))
    return request[:at] + put + request[at + 1 :]


async def told(door: Door, sent: Sequence[bytes]) -> list[bytes]:
    """Everything that is answered to some pieces of bytes on one connection, dates apart."""
    reader, writer = await asyncio.open_connection("127.0.0.1", door.server.port)
    got = bytearray()
    try:
        async with asyncio.timeout(60):
            for piece in sent:
                writer.write(piece)
                await writer.drain()
                # Others run, so that the server reads the piece by itself.
                for _ in range(3 if len(sent) > 1 else 0):
                    await asyncio.sleep(0)
            while data := await reader.read(1 << 16):
                got += data
    except ConnectionError:
        # It was closed with bytes of ours unread; what came before that counts.
        pass
    finally:
        writer.transport.abort()
    return re.split(rb"HTTP/1\.[01] (?=\d{3} )", DATE.sub(b"Date: now", bytes(got)))[1:]


async def answered(sequences: Sequence[Sequence[bytes]], tokens: Tokens) -> list[list[bytes]]:
    """Everything that a door answers to each of these, on a connection of its own, with its observer's words."""
    found: list[list[bytes]] = []
    async with open_door(HttpSettings(port=0, tokens=tokens)) as door:
        for sent in sequences:
            answers = await told(door, sent)
            asked = repr((door.observed, door.daemon.asked)).encode()
            found.append([*answers, asked])
            door.observed.clear()
            door.daemon.asked.clear()
        await until(lambda: figure(door, "rgd_http_connections") == 0)
        assert figure(door, "rgd_http_body_bytes") == 0
    return found


def run(sequences: Sequence[Sequence[bytes]], tokens: Tokens = Tokens()) -> list[list[bytes]]:  # noqa: B008 -- immutable
    with asyncio.Runner() as runner:
        return runner.run(answered(sequences, tokens))


@pytest.mark.slow
@settings(max_examples=12)
@given(
    st.lists(st.sampled_from(WHOLE_FIRST), max_size=6), st.lists(st.integers(0, 1000), max_size=5)
)
def test_the_same_answers_however_the_bytes_are_torn(
    requests: list[bytes], cuts: list[int]
) -> None:
    whole = b"".join([*requests, LAST])
    ends = sorted({0, *(cut % len(whole) for cut in cuts), len(whole)})
    torn = [whole[begin:end] for begin, end in pairwise(ends)]
    # Each on a door of its own: what was granted counts.
    assert run([torn]) == run([[whole]])


@pytest.mark.slow
@settings(max_examples=12)
@given(st.lists(damaged(), min_size=2, max_size=6), st.booleans())
def test_damaged_requests_are_answered_and_none_is_a_fault_of_ours(
    sequences: list[bytes], is_after_a_sound_one: bool
) -> None:
    before = SOUND[0] if is_after_a_sound_one else b""
    for *answers, _ in run([(before + request + LAST,) for request in sequences]):
        assert all(answer[:3] < b"500" for answer in answers)
        assert not before or answers[0][:3] == b"200"
        # The last one ends the connection, or was reset with it.
        assert not answers or b"Connection: close" in answers[-1]


def test_each_request_of_the_lists_has_its_answer() -> None:
    answers = run([(request + LAST,) for request in SOUND])
    first = [int(found[0][:3]) for found in answers]
    assert first == STATUSES
    # All are sound: the connection goes on behind them.
    assert all(found[1].startswith(b"200") for found in answers)
    secured = run([(request + LAST,) for request in SOUND], SECURED)
    assert {int(found[0][:3]) for found in secured} == {400, 401, 404, 405, 200}


@pytest.mark.parametrize(
    "sent",
    [
        pytest.param(b"POST /v1/acquire HTTP/1.1\r\nHost: x\nX: a\r\n", id="in a head"),
        pytest.param(post(b"{}").replace(b"\r", b""), id="everywhere"),
        pytest.param(b"\x16\x03\x01\x02\x00", id="TLS"),
    ],
)
async def test_what_will_be_no_head_is_refused_at_once(door: Door, sent: bytes) -> None:
    assert (await door.raw(sent)).status == 400


UPGRADING = post(BODY, headers=b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n")
CLOSING = post(BODY, headers=b"Connection: close\r\n")
CLOSING_SECOND = post(BODY, headers=b"Connection: a\r\nConnection: b , Close\r\n")


@pytest.mark.parametrize(
    ("sent", "statuses"),
    [
        pytest.param(UPGRADING + SOUND[0], [b"200"], id="upgrade"),
        pytest.param(SOUND[0] + UPGRADING, [b"200", b"200"], id="upgrade-behind"),
        pytest.param(CLOSING + b"more", [b"200"], id="bytes-behind-the-last"),
        pytest.param(CLOSING + SOUND[0], [b"200"], id="request-behind-the-last"),
        pytest.param(CLOSING_SECOND + SOUND[0], [b"200"], id="in-the-second-of-two-headers"),
        pytest.param(LAST + SOUND[0], [b"200"], id="request-behind-the-last-without-a-body"),
    ],
)
async def test_who_asks_for_the_end_of_a_connection_or_another_protocol_is_answered_first(
    door: Door, sent: bytes, statuses: list[bytes]
) -> None:
    answers = await told(door, [sent])
    assert [answer[:3] for answer in answers] == statuses
    assert b"Connection: close" in answers[-1]


class Slow(SmallDaemon):
    """Writes when it is told to, and says what became of who waits."""

    def __init__(self) -> None:
        super().__init__()
        self.begun, self.go_on, self.ended = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def change(self, key: str, change: Change) -> None:
        self.begun.set()
        await self.go_on.wait()
        await super().change(key, change)
        self.ended.set()


SERVERS = pytest.mark.parametrize("server_type", [HttpServer, RelayedServer])


@SERVERS
async def test_a_change_goes_on_without_the_client_that_asked_for_it(
    server_type: type[HttpServer],
) -> None:
    daemon = Slow()
    async with (
        open_door(HttpSettings(port=0), daemon=daemon, server_type=server_type) as door,
        asyncio.timeout(60),
    ):
        _, writer = await asyncio.open_connection("127.0.0.1", door.server.port)
        writer.write(b"PUT /v1/groups/new HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}")
        await daemon.begun.wait()
        reset(writer)
        await until(lambda: figure(door, "rgd_http_connections") == 0)
        daemon.go_on.set()
        await daemon.ended.wait()
        assert "new" in daemon.snapshot().groups


@SERVERS
async def test_a_read_ends_with_the_client_that_asked_for_it(server_type: type[HttpServer]) -> None:
    begun, ended = asyncio.Event(), asyncio.Event()

    async def hanging(_accept: str) -> tuple[bytes, str]:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        raise AssertionError

    async with (
        open_door(HttpSettings(port=0), page=hanging, server_type=server_type) as door,
        asyncio.timeout(60),
    ):
        _, writer = await asyncio.open_connection("127.0.0.1", door.server.port)
        # Whatever a caller says beside it.
        body = b"2e000\r\n" + b" " * 0x2E000 + b"\r\n0\r\n\r\n"
        head = b"GET /metrics HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
        writer.write(head + body)
        await begun.wait()
        reset(writer)
        await ended.wait()
        await until(lambda: figure(door, "rgd_http_connections") == 0)
    assert door.observed == []
    assert figure(door, "rgd_http_body_bytes") == 0


async def test_many_heads_of_a_connection_are_each_read_as_they_are(door: Door) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", door.server.port)
    async with asyncio.timeout(60):
        for number in [*range(1, 3 * HEADS_KEPT)] * 2:
            writer.write(
                post(b'{"group":"idle"}'.ljust(16 + number), headers=b"X-A: %d\r\n" % number)
            )
            assert (await read_answer(reader)).status == 200
    writer.close()


async def test_a_flood_of_pipelined_requests_leaves_others_their_turn(door: Door) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", door.server.port)
    count = 20 * PIPELINED_MAX
    other_reader, other = await asyncio.open_connection("127.0.0.1", door.server.port)
    async with asyncio.timeout(60):
        other.write(post(BODY))
        await read_answer(other_reader)
        writer.write(post(b'{"group":"idle"}') * count)
        other.write(post(BODY))
        await read_answer(other_reader)
        before_other = next(
            place for place, asked in enumerate(door.daemon.asked[1:]) if asked.group == "gold"
        )
        for _ in range(count):
            await read_answer(reader)
    writer.close()
    other.close()
    assert before_other < count


async def test_tokens_that_are_replaced_count_from_the_next_request_on() -> None:
    async with open_door(HttpSettings(port=0, tokens=SECURED)) as door:
        asked = post(BODY, headers=b"Authorization: Bearer " + SECRET.encode() + b"\r\n")
        reader, writer = await asyncio.open_connection("127.0.0.1", door.server.port)
        async with asyncio.timeout(60):
            writer.write(asked)
            assert (await read_answer(reader)).status == 200
            door.server.replace_tokens(Tokens({digest_of("another"): frozenset({Scope.QUERY})}))
            writer.write(asked)
            assert (await read_answer(reader)).status == 401
            door.server.replace_tokens(SECURED)
            writer.write(asked)
            assert (await read_answer(reader)).status == 200
        writer.close()


async def test_while_it_drains_each_answer_ends_its_connection(door: Door) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", door.server.port)
    async with asyncio.timeout(60):
        writer.write(post(BODY))
        await read_answer(reader)
        door.server.drain()
        writer.write(post(BODY) * 2)
        answer = await read_answer(reader)
        assert (answer.status, answer.headers["Connection"]) == (200, "close")
        assert await reader.read() == b""
    writer.close()


def answer_over_tls(port: int, authority: Path, sent: bytes) -> bytes:
    """The answer to what a client sends in one piece with the end of its handshake."""
    context = ssl.create_default_context(cafile=authority)
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    secured = context.wrap_bio(incoming, outgoing, server_hostname="127.0.0.1")
    with socket.create_connection(("127.0.0.1", port), timeout=60) as client:

        def when_received(step: Callable[[], T]) -> T:
            while True:
                try:
                    return step()
                except ssl.SSLWantReadError:
                    client.sendall(outgoing.read())
                    received = client.recv(1 << 16)
                    assert received, "the connection has ended"
                    incoming.write(received)

        when_received(secured.do_handshake)
        secured.write(sent)
        return when_received(lambda: secured.read(1 << 16))


async def test_a_large_request_may_come_with_the_end_of_a_handshake(
    certificate: tuple[Path, Path],
) -> None:
    cert, key = certificate
    sent = post(BODY.ljust(2 * READ_AHEAD_BYTES))
    async with open_door(HttpSettings(port=0, tls_cert=cert, tls_key=key)) as door:
        answer = await asyncio.to_thread(answer_over_tls, door.server.port, cert, sent)
    assert answer.startswith(b"HTTP/1.1 400 ")  # an object of at most 32 KiB
