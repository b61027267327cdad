"""The HTTP server of one daemon: put together, opened, drained and closed.

Law: from `open` to `close` every request gets an answer; `close` lets those in
flight end. Settings that would let strangers in are refused before anything is
opened.

The road of a request is `dispatch`, the list of calls `routes`, the sockets
`listening`. How long the daemon lives is `rgd.app`'s business.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Mapping
from typing import Any, Final, Self

from aiohttp import web

from rgd.adapters.http import openapi
from rgd.adapters.http.acquire import Acquire
from rgd.adapters.http.connection import Connections
from rgd.adapters.http.dispatch import Dispatcher
from rgd.adapters.http.explain import Explain
from rgd.adapters.http.group_patch import GroupPatch
from rgd.adapters.http.groups import Groups
from rgd.adapters.http.listening import UnixSocket, listen_tcp, listen_unix
from rgd.adapters.http.probes import Probes
from rgd.adapters.http.pulsar_admin.routes import PulsarAdmin
from rgd.adapters.http.reply import Call, MetricsPage, Observer, Reply, encode
from rgd.adapters.http.routes import Doors, endpoints
from rgd.adapters.http.settings import HttpSettings, check
from rgd.ports.daemon import Daemon

log = logging.getLogger(__name__)

#: How long an answered client may go on sending a body that nobody reads.
LINGER_S: Final = 2.0


def observe_nothing(route: str, status: int, seconds: float) -> None:
    """The observer of a server that nobody counts."""


class HttpServer:
    """The door to one daemon; an async context manager.

    Raises:
        ConfigError: the settings cannot be used, or would let strangers in.
    """

    def __init__(
        self,
        daemon: Daemon,
        settings: HttpSettings,
        *,
        metrics: MetricsPage,
        observe: Observer = observe_nothing,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        check(settings)
        self._settings = settings
        self._acquire = Acquire(daemon, settings)
        self._probes = Probes(daemon, metrics)
        writing = asyncio.Lock()
        self.endpoints = endpoints(
            Doors(
                acquire=self._acquire,
                groups=Groups(daemon, writing),
                group_patch=GroupPatch(daemon, writing),
                explain=Explain(daemon),
                pulsar_admin=PulsarAdmin(daemon, writing),
                probes=self._probes,
                openapi=self._describe,
            )
        )
        self._description = Reply(body=encode(openapi.document(self.endpoints)))
        self._dispatcher = Dispatcher(self.endpoints, settings, observe=observe, clock=clock)
        self._runner: web.ServerRunner | None = None
        self._unix_socket: UnixSocket | None = None
        self._port = settings.port

    @property
    def port(self) -> int:
        """The TCP port: the configured one, and once open the one that is listened on."""
        return self._port

    @property
    def router(self) -> web.UrlDispatcher:
        """The paths that are answered."""
        return self._dispatcher.router

    @property
    def item_faults(self) -> Mapping[int, int]:
        """Faulty items of arrays so far, by status: bad input that no status line shows."""
        return self._acquire.item_faults

    async def open(self) -> None:
        """Listen.

        Raises:
            Unavailable: an address cannot be taken; the message says what to do.
            ConfigError: the certificate cannot be used.
        """
        settings = self._settings
        connections = Connections(
            self._dispatcher.serve,
            self._dispatcher.count_malformed,
            request_factory=self._request,
            keepalive_timeout=settings.keepalive_s,
            lingering_time=LINGER_S,
            logger=log,
        )
        self._runner = web.ServerRunner(connections, shutdown_timeout=settings.close_timeout_s)
        await self._runner.setup()
        try:
            self._port = await listen_tcp(self._runner, settings)
            if settings.unix_socket is not None:
                self._unix_socket = await listen_unix(self._runner, settings.unix_socket)
        except BaseException:
            await self.close()
            raise

    def drain(self) -> None:
        """From now on `/readyz` says 503 and every answer sends its client elsewhere."""
        self._probes.draining = self._dispatcher.draining = True

    async def close(self) -> None:
        """Stop listening and let what is in flight end, within `close_timeout_s`. Idempotent."""
        self.drain()
        if self._unix_socket is not None:
            self._unix_socket.remove()
            self._unix_socket = None
        if self._runner is not None:
            runner, self._runner = self._runner, None
            await runner.cleanup()

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(self, *_exception: object) -> None:
        await self.close()

    async def _describe(self, _call: Call) -> Reply:
        return self._description

    def _request(
        self, message: Any, payload: Any, protocol: Any, writer: Any, task: Any
    ) -> web.Request:
        """What `dispatch` reads; its body may be as large as the settings say."""
        loop = asyncio.get_running_loop()
        size_max = self._settings.body_max_bytes
        return web.Request(message, payload, protocol, writer, task, loop, client_max_size=size_max)
