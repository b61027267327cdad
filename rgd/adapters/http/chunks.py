"""Reads a body that comes in chunks (RFC 9112, 7.1), and finds where it ends.

Law: what follows the body is not read. httptools does not say where a message ends; so it is given the bytes up
to each empty line, and the body can only end with one of those.
"""

from typing import Final

import httptools

from rgd.adapters.http.errors import BodyMalformed, BodyTooLarge

_HEAD: Final = b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"
_EMPTY_LINE: Final = b"\r\n\r\n"
_BEFORE_END: Final = len(_EMPTY_LINE) - 1


class _Read:
    """What httptools calls. It knows no parser: the two would keep each other."""

    def __init__(self) -> None:
        self.body = bytearray()
        self.is_whole = False

    def on_body(self, part: bytes) -> None:
        self.body += part

    def on_message_complete(self) -> None:
        self.is_whole = True


class ChunkedBody:
    """One body, as far as it has come.

    Args:
        bytes_max: of the body without what frames it.
    """

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        #: The last bytes that came: an empty line may begin in them.
        self._last = b""
        self._read = _Read()
        self._parser = httptools.HttpRequestParser(self._read)
        self._parser.feed_data(_HEAD)

    @property
    def body(self) -> bytearray:
        """What has come of it."""
        return self._read.body

    def take(self, data: bytes) -> bytes | None:
        """Take more bytes; what follows the body once it is whole, None before.

        Raises:
            BodyMalformed, BodyTooLarge: nothing behind it can be read.
        """
        seen = self._last + data
        begin = len(self._last)
        while begin < len(seen):
            at = seen.find(_EMPTY_LINE, max(0, begin - _BEFORE_END))
            end = len(seen) if at < 0 else at + len(_EMPTY_LINE)
            try:
                self._parser.feed_data(seen[begin:end])
            except httptools.HttpParserError:
                raise BodyMalformed from None
            if len(self.body) > self._bytes_max:
                raise BodyTooLarge(self._bytes_max)
            begin = end
            if self._read.is_whole:
                return seen[begin:]
        self._last = seen[-_BEFORE_END:]
        return None
