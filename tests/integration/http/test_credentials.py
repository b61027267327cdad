"""Tokens and certificates that change while the server runs, and callers that must show a certificate.

Not covered: the content of the tokens file (tests/unit/config); open connections and tokens (test_lane.py).
"""

import asyncio
import os
import socket
import ssl
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import pytest

from rgd.adapters.http.settings import HttpSettings
from rgd.adapters.http.tls import Certificates
from rgd.app.credentials import Credentials, tokens_of
from rgd.config.plain_files import replace_file
from rgd.config.settings import HttpSettings as Configured
from rgd.errors import ConfigError
from tests.integration.http.door import Door, open_door, read_answer
from tests.support.certificates import make_certificate
from tests.support.policy_tables import until

ACQUIRE = b"POST /v1/acquire HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%b"
GOLD = b'{"group":"gold"}'
HOT = ACQUIRE % (len(GOLD), GOLD)
#: More than a slice of work.
LONG_BODY = msgspec.json.encode(
    [{"tenant": "acme", "namespace": "orders", "topic": f"t{n}"} for n in range(1000)]
)
LONG = ACQUIRE % (len(LONG_BODY), LONG_BODY)
CHUNKED_LONG = (
    b"POST /v1/acquire HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%b\r\n0\r\n\r\n"
    % (len(LONG_BODY), LONG_BODY)
)
PROBE = b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"
HEALTH = b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"


def tokens(token: str) -> str:
    return f"- {{name: caller, token: {token}, scopes: [query]}}\n"


def write_secret(path: Path, content: str) -> None:
    replace_file(path, content.encode(), 0o600)


def certificate_of(folder: Path, name: str) -> tuple[Path, Path]:
    """A certificate of somebody's own for 127.0.0.1, and its key."""
    (folder / name).mkdir()
    return make_certificate(folder / name)


@pytest.fixture(autouse=True)
def look_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rgd.app.credentials.LOOK_S", 0.01)


@asynccontextmanager
async def following(door: Door, configured: Configured) -> AsyncIterator[Credentials]:
    credentials = Credentials(door.server, configured)
    task = asyncio.create_task(credentials.follow())
    try:
        yield credentials
    finally:
        task.cancel()


def is_old(followed: Credentials) -> bool:
    """Whether the files cannot be used as they are now."""
    (sample,) = followed.samples()
    return sample.value == 1


async def test_a_tokens_file_counts_as_soon_as_it_is_replaced(tmp_path: Path) -> None:
    file = tmp_path / "tokens.yaml"
    write_secret(file, tokens("the-first-token"))
    given = HttpSettings(port=0, tokens=tokens_of(file))
    async with open_door(given) as door, following(door, Configured(tokens_file=file)) as followed:

        async def status(token: str) -> int:
            return (await door.call("POST", "/v1/acquire", {"group": "gold"}, token=token)).status

        assert [await status("the-first-token"), await status("another-token")] == [200, 401]
        write_secret(file, tokens("another-token"))
        async with asyncio.timeout(60):
            while await status("another-token") != 200:  # noqa: ASYNC110 -- files say nothing
                await asyncio.sleep(0.01)
        assert await status("the-first-token") == 401

        for fault in ("[]", "- {name: caller", tokens("short")):
            write_secret(file, fault)
            await until(lambda: is_old(followed))
            assert await status("another-token") == 200
            write_secret(file, tokens("another-token"))
            await until(lambda: not is_old(followed))
        file.unlink()
        await until(lambda: is_old(followed))
        assert await status("another-token") == 200


async def served(port: int, trust: Path, client: tuple[Path, Path] | None = None) -> bytes:
    """The certificate that the server shows, if it answers; empty where it hangs up."""
    context = ssl.create_default_context(cafile=str(trust))
    if client is not None:
        context.load_cert_chain(*client)
    try:
        reader, writer = await asyncio.open_connection(
            "127.0.0.1", port, ssl=context, server_hostname="127.0.0.1"
        )
        shown: bytes = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
        writer.write(HEALTH)
        async with asyncio.timeout(60):
            answer = await reader.read()
        writer.close()
    except (ssl.SSLError, ConnectionError):
        return b""
    return shown if answer.startswith(b"HTTP/1.1 200") else b""


async def test_a_certificate_is_replaced_for_new_handshakes(tmp_path: Path) -> None:
    first, second = certificate_of(tmp_path, "first"), certificate_of(tmp_path, "second")
    cert, key = tmp_path / "server.pem", tmp_path / "server.key"
    for kept, path in zip(first, (cert, key), strict=True):
        path.write_bytes(kept.read_bytes())
    given = HttpSettings(port=0, tls_cert=cert, tls_key=key)
    configured = Configured(tls_cert=cert, tls_key=key)
    async with open_door(given) as door, following(door, configured) as followed:
        before = await served(door.server.port, first[0])
        assert before
        # Between the two files they do not belong together: the old ones stay in force.
        cert.write_bytes(second[0].read_bytes())
        await until(lambda: is_old(followed))
        assert await served(door.server.port, first[0]) == before
        key.write_bytes(second[1].read_bytes())
        await until(lambda: not is_old(followed))
        assert await served(door.server.port, second[0])
        assert not await served(door.server.port, first[0])


async def test_a_certificate_that_is_no_file_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    cert, key = certificate_of(tmp_path, "server")
    for fifo in ("cert", "key", "client_ca"):
        os.mkfifo(tmp_path / fifo)
        given = {"cert": cert, "key": key} | {fifo: tmp_path / fifo}
        with pytest.raises(ConfigError, match="a FIFO") as refused:
            Certificates(**given)
        assert refused.value.faults[0].key == f"http.tls_{fifo.replace('key', 'cert')}"


async def test_closing_does_not_wait_for_a_client_that_reads_nothing(tmp_path: Path) -> None:
    cert, key = certificate_of(tmp_path, "server")
    given = HttpSettings(port=0, tls_cert=cert, tls_key=key, close_timeout_s=3600.0)
    async with open_door(given) as door:
        context = ssl.create_default_context(cafile=str(cert))

        def ask() -> ssl.SSLSocket:
            sock = socket.create_connection(("127.0.0.1", door.server.port))
            secured = context.wrap_socket(sock, server_hostname="127.0.0.1")
            secured.sendall(PROBE)
            assert secured.recv(1 << 16).startswith(b"HTTP/1.1 200")
            return secured

        with await asyncio.to_thread(ask):
            # uvloop waits 30 s for the end of such a client's TLS.
            async with asyncio.timeout(15):
                await door.server.close()


async def test_callers_must_show_a_certificate_of_the_authority(tmp_path: Path) -> None:
    own, known, stranger = (certificate_of(tmp_path, name) for name in ("own", "known", "stranger"))
    given = HttpSettings(port=0, tls_cert=own[0], tls_key=own[1], tls_client_ca=known[0])
    async with open_door(given) as door:
        assert await served(door.server.port, own[0], known)
        assert not await served(door.server.port, own[0])
        assert not await served(door.server.port, own[0], stranger)


@asynccontextmanager
async def connected(
    door: Door, trust: Path, client: tuple[Path, Path]
) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """A connection that shows a certificate."""
    context = ssl.create_default_context(cafile=str(trust))
    context.load_cert_chain(*client)
    async with asyncio.timeout(60):
        reader, writer = await asyncio.open_connection(
            "127.0.0.1", door.server.port, ssl=context, server_hostname="127.0.0.1"
        )
        yield reader, writer
        writer.transport.abort()


@asynccontextmanager
async def authorities(folder: Path) -> AsyncIterator[tuple[Door, Path, list[tuple[Path, Path]]]]:
    """A door that accepts the second of three certificates, and the file that says so."""
    made = [certificate_of(folder, name) for name in ("own", "known", "other")]
    authority = folder / "ca.pem"
    authority.write_bytes(made[1][0].read_bytes())
    given = HttpSettings(
        port=0,
        tls_cert=made[0][0],
        tls_key=made[0][1],
        tls_client_ca=authority,
        unix_socket=folder / "s",
    )
    async with open_door(given) as door:
        yield door, authority, made


def reload(door: Door) -> None:
    """Read the files again, in a thread as `Credentials` does; no connection gets on meanwhile."""
    with ThreadPoolExecutor(1) as thread:
        thread.submit(door.server.reload_certificate).result()


@pytest.mark.parametrize("request_before", [HOT, PROBE], ids=["lane", "aiohttp"])
async def test_connections_that_another_authority_let_in_end(
    tmp_path: Path, request_before: bytes
) -> None:
    async with (
        authorities(tmp_path) as (door, authority, (own, known, other)),
        connected(door, own[0], known) as (reader, writer),
    ):
        local_reader, local = await asyncio.open_unix_connection(str(tmp_path / "s"))
        # The same authority changes nothing.
        for _ in range(2):
            writer.write(request_before)
            assert (await read_answer(reader)).status == 200
            reload(door)
        authority.write_bytes(other[0].read_bytes())
        reload(door)
        assert await reader.read() == b""
        assert not await served(door.server.port, own[0], known)
        assert await served(door.server.port, own[0], other)
        # Who showed no certificate, because none is asked for there, goes on.
        local.write(HOT)
        assert (await read_answer(local_reader)).status == 200
        local.close()


@pytest.mark.parametrize("request_before", [HOT, PROBE], ids=["lane", "aiohttp"])
async def test_the_request_that_is_under_way_is_answered_first(
    tmp_path: Path, request_before: bytes
) -> None:
    async with (
        authorities(tmp_path) as (door, authority, (own, known, other)),
        connected(door, own[0], known) as (reader, writer),
    ):
        writer.write(request_before)
        assert (await read_answer(reader)).status == 200
        door.daemon.asked.clear()
        writer.write(LONG + HOT)
        await until(lambda: bool(door.daemon.asked))
        authority.write_bytes(other[0].read_bytes())
        reload(door)
        assert len((await read_answer(reader)).json) == 1000
        assert await reader.read() == b""


@asynccontextmanager
async def open_to(door: Door) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    async with asyncio.timeout(60):
        reader, writer = await asyncio.open_connection("127.0.0.1", door.server.port)
        try:
            yield reader, writer
        finally:
            writer.transport.abort()


async def test_so_it_is_where_the_connection_changes_roads_meanwhile(door: Door) -> None:
    async with open_to(door) as (reader, writer):
        writer.write(HOT)
        await read_answer(reader)
        (lane,) = door.connections()
        door.daemon.asked.clear()
        writer.write(CHUNKED_LONG)
        await until(lambda: bool(door.daemon.asked))
        # Connections are looked up all at once, and ended a few in each turn.
        lane.end_soon()
        assert len((await read_answer(reader)).json) == 1000
        assert await reader.read() == b""


@pytest.mark.parametrize("ends", ["connection", "server"])
async def test_a_request_is_under_way_while_its_body_comes(door: Door, ends: str) -> None:
    def is_coming() -> bool:
        return any(getattr(one, "_chunked", None) is not None for one in door.connections())

    async with open_to(door) as (reader, writer), asyncio.TaskGroup() as tasks:
        writer.write(CHUNKED_LONG[:1000])
        await until(is_coming)
        if ends == "connection":
            for connection in [*door.connections()]:
                connection.end_soon()
        else:
            closing = tasks.create_task(door.server.close())
            await asyncio.wait({closing}, timeout=0.05)
            assert not closing.done()
        writer.write(CHUNKED_LONG[1000:])
        assert len((await read_answer(reader)).json) == 1000
        assert await reader.read() == b""
