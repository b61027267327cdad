"""Whether anything that may be a Pulsar broker answers at a service URL, before a client is made for it.

Law: `answers` returns within its timeout, never raises for what is at the other end, and leaves nothing
behind. It decides nothing about tokens or certificates: a broker that turns us away has answered.
Why: a client whose first call times out is not always freed (pulsar-client 3.13: of 12 against a
refusing port 3 kept a thread and three descriptors for ever), and it retries with growing pauses. So
while a broker is away no client is made.
How: over TCP the first command of Pulsar's protocol is said, and anything back is an answer, the end of
the connection too; over TLS the handshake is answer enough.
"""

import asyncio
import contextlib
import ssl
from typing import Final
from urllib.parse import urlsplit

#: A connection without an answer is not given up, but so often another one is tried beside it: a network
#: that is back may never again pass what began while it was away.
AGAIN_S: Final = 1.0

_TLS_SCHEME: Final = "pulsar+ssl"
#: Ports of a URL that names none, as the client takes them.
_PORTS: Final = {"pulsar": 6650, _TLS_SCHEME: 6651}
#: CommandConnect of a client "rgd", protocol version 19, without authentication (PulsarApi.proto).
_CONNECT: Final = bytes.fromhex("0000000f 0000000b 0802 1207 0a03 726764 2013")


async def answers(url: str, timeout_s: float) -> bool:
    """Whether one of the URL's brokers answers in time; also true where the URL cannot be told apart.

    Args:
        url: `pulsar://host:port[,host:port...]` or `pulsar+ssl://...`.
        timeout_s: the longest that this takes, in seconds.
    """
    places = _places(url)
    if not places:
        return True  # the client says what is wrong with it
    trust = _any_certificate() if url.startswith(_TLS_SCHEME) else None
    loop = asyncio.get_running_loop()
    end_s = again_s = loop.time()
    end_s += timeout_s
    asked: set[asyncio.Task[bool]] = set()
    async with asyncio.TaskGroup() as group:
        while True:
            if loop.time() >= again_s:
                again_s += AGAIN_S
                asked |= {group.create_task(_answers(*place, trust, timeout_s)) for place in places}
            done, asked = await asyncio.wait(
                asked, timeout=max(0.0, again_s - loop.time()), return_when=asyncio.FIRST_COMPLETED
            )
            is_answered = any(task.result() for task in done)
            if is_answered or not asked or loop.time() >= end_s:
                for task in asked:
                    task.cancel()
                return is_answered


def _places(url: str) -> list[tuple[str, int]]:
    scheme, _, hosts = url.partition("://")
    if scheme not in _PORTS:
        return []
    places = []
    for host in hosts.rstrip("/").split(","):
        try:
            parts = urlsplit(f"//{host}")
            places.append((parts.hostname or "", parts.port or _PORTS[scheme]))
        except ValueError:
            return []
    return places


def _any_certificate() -> ssl.SSLContext:
    """The client checks certificates; whoever has the wrong one is there all the same."""
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


async def _answers(host: str, port: int, trust: ssl.SSLContext | None, timeout_s: float) -> bool:
    try:
        async with asyncio.timeout(timeout_s):
            return await _speaks(host, port, trust)
    except (
        ssl.SSLError,
        ValueError,
    ):  # not a name for a host: the client says what is wrong with it
        return True
    except (OSError, TimeoutError):
        return False


async def _speaks(host: str, port: int, trust: ssl.SSLContext | None) -> bool:
    reader, writer = await asyncio.open_connection(host, port, ssl=trust)
    try:
        if trust is None:
            writer.write(_CONNECT)
            with contextlib.suppress(ConnectionResetError):
                await reader.read(1)
        return True
    finally:
        writer.transport.abort()
