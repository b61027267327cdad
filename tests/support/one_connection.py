"""One connection of the door without a socket: its transport keeps nothing, its time is moved by hand.

Answers of calls that take longer come when the test says so.
"""

import asyncio
from typing import Any

from typing_extensions import override

from rgd.adapters.http.byte_limits import BodyBudget, UnreadAnswers
from rgd.adapters.http.connection import Lanes
from rgd.adapters.http.connection_limits import ConnectionLimits
from rgd.adapters.http.fast_lane import Lane
from rgd.adapters.http.forward import Asked, Pieces, Stream
from rgd.adapters.http.gate import Gate
from rgd.adapters.http.guard import Bounds
from rgd.adapters.http.reply import Answering, Call, HotHandler, Reply
from rgd.adapters.http.route_table import Route, RouteTable
from rgd.adapters.http.settings import HttpSettings
from rgd.adapters.http.tokens import Tokens
from rgd.ports.door import Scope


class MovedLoop(asyncio.SelectorEventLoop):
    """A loop whose time can be moved on."""

    moved_s = 0.0

    @override
    def time(self) -> float:
        return super().time() + self.moved_s


class NoSocket(asyncio.Transport):
    """Closes in the next turn, as real ones do."""

    def __init__(self, lane: Lane) -> None:
        super().__init__()
        self._lane = lane
        self._is_closing = False
        self.reads = True

    @override
    def write(self, data: bytes | bytearray | memoryview) -> None:
        pass

    @override
    def close(self) -> None:
        if not self._is_closing:
            self._is_closing = True
            asyncio.get_running_loop().call_soon(self._lane.connection_lost, None)

    abort = close

    @override
    def is_closing(self) -> bool:
        return self._is_closing

    @override
    def pause_reading(self) -> None:
        self.reads = False

    @override
    def resume_reading(self) -> None:
        self.reads = True

    @override
    def get_extra_info(self, name: str, default: Any = None) -> Any:
        # As of TLS: it has none once it is closed.
        return self if name == "socket" and not self._is_closing else default

    def setsockopt(self, *_: int) -> None:
        pass

    @override
    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        pass

    @override
    def get_write_buffer_size(self) -> int:
        return 0

    @override
    def can_write_eof(self) -> bool:
        return True

    @override
    def write_eof(self) -> None:
        pass


class OneConnection:
    """One connection, and answers that come when they are told to."""

    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.waiting: list[asyncio.Future[None]] = []
        self.bodies = BodyBudget(1 << 20)
        self.limits = ConnectionLimits(10, 10)
        self.unread = UnreadAnswers(1 << 20)
        self.statuses: list[int] = []
        gate = Gate(Tokens(), self.observe, self.loop.time)
        self.lanes = Lanes(
            RouteTable([
                route("/at-once", Scope.QUERY, lambda _call: Reply()),
                route("/later", Scope.QUERY, self.later),
                route("/read", Scope.READ),
                route("/read", Scope.READ, method="GET"),
                route("/stream", Scope.READ),
                route("/stream", Scope.READ, method="GET"),
                route("/change", Scope.ADMIN),
            ]),
            HttpSettings(request_timeout_s=10, idle_timeout_s=75),
            gate,
            self.bodies,
            Bounds(self.limits, self.unread, 10, 30),
            self.forward,
        )  # fmt: skip
        self.lane = Lane(self.lanes)
        self.transport = NoSocket(self.lane)
        self.lane.connection_made(self.transport)

    def observe(self, route: str, status: int, seconds: float) -> None:
        """Note a status."""
        del route, seconds
        self.statuses.append(status)

    async def wait(self) -> None:
        answer = self.loop.create_future()
        self.waiting.append(answer)
        await answer

    def later(self, _call: Call) -> Answering:
        async def reply() -> Reply:
            await self.wait()
            return Reply()

        return reply()

    async def forward(self, asked: Asked) -> Pieces:
        await self.wait()
        if asked.route == "/stream":
            yield Stream({})
            for _ in range(3):
                yield b"message"
                await self.wait()
            return
        yield Reply()

    def answer(self) -> None:
        for one in self.waiting:
            if not one.done():
                one.set_result(None)
        self.waiting.clear()

    def is_open(self) -> bool:
        return self.limits.open > 0 and not self.transport.is_closing()

    def receive(self, data: bytes) -> None:
        if self.is_open():
            self.lane.data_received(data)

    def end_of_input(self) -> None:
        if self.is_open() and not self.lane.eof_received():
            self.transport.close()

    def pause(self) -> None:
        if self.is_open() and not self.unread.total:
            self.lane.pause_writing()

    def resume(self) -> None:
        if self.is_open():
            self.lane.resume_writing()

    def move(self, seconds: float) -> None:
        assert isinstance(self.loop, MovedLoop)
        self.loop.moved_s += seconds


def route(
    path: str, scope: Scope, handler: HotHandler | None = None, *, method: str = "POST"
) -> Route:
    takes_body = method == "POST"
    return Route(
        method,
        path,
        scope,
        is_probe=False,
        takes_body=takes_body,
        takes_query=False,
        handler=handler,
    )
