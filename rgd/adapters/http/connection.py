"""aiohttp's connections within our limits, with our error texts for what they refuse by themselves.

Laws:
- While an answer waits to be read, no further request of that connection is answered, and soon none is read.
- A client that ends its side of a connection gets the answers to all that it asked before (but over TLS, whose
  transports end with either side).

Its limits are kept by `guard`; over TLS it begins after the handshake (`tls`).

Bytes that are not HTTP never become a request; aiohttp would answer them in plain text and log a
traceback. Here they get the same JSON as every other error and are counted, not logged: anybody can
send them.
"""

import asyncio
import re
import socket
from collections.abc import Callable
from http import HTTPStatus
from typing import Any, Final, cast

from aiohttp import StreamReader, web
from aiohttp.abc import AbstractStreamWriter
from aiohttp.http_exceptions import LineTooLong
from aiohttp.http_writer import StreamWriter
from aiohttp.payload import Payload
from multidict import CIMultiDict
from typing_extensions import override

from rgd.adapters.http.connection_limits import Admission
from rgd.adapters.http.errors import TooManyConnections, reply_to
from rgd.adapters.http.guard import Bounds, Guard, address_of
from rgd.adapters.http.headers import head_of, headers_of
from rgd.adapters.http.reply import JSON, NO_HEADERS, Reply, json_reply

#: Longest request line and longest header, in bytes; more is 431.
LINE_BYTES_MAX: Final = 8190
HEADER_BYTES_MAX: Final = 8190

#: Bodies from this size on are written without a copy; so much of one goes with its headers.
LARGE_BODY_BYTES: Final = 1 << 20
_BESIDE_HEADERS_BYTES: Final = 4 << 10

#: Most bytes of an answer that may wait to be read while the next request is answered already. They
#: are not counted as unread: the operating system's own buffer mostly takes them.
UNCOUNTED_UNREAD_BYTES: Final = 16 << 10

#: Bytes of a body that are read ahead of whoever wants them; a connection holds at most twice as many.
READ_AHEAD_BYTES: Final = 64 << 10

#: What the operating system buffers of a stream's messages, in bytes; Linux takes twice as many.
STREAM_BUFFER_BYTES: Final = 64 << 10

_CLOSE: Final = re.compile(rb"\r\nconnection:[ \t]*close[ \t]*\r\n")
_LENGTH: Final = re.compile(rb"\r\ncontent-length:[ \t]*(\d{1,18})[ \t]*\r\n")

#: How long an answered client may go on sending a body that nobody reads.
LINGER_S: Final = 2.0

_SHOWN_CHARS_MAX: Final = 100
_USUAL_HEADERS: Final = CIMultiDict(headers_of(Reply()))

#: Told the status of an answer to something that was no request.
OnMalformed = Callable[[int], None]


class Connections(web.Server):
    """Makes a `Connection` for each client that comes; over TLS a `TlsGreeter` first."""

    def __init__(
        self, handler: Any, on_malformed: OnMalformed, bounds: Bounds, **options: Any
    ) -> None:
        super().__init__(
            handler,
            access_log=None,
            # A body is what was sent: no compressed bombs.
            auto_decompress=False,
            max_line_size=LINE_BYTES_MAX,
            max_field_size=HEADER_BYTES_MAX,
            read_bufsize=READ_AHEAD_BYTES,
            **options,
        )
        self.bounds = bounds
        self.on_malformed = on_malformed

    @override
    def __call__(self) -> "Connection":
        return Connection(self, loop=self._loop, **self._kwargs)


class Connection(web.RequestHandler):
    """One client."""

    __slots__ = (
        "_body",
        "_bounds",
        "_guard",
        "_has_ended",
        "_is_early",
        "_on_malformed",
        "is_ending",
    )

    def __init__(self, manager: Connections, **options: Any) -> None:
        super().__init__(manager, **options)
        self._on_malformed = manager.on_malformed
        self._bounds = manager.bounds
        #: None before it begins, and where it was refused.
        self._guard: Guard | None = None
        #: Of the request that is being answered.
        self._body: StreamReader | None = None
        #: Whether it is to end after the answer under way; a stream looks at it.
        self.is_ending = False
        #: Whether the client sends nothing more.
        self._has_ended = False
        #: Whether something came before it began, with the end of a TLS handshake.
        self._is_early = False

    @property
    def is_for_probes(self) -> bool:
        """Whether it may ask for probes only; asking for more is counted by `refuse`."""
        return self._guard is not None and self._guard.is_for_probes

    def refuse(self) -> TooManyConnections:
        """Count that it asked for more than probes; the error to answer with."""
        assert self._guard is not None, "it was let in"
        return self._guard.refuse()

    @override
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        accepted = cast("asyncio.Transport", transport)
        admission = self._bounds.connections.arrive(address_of(accepted), accepted.abort)
        if admission is None:
            # What it sends is not read.
            self._force_close = True
            refuse_connection(accepted)
        else:
            self.begin(accepted, Guard(self._bounds, accepted, admission, self))

    def take_over(self, transport: asyncio.Transport, admission: Admission) -> bool:
        """Begin with a connection that was counted already; False if it is gone."""
        if self._manager is None or transport.is_closing():
            return False
        self.begin(transport, Guard(self._bounds, transport, admission, self))
        return True

    def begin(self, transport: asyncio.Transport, guard: Guard) -> None:
        """Answer a connection that was let in, perhaps one that was on the other path."""
        self._guard = guard
        guard.owner = self
        transport.set_write_buffer_limits(high=UNCOUNTED_UNREAD_BYTES)
        super().connection_made(transport)
        if self._is_early and not self._messages:
            guard.head_began()

    @override
    def connection_lost(self, exc: BaseException | None) -> None:
        if self._guard is not None:
            self._guard.lost()
        for message, _ in self._messages:
            _forget_story(getattr(message, "exc", None))
        self._messages.clear()
        super().connection_lost(exc)

    @override
    def data_received(self, data: bytes) -> None:
        if self._body is None or self._body.is_eof():
            super().data_received(data if self._messages else _without_rest(data))
        else:
            self._go_on_with_body(data)
        if self._body is not None or self._messages:
            return
        if self._guard is None:
            self._is_early = True
        elif data and not self._force_close:
            self._guard.head_began()

    def _go_on_with_body(self, data: bytes) -> None:
        """Receive more of a body; aiohttp would drop it where the connection is to end with the answer."""
        ends = self._close, self._force_close
        self._close = self._force_close = False
        super().data_received(data)
        self._close, self._force_close = ends

    # Here it is a question: whether to leave our side open.
    @override
    def eof_received(self) -> bool:  # type: ignore[override]
        self._has_ended = True
        if self._guard is None or self._guard.is_tls or self._force_close:
            return False
        last_body = self._messages[-1][1] if self._messages else self._body
        if last_body is None:
            return False
        if not last_body.is_eof():
            last_body.set_exception(ConnectionResetError("the rest of the body never comes"))
        return True

    @property
    def authority(self) -> bytes | None:
        """As `tls.Secured`."""
        return None if self._guard is None else self._guard.authority

    def end_soon(self) -> None:
        """As `tls.Secured`."""
        self.is_ending = True
        if self._body is None and not self._messages:
            self.force_close()
        else:
            self.close()

    def begin_stream(self) -> None:
        """The answer is a stream: the operating system keeps little of what its client does not read."""
        assert self.transport is not None, "it asks"
        opened = self.transport.get_extra_info("socket")
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, STREAM_BUFFER_BYTES)

    async def until_read(self) -> None:
        """Wait until the client has read nearly all that was written."""
        if self.writing_paused:
            await self._drain_helper()

    def begin_request(self, body: StreamReader) -> None:
        """A request head is whole."""
        self._body = body
        if self._guard is not None:
            self._guard.request_began()

    @override
    async def finish_response(
        self, request: web.BaseRequest, resp: web.StreamResponse, start_time: float | None
    ) -> tuple[web.StreamResponse, bool]:
        """Write the answer, and wait until the client has read nearly all of it."""
        if "Upgrade" in request.headers:
            # It gets no other protocol, and aiohttp drops what came with the request and behind it.
            resp.force_close()
        answered = await super().finish_response(request, resp, start_time)
        await self.until_read()
        self._body = None
        if self._guard is not None:
            if not self._messages:
                self._guard.request_ended()
            if not resp.keep_alive and self.transport is not None:
                self._guard.close_later()
        if self._has_ended and not self._messages:
            self.force_close()
        return answered

    @override
    def pause_writing(self) -> None:
        super().pause_writing()
        if self._guard is not None and self.transport is not None:
            self._guard.writing_paused()

    @override
    def resume_writing(self) -> None:
        super().resume_writing()
        if self._guard is not None:
            self._guard.writing_resumed()

    @override
    def force_close(self) -> None:
        had_transport = self.transport is not None
        super().force_close()
        if self._guard is not None and had_transport:
            self._guard.close_later()

    @override
    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """Answer bytes that are no request, and close."""
        _forget_story(exc)
        if isinstance(exc, ConnectionError) or request.writer.output_size > 0:
            # Nobody is left to be answered; aiohttp closes silently for this one.
            raise ConnectionResetError from exc
        reply = _reply_to(status, exc, message)
        self._on_malformed(reply.status)
        response = response_of(reply)
        response.force_close()
        return response


def _without_rest(data: bytes) -> bytes:
    """What was received, up to the end of its first request if that one says `Connection: close`.

    Nothing behind it is answered, but aiohttp would answer 400 in place of the request.
    """
    head_end = data.find(b"\r\n\r\n") + len(b"\r\n\r\n")
    head = data[:head_end].lower()
    if not _CLOSE.search(head) or b"\r\ntransfer-encoding:" in head:
        return data
    length = _LENGTH.search(head)
    return data[: head_end + (int(length[1]) if length else 0)]


def _forget_story(error: BaseException | None) -> None:
    """Free the frames that an error of aiohttp's parser refers to, and they to it.

    Such a cycle would stay until the next collection of the oldest generation, which is rare; and
    everybody can cause as many errors as he likes.
    """
    if error is not None:
        error.__traceback__ = None


class _LargeBody(Payload):
    """A body that is written without a copy; aiohttp would join it with the headers."""

    _default_content_type = "application/octet-stream"

    def __init__(self, body: bytes) -> None:
        super().__init__(body)
        self._body = body
        self._size = len(body)

    @override
    def decode(self, encoding: str = "utf-8", errors: str = "strict") -> str:
        return self._body.decode(encoding, errors)

    @override
    async def write(self, writer: AbstractStreamWriter) -> None:
        assert isinstance(writer, StreamWriter), "what aiohttp writes responses with"
        body = memoryview(self._body)
        # Nothing waits in between, so that the rest counts as unread in one piece.
        await writer.write(body[:_BESIDE_HEADERS_BYTES], drain=False)
        await writer.write(body[_BESIDE_HEADERS_BYTES:], drain=False)


def response_of(reply: Reply) -> web.Response:
    """Make aiohttp's response of a reply."""
    status, body, headers, content_type = reply
    if len(body) >= LARGE_BODY_BYTES:
        return web.Response(status=status, body=_LargeBody(body), headers=headers_of(reply))
    if headers is NO_HEADERS and content_type is JSON and status != HTTPStatus.NO_CONTENT:
        return web.Response(status=status, body=body, headers=_USUAL_HEADERS)
    return web.Response(status=status, body=body, headers=headers_of(reply))


def refuse_connection(transport: asyncio.Transport) -> None:
    """Tell a client that it may not even ask."""
    transport.write(_REFUSAL)
    transport.close()


def _refusal() -> bytes:
    """The answer to a connection that may not even ask."""
    reply = reply_to(TooManyConnections(None))
    assert reply is not None, "the error has a status"
    return b"%b\r\nConnection: close\r\n\r\n%b" % (head_of(reply), reply.body)


_REFUSAL: Final = _refusal()


def _reply_to(status: int, exc: BaseException | None, message: str | None) -> Reply:
    if isinstance(exc, LineTooLong):
        reason = f"expected request line and headers of at most {HEADER_BYTES_MAX} bytes each"
        return json_reply({"reason": reason}, status=431)
    first_line = (message or "").partition("\n")[0].rstrip(": ")[:_SHOWN_CHARS_MAX]
    return json_reply({"reason": f"malformed request: {first_line}"}, status=status)
