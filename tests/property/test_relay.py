"""The way between gate and plane under every order of bytes, answers, clients that leave, and planes that end.

Not covered: sockets (tests/integration/http/test_relay.py).
"""

import asyncio
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import aclosing, contextmanager
from random import Random
from typing import Any, Final
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typing_extensions import override

from rgd.adapters.http import frames
from rgd.adapters.http.errors import Overloaded
from rgd.adapters.http.forward import Asked, Pieces, Stream
from rgd.adapters.http.frames import Frames
from rgd.adapters.http.relay import Relay
from rgd.adapters.http.relay_plane import PlaneEnd
from rgd.adapters.http.reply import Reply

#: So that nearly everything comes in several.
PIECE_BYTES: Final = 16
REQUESTS_MAX: Final = 6
#: What all streams send, one after another, and how many messages each has.
NEWS: Final = tuple(bytes([65 + at]) * (5 + 20 * at) for at in range(6))
MESSAGES: Final = 4


class Wire(asyncio.Transport):
    """One direction of a socket: keeps what is written until it is moved on."""

    def __init__(self) -> None:
        super().__init__()
        self.near: Frames
        self.far: Wire
        self._waiting = b""
        self._high = 0
        self._is_paused = self.is_closed = False

    @override
    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        self._high = high or 0

    @override
    def writelines(self, list_of_data: Any) -> None:
        assert not self.is_closed
        self._waiting += b"".join(list_of_data)
        if len(self._waiting) > self._high and not self._is_paused:
            self._is_paused = True
            self.near.pause_writing()

    def move(self, count: int) -> None:
        """Let so many bytes arrive."""
        moved, self._waiting = self._waiting[:count], self._waiting[count:]
        if moved and not self.is_closed:
            self.far.near.data_received(moved)
        if self._is_paused and not self._waiting:
            self._is_paused = False
            self.near.resume_writing()

    @override
    def abort(self) -> None:
        for wire in (self, self.far):
            if not wire.is_closed:
                wire.is_closed = True
                wire.near.connection_lost(None)


async def attach(end: Frames, wire: Any) -> None:
    """In place of a socket's."""
    wire.near = end
    end.connection_made(wire)


class Client:
    """Whoever asked: what it got, and how it ended."""

    def __init__(self, number: int, sort: str) -> None:
        self.number = number
        self.sort = sort
        self.got: list[Reply | Stream | bytes] = []
        self.wants = asyncio.Semaphore(1)
        self.end: str | None = None

    async def take(self, pieces: Pieces) -> None:
        try:
            async with aclosing(pieces):
                await self.wants.acquire()
                async for piece in pieces:
                    self.got.append(piece)
                    if isinstance(piece, Reply):
                        break
                    await self.wants.acquire()
            self.end = "whole"
        except Overloaded:
            self.end = "refused"
        except asyncio.CancelledError:
            self.end = "gone"


class World:
    """A gate, its clients, and one plane after another."""

    def __init__(self) -> None:
        self.relay = Relay(REQUESTS_MAX)
        self.clients: list[Client] = []
        self.tasks: list[asyncio.Task[None]] = []
        #: What lets a plane go on with a request, by its number.
        self.may: list[asyncio.Semaphore] = []
        self.ends: list[Frames] = []
        self.wires: tuple[Wire, Wire]
        self.begun: set[int] = set()
        #: What streams send now, and what each has sent.
        self.newest = 0
        self.sent: defaultdict[int, list[bytes]] = defaultdict(list)
        self.changed: list[int] = []

    async def forward(self, asked: Asked) -> Pieces:
        number, may = int(asked.route), self.may[int(asked.route)]
        assert asked == asked_of(number, asked.method)
        self.begun.add(number)
        if asked.method == "STREAM":
            yield Stream({"number": asked.route})
            while len(self.sent[number]) < MESSAGES:
                await may.acquire()
                self.sent[number].append(NEWS[self.newest % len(NEWS)])
                yield self.sent[number][-1]
            return
        await may.acquire()
        if asked.method == "CHANGE":
            self.changed.append(number)
        yield reply_of(number)

    async def begin_plane(self) -> None:
        near, far = Wire(), Wire()
        near.far, far.far = far, near
        plane = PlaneEnd(self.forward, lambda asked: asked.method != "CHANGE")
        far.near = plane
        await self.relay.attach(near)  # type: ignore[arg-type]  # not a socket here
        await plane.attach(far)  # type: ignore[arg-type]
        self.wires = near, far
        self.ends += near.near, plane

    def ask(self, sort: str) -> None:
        number = len(self.clients)
        client = Client(number, sort)
        self.clients.append(client)
        self.may.append(asyncio.Semaphore(0))
        taking = client.take(self.relay(asked_of(number, sort)))
        self.tasks.append(asyncio.get_running_loop().create_task(taking))

    async def step(self, what: str, chance: Random) -> None:
        if what in {"READ", "CHANGE", "STREAM"}:
            self.ask(what)
        elif what == "end":
            self.wires[0].abort()
        elif what == "begin":
            await self.begin_plane()
        elif what in {"up", "down"}:
            for _ in range(chance.choice((1, 5, 30))):
                self.wires[what == "down"].move(chance.choice((1, 20, 100)))
                await self.rest()
        elif self.clients:
            one = chance.choice(self.clients[-2 * REQUESTS_MAX :]).number
            if what == "let":
                self.newest += chance.random() < 0.3
                self.may[one].release()
            elif what == "want":
                self.clients[one].wants.release()
            elif what == "leave":
                self.tasks[one].cancel()

    async def rest(self) -> None:
        """Until nobody has anything to do."""
        for _ in range(8):
            await asyncio.sleep(0)

    async def finish(self) -> None:
        """Let everything arrive and be answered; then the plane ends, and with it streams."""
        for client, may in zip(self.clients, self.may, strict=True):
            if client.sort != "STREAM":
                may.release()
        for _ in range(100):
            await self.rest()
            for wire in self.wires:
                wire.move(1 << 20)
        self.wires[0].abort()
        for client in self.clients:
            client.wants.release()
        await self.rest()

    def check(self) -> None:
        """Every client has its own answer or none, and nothing is kept."""
        for client in self.clients:
            assert client.end is not None
            if client.sort == "STREAM":
                if client.got:
                    assert client.got[0] == Stream({"number": str(client.number)})
                    messages = client.got[1:]
                    assert messages == self.sent[client.number][: len(messages)]
                    assert client.end != "refused"
            elif client.end == "whole":
                assert client.got == [reply_of(client.number)]
            else:
                assert client.got == []
        changes = {client.number for client in self.clients if client.sort == "CHANGE"}
        assert sorted(self.changed) == sorted(changes & self.begun)
        assert self.relay.under_way == 0
        names = ("_pieces", "_requests", "steps")
        kept = [(type(end), name, getattr(end, name, None)) for end in self.ends for name in names]
        assert [one for one in kept if one[2]] == []


def asked_of(number: int, sort: str) -> Asked:
    path, raw_path, query = {"part": str(number)}, f"/raw/{number}", [("q", "x" * number)]
    body = b"b" * (number * 7 % 50)
    return Asked(sort, str(number), f"caller {number}", path, raw_path, query, "*/*", body)


def reply_of(number: int) -> Reply:
    return Reply(
        200 + number, b"%d" % number * (number * 11 % 70), {"N": str(number)}, "text/plain"
    )


#: What may happen, by how often: anything; or streams only, whose clients often leave.
ANYTHING: Final = {
    "READ": 4, "CHANGE": 3, "STREAM": 3, "up": 20, "down": 20, "let": 16, "want": 16, "leave": 3, "end": 0.3, "begin": 0.6,
}  # fmt: skip
STREAMS: Final = {
    "STREAM": 6,
    "up": 20,
    "down": 10,
    "let": 20,
    "want": 20,
    "leave": 4,
    "end": 0.2,
    "begin": 0.6,
}
STEPS: Final = 200


async def play(chance: Random, happens: Mapping[str, float] = ANYTHING) -> None:
    world = World()
    await world.begin_plane()
    for what in chance.choices([*happens], [*happens.values()], k=STEPS):
        await world.step(what, chance)
        await world.rest()
        assert world.relay.under_way <= REQUESTS_MAX
    await world.finish()
    world.check()


@contextmanager
def small() -> Iterator[None]:
    with patch.object(frames, "PIECE_BYTES", PIECE_BYTES), patch.object(Frames, "attach", attach):
        yield


@pytest.mark.parametrize("happens", [ANYTHING, STREAMS], ids=["anything", "streams"])
@given(seed=st.integers(0, 1 << 32))
def test_each_client_gets_its_own_answer_or_none_and_nothing_is_kept(
    happens: Mapping[str, float], seed: int
) -> None:
    with small():
        asyncio.run(play(Random(seed), happens))


async def cancel_at_once() -> None:
    world = World()
    await world.begin_plane()
    world.ask("READ")
    await world.rest()
    world.tasks[0].cancel()
    await world.rest()
    await world.finish()
    world.check()
    assert world.begun == set()


def test_a_request_that_is_cancelled_before_it_begins_is_over() -> None:
    with patch.object(Frames, "attach", attach):
        asyncio.run(cancel_at_once())
