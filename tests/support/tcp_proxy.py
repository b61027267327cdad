"""A TCP proxy on the loopback that makes the faults of a network between a client and a server.

Law: what goes through it is only let pass, held back or cut off. One thing is changed: where
the server names its own address, the proxy's stands in its place, because a Pulsar client connects
to the address that its broker names.
How: it runs on the event loop of the test. `refuse` resets all connections and closes the listener, so
that a client is refused as by a machine without a server; `freeze` passes no bytes and keeps every
connection open, as a cut-off by a firewall does; `swallow` drops all bytes for good; `strand` lets only new connections pass after that, as
after a firewall that forgot the old ones.
"""

import asyncio
import contextlib
from collections.abc import Coroutine
from typing import Any, Self
from urllib.parse import urlsplit

from tests.support.child_processes import free_ports

LOOPBACK = "127.0.0.1"
PIECE_BYTES_MAX = 1 << 16
#: Pieces that wait to be passed on in one direction; then the sender is no longer read.
PIECES_MAX = 1024


class TcpProxy:
    """One listener in front of one server.

    Args:
        target_port: where the server listens, on 127.0.0.1.
    """

    def __init__(self, target_port: int) -> None:
        self.target_port = target_port
        #: Nobody is given it while the proxy refuses, because it is not an ephemeral one.
        (self.port,) = free_ports(1)
        # Else the answers of the server would change their length.
        assert len(str(self.port)) == len(str(self.target_port))
        self._is_swallowing = False
        self._flowing = asyncio.Event()
        self._flowing.set()
        self._server: asyncio.Server | None = None
        self._connections: dict[asyncio.Task[None], asyncio.Event] = {}

    @classmethod
    def before(cls, url: str) -> Self:
        """A proxy in front of `scheme://host:port`."""
        port = urlsplit(url).port
        assert port is not None
        return cls(port)

    @property
    def url(self) -> str:
        """Where a Pulsar client finds the proxy."""
        return f"pulsar://{LOOPBACK}:{self.port}"

    async def __aenter__(self) -> Self:
        await self._listen()
        return self

    async def __aexit__(self, *_exception: object) -> None:
        await self.refuse()

    async def pass_on(self) -> None:
        """Let everything pass, from now on and what was held back."""
        self._is_swallowing = False
        self._flowing.set()
        await self._listen()

    async def refuse(self) -> None:
        """Reset every connection and accept none."""
        if self._server is not None:
            self._server.close()
            self._server = None
        await self._cut(list(self._connections))

    def freeze(self) -> None:
        """Pass no bytes; connections stay open, and new ones are accepted."""
        self._flowing.clear()

    async def strand(self) -> None:
        """Let new connections pass; what was frozen before is never passed on, and stays open."""
        self._flowing = asyncio.Event()
        await self.pass_on()

    async def cut_stranded(self) -> None:
        """Reset the connections that `strand` left behind."""
        stranded = [task for task, flowing in self._connections.items() if not flowing.is_set()]
        await self._cut(stranded)

    def swallow(self) -> None:
        """Drop what either side sends; connections stay open, and those of now are of no use after it."""
        self._is_swallowing = True

    @staticmethod
    def _address(port: int) -> bytes:
        return f"{LOOPBACK}:{port}".encode()

    async def _listen(self) -> None:
        if self._server is None:
            self._server = await asyncio.start_server(self._serve, LOOPBACK, self.port)

    @staticmethod
    async def _cut(connections: list[asyncio.Task[None]]) -> None:
        for connection in connections:
            connection.cancel()
        await asyncio.gather(*connections, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections[task] = self._flowing
        try:
            with contextlib.suppress(OSError, asyncio.CancelledError):
                await self._connect(reader, writer, self._flowing)
        finally:
            del self._connections[task]
            writer.transport.abort()

    async def _connect(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, flowing: asyncio.Event
    ) -> None:
        await flowing.wait()
        to_reader, to_writer = await asyncio.open_connection(LOOPBACK, self.target_port)
        try:
            async with asyncio.TaskGroup() as group:
                flows = [
                    group.create_task(self._flow(reader, to_writer, flowing)),
                    group.create_task(self._flow(to_reader, writer, flowing)),
                ]
                await asyncio.wait(flows, return_when=asyncio.FIRST_COMPLETED)
                for flow in flows:
                    flow.cancel()
        finally:
            to_writer.transport.abort()

    async def _flow(
        self, source: asyncio.StreamReader, sink: asyncio.StreamWriter, flowing: asyncio.Event
    ) -> None:
        """Pass one direction on until either end is gone."""
        pieces: asyncio.Queue[bytes] = asyncio.Queue(PIECES_MAX)

        async def pass_pieces() -> None:
            with contextlib.suppress(OSError):
                while True:
                    piece = await pieces.get()
                    await flowing.wait()
                    if not piece:
                        return
                    if self._is_swallowing:
                        continue
                    piece = piece.replace(self._address(self.target_port), self._address(self.port))
                    sink.write(piece)
                    await sink.drain()

        async def take_pieces() -> None:
            piece = b"begin"
            with contextlib.suppress(OSError):
                while piece:
                    piece = await source.read(PIECE_BYTES_MAX)
                    await pieces.put(piece)
                return
            await pieces.put(b"")

        await _first_of(pass_pieces(), and_beside=take_pieces())


async def _first_of(work: Coroutine[Any, Any, None], and_beside: Coroutine[Any, Any, None]) -> None:
    """Do both until the first one ends."""
    async with asyncio.TaskGroup() as group:
        beside = group.create_task(and_beside)
        await work
        beside.cancel()
