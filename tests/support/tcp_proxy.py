"""A TCP link between a test and a broker that can be frozen: bytes are swallowed, nothing is closed.

A Pulsar broker tells its clients where to connect: where it says its own address, the proxy says its
own instead, or the clients would go round it. (Both have ports of five digits, so nothing moves.)

So looks a broker behind a firewall that drops packets, or a machine that lost its network: the
connection stays open, and nobody answers.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from urllib.parse import urlsplit

_CHUNK = 1 << 16
_Way = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class TcpProxy:
    """Forwards connections to one address; see `tcp_proxy`."""

    def __init__(self, host: str, port: int) -> None:
        self._target = host, port
        self._is_frozen = False
        self._tasks: set[asyncio.Task[None]] = set()
        #: Connections taken so far.
        self.connections = 0
        self.url = ""
        self.port = 0

    def freeze(self) -> None:
        """Swallow what either side sends from now on, and answer no new connection."""
        self._is_frozen = True

    def thaw(self) -> None:
        """Forward again; what was swallowed is gone, so connections of before are of no use."""
        self._is_frozen = False

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Forward one connection until either side ends it."""
        self.connections += 1
        address, own = (f"127.0.0.1:{port}".encode() for port in (self._target[1], self.port))
        assert len(address) == len(own)
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            with contextlib.suppress(OSError):
                far_reader, far_writer = await asyncio.open_connection(*self._target)
                try:
                    await self._both((reader, far_writer), (far_reader, writer), (address, own))
                finally:
                    far_writer.close()
        except asyncio.CancelledError:
            pass  # the proxy ends
        finally:
            writer.close()
            self._tasks.discard(task)

    async def stop(self) -> None:
        """End all connections."""
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _both(self, there: _Way, back: _Way, addresses: tuple[bytes, bytes]) -> None:
        async with asyncio.TaskGroup() as tasks:
            ways = {
                tasks.create_task(self._forward(there, (b"", b""))),
                tasks.create_task(self._forward(back, addresses)),
            }
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
            for way in ways:
                way.cancel()

    async def _forward(self, way: _Way, addresses: tuple[bytes, bytes]) -> None:
        reader, writer = way
        address, own = addresses
        with contextlib.suppress(OSError):
            while data := await reader.read(_CHUNK):
                if not self._is_frozen:
                    writer.write(data.replace(address, own) if address else data)
                    await writer.drain()


@contextlib.asynccontextmanager
async def tcp_proxy(url: str) -> AsyncIterator[TcpProxy]:
    """A proxy of `scheme://host:port` on a free port of this machine; `TcpProxy.url` leads to it."""
    parts = urlsplit(url)
    assert parts.hostname is not None
    assert parts.port is not None
    proxy = TcpProxy(parts.hostname, parts.port)
    server = await asyncio.start_server(proxy.serve, "127.0.0.1", 0)
    proxy.port = server.sockets[0].getsockname()[1]
    proxy.url = f"{parts.scheme}://127.0.0.1:{proxy.port}"
    try:
        yield proxy
    finally:
        server.close()
        await proxy.stop()
