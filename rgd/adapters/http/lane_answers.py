"""Writes replies as bytes."""

from email.utils import formatdate
from http import HTTPStatus
from typing import Final

from rgd.adapters.http.connection_limits import Refused
from rgd.adapters.http.errors import reply_to
from rgd.adapters.http.forward import Stream
from rgd.adapters.http.guard import too_many
from rgd.adapters.http.reply import Reply

#: How long a date is used, in seconds of the event loop's clock.
DATE_S: Final = 0.5

#: What we say we are, without a version.
SERVER: Final = "rgd"

_REASONS: Final = {int(status): status.phrase for status in HTTPStatus}


def head_of(reply: Reply, *, has_length: bool = True) -> bytes:
    """Status line, headers and the body's length, without the end of the last line."""
    told = {"Server": SERVER, **reply.headers}
    if reply.status != HTTPStatus.NO_CONTENT:
        told["Content-Type"] = reply.content_type
        if has_length:
            told["Content-Length"] = str(len(reply.body))
    lines = [f"HTTP/1.1 {reply.status} {_REASONS.get(reply.status, '')}"]
    lines += [f"{name}: {value}" for name, value in told.items()]
    # A line break in a header would begin another answer.
    assert not any("\r" in line or "\n" in line for line in lines), "headers are single lines"
    return "\r\n".join(lines).encode()


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

    def other(self, reply: Reply, connection: str | None = None, *, is_head: bool = False) -> bytes:
        """Any reply.

        Args:
            reply: the reply.
            connection: what the header of this name says, unless the reply says something.
            is_head: whether the request was a HEAD, which gets no body.
        """
        head = head_of(reply) + self._end
        if connection is not None and "Connection" not in reply.headers:
            head = head.removesuffix(b"\r\n") + b"Connection: %b\r\n\r\n" % connection.encode()
        return head if is_head else head + reply.body

    def stream(self, stream: Stream, *, in_chunks: bool) -> bytes:
        """The head of an answer that goes on until its connection ends."""
        told = dict(stream.headers) | {"Connection": "close"}
        if in_chunks:
            told["Transfer-Encoding"] = "chunked"
        reply = Reply(headers=told, content_type=stream.content_type)
        return head_of(reply, has_length=False) + self._end


def chunk_of(message: bytes) -> bytes:
    """A message of a stream in chunks."""
    return b"%x\r\n%b\r\n" % (len(message), message)


_REFUSED: Final = reply_to(too_many(Refused.CONNECTIONS))

CONTINUE: Final = b"HTTP/1.1 100 Continue\r\n\r\n"
LAST_CHUNK: Final = b"0\r\n\r\n"
#: The answer to a connection that may not even ask.
REFUSAL: Final = b"%b\r\n\r\n%b" % (head_of(_REFUSED), _REFUSED.body)
