"""Checks whether a possible Pulsar broker answers at a service URL, before a client is created for it.

Law: `answers` returns within its timeout, never raises because of the other side, and leaves no resources
behind. It ignores tokens and certificates: a broker that refuses us has answered.
Why: a client whose first call times out is not always freed (pulsar-client 3.13: of 12 clients of a
refusing port 3 kept a thread and three descriptors for ever), and it retries with growing pauses. So
no client is created while a broker is unreachable.
How: over TCP it sends the first command of Pulsar's protocol, and any reaction is an answer, also the end of
the connection. Over TLS the handshake is an answer.
"""

import asyncio
import contextlib
import ssl
from typing import Final
from urllib.parse import urlsplit

#: A connection without an answer is kept, but another one is tried beside it at this interval, because a
#: network that is back may never pass data of a connection that began during its outage.
AGAIN_S: Final = 1.0

_TLS_SCHEME: Final = "pulsar+ssl"
#: The client's default ports for a URL without one.
_PORTS: Final = {"pulsar": 6650, _TLS_SCHEME: 6651}
#: CommandConnect of a client "rgd", protocol version 19, without authentication (PulsarApi.proto).
_CONNECT: Final = bytes.fromhex("0000000f 0000000b 0802 1207 0a03 726764 2013")


async def answers(url: str, timeout_s: float) -> bool:
    """Whether one of the URL's brokers answers in time; also true if the URL cannot be parsed.

    Args:
        url: `pulsar://host:port[,host:port...]` or `pulsar+ssl://...`.
        timeout_s: the longest that this takes, in seconds.
    """
    addresses = [(host, port) for host, port, _ in addresses_of(url)]
    if not addresses:
        return True  # the client reports the error
    trust = _any_certificate() if url.startswith(_TLS_SCHEME) else None
    loop = asyncio.get_running_loop()
    end_s = again_s = loop.time()
    end_s += timeout_s
    asked: set[asyncio.Task[bool]] = set()
    async with asyncio.TaskGroup() as group:
        while True:
            if loop.time() >= again_s:
                again_s += AGAIN_S
                asked |= {
                    group.create_task(_answers(*address, trust, timeout_s)) for address in addresses
                }
            done, asked = await asyncio.wait(
                asked, timeout=max(0.0, again_s - loop.time()), return_when=asyncio.FIRST_COMPLETED
            )
            is_answered = any(task.result() for task in done)
            if is_answered or not asked or loop.time() >= end_s:
                for task in asked:
                    task.cancel()
                return is_answered


def addresses_of(url: str) -> list[tuple[str, int, bool]]:
    """Host, port and whether it is TLS, of each broker of a service URL; empty if it is none."""
    scheme, _, hosts = url.partition("://")
    if scheme not in _PORTS:
        return []
    addresses = []
    for host in hosts.rstrip("/").split(","):
        try:
            parts = urlsplit(f"//{host}")
            port = parts.port or _PORTS[scheme]
            addresses.append((parts.hostname or "", port, scheme == _TLS_SCHEME))
        except ValueError:
            return []
    return addresses


def _any_certificate() -> ssl.SSLContext:
    """A context that accepts any certificate, because the client checks it later."""
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


async def _answers(host: str, port: int, trust: ssl.SSLContext | None, timeout_s: float) -> bool:
    try:
        async with asyncio.timeout(timeout_s):
            return await _is_sending(host, port, trust)
    except (
        ssl.SSLError,
        ValueError,
    ):  # an invalid host name: the client reports the error
        return True
    except (OSError, TimeoutError):
        return False


async def _is_sending(host: str, port: int, trust: ssl.SSLContext | None) -> bool:
    reader, writer = await asyncio.open_connection(host, port, ssl=trust)
    try:
        if trust is None:
            writer.write(_CONNECT)
            with contextlib.suppress(ConnectionResetError):
                await reader.read(1)
        return True
    finally:
        writer.transport.abort()
