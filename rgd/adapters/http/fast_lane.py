"""The fast lane: hot calls answered from the bytes of a connection, without tasks and without aiohttp.

Laws:
- The lane and aiohttp answer the same requests with the same answers: token, draining, count and words are
  the gate's, the limits the guard's, the answers the handlers'.
- A connection begins here. The first request that is not plainly a hot call (`lane_heads`) moves it to aiohttp
  for good, with every byte that was not answered.
- Requests are answered in order. While an answer waits to be read, while a long one is in work, and after
  `PIPELINED_MAX` in one turn of the loop, nothing more of that connection is answered, and soon nothing read.
- A client that ends its side of a connection gets the answers to all that it asked before (but over TLS, whose
  transports end with either side).

A head that a connection repeats, as clients with many questions do, is read once.
"""

import asyncio
import socket
from collections.abc import Awaitable
from typing import Final, cast

from typing_extensions import override

from rgd.adapters.http.byte_limits import FREE_BYTES, HeldBody
from rgd.adapters.http.connection import (
    LINGER_S,
    READ_AHEAD_BYTES,
    UNCOUNTED_UNREAD_BYTES,
    refuse_connection,
)
from rgd.adapters.http.connection_limits import Admission
from rgd.adapters.http.errors import BodyTooSlow
from rgd.adapters.http.guard import Guard, address_of
from rgd.adapters.http.hot_routes import may_become_hot
from rgd.adapters.http.lane_heads import HEAD_BYTES_MAX, Head, read_head
from rgd.adapters.http.lanes import Lanes
from rgd.adapters.http.reply import JSON, NO_HEADERS, Call, Reply

#: Requests of one connection that are answered before others get their turn.
PIPELINED_MAX: Final = 32

#: Heads that a connection has read already and that were let pass, and the longest that is kept: together at most
#: some 50 KB a connection.
HEADS_KEPT: Final = 8
HEAD_KEPT_BYTES: Final = 1 << 10
HEAD_KEPT_HEADERS: Final = 16

#: Least time between two notes to the guard that a connection asked: the precision of the order in which idle ones are closed.
NOTED_S: Final = 0.1

_new_call: Final = tuple.__new__
_HEAD_END: Final = b"\r\n\r\n"

# Why nothing is answered now; several may hold at once.
_NOT_BEGUN: Final = 1
_IN_WORK: Final = 2
_UNREAD: Final = 4
_NEXT_TURN: Final = 8
_CLOSED: Final = 16


class Lane(asyncio.Protocol):
    """One client."""

    __slots__ = (
        "_active_at",
        "_body",
        "_body_timer",
        "_guard",
        "_has_ended",
        "_heads",
        "_idle_timer",
        "_is_last",
        "_is_partial",
        "_is_reading",
        "_lanes",
        "_left",
        "_left_bytes",
        "_loop",
        "_needed_bytes",
        "_noted_until",
        "_transport",
        "_why_not",
    )

    def __init__(self, lanes: Lanes) -> None:
        self._lanes = lanes
        self._loop = lanes.loop
        self._transport: asyncio.Transport
        #: Set where it was let in.
        self._guard: Guard
        self._why_not = _NOT_BEGUN
        self._is_reading = True
        #: Whether the client sends nothing more.
        self._has_ended = False
        #: Whether the connection ends with the next answer.
        self._is_last = False
        #: Whether a head or a body has begun to arrive and is not whole: a timer runs.
        self._is_partial = False
        #: What was received and not answered; how much it has to be before it is looked at.
        self._left: list[bytes] = []
        self._left_bytes = self._needed_bytes = 0
        self._heads: dict[bytes, Head] = {}
        #: The budget's bytes of a large body, and the time it has, while it is incomplete.
        self._body: HeldBody | None = None
        self._body_timer: asyncio.TimerHandle | None = None
        self._active_at = self._noted_until = 0.0
        self._idle_timer: asyncio.TimerHandle | None = None

    # What the transport calls.

    @override
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        accepted = cast("asyncio.Transport", transport)
        limits = self._lanes.bounds.connections
        admission = limits.arrive(address_of(accepted), accepted.abort)
        if admission is None:
            # What it sends is not read.
            self._why_not |= _CLOSED
            refuse_connection(accepted)
        else:
            self._begin(accepted, admission)

    def take_over(self, transport: asyncio.Transport, admission: Admission) -> bool:
        """Begin with a connection that was counted already; False if it is gone."""
        if self._why_not & _CLOSED or transport.is_closing():
            return False
        transport.set_protocol(self)
        self._begin(transport, admission)
        return True

    @override
    def data_received(self, data: bytes) -> None:
        now = self._active_at = self._loop.time()
        self._lanes.answers.at(now)
        if self._why_not or self._left:
            if self._why_not & _CLOSED:
                self._pass_over(len(data))
                return
            self._left.append(data)
            self._left_bytes += len(data)
            if self._why_not:
                if self._left_bytes > READ_AHEAD_BYTES and self._is_reading:
                    self._is_reading = False
                    self._transport.pause_reading()
                return
            if self._left_bytes < self._needed_bytes:
                return
            data = self._take_left()
        self._answer(data)

    @override
    def pause_writing(self) -> None:
        self._why_not |= _UNREAD
        self._guard.writing_paused()

    @override
    def resume_writing(self) -> None:
        self._guard.writing_resumed()
        self._go_on(_UNREAD)

    @override
    def eof_received(self) -> bool:
        self._has_ended = True
        reasons = self._why_not
        is_open = not reasons & (_CLOSED | _NOT_BEGUN)
        has_questions = reasons & _IN_WORK or (reasons and self._left)
        return is_open and bool(has_questions) and not self._guard.is_tls

    @override
    def connection_lost(self, exc: BaseException | None) -> None:
        self._why_not |= _CLOSED
        self._lanes.left(self)
        if self._why_not & _NOT_BEGUN:
            return
        self._guard.lost()
        self._end_timers()
        if not self._why_not & _IN_WORK:
            self._free_body()

    # What the guard and the server call.

    def force_close(self) -> None:
        """Answer nothing more and close."""
        self._why_not |= _CLOSED
        self._left.clear()
        self._transport.close()
        self._guard.close_later()

    def close_if_idle(self) -> None:
        """Close unless a request is under way."""
        if not self._why_not & _IN_WORK and self._body_timer is None:
            self.force_close()

    @property
    def authority(self) -> bytes | None:
        """As `tls.Secured`."""
        return self._guard.authority

    @property
    def heads_kept(self) -> int:
        """How many heads it need not read again; at most `HEADS_KEPT`."""
        return len(self._heads)

    def end_soon(self) -> None:
        """As `tls.Secured`."""
        if self._guard.owner is not self:
            # It was handed over since it was looked up.
            self._guard.owner.end_soon()
            return
        self._is_last = True
        if not self._why_not & _NEXT_TURN:
            self.close_if_idle()

    def abort(self) -> None:
        """Close at once."""
        self._why_not |= _CLOSED
        self._transport.abort()

    # The life of a connection.

    def _begin(self, transport: asyncio.Transport, admission: Admission) -> None:
        lanes = self._lanes
        self._transport = transport
        self._guard = Guard(lanes.bounds, transport, admission, self)
        lanes.open.add(self)
        transport.set_write_buffer_limits(high=UNCOUNTED_UNREAD_BYTES)
        sock = transport.get_extra_info("socket")
        if sock is not None:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        self._active_at = self._loop.time()
        self._idle_timer = self._loop.call_later(lanes.idle_timeout_s, self._look_idle)
        if admission.beyond is not None:
            # It may ask for probes only, and those are aiohttp's.
            self._why_not = 0
            self._hand_over(self._take_left())
        else:
            self._go_on(_NOT_BEGUN)

    def _look_idle(self) -> None:
        """Close the connection if it is idle for so long; look again when it could be."""
        idle_at = self._active_at + self._lanes.idle_timeout_s
        is_busy = self._why_not & (_IN_WORK | _UNREAD) or self._body_timer is not None
        if is_busy or idle_at > self._loop.time():
            again = max(idle_at, self._loop.time() + self._lanes.idle_timeout_s / 2)
            self._idle_timer = self._loop.call_at(
                idle_at if not is_busy else again, self._look_idle
            )
            return
        self._idle_timer = None
        self.force_close()

    def _hand_over(self, left: bytes) -> None:
        """Move the connection to aiohttp, with what was not answered."""
        self._end_timers()
        self._lanes.left(self)
        self._heads.clear()
        # Nothing of it is the lane's any more.
        self._why_not |= _CLOSED
        if not self._is_reading:
            self._transport.resume_reading()
        connection = self._lanes.connections()
        self._transport.set_protocol(connection)
        connection.begin(self._transport, self._guard)
        if left:
            connection.data_received(left)
        if self._has_ended and not connection.eof_received():
            self._transport.close()
        if self._is_last:
            connection.end_soon()

    def _end_timers(self) -> None:
        for timer in (self._idle_timer, self._body_timer):
            if timer is not None:
                timer.cancel()
        self._idle_timer = self._body_timer = None

    def _go_on(self, reason: int) -> None:
        """One reason not to answer is gone."""
        self._why_not &= ~reason
        if self._why_not:
            return
        if self._left and self._left_bytes >= self._needed_bytes:
            self._answer(self._take_left())
        if self._has_ended and not self._why_not:
            # What is left is not whole and never will be.
            self.force_close()
        if not self._is_reading and not self._why_not:
            self._is_reading = True
            self._transport.resume_reading()

    def _take_left(self) -> bytes:
        data = b"".join(self._left)
        self._left.clear()
        self._left_bytes = self._needed_bytes = 0
        return data

    # The path of a request.

    def _answer(self, data: bytes) -> None:
        """Answer every request that is whole; the rest waits."""
        begin, end, answered = 0, len(data), 0
        while begin < end:
            body_begin = data.find(_HEAD_END, begin, begin + HEAD_BYTES_MAX) + len(_HEAD_END)
            head_bytes = data[begin:body_begin]
            head = self._heads.get(head_bytes) or self._read_head(head_bytes)
            if head is None:
                self._no_head(data[begin:], is_whole=body_begin > len(_HEAD_END))
                return
            if self._is_partial:
                self._end_partial()
            body_end = body_begin + head.length
            if body_end > end:
                self._wait_for_body(head, data[begin:], body_end - begin)
                return
            self._reply(head, data[body_begin:body_end])
            begin = body_end
            answered += 1
            if answered >= PIPELINED_MAX and begin < end:
                self._why_not |= _NEXT_TURN
                self._loop.call_soon(self._go_on, _NEXT_TURN)
            if self._why_not:
                break
        if begin < end and not self._why_not & _CLOSED:
            self._left.append(data[begin:])
            self._left_bytes = end - begin

    def _read_head(self, head_bytes: bytes) -> Head | None:
        if len(head_bytes) < len(_HEAD_END):
            return None
        head = read_head(head_bytes, self._lanes.routes, self._lanes.body_max_bytes)
        if head is None:
            return None
        if len(head_bytes) <= HEAD_KEPT_BYTES and len(head.headers) <= HEAD_KEPT_HEADERS:
            if len(self._heads) >= HEADS_KEPT:
                self._heads.clear()
            self._heads[head_bytes] = head
        return head

    def _no_head(self, left: bytes, *, is_whole: bool) -> None:
        """A head that is not whole, or one for aiohttp."""
        # After a bare line feed the end of this head may never come.
        is_odd = left.count(b"\n") != left.count(b"\r\n") or not may_become_hot(left)
        if is_whole or len(left) >= HEAD_BYTES_MAX or is_odd:
            self._hand_over(left)
            return
        self._guard.head_began()
        self._is_partial = True
        self._left.append(left)
        self._left_bytes, self._needed_bytes = len(left), 0

    def _wait_for_body(self, head: Head, left: bytes, needed_bytes: int) -> None:
        """The body is not whole: who may not ask, and what has no room, is answered before it comes."""
        lanes, gate = self._lanes, self._lanes.gate
        try:
            gate.authorise(head.scope, head.authorization)
            self._hold_body(head.length)
        except Exception as exc:  # noqa: BLE001 -- the boundary: no request may end the process
            self._needed_bytes = needed_bytes - len(left)
            self._end_with(head, gate.reply_to(exc, head.method, head.route))
            return
        self._begin_request()
        self._is_partial = True
        self._left.append(left)
        self._left_bytes, self._needed_bytes = len(left), needed_bytes
        self._body_timer = self._loop.call_later(lanes.request_timeout_s, self._body_is_late, head)

    def _begin_request(self) -> None:
        """A request takes longer than this turn: its connection cannot make room meanwhile."""
        self._guard.request_began()
        self._noted_until = 0.0

    def _end_partial(self) -> None:
        """What was incomplete is whole, or the body of a head is still missing."""
        self._is_partial = False
        self._guard.head_is_whole()
        if self._body_timer is not None:
            self._body_timer.cancel()
            self._body_timer = None

    def _body_is_late(self, head: Head) -> None:
        self._body_timer = None
        late = BodyTooSlow(self._lanes.request_timeout_s)
        self._needed_bytes -= self._left_bytes
        self._end_with(head, self._lanes.gate.reply_to(late, head.method, head.route))

    def _end_with(self, head: Head, reply: Reply) -> None:
        """Refuse a request whose body is not whole; nothing after it can be read."""
        self._end_partial()
        self._free_body()
        self._left.clear()
        lanes = self._lanes
        lanes.gate.observe(head.route, reply.status, 0.0)
        self._transport.write(lanes.answers.other(reply, is_head=head.is_head, is_last=True))
        self._end_timers()
        self._why_not |= _CLOSED
        self._idle_timer = self._loop.call_later(LINGER_S, self.force_close)

    def _pass_over(self, count: int) -> None:
        """A part of a refused body came: the connection ends with it, for a reset could overtake the answer."""
        if self._needed_bytes > 0:
            self._needed_bytes -= count
            if self._needed_bytes <= 0:
                self.force_close()

    def _reply(self, head: Head, body: bytes) -> None:
        """Answer one request, now or later."""
        gate = self._lanes.gate
        began = gate.clock()
        try:
            if head.tokens is not gate.tokens:
                gate.authorise(head.scope, head.authorization)
                head.tokens = gate.tokens
            if head.length > FREE_BYTES:
                self._hold_body(head.length)
            # Not `Call(...)`, which calls a function in Python.
            answer = head.handler(
                _new_call(Call, (head.path, head.headers, body, head.query, head.raw_path))
            )
        except Exception as exc:  # noqa: BLE001 -- the boundary: no request may end the process
            if head.tokens is not gate.tokens:
                # Nothing is kept of who was not let pass.
                self._heads.clear()
            answer = gate.reply_to(exc, head.method, head.route)
        if type(answer) is Reply:
            self._tell(head, answer, began)
        else:
            self._begin_request()
            self._why_not |= _IN_WORK
            self._lanes.start(self._reply_later(head, cast("Awaitable[Reply]", answer), began))

    async def _reply_later(self, head: Head, answer: Awaitable[Reply], began: float) -> None:
        gate = self._lanes.gate
        try:
            reply = await answer
        except Exception as exc:  # noqa: BLE001 -- as above
            reply = gate.reply_to(exc, head.method, head.route)
        self._active_at = self._loop.time()
        self._tell(head, reply, began)
        self._go_on(_IN_WORK)

    def _tell(self, head: Head, reply: Reply, began: float) -> None:
        """Count an answer and write it."""
        gate = self._lanes.gate
        gate.observe(head.route, reply.status, gate.clock() - began)
        if self._body is not None:
            self._free_body()
        if self._why_not & _CLOSED:
            return
        status, body, headers, content_type = reply
        if (
            status == 200
            and headers is NO_HEADERS
            and content_type is JSON
            and not (gate.draining or self._is_last or head.is_head)
        ):
            self._transport.write(self._lanes.answers.usual(body))
        else:
            self._write(head, reply, is_last=gate.draining or self._is_last)
        if self._active_at >= self._noted_until:
            self._guard.answered_at_once()
            self._noted_until = self._active_at + NOTED_S

    def _write(self, head: Head, reply: Reply, *, is_last: bool) -> None:
        answers = self._lanes.answers
        self._transport.write(answers.other(reply, is_head=head.is_head, is_last=is_last))
        if is_last:
            self.force_close()

    def _hold_body(self, count: int) -> None:
        """Take a body's bytes of the budget, once."""
        if self._body is None and count > FREE_BYTES:
            body = self._lanes.bodies.hold()
            body.take(count)
            self._body = body

    def _free_body(self) -> None:
        if self._body is not None:
            self._body.free()
            self._body = None
