"""The bytes of the link between the two processes of a daemon.

A frame is its length in four bytes and a pickle. Both ends are one program, and nobody else has the socket, so what
is unpickled is trusted. `FRAME_BYTES_MAX` only ends what a bug would make.

A frame of the plane has whether it is answered, what is called (a function, which is given the gate, or the name of a method
of the gate's process), and the arguments. One of the gate has its kind and two values.
"""

import pickle
from struct import Struct
from typing import Any, Final

#: Longest frame. An ask or a part of policies is some ten KB; a page of readings at most some 100 KB, of the longest names 2 MB.
FRAME_BYTES_MAX: Final = 16 << 20

#: What was asked for, and the slot ids of groups that are gone since the last answer.
REPLY: Final = 0
#: An exception, and the same.
FAULT: Final = 1
#: The name of a method of the plane's process, and its arguments.
NOTE: Final = 2

_LENGTH: Final = Struct(">I")


def framed(value: tuple[object, ...]) -> bytes:
    """A value as a frame."""
    body = pickle.dumps(value, pickle.HIGHEST_PROTOCOL)
    return _LENGTH.pack(len(body)) + body


class Frames:
    """The values of the frames in a stream of bytes, in order."""

    def __init__(self) -> None:
        self._left = bytearray()

    def feed(self, data: bytes) -> None:
        """Add bytes that came."""
        self._left += data

    def take(self) -> tuple[Any, ...] | None:
        """The next value; None while it is not whole."""
        if len(self._left) < _LENGTH.size:
            return None
        (length,) = _LENGTH.unpack_from(self._left)
        if length > FRAME_BYTES_MAX:
            raise ValueError(f"a frame of {length} bytes; at most {FRAME_BYTES_MAX}")
        end = _LENGTH.size + length
        if end > len(self._left):
            return None
        body = bytes(memoryview(self._left)[_LENGTH.size : end])
        # At its front a bytearray is cut without copying. Before it is read, so that one that cannot be is met once.
        del self._left[:end]
        value: tuple[Any, ...] = pickle.loads(body)  # noqa: S301 -- the other end is this program
        return value
