"""The life of connections: accepted, read, paused, closed. What their bytes mean is `fast_lane`'s business.

Laws:
- While anything says that nothing is to be answered now, what comes is kept, and once it is more than `READ_AHEAD_BYTES` no more is read.
- A client that ends its side of a connection gets the answers to all that it asked before (but over TLS, whose
  transports end with either side).
- Who sends a body that nobody reads has time to read why.
"""

import asyncio
import contextlib
import socket
from abc import abstractmethod
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, Final, cast

from typing_extensions import override

from rgd.adapters.http.byte_limits import FREE_BYTES, BodyBudget, HeldBody
from rgd.adapters.http.chunks import ChunkedBody
from rgd.adapters.http.connection_limits import Admission
from rgd.adapters.http.forward import Asked, Forward, Pieces
from rgd.adapters.http.gate import Gate
from rgd.adapters.http.guard import Bounds, Guarded, address_of
from rgd.adapters.http.lane_answers import REFUSAL, LaneAnswers
from rgd.adapters.http.lane_heads import Head
from rgd.adapters.http.reply import Call
from rgd.adapters.http.route_table import Route, RouteTable
from rgd.adapters.http.settings import HttpSettings
from rgd.adapters.http.turns import Turns
from rgd.ports.door import Scope

#: Most bytes of an answer that may wait to be read while the next request is answered already. They
#: are not counted as unread: the operating system's own buffer mostly takes them.
UNCOUNTED_UNREAD_BYTES: Final = 16 << 10

#: Bytes read ahead of their turn after which a connection reads no more; uvloop reads up to 256 kB at once, and keeps
#: some 750 kB more below TLS.
READ_AHEAD_BYTES: Final = 64 << 10

#: How long an answered client may go on sending a body that nobody reads, or leave the end of TLS unanswered.
LINGER_S: Final = 2.0

#: Connections that are looked at, and ended if they are of another authority, in one turn of the event loop.
ENDED_PER_TURN: Final = 16

# Why nothing is answered now; several may hold at once.
NOT_BEGUN: Final = 1
IN_WORK: Final = 2
UNREAD: Final = 4
NEXT_TURN: Final = 8
CLOSED: Final = 16


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
        self.open: set[Connection] = set()
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
        # A header may have any bytes.
        accept = call.headers.get("Accept", "").encode(errors="replace").decode()
        query = [*call.query.items()]
        asked = Asked(
            method, route.path, caller, call.path, call.raw_path, query, accept, call.body
        )
        return self._forward(asked)

    def start(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Let long work go on beside other requests."""
        task = self.loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def left(self, lane: "Connection") -> None:
        """A connection is closed."""
        self.open.discard(lane)
        if not self.open:
            self._is_empty.set()

    async def end_others(self, authority: bytes | None) -> None:
        """End the connections of other authorities than this one, a few in each turn."""
        for number, lane in enumerate([*self.open], 1):
            admission = lane.admission
            if admission is not None and admission.authority not in {None, authority}:
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


class Connection(Guarded):
    """One client."""

    def __init__(self, lanes: Lanes) -> None:
        super().__init__(lanes.bounds)
        self._lanes = lanes
        self._why_not = NOT_BEGUN
        #: Whether its transport reads on; before it begins (a handshake may bring bytes) nobody can stop that.
        self._is_reading = False
        #: Whether the client sends nothing more.
        self._has_ended = False
        #: Whether the connection ends with the next answer.
        self._is_last = False
        #: Whether it is to be closed because of whom it comes from, long answers too.
        self._is_unwanted = False
        #: Whether a head or a body has begun to arrive and is not whole: a timer runs.
        self._is_partial = False
        #: What was received and not answered; how much it has to be before it is looked at, or until the
        #: body of the last request is over.
        self._left: list[bytes] = []
        self._left_bytes = self._needed_bytes = 0
        #: The budget's bytes of a large body until it is answered or its work has them, and the time that it has to come.
        self._body = HeldBody(lanes.bodies)
        self._body_timer: asyncio.TimerHandle | None = None
        #: The request whose body comes in chunks, while it is incomplete.
        self._chunked: tuple[Head, ChunkedBody] | None = None
        #: The work that is of no use to a client that is gone, and what a stream waits for.
        self._work: asyncio.Task[None] | None = None
        self._was_read: asyncio.Future[None] | None = None
        self._active_at = self._noted_until = 0.0
        self._idle_timer: asyncio.TimerHandle | None = None
        #: Heads that were read already and let pass.
        self._heads: dict[bytes, Head] = {}

    # What the transport calls.

    @override
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        accepted = cast("asyncio.Transport", transport)
        limits = self._lanes.bounds.connections
        admission = limits.arrive(address_of(accepted), accepted.abort)
        if admission is None:
            # What it sends is not read.
            self._why_not |= CLOSED
            accepted.write(REFUSAL)
            accepted.close()
        else:
            self._begin(accepted, admission)

    def take_over(self, transport: asyncio.Transport, admission: Admission) -> bool:
        """Begin with a connection that was counted already; False if it is gone."""
        if self._why_not & CLOSED or transport.is_closing():
            return False
        transport.set_protocol(self)
        self._begin(transport, admission)
        return True

    @override
    def data_received(self, data: bytes) -> None:
        now = self._active_at = self._loop.time()
        self._lanes.answers.at(now)
        if self._why_not or self._left:
            if self._why_not & CLOSED:
                self._pass_over(len(data))
                return
            self._keep(data)
            if self._why_not or self._left_bytes < self._needed_bytes:
                return
            data = self._take_left()
        self._answer(data)

    @override
    def pause_writing(self) -> None:
        self._why_not |= UNREAD
        self._writing_paused()

    @override
    def resume_writing(self) -> None:
        self._writing_resumed()
        if self._was_read is not None and not self._was_read.done():
            self._was_read.set_result(None)
        self._go_on(UNREAD)

    @override
    def eof_received(self) -> bool:
        self._has_ended = True
        reasons = self._why_not
        is_open = not reasons & (CLOSED | NOT_BEGUN)
        has_questions = reasons & IN_WORK or (reasons and self._left)
        return is_open and bool(has_questions) and not self._is_tls()

    @override
    def connection_lost(self, exc: BaseException | None) -> None:
        self._why_not |= CLOSED
        self._lanes.left(self)
        if self._why_not & NOT_BEGUN:
            return
        self._lost()
        self._end_timers()
        self._chunked = None
        if self._work is not None:
            self._work.cancel()
        self._body.free()

    # What its limits and the server call.

    @override
    def force_close(self) -> None:
        self._why_not |= CLOSED
        self._left.clear()
        self._transport.close()
        self._close_later()

    def forget_heads(self) -> None:
        """There are other calls now: read every head again."""
        self._heads.clear()

    def close_if_idle(self) -> None:
        """Close unless a request is under way."""
        if not self._why_not & IN_WORK and self._body_timer is None:
            is_tls = self._is_tls()
            self.force_close()
            if is_tls:
                # Its polite end would wait for a peer that reads nothing now, but a last answer may still be on its way.
                self._loop.call_later(LINGER_S, self._transport.abort)

    def end_soon(self) -> None:
        """Close it, after the answer to the request that is under way."""
        self._is_last = self._is_unwanted = True
        if not self._why_not & NEXT_TURN:
            self.close_if_idle()

    def abort(self) -> None:
        """Close at once."""
        self._why_not |= CLOSED
        self._transport.abort()

    # The life of a connection.

    def _begin(self, transport: asyncio.Transport, admission: Admission) -> None:
        lanes = self._lanes
        self._transport, self._is_reading = transport, True
        self.admission, admission.close = admission, self._make_room
        lanes.open.add(self)
        transport.set_write_buffer_limits(high=UNCOUNTED_UNREAD_BYTES)
        sock = transport.get_extra_info("socket")
        if sock is not None:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        self._active_at = self._loop.time()
        self._idle_timer = self._loop.call_later(lanes.idle_timeout_s, self._look_idle)
        # One beyond the limits may ask once, for a probe.
        self._is_last = admission.beyond is not None
        self._go_on(NOT_BEGUN)

    def _look_idle(self) -> None:
        """Close the connection if it is idle for so long; look again when it could be."""
        now, timeout_s = self._loop.time(), self._lanes.idle_timeout_s
        idle_at = self._active_at + timeout_s
        if self._why_not & (IN_WORK | UNREAD) or self._body_timer is not None:
            idle_at = max(idle_at, now + timeout_s / 2)
        if idle_at > now:
            self._idle_timer = self._loop.call_at(idle_at, self._look_idle)
            return
        self._idle_timer = None
        self.force_close()

    def _end_timers(self) -> None:
        for timer in (self._idle_timer, self._body_timer):
            if timer is not None:
                timer.cancel()
        self._idle_timer = self._body_timer = None

    def _go_on(self, reason: int) -> None:
        """One reason not to answer is gone."""
        self._why_not &= ~reason
        if self._why_not:
            return
        if self._left and self._left_bytes >= self._needed_bytes:
            self._answer(self._take_left())
        if self._has_ended and not self._why_not:
            # What is left is not whole and never will be.
            self.force_close()
        if not self._is_reading and not self._why_not:
            self._is_reading = True
            self._transport.resume_reading()

    def _keep(self, data: bytes) -> None:
        """Keep what is not answered yet; where that has to wait for something, read no more once it is much."""
        self._left.append(data)
        self._left_bytes += len(data)
        if self._why_not and self._left_bytes > READ_AHEAD_BYTES and self._is_reading:
            self._is_reading = False
            self._transport.pause_reading()

    def _take_left(self) -> bytes:
        data = b"".join(self._left)
        self._left.clear()
        self._left_bytes = self._needed_bytes = 0
        return data

    @abstractmethod
    def _answer(self, data: bytes) -> None:
        """Answer every request that is whole; the rest waits."""

    def _linger(self) -> None:
        """Close once the rest of a body that nobody reads has come, for a reset could overtake the answer."""
        self._needed_bytes -= self._left_bytes
        self._left.clear()
        self._left_bytes = 0
        if self._needed_bytes <= 0 or self._has_ended:
            self.force_close()
            return
        self._why_not |= CLOSED
        if self._transport.can_write_eof():
            self._transport.write_eof()
        self._end_timers()
        self._idle_timer = self._loop.call_later(LINGER_S, self.force_close)
        if not self._is_reading:
            self._is_reading = True
            self._transport.resume_reading()

    def _pass_over(self, count: int) -> None:
        """A part of a body that nobody reads came."""
        if self._needed_bytes > 0:
            self._needed_bytes -= count
            if self._needed_bytes <= 0:
                self.force_close()

    def _hold_body(self, count: int) -> None:
        """Have the body's bytes of the budget."""
        if count > FREE_BYTES:
            self._body.grow_to(count)
