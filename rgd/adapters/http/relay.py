"""The gate's end of the way to the plane: requests out, answers back (`forward.Forward`).

Laws:
- Each request gets its own answer, once, or `Overloaded` where the plane ends before the answer is whole; a stream then ends.
- The next message of a stream is asked for when the one before was taken, so a slow client makes nobody keep messages for it.
- Closing the pieces ends the work for them. At most `REQUESTS_MAX` requests are under way.

A socket that ends is followed by that of another plane (`attach`). `relay_plane` is its other end.
"""

import asyncio
import socket
from itertools import count
from typing import Final

from typing_extensions import override

from rgd.adapters.http.errors import Overloaded
from rgd.adapters.http.forward import Asked, Pieces, Stream
from rgd.adapters.http.frames import Frames, Kind, pack, unpack_reply, unpack_stream
from rgd.adapters.http.reply import Reply

#: Requests under way at once; the next one is answered 503.
REQUESTS_MAX: Final = 1024

_GONE: Final = "the daemon's own work is being started again; come back"


class Relay:
    """Passes requests on to the plane that is there."""

    def __init__(self, requests_max: int = REQUESTS_MAX) -> None:
        self._requests_max = requests_max
        self._end: _GateEnd | None = None

    @property
    def under_way(self) -> int:
        """Requests that are not answered, and streams."""
        return 0 if self._end is None else len(self._end.steps)

    async def attach(self, sock: socket.socket) -> None:
        """From now on requests go to this plane; what the one before has not answered is at an end."""
        self.close()
        self._end = _GateEnd()
        await self._end.attach(sock)

    def close(self) -> None:
        """End the socket. Idempotent."""
        if self._end is not None:
            self._end.close()

    async def __call__(self, asked: Asked) -> Pieces:
        """As `forward.Forward`."""
        end = self._end
        if end is None or not end.is_open:
            raise Overloaded(_GONE)
        if self.under_way >= self._requests_max:
            raise Overloaded(f"{self._requests_max} requests are under way already; come back")
        number = end.begin()
        try:
            first = await end.ask(number, asked)
            if first is None:
                raise Overloaded(_GONE)
            yield first
            while (message := await end.next(number)) is not None:
                yield message
        finally:
            end.cancel(number)


_Step = Reply | Stream | bytes | None


class _GateEnd(Frames):
    """The socket of one plane."""

    def __init__(self) -> None:
        super().__init__()
        self._numbers = count()
        #: What each request waits for, or got last; those that are over are not here.
        self.steps: dict[int, asyncio.Future[_Step]] = {}
        self._message = b""

    def begin(self) -> int:
        """The number of a request."""
        number = next(self._numbers)
        self.steps[number] = asyncio.get_running_loop().create_future()
        return number

    async def ask(self, number: int, asked: Asked) -> _Step:
        """Its answer, or the beginning of it; None: there is none, and will be none."""
        step = self.steps[number]
        await self.send_long(Kind.ASK, number, pack(asked))
        return await step

    async def next(self, number: int) -> bytes | None:
        """The next message of a stream; None: it is over."""
        if number not in self.steps:
            return None
        self.steps[number] = step = asyncio.get_running_loop().create_future()
        self.send(Kind.NEXT, number)
        message = await step
        assert message is None or isinstance(message, bytes), "it has begun"
        return message

    def cancel(self, number: int) -> None:
        """Nothing more of it is wanted."""
        if self.steps.pop(number, None) is not None:
            self.send(Kind.CANCEL, number)

    @override
    def _take(self, kind: int, number: int, payload: bytes) -> None:
        if kind == Kind.REPLY:
            self._tell(number, unpack_reply(payload), is_last=True)
        elif kind == Kind.STREAM:
            self._tell(number, unpack_stream(payload))
        elif kind == Kind.MESSAGE:
            self._message = payload
            self._tell(number, payload)
        elif kind == Kind.SAME:
            self._tell(number, self._message)
        elif kind == Kind.END:
            self._pieces.pop(number, None)
            self._tell(number, None, is_last=True)

    def _tell(self, number: int, what: _Step, *, is_last: bool = False) -> None:
        step = self.steps.get(number)
        if is_last:
            self.steps.pop(number, None)
        if step is not None and not step.done():
            step.set_result(what)

    @override
    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        for number in [*self.steps]:
            self._tell(number, None, is_last=True)
