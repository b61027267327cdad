"""Writes replies for the fast lane, as aiohttp writes them on the other path.

Law: status line, headers and body are those that `connection.response_of` leads to, in the same order: both have
them from `headers`.
"""

from email.utils import formatdate
from typing import Final

from rgd.adapters.http.headers import head_of
from rgd.adapters.http.reply import Reply

#: How long a date is used, in seconds of the event loop's clock.
DATE_S: Final = 0.5

_USUAL: Final = head_of(Reply()).removesuffix(b"0")


class LaneAnswers:
    """Replies as bytes, with the date."""

    def __init__(self) -> None:
        self._end = b""
        self._end_until = 0.0

    def at(self, now: float) -> None:
        """Take note of the time, on the event loop's clock."""
        if now >= self._end_until:
            self._end = f"\r\nDate: {formatdate(usegmt=True)}\r\n\r\n".encode()
            self._end_until = now + DATE_S

    def usual(self, body: bytes) -> bytes:
        """A reply that is nothing but JSON."""
        return b"%b%d%b%b" % (_USUAL, len(body), self._end, body)

    def other(self, reply: Reply, *, is_head: bool, is_last: bool) -> bytes:
        """Any reply.

        Args:
            reply: the reply.
            is_head: whether the request was a HEAD, which gets no body.
            is_last: whether the connection is closed after it.
        """
        head = head_of(reply) + self._end
        if is_last and "Connection" not in reply.headers:
            head = head.removesuffix(b"\r\n") + b"Connection: close\r\n\r\n"
        return head if is_head else head + reply.body
