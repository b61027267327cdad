"""Reads a body that comes in chunks (RFC 9112, 7.1), and finds where it ends.

Laws: what follows the body is not read. However small the chunks are, reading them takes a few milliseconds at most.
"""

import re
from typing import Final

from rgd.adapters.http.errors import BadBody, BodyTooLarge

#: Most chunks of a body, and most bytes of the line before a chunk or of all trailers.
CHUNKS_MAX: Final = 4096
FRAME_BYTES_MAX: Final = 1 << 10

#: The end of what came before, and the size of the next chunk; extensions mean nothing.
_SIZE: Final = re.compile(rb"\r\n([0-9A-Fa-f]{1,16})(?:[ \t]*;[\t -~\x80-\xff]*)?\r\n")
#: What follows the line of the last chunk; trailers mean nothing.
_TRAILERS: Final = re.compile(rb"(?:[-!#$%&'*+.^_`|~0-9A-Za-z]+:[\t -~\x80-\xff]*\r\n)*\r\n")


class ChunkedBody:
    """One body, as far as it has come.

    Args:
        bytes_max: of the body without what frames it.
    """

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        #: What has come of it.
        self.body = bytearray()
        self._chunks = 0
        #: Bytes of the present chunk that are still to come; what is expected after them, and what has come of that.
        self._missing = 0
        self._expected = _SIZE
        self._begun = b"\r\n"

    def take(self, data: bytes) -> bytes | None:
        """Take more bytes; what follows the body once it is whole, None before.

        Raises:
            BadBody, BodyTooLarge: nothing behind it can be read.
        """
        data, at = self._begun + data, 0
        while True:
            part = data[at : at + self._missing]
            self.body += part
            self._missing -= len(part)
            at += len(part)
            found = self._expected.match(data, at, at + FRAME_BYTES_MAX)
            if found is None:
                break
            at = found.end()
            if self._expected is _TRAILERS:
                return data[at:]
            self._begin_chunk(int(found[1], 16))
        self._begun = data[at:]
        end = b"\n" if self._expected is _SIZE else b"\r\n\r\n"
        if len(self._begun) >= FRAME_BYTES_MAX or end in self._begun[2:]:
            raise BadBody("body: malformed transfer encoding")
        return None

    def _begin_chunk(self, size: int) -> None:
        self._chunks += 1
        if self._chunks > CHUNKS_MAX:
            raise BadBody(f"body: expected at most {CHUNKS_MAX} chunks")
        if len(self.body) + size > self._bytes_max:
            raise BodyTooLarge(self._bytes_max)
        self._missing = size
        if not size:
            self._expected = _TRAILERS
