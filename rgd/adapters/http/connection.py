"""aiohttp's connections within our limits, with our words for what they refuse by themselves.

Laws:
- A connection is counted from the moment it is accepted (its TLS handshake too) until its socket is
  closed. One beyond the limits gets a 503, or is answered for probes only (`connection_limits`).
- While an answer waits to be read, no further request of that connection is answered, and soon none is
  read; what waits is counted (`byte_limits`), and ends with the connection after `answer_timeout_s`.
- A request head that trickles ends its connection after `request_timeout_s`.

Bytes that are not HTTP never become a request; aiohttp would answer them in plain text and log a
traceback. Here they get the same JSON as every other error and are counted, not logged: anybody can
send them.
"""

import asyncio
import ssl
from collections.abc import Callable
from typing import Any, Final, NamedTuple, cast

from aiohttp import web
from aiohttp.abc import AbstractStreamWriter
from aiohttp.http_exceptions import LineTooLong
from aiohttp.http_writer import StreamWriter
from aiohttp.payload import Payload
from multidict import CIMultiDict
from typing_extensions import override

from rgd.adapters.http.byte_limits import UnreadAnswers
from rgd.adapters.http.connection_limits import Admission, Closed, ConnectionLimits, caller_of
from rgd.adapters.http.errors import TooManyConnections, reply_to
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

#: What we say we are; aiohttp would tell its and Python's version.
SERVER: Final = "rgd"

_SHOWN_CHARS_MAX: Final = 100
_USUAL_HEADERS: Final = CIMultiDict({"Server": SERVER, "Content-Type": JSON})

#: Told the status of an answer to something that was no request.
OnMalformed = Callable[[int], None]


class Bounds(NamedTuple):
    """What bounds each connection, and all of them together."""

    connections: ConnectionLimits
    unread: UnreadAnswers
    request_timeout_s: float
    answer_timeout_s: float


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
        #: Handshakes under way.
        self.greeting: set[asyncio.Task[None]] = set()

    @override
    def __call__(self) -> "Connection":
        return Connection(self, loop=self._loop, **self._kwargs)

    def over_tls(self, context: ssl.SSLContext) -> Callable[[], asyncio.Protocol]:
        """What to call for each client that comes to a socket with TLS."""
        return lambda: TlsGreeter(self, context)

    @override
    async def shutdown(self, timeout: float | None = None) -> None:
        for task in self.greeting:
            task.cancel()
        await super().shutdown(timeout)


class Connection(web.RequestHandler):
    """One client."""

    __slots__ = (
        "_admission",
        "_answer_timer",
        "_bounds",
        "_head_timer",
        "_is_answering",
        "_on_malformed",
    )

    def __init__(self, manager: Connections, **options: Any) -> None:
        super().__init__(manager, **options)
        self._on_malformed = manager.on_malformed
        self._bounds = manager.bounds
        self._admission: Admission | None = None
        #: Runs while a request head has begun to arrive and is not whole.
        self._head_timer: asyncio.TimerHandle | None = None
        #: Runs while the client does not read its answer.
        self._answer_timer: asyncio.TimerHandle | None = None
        self._is_answering = False

    @property
    def is_for_probes(self) -> bool:
        """Whether it may ask for probes only; asking for more is counted by `refuse`."""
        return self._admission is not None and self._admission.beyond is not None

    def refuse(self) -> TooManyConnections:
        """Count that it asked for more than probes; the error to answer with."""
        assert self._admission is not None, "it was let in"
        self._bounds.connections.refuse(self._admission)
        return TooManyConnections(self._admission.beyond)

    @override
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        accepted = cast("asyncio.Transport", transport)
        admission = self._bounds.connections.arrive(_caller(accepted), self._make_room)
        if admission is None:
            # What it sends is not read.
            self._force_close = True
            accepted.write(_REFUSAL)
            accepted.close()
        else:
            self._begin(accepted, admission)

    def take_over(self, transport: asyncio.Transport, admission: Admission) -> bool:
        """Begin with a connection that was counted already; False if it is gone."""
        if self._manager is None or transport.is_closing():
            return False
        admission.close = self._make_room
        self._begin(transport, admission)
        return True

    def _begin(self, transport: asyncio.Transport, admission: Admission) -> None:
        self._admission = admission
        transport.set_write_buffer_limits(high=UNCOUNTED_UNREAD_BYTES)
        super().connection_made(transport)

    @override
    def connection_lost(self, exc: BaseException | None) -> None:
        if self._admission is not None:
            self._bounds.connections.leave(self._admission)
            self._admission = None
        self._end_head_timer()
        self._end_waiting()
        super().connection_lost(exc)

    @override
    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self._is_answering or self._messages:
            return
        if self._head_timer is None and data and not self._force_close:
            self._head_timer = self._loop.call_later(
                self._bounds.request_timeout_s, self._end, Closed.SLOW_REQUEST
            )

    def begin_request(self) -> None:
        """A request head is whole."""
        self._is_answering = True
        self._end_head_timer()
        if self._admission is not None:
            self._bounds.connections.busy(self._admission)

    @override
    async def finish_response(
        self, request: web.BaseRequest, resp: web.StreamResponse, start_time: float | None
    ) -> tuple[web.StreamResponse, bool]:
        """Write the answer, and wait until the client has read nearly all of it."""
        answered = await super().finish_response(request, resp, start_time)
        if self.writing_paused:
            await self._drain_helper()
        self._is_answering = False
        if self._admission is not None and not self._messages:
            self._bounds.connections.idle(self._admission)
        if not resp.keep_alive:
            self._close_later(self.transport)
        return answered

    @override
    def pause_writing(self) -> None:
        """The client does not read what was written: from now on it has so much time."""
        super().pause_writing()
        transport = self.transport
        if transport is None or self._admission is None:
            return
        self._answer_timer = self._loop.call_later(
            self._bounds.answer_timeout_s, self._end, Closed.SLOW_READER
        )
        count = transport.get_write_buffer_size()
        # Later: a transport that is writing cannot be aborted.
        self._bounds.unread.add(self, count, self._end_soon)

    @override
    def resume_writing(self) -> None:
        super().resume_writing()
        self._end_waiting()

    @override
    def force_close(self) -> None:
        transport = self.transport
        super().force_close()
        if self._admission is not None:
            self._close_later(transport)

    @override
    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """Answer bytes that are no request, and close."""
        if isinstance(exc, ConnectionError) or request.writer.output_size > 0:
            # Nobody is left to be told; aiohttp closes in silence for this one.
            raise ConnectionResetError from exc
        reply = _reply_to(status, exc, message)
        self._on_malformed(reply.status)
        response = response_of(reply)
        response.force_close()
        return response

    def _close_later(self, transport: asyncio.Transport | None) -> None:
        """See that a closed connection ends although nobody reads the rest of its answer."""
        if transport is not None and transport.get_write_buffer_size():
            self._loop.call_later(self._bounds.answer_timeout_s, transport.abort)

    def _make_room(self) -> None:
        transport = self.transport
        self.force_close()
        # A polite end would wait for a peer that has not read what it was sent.
        if transport is not None and (transport.get_write_buffer_size() or self._is_tls(transport)):
            transport.abort()

    def _end(self, reason: Closed) -> None:
        if self._admission is None:
            return
        self._bounds.connections.closed[reason] += 1
        transport = self.transport
        self.force_close()
        if transport is not None:
            transport.abort()

    def _end_soon(self) -> None:
        self._loop.call_soon(self._end, Closed.UNREAD_LIMIT)

    def _end_waiting(self) -> None:
        self._bounds.unread.remove(self)
        if self._answer_timer is not None:
            self._answer_timer.cancel()
            self._answer_timer = None

    def _end_head_timer(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    @staticmethod
    def _is_tls(transport: asyncio.Transport) -> bool:
        return transport.get_extra_info("sslcontext") is not None


class TlsGreeter(asyncio.Protocol):
    """Counts a client that comes over TLS, and hands it to a `Connection` after the handshake."""

    def __init__(self, connections: Connections, context: ssl.SSLContext) -> None:
        self._connections = connections
        self._context = context
        self._limits = connections.bounds.connections
        #: What arrived before the handshake began.
        self._early = bytearray()

    @override
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        accepted = cast("asyncio.Transport", transport)
        admission = self._limits.arrive(_caller(accepted), accepted.abort)
        if admission is None:
            accepted.abort()
            return
        accepted.pause_reading()
        task = asyncio.get_running_loop().create_task(self._greet(accepted, admission))
        self._connections.greeting.add(task)
        task.add_done_callback(self._connections.greeting.discard)

    @override
    def data_received(self, data: bytes) -> None:
        self._early += data

    async def _greet(self, transport: asyncio.Transport, admission: Admission) -> None:
        connection = self._connections()
        is_taken = False
        try:
            # uvloop begins to read only after `connection_made`, whatever was said there.
            transport.pause_reading()
            handshake = asyncio.get_running_loop().create_task(
                asyncio.get_running_loop().start_tls(
                    transport,
                    connection,
                    self._context,
                    server_side=True,
                    ssl_handshake_timeout=self._connections.bounds.request_timeout_s,
                )
            )
            if self._early:
                await self._hand_on(transport)
            secured = await handshake
            is_taken = secured is not None and connection.take_over(secured, admission)
        except OSError:
            # Whoever breaks a handshake off, or speaks another protocol, hears nothing from us.
            pass
        finally:
            if not is_taken:
                transport.abort()
                self._limits.leave(admission)

    async def _hand_on(self, transport: asyncio.Transport) -> None:
        """Give the handshake what arrived before it began."""
        # In the first turn it takes the transport over, in the second it may be given bytes; what
        # arrives later is read at that turn's end.
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        protocol = cast("asyncio.BufferedProtocol", transport.get_protocol())
        left = memoryview(bytes(self._early))
        while left and not transport.is_closing():
            buffer = memoryview(protocol.get_buffer(len(left)))
            count = min(len(buffer), len(left))
            buffer[:count] = left[:count]
            protocol.buffer_updated(count)
            left = left[count:]


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
        told = {"Server": SERVER, "Content-Type": content_type, **headers}
        return web.Response(status=status, body=_LargeBody(body), headers=told)
    if headers is NO_HEADERS and content_type is JSON and status != 204:
        return web.Response(status=status, body=body, headers=_USUAL_HEADERS)
    told = {"Server": SERVER, **headers}
    if status != 204:
        told["Content-Type"] = content_type
    return web.Response(status=status, body=body, headers=told)


def _caller(transport: asyncio.Transport) -> str | None:
    peer = transport.get_extra_info("peername")
    # A unix socket's peer has no address, or a path.
    return caller_of(peer[0]) if isinstance(peer, tuple) else None


def _refusal() -> bytes:
    """What a connection is told that may not even ask."""
    reply = reply_to(TooManyConnections(None))
    assert reply is not None, "the error has a status"
    headers = {
        "Content-Type": reply.content_type,
        "Content-Length": str(len(reply.body)),
        "Connection": "close",
        "Server": SERVER,
        **reply.headers,
    }
    lines = [f"HTTP/1.1 {reply.status} Service Unavailable"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode() + reply.body


_REFUSAL: Final = _refusal()


def _reply_to(status: int, exc: BaseException | None, message: str | None) -> Reply:
    if isinstance(exc, LineTooLong):
        reason = f"expected request line and headers of at most {HEADER_BYTES_MAX} bytes each"
        return json_reply({"reason": reason}, status=431)
    first_line = (message or "").partition("\n")[0].rstrip(": ")[:_SHOWN_CHARS_MAX]
    return json_reply({"reason": f"malformed request: {first_line}"}, status=status)
