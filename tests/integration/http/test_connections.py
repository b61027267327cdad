"""Crowds of connections on a real server: who makes room, what probes keep, how slow ones end.

Low limits stand for high ones; what descriptors run out of is in test_descriptors.py.
"""

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest

from rgd.adapters.http.connection_limits import PROBES_RESERVED
from rgd.adapters.http.settings import HttpSettings
from rgd.core.policies.records import Change
from tests.integration.http.door import Answer, Door, check, open_door, read_answer
from tests.support.policy_tables import until
from tests.unit.adapters.http.small_daemon import SmallDaemon

HEALTH = b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"
ACQUIRE = (
    b"POST /v1/acquire HTTP/1.1\r\nHost: x\r\nContent-Length: 16\r\n\r\n" + b'{"group":"gold"}'
)
PUT = b"PUT /v1/groups/new HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}"

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Hanging(SmallDaemon):
    """A daemon that cannot write: whoever changes a policy is busy until it is let go."""

    def __init__(self) -> None:
        super().__init__()
        self.busy = 0
        self.go_on = asyncio.Event()

    async def change(self, key: str, change: Change) -> None:
        self.busy += 1
        await self.go_on.wait()
        await super().change(key, change)


@asynccontextmanager
async def connections(
    door: Door, count: int, sent: bytes = b"", source: str = "127.0.0.1"
) -> AsyncIterator[list[Streams]]:
    """Connections that send something and wait."""
    async with AsyncExitStack() as stack:
        opened: list[Streams] = []
        for _ in range(count):
            streams = await asyncio.open_connection(
                "127.0.0.1", door.server.port, local_addr=(source, 0)
            )
            stack.callback(streams[1].transport.abort)
            streams[1].write(sent)
            opened.append(streams)
        yield opened


async def ask(door: Door, request: bytes, source: str = "127.0.0.1") -> Answer:
    """Ask once on a connection of its own; the answer is held against the description."""
    async with connections(door, 1, request, source) as [(reader, _)], asyncio.timeout(60):
        answer = await read_answer(reader)
    method, path, _ = request.split(b" ", 2)
    check(door.description, method.decode(), path.decode(), answer)
    return answer


def figure(door: Door, name: str, *labels: str) -> float:
    return next(
        value for told, given, value in door.server.samples() if (told, given) == (name, labels)
    )


async def ended(reader: asyncio.StreamReader) -> bool:
    """Wait until the server ends a connection, politely or not."""
    try:
        async with asyncio.timeout(60):
            while await reader.read(1 << 16):
                pass
    except ConnectionError:
        pass
    return True


@asynccontextmanager
async def all_busy(settings: HttpSettings, source: str = "127.0.0.1") -> AsyncIterator[Door]:
    """A door whose two connections have a request under way."""
    daemon = Hanging()
    async with open_door(settings, daemon=daemon) as door:
        async with connections(door, 2, PUT, source):
            await until(lambda: daemon.busy == 2)
            yield door
        daemon.go_on.set()


async def test_idle_sockets_shut_out_neither_probes_nor_callers() -> None:
    async with open_door(HttpSettings(port=0, connections_max=8)) as door, connections(door, 200):
        assert (await ask(door, HEALTH)).status == 200
        assert (await ask(door, ACQUIRE)).status == 200
        assert figure(door, "rgd_http_connections") <= 8
        assert figure(door, "rgd_http_connections_closed_total", "evicted") >= 192


@pytest.mark.parametrize("path", [b"/healthz", b"/readyz", b"/metrics"])
async def test_while_all_are_busy_probes_are_answered_from_the_reserve(path: bytes) -> None:
    async with (
        all_busy(HttpSettings(port=0, connections_max=2)) as door,
        connections(door, 3 * PROBES_RESERVED),
    ):
        answer = await ask(door, b"GET " + path + b" HTTP/1.1\r\nHost: x\r\n\r\n")

        assert answer.status == 200
        assert answer.headers["Connection"] == "close"


async def test_while_all_are_busy_everything_else_is_503_and_counted() -> None:
    async with all_busy(HttpSettings(port=0, connections_max=2)) as door:
        answer = await ask(door, ACQUIRE)

        assert answer.status == 503
        assert (
            answer.reason
            == "too many connections (http.connections_max); close some, or come back; "
            "at http.probe_listen only probes are answered"
        )
        assert answer.headers["Retry-After"] == "1"
        assert answer.headers["Connection"] == "close"
        assert door.daemon.asked == []
        assert figure(door, "rgd_http_connections_refused_total", "connections_max") == 1


async def test_one_address_cannot_take_the_connections_of_others() -> None:
    settings = HttpSettings(port=0, connections_max=100, connections_per_address_max=2)
    async with all_busy(settings, source="127.0.0.2") as door:
        refused = await ask(door, ACQUIRE, source="127.0.0.2")

        assert refused.status == 503
        assert refused.reason.startswith("too many connections (http.connections_per_address_max)")
        assert (await ask(door, HEALTH, source="127.0.0.2")).status == 200
        assert (await ask(door, ACQUIRE, source="127.0.0.3")).status == 200
        async with connections(door, 10) as opened:
            for reader, writer in opened:
                writer.write(ACQUIRE)
                assert (await read_answer(reader)).status == 200


# --- slow ones -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("before", [b"", HEALTH])
async def test_a_request_head_that_trickles_ends_its_connection(before: bytes) -> None:
    async with (
        open_door(HttpSettings(port=0, request_timeout_s=0.05)) as door,
        connections(door, 1, before) as [(reader, writer)],
        asyncio.timeout(60),
    ):
        if before:
            await read_answer(reader)
        writer.write(b"POST /v1/acquire HTTP/1.1\r\nX-Slow: ")
        assert await ended(reader)
        assert figure(door, "rgd_http_connections_closed_total", "slow_request") == 1


# --- TLS -----------------------------------------------------------------------------------------------


async def over_tls(door: Door, ca: Path) -> Answer:
    context = ssl.create_default_context(cafile=str(ca))
    reader, writer = await asyncio.open_connection(
        "127.0.0.1", door.server.port, ssl=context, server_hostname="127.0.0.1"
    )
    writer.write(HEALTH)
    async with asyncio.timeout(60):
        answer = await read_answer(reader)
    writer.transport.abort()
    return answer


async def test_sockets_that_never_shake_hands_are_counted_and_make_room(
    certificate: tuple[Path, Path],
) -> None:
    cert, key = certificate
    async with (
        open_door(HttpSettings(port=0, connections_max=4, tls_cert=cert, tls_key=key)) as door,
        connections(door, 50),
    ):
        assert (await over_tls(door, cert)).status == 200
        assert figure(door, "rgd_http_connections") <= 4
