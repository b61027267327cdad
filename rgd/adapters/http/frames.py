"""Requests and answers as frames on a stream socket between two processes of one daemon.

Laws:
- A frame belongs to a request by its number. What is long comes in pieces of at most `PIECE_BYTES`, and those of several requests
  take turns, so none of them waits for the whole of another one, and no piece keeps the loop for long.
- Whoever sends something long waits while the other side does not read, so what waits to be sent is bounded.

Both ends are one program, so nothing here is checked: what cannot be read is a bug, and ends the socket. `relay` is the gate's end,
`relay_plane` the plane's.
"""

import asyncio
import socket
from abc import abstractmethod
from enum import IntEnum
from struct import Struct as Layout
from typing import Final, cast

import msgspec
from typing_extensions import override

from rgd.adapters.http.forward import Asked, Stream
from rgd.adapters.http.reply import Reply

#: Most bytes of a frame.
PIECE_BYTES: Final = 64 << 10


class Kind(IntEnum):
    """What a frame is."""

    # From the gate: a request; the next message of a stream is wanted; nothing more is wanted.
    ASK = 1
    NEXT = 2
    CANCEL = 3
    # From the plane: a reply; a stream; a message of it; the message that was sent last, to whomever; the end of
    # a stream, or of what was cancelled or failed.
    REPLY = 4
    STREAM = 5
    MESSAGE = 6
    SAME = 7
    END = 8


#: Added where the next frame of the request goes on with it.
_MORE: Final = 128

#: Bytes that follow, what it is, and the request's number.
_HEADER: Final = Layout("<IBQ")


class Frames(asyncio.Protocol):
    """One end of the socket."""

    def __init__(self) -> None:
        self.is_open = False
        self._transport: asyncio.Transport
        self._received = b""
        #: The pieces that came of what is not whole.
        self._pieces: dict[int, list[bytes]] = {}
        self._may_write = asyncio.Event()
        self._turn = asyncio.Lock()

    async def attach(self, sock: socket.socket) -> None:
        """Begin, on a socket that is connected to the other end."""
        await asyncio.get_running_loop().create_unix_connection(lambda: self, sock=sock)

    def close(self) -> None:
        """End the socket. Idempotent."""
        if self.is_open:
            self._transport.abort()

    @abstractmethod
    def _take(self, kind: int, number: int, payload: bytes) -> None:
        """A frame is whole."""

    def send(self, kind: int, number: int, payload: bytes | memoryview = b"") -> None:
        """Send what is short."""
        if self.is_open:
            self._transport.writelines((_HEADER.pack(len(payload), kind, number), payload))

    async def send_long(self, kind: int, number: int, payload: bytes) -> None:
        """Send in pieces, each in its turn and when the other side has read nearly all before it."""
        view = memoryview(payload)
        for at in range(0, len(payload) or 1, PIECE_BYTES):
            async with self._turn:
                await self._may_write.wait()
                more = _MORE if at + PIECE_BYTES < len(payload) else 0
                self.send(kind | more, number, view[at : at + PIECE_BYTES])

    # What the transport calls.

    @override
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._transport.set_write_buffer_limits(high=PIECE_BYTES)
        self.is_open = True
        self._may_write.set()

    @override
    def data_received(self, data: bytes) -> None:
        if self._received:
            data = self._received + data
        begin, end = 0, len(data)
        while end - begin >= _HEADER.size:
            size, kind, number = _HEADER.unpack_from(data, begin)
            at = begin + _HEADER.size
            if at + size > end:
                break
            begin = at + size
            self._take_piece(kind, number, data[at:begin])
        self._received = data[begin:]

    def _take_piece(self, kind: int, number: int, payload: bytes) -> None:
        if kind & _MORE:
            self._pieces.setdefault(number, []).append(payload)
            return
        if number in self._pieces:
            payload = b"".join((*self._pieces.pop(number), payload))
        self._take(kind, number, payload)

    @override
    def pause_writing(self) -> None:
        self._may_write.clear()

    @override
    def resume_writing(self) -> None:
        self._may_write.set()

    @override
    def connection_lost(self, exc: Exception | None) -> None:
        self.is_open = False
        self._pieces.clear()
        # Who waits to write need not wait any more.
        self._may_write.set()


pack: Final = msgspec.msgpack.Encoder().encode
unpack_asked: Final = msgspec.msgpack.Decoder(Asked).decode
unpack_reply: Final = msgspec.msgpack.Decoder(Reply).decode
unpack_stream: Final = msgspec.msgpack.Decoder(Stream).decode
