"""What all connections of the fast lane share, and how they end together."""

import asyncio
import contextlib
from collections.abc import Callable, Coroutine, Iterable
from typing import Any, Protocol

from rgd.adapters.http.byte_limits import BodyBudget
from rgd.adapters.http.connection import Connections
from rgd.adapters.http.endpoint import Endpoint
from rgd.adapters.http.gate import Gate
from rgd.adapters.http.hot_routes import HotRoutes
from rgd.adapters.http.lane_answers import LaneAnswers
from rgd.adapters.http.settings import HttpSettings
from rgd.adapters.http.tls import Secured


class OpenLane(Secured, Protocol):
    """A connection of the fast lane."""

    def close_if_idle(self) -> None:
        """Close unless a request is under way."""

    def abort(self) -> None:
        """Close at once."""


class Lanes:
    """The fast lane's side of the server."""

    def __init__(
        self,
        endpoints: Iterable[Endpoint],
        settings: HttpSettings,
        gate: Gate,
        bodies: BodyBudget,
        connections: Connections,
    ) -> None:
        self.loop = asyncio.get_running_loop()
        self.routes = HotRoutes(endpoints)
        self.gate = gate
        self.bodies = bodies
        #: Makes the aiohttp side of a connection that is handed over.
        self.connections: Callable[[], Any] = connections
        self.bounds = connections.bounds
        self.answers = LaneAnswers()
        self.body_max_bytes = settings.body_max_bytes
        self.request_timeout_s = settings.request_timeout_s
        self.idle_timeout_s = settings.idle_timeout_s
        self.open: set[OpenLane] = set()
        self._is_empty = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()

    def start(self, work: Coroutine[Any, Any, None]) -> None:
        """Let long work go on beside other requests."""
        task = self.loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def left(self, lane: OpenLane) -> None:
        """A connection is closed, or is aiohttp's now."""
        self.open.discard(lane)
        if not self.open:
            self._is_empty.set()

    def close_idle(self) -> None:
        """Close the connections without a request under way."""
        for lane in [*self.open]:
            lane.close_if_idle()

    async def shutdown(self, seconds: float) -> None:
        """Let what is under way end within this time, and close the rest."""
        self._is_empty.clear()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while self.open:
                    await self._is_empty.wait()
        for lane in [*self.open]:
            lane.abort()
        for task in self._tasks:
            task.cancel()
