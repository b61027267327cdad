"""The bytes of a connection become requests; hot ones are answered from here, others by the plane.

Laws:
- Hot calls and probes are answered without a task. Every other call is passed on (`forward`), one at a time.
- Requests are answered in order. While an answer waits to be read, while a long one or one of the plane's is in work,
  and after `PIPELINED_MAX` or their bytes in one turn of the loop, nothing more of that connection is answered, and soon nothing read.
- A call that takes no body, and one that is refused, is answered without its body; if that is not whole, the answer is the last one.
- A client that is gone ends what it asked for, long arrays too; what it administers is done.

A head that a connection repeats, as clients with many questions do, is read once.
"""

import socket
from collections.abc import Awaitable
from contextlib import aclosing
from typing import Final, cast

from typing_extensions import override

from rgd.adapters.http.byte_limits import FREE_BYTES, HeldBody
from rgd.adapters.http.chunks import ChunkedBody
from rgd.adapters.http.connection import CLOSED, IN_WORK, NEXT_TURN, UNREAD, Connection
from rgd.adapters.http.errors import CallError
from rgd.adapters.http.forward import Pieces, Stream
from rgd.adapters.http.gate import OTHER_ROUTE
from rgd.adapters.http.guard import too_many
from rgd.adapters.http.lane_answers import CONTINUE, LAST_CHUNK, chunk_of
from rgd.adapters.http.lane_heads import (
    HEAD_BYTES_MAX,
    UNKNOWN_LENGTH,
    Head,
    check_begun,
    foreign_of,
    read_head,
)
from rgd.adapters.http.reply import JSON, Call, Reply
from rgd.ports.door import Scope

#: Requests of one connection, and bytes of them, after which others get their turn.
PIPELINED_MAX: Final = 32
PIPELINED_BYTES_MAX: Final = 16 << 10

#: Heads that a connection has read already and that were let pass, and the longest that is kept: together at most
#: some 50 KB a connection.
HEADS_KEPT: Final = 8
HEAD_KEPT_BYTES: Final = 1 << 10
HEAD_KEPT_HEADERS: Final = 16

#: Least time between two notes that a connection asked: the precision of the order in which idle ones are closed.
NOTED_S: Final = 0.1

#: What the operating system buffers of a stream's messages, in bytes; Linux takes twice as many.
STREAM_BUFFER_BYTES: Final = 64 << 10

_new_call: Final = tuple.__new__
_HEAD_END: Final = b"\r\n\r\n"
_LINE_END: Final = b"\r\n"


class Lane(Connection):
    """A connection whose requests are answered."""

    @override
    def _answer(self, data: bytes) -> None:
        """Answer every request that is whole; the rest waits."""
        turn_ends_at = len(data) - PIPELINED_BYTES_MAX
        if self._chunked is not None:
            data = self._read_chunks(*self._chunked, data)
        begin, end, asked = 0, len(data), 0
        while begin < end and not self._why_not:
            if asked >= PIPELINED_MAX or end - begin < turn_ends_at:
                self._why_not |= NEXT_TURN
                self._loop.call_soon(self._go_on, NEXT_TURN)
                break
            asked += 1
            body_begin = data.find(_HEAD_END, begin, begin + HEAD_BYTES_MAX) + len(_HEAD_END)
            head_bytes = data[begin:body_begin]
            head = self._heads.get(head_bytes)
            if head is None:
                if data.startswith(_LINE_END, begin):
                    data = data[begin:].lstrip(_LINE_END)
                    begin, end = 0, len(data)
                    continue
                head = self._read_head(head_bytes, data[begin:])
                if head is None:
                    return
            if self._is_partial:
                self._end_partial()
            body_end = body_begin + head.length
            if body_end > end:
                data = self._go_on_with_body(head, data[begin:], body_begin - begin)
                begin, end = 0, len(data)
                continue
            self._reply(head, data[body_begin:body_end])
            begin = body_end
        if begin < end and not self._why_not & CLOSED:
            self._keep(data[begin:])

    def _read_head(self, head_bytes: bytes, left: bytes) -> Head | None:
        """A head that was not met before; None where it is not whole, or no head."""
        lanes = self._lanes
        try:
            if not head_bytes.endswith(_HEAD_END):
                if not self._is_partial or len(left) > HEAD_BYTES_MAX:
                    check_begun(left)
                self._head_began()
                self._is_partial = True
                self._left.append(left)
                self._left_bytes, self._needed_bytes = len(left), 0
                return None
            head = read_head(head_bytes, lanes.routes, lanes.body_max_bytes, lanes.handler_of)
            head.foreign = foreign_of(head, self._transport)
        except CallError as exc:
            reply = lanes.gate.reply_to(exc, "", "")
            lanes.gate.observe(OTHER_ROUTE, reply.status, 0.0)
            self._transport.write(lanes.answers.other(reply, "close"))
            self._needed_bytes = UNKNOWN_LENGTH
            self._linger()
            return None
        beyond = None if self.admission is None else self.admission.beyond
        if beyond is not None and not head.is_probe:
            self._bounds.connections.refused[beyond] += 1
            head.refuse(too_many(beyond))
        if len(head_bytes) <= HEAD_KEPT_BYTES and len(head.headers) <= HEAD_KEPT_HEADERS:
            if len(self._heads) >= HEADS_KEPT:
                self._heads.clear()
            self._heads[head_bytes] = head
        return head

    def _go_on_with_body(self, head: Head, left: bytes, head_bytes: int) -> bytes:
        """The body is not whole, or comes in chunks; returns what follows the request."""
        if head.length == UNKNOWN_LENGTH:
            self._chunked = head, ChunkedBody(self._lanes.body_max_bytes)
            return self._read_chunks(*self._chunked, left[head_bytes:])
        self._needed_bytes = head_bytes + head.length - len(left)
        if not head.waits:
            self._reply_without_body(head)
        elif self._may_wait(head):
            self._left.append(left)
            self._left_bytes, self._needed_bytes = len(left), head_bytes + head.length
        return b""

    def _read_chunks(self, head: Head, chunked: ChunkedBody, data: bytes) -> bytes:
        """Go on with a body in chunks; returns what follows the request."""
        try:
            following = chunked.take(data)
            self._hold_body(len(chunked.body))
        except CallError as exc:
            self._needed_bytes = UNKNOWN_LENGTH
            self._end_with(head, self._lanes.gate.reply_to(exc, head.method, head.route))
            return b""
        if following is None:
            self._needed_bytes = UNKNOWN_LENGTH
            if not head.waits:
                self._reply_without_body(head)
            elif self._is_partial or self._may_wait(head):
                self._needed_bytes = 0
            return b""
        self._chunked = None
        if self._is_partial:
            self._end_partial()
        self._reply(head, bytes(chunked.body))
        return following

    def _reply_without_body(self, head: Head) -> None:
        """Answer a request whose body nobody needs; nothing after it can be read."""
        self._chunked = None
        self._is_last = True
        self._reply(head, b"")

    def _may_wait(self, head: Head) -> bool:
        """Wait for a body; who may not ask, and what has no room, is answered before it comes."""
        lanes, gate = self._lanes, self._lanes.gate
        try:
            gate.authorise(head.scope, head.authorization, head.foreign)
            if head.length != UNKNOWN_LENGTH:
                self._hold_body(head.length)
        except CallError as exc:
            self._end_with(head, gate.reply_to(exc, head.method, head.route))
            return False
        if head.expects:
            self._transport.write(CONTINUE)
        self._begin_request()
        self._is_partial = True
        self._body_timer = self._loop.call_later(lanes.request_timeout_s, self._body_is_late, head)
        return True

    def _begin_request(self) -> None:
        """A request takes longer than this turn: its connection cannot make room meanwhile."""
        self._head_is_whole()
        if self.admission is not None:
            self._bounds.connections.busy(self.admission)
        self._noted_until = 0.0

    def _end_partial(self) -> None:
        """What was incomplete is whole, or the body of a head is still missing."""
        self._is_partial = False
        self._head_is_whole()
        if self._body_timer is not None:
            self._body_timer.cancel()
            self._body_timer = None

    def _body_is_late(self, head: Head) -> None:
        self._body_timer = None
        if self._chunked is not None:
            self._needed_bytes = UNKNOWN_LENGTH
        expected = f"expected within {self._lanes.request_timeout_s:g} seconds of its head"
        late = CallError(408, f"body: {expected}")
        self._needed_bytes -= self._left_bytes
        self._left_bytes = 0
        self._end_with(head, self._lanes.gate.reply_to(late, head.method, head.route))

    def _end_with(self, head: Head, reply: Reply) -> None:
        """Refuse a request whose body is not whole; nothing after it can be read."""
        self._end_partial()
        self._body.free()
        self._chunked = None
        self._lanes.gate.observe(head.route, reply.status, 0.0)
        self._write(head, reply, is_last=True)

    def _reply(self, head: Head, body: bytes) -> None:
        """Answer one request, now or later."""
        gate = self._lanes.gate
        began = gate.clock()
        try:
            # Another thread may replace them meanwhile: those were not looked at.
            if head.tokens is not (tokens := gate.tokens):
                gate.authorise(head.scope, head.authorization, head.foreign)
                head.tokens = tokens
            if head.length > FREE_BYTES and head.waits:
                self._hold_body(len(body))
            # Not `Call(...)`, which calls a function in Python.
            answer = head.handler(
                _new_call(Call, (head.path, head.headers, body, head.query, head.raw_path))
            )
        except Exception as exc:  # noqa: BLE001 -- the boundary: no request may end the process
            if head.tokens is not gate.tokens:
                # Nothing is kept of who was not let pass.
                self._heads.clear()
            answer = gate.reply_to(exc, head.method, head.route)
            # A refusing head keeps its error, whose frames would keep the head.
            exc.__traceback__ = None
        if type(answer) is Reply:
            self._tell(head, answer, began)
            return
        self._begin_request()
        self._why_not |= IN_WORK
        work = self._lanes.start(self._work_on(head, answer, began))
        if self._body.taken:
            # Given back where the work ends, however it ends.
            work.add_done_callback(self._body.free)
            self._body = HeldBody(self._lanes.bodies)
        # Whoever administers is not stopped half way; items of an array are questions of their own.
        self._work = None if head.scope is Scope.ADMIN else work

    async def _work_on(self, head: Head, answer: Pieces | Awaitable[Reply], began: float) -> None:
        """Answer what takes longer: a long array, or what the plane answers."""
        try:
            if isinstance(answer, Awaitable):
                reply = await answer
            else:
                async with aclosing(answer) as pieces:
                    first = await anext(pieces)
                    if type(first) is Stream:
                        await self._send(head, first, pieces, began)
                        return
                    reply = cast("Reply", first)
        except Exception as exc:  # noqa: BLE001 -- as above
            reply = self._lanes.gate.reply_to(exc, head.method, head.route)
        self._work = None
        self._active_at = self._loop.time()
        self._tell(head, reply, began)
        self._go_on(IN_WORK)

    async def _send(self, head: Head, stream: Stream, messages: Pieces, began: float) -> None:
        """Send messages until they end, the client leaves, or its token no longer counts."""
        gate, transport = self._lanes.gate, self._transport
        gate.observe(head.route, 200, gate.clock() - began)
        # The operating system keeps little of what its client does not read.
        opened = transport.get_extra_info("socket")
        if opened is not None:  # or the client is gone already
            opened.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, STREAM_BUFFER_BYTES)
        transport.write(self._lanes.answers.stream(stream, in_chunks=not head.is_old))
        async for message in messages:
            # All streams have theirs at once, and as many writes would keep requests waiting.
            await self._lanes.streams.next()
            if self._is_unwanted or not gate.lets(head.scope, head.authorization):
                break
            sent = cast("bytes", message)
            transport.write(sent if head.is_old else chunk_of(sent))
            while self._why_not & UNREAD:
                self._was_read = self._loop.create_future()
                await self._was_read
        self._work = None
        transport.write(b"" if head.is_old else LAST_CHUNK)
        self._linger()

    def _tell(self, head: Head, reply: Reply, began: float) -> None:
        """Count an answer and write it."""
        gate = self._lanes.gate
        gate.observe(head.route, reply.status, gate.clock() - began)
        if self._body.taken:
            self._body.free()
        if self._why_not & CLOSED:
            return
        status, body, headers, content_type = reply
        is_plain = status == 200 and not headers and content_type == JSON
        if is_plain and head.is_usual and not (gate.draining or self._is_last):
            self._transport.write(self._lanes.answers.usual(body))
        else:
            self._write(head, reply, is_last=gate.draining or self._is_last or head.is_last)
        if self._active_at >= self._noted_until and self.admission is not None:
            self._bounds.connections.asked(self.admission)
            self._noted_until = self._active_at + NOTED_S

    def _write(self, head: Head, reply: Reply, *, is_last: bool) -> None:
        connection = "close" if is_last else "keep-alive" if head.is_old else None
        self._transport.write(self._lanes.answers.other(reply, connection, is_head=head.is_head))
        if is_last:
            self._linger()
