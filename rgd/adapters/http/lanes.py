"""What all connections of a listener share, and how they end together."""

import asyncio
import contextlib
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, Final, Protocol

from rgd.adapters.http.byte_limits import BodyBudget
from rgd.adapters.http.forward import Asked, Forward, Pieces
from rgd.adapters.http.gate import Gate
from rgd.adapters.http.guard import Bounds
from rgd.adapters.http.lane_answers import LaneAnswers
from rgd.adapters.http.reply import Call
from rgd.adapters.http.route_table import Route, RouteTable
from rgd.adapters.http.settings import HttpSettings
from rgd.adapters.http.turns import Turns
from rgd.ports.door import Scope

#: Connections that are looked at, and ended if they are of another authority, in one turn of the event loop.
ENDED_PER_TURN: Final = 16


class OpenLane(Protocol):
    """A connection that is open."""

    @property
    def authority(self) -> bytes | None:
        """By which the client's certificate was accepted; None: it showed none."""

    def end_soon(self) -> None:
        """Close it, after the answer to the request that is under way."""

    def forget_heads(self) -> None:
        """There are other calls now: read every head again."""

    def close_if_idle(self) -> None:
        """Close unless a request is under way."""

    def abort(self) -> None:
        """Close at once."""


class Lanes:
    """What connections need to answer.

    Args:
        routes: the calls.
        settings: their limits.
        gate: all requests lead through it.
        bodies: the budget of all bodies together.
        bounds: of the connections.
        forward: answers the calls that are not hot.
    """

    def __init__(  # noqa: PLR0917 -- the parts of a server
        self,
        routes: RouteTable,
        settings: HttpSettings,
        gate: Gate,
        bodies: BodyBudget,
        bounds: Bounds,
        forward: Forward,
    ) -> None:
        self.loop = asyncio.get_running_loop()
        self.routes = routes
        self.gate = gate
        self.bodies = bodies
        self.bounds = bounds
        self._forward = forward
        #: One message of a stream is written in a turn.
        self.streams = Turns()
        self.answers = LaneAnswers()
        self.body_max_bytes = settings.body_max_bytes
        self.request_timeout_s = settings.request_timeout_s
        self.idle_timeout_s = settings.idle_timeout_s
        self.open: set[OpenLane] = set()
        self._is_empty = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()

    def replace_routes(self, routes: RouteTable) -> None:
        """Put another list of calls in force; it counts from the next request on, on every connection."""
        self.routes = routes
        for lane in self.open:
            lane.forget_heads()

    def handler_of(self, method: str, route: Route, authorization: str) -> Callable[..., Any]:
        """Who answers a call: its handler if it is hot, else the plane."""
        return route.handler or partial(self._pass_on, method, route, authorization)

    def _pass_on(self, method: str, route: Route, authorization: str, call: Call) -> Pieces:
        is_change = route.scope is Scope.ADMIN
        caller = self.gate.caller(authorization) if is_change else ""
        return self._forward(Asked(method, route.path, call, caller))

    def start(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Let long work go on beside other requests."""
        task = self.loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def left(self, lane: OpenLane) -> None:
        """A connection is closed."""
        self.open.discard(lane)
        if not self.open:
            self._is_empty.set()

    async def end_others(self, authority: bytes | None) -> None:
        """End the connections of other authorities than this one, a few in each turn."""
        for number, lane in enumerate([*self.open], 1):
            if lane.authority is not None and lane.authority != authority:
                lane.end_soon()
            if not number % ENDED_PER_TURN:
                await asyncio.sleep(0)

    async def shutdown(self, seconds: float) -> None:
        """Close what is idle, let what is under way end within this time, and close the rest."""
        for lane in [*self.open]:
            lane.close_if_idle()
        self._is_empty.clear()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while self.open:
                    await self._is_empty.wait()
        for lane in [*self.open]:
            lane.abort()
        for task in self._tasks:
            task.cancel()
