"""The plane's end of the way from the gate: answers requests (`relay` is the gate's end).

Laws:
- Each request is a task of its own. A read or a stream that is cancelled, or whose socket ends, ends; a change goes on.
- The next message of a stream is made when it is asked for.
- A message that many streams send is sent once: those who are the next to send it say that it is the same.
"""

import asyncio
from collections.abc import Callable
from contextlib import aclosing

from typing_extensions import override

from rgd.adapters.http.forward import Asked, Forward
from rgd.adapters.http.frames import Frames, Kind, pack, unpack_asked
from rgd.adapters.http.reply import Reply


class _Request:
    """One that is being answered."""

    def __init__(self, *, is_read: bool) -> None:
        self.is_read = is_read
        #: Messages that the gate asked for.
        self.wanted = asyncio.Semaphore(0)
        self.task: asyncio.Task[None]
        self.is_whole = False


class PlaneEnd(Frames):
    """The plane's end of a socket.

    Args:
        forward: answers (`plane.Plane.forward`).
        is_read: whether a request is of no use to a client that is gone.
    """

    def __init__(self, forward: Forward, is_read: Callable[[Asked], bool]) -> None:
        super().__init__()
        self._forward = forward
        self._is_read = is_read
        self._requests: dict[int, _Request] = {}
        #: Held while a message is sent; the last one that the gate has whole.
        self._sending = asyncio.Lock()
        self._sent: bytes | None = None

    @override
    def _take(self, kind: int, number: int, payload: bytes) -> None:
        if kind == Kind.ASK:
            self._begin(number, unpack_asked(payload))
        elif kind == Kind.NEXT and number in self._requests:
            self._requests[number].wanted.release()
        elif kind == Kind.CANCEL:
            self._pieces.pop(number, None)
            self._cancel(number)

    def _begin(self, number: int, asked: Asked) -> None:
        request = self._requests[number] = _Request(is_read=self._is_read(asked))
        request.task = asyncio.get_running_loop().create_task(self._answer(number, asked, request))
        # Not by the task itself, which may be cancelled before it begins.
        request.task.add_done_callback(lambda _task: self._over(number))

    def _over(self, number: int) -> None:
        if not self._requests.pop(number).is_whole:
            self.send(Kind.END, number)

    def _cancel(self, number: int) -> None:
        request = self._requests.get(number)
        if request is not None and request.is_read:
            request.task.cancel()

    async def _answer(self, number: int, asked: Asked, request: _Request) -> None:
        async with aclosing(self._forward(asked)) as pieces:
            async for piece in pieces:
                if isinstance(piece, Reply):
                    await self.send_long(Kind.REPLY, number, pack(piece))
                    request.is_whole = True
                    continue
                if isinstance(piece, bytes):
                    await self._send_message(number, piece)
                else:
                    self.send(Kind.STREAM, number, pack(piece))
                await request.wanted.acquire()

    async def _send_message(self, number: int, message: bytes) -> None:
        async with self._sending:
            if self._sent is message:
                self.send(Kind.SAME, number)
                return
            await self.send_long(Kind.MESSAGE, number, message)
            self._sent = message

    @override
    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        for number in [*self._requests]:
            self._cancel(number)
