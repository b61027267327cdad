"""What holds one connection within the limits: its place, its timers, its unread bytes.

Laws:
- A connection is counted from the moment it is accepted (its TLS handshake too) until its socket is
  closed. One beyond the limits is refused, or let in for probes only (`connection_limits`).
- A request head that trickles ends its connection after `request_timeout_s`.
- What an answer waits to be read is counted (`byte_limits`), and ends with the connection after `answer_timeout_s`.

Whoever owns the connection says what happens to it.
"""

import asyncio
from collections.abc import Callable
from typing import NamedTuple

from rgd.adapters.http.byte_limits import UnreadAnswers
from rgd.adapters.http.connection_limits import (
    Admission,
    Closed,
    ConnectionLimits,
    Refused,
    caller_of,
)
from rgd.adapters.http.errors import Overloaded


class Bounds(NamedTuple):
    """What bounds each connection, and all of them together."""

    connections: ConnectionLimits
    unread: UnreadAnswers
    request_timeout_s: float
    answer_timeout_s: float


def too_many(beyond: Refused) -> Overloaded:
    """The error of a connection that is beyond a limit, and asks for more than probes."""
    return Overloaded(
        f"too many connections (http.{beyond}); close some, or come back; "
        "at http.probe_listen only probes are answered",
        {"Connection": "close"},
    )


def _is_closed() -> None:
    """Close what is closed."""


class Guard:
    """The limits of one connection.

    Args:
        bounds: shared by all connections.
        transport: of the connection.
        admission: its place among all connections.
        force_close: has its owner answer nothing more, and close the transport.
    """

    def __init__(
        self,
        bounds: Bounds,
        transport: asyncio.Transport,
        admission: Admission,
        force_close: Callable[[], None],
    ) -> None:
        self._bounds = bounds
        self._transport = transport
        self._loop = asyncio.get_running_loop()
        #: Runs while a request head has begun to arrive and is not whole.
        self._head_timer: asyncio.TimerHandle | None = None
        #: Runs while the client does not read its answer.
        self._answer_timer: asyncio.TimerHandle | None = None
        #: None once the connection is lost.
        self.admission: Admission | None = admission
        self._force_close = force_close
        admission.close = self._make_room

    @property
    def is_tls(self) -> bool:
        """Whether the connection is encrypted."""
        return self._transport.get_extra_info("sslcontext") is not None

    @property
    def is_for_probes(self) -> bool:
        """Whether it may ask for probes only; asking for more is counted by `refuse`."""
        return self.admission is not None and self.admission.beyond is not None

    def refuse(self) -> Overloaded:
        """Count that it asked for more than probes; the error to answer with."""
        assert self.admission is not None, "it was let in"
        self._bounds.connections.refuse(self.admission)
        return too_many(self.admission.beyond or Refused.CONNECTIONS)

    def head_began(self) -> None:
        """A part of a request head is there. Idempotent."""
        if self._head_timer is None:
            self._head_timer = self._loop.call_later(
                self._bounds.request_timeout_s, self._end, Closed.SLOW_REQUEST
            )

    def head_is_whole(self) -> None:
        """Nothing of a head is missing any more."""
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def request_began(self) -> None:
        """A request is under way: the connection cannot make room."""
        self.head_is_whole()
        if self.admission is not None:
            self._bounds.connections.busy(self.admission)

    def answered_at_once(self) -> None:
        """A request was answered before anything else happened."""
        if self.admission is not None:
            self._bounds.connections.asked(self.admission)

    def writing_paused(self) -> None:
        """The client does not read what was written: from now on it has so much time."""
        if self.admission is None:
            return
        self._answer_timer = self._loop.call_later(
            self._bounds.answer_timeout_s, self._end, Closed.SLOW_READER
        )
        # Later: a transport that is writing cannot be aborted.
        count = self._transport.get_write_buffer_size()
        self._bounds.unread.add(self, count, self._end_soon)

    def writing_resumed(self) -> None:
        """The client has read nearly all of it."""
        self._bounds.unread.remove(self)
        if self._answer_timer is not None:
            self._answer_timer.cancel()
            self._answer_timer = None

    def close_later(self) -> None:
        """See that a closed connection ends although nobody reads the rest of its answer."""
        if self.admission is not None and self._has_unread():
            self._loop.call_later(self._bounds.answer_timeout_s, self._transport.abort)

    def lost(self) -> None:
        """The socket is closed."""
        if self.admission is not None:
            self._bounds.connections.leave(self.admission)
            self.admission = None
        self.head_is_whole()
        self.writing_resumed()
        # Otherwise owner and guard would keep each other until the next collection, which is rare.
        self._force_close = _is_closed

    def _make_room(self) -> None:
        self._force_close()
        # A polite end would wait for a peer that has not read what it was sent.
        if self._has_unread() or self.is_tls:
            self._transport.abort()

    def _end(self, reason: Closed) -> None:
        if self.admission is None:
            return
        self._bounds.connections.closed[reason] += 1
        self._force_close()
        self._transport.abort()

    def _end_soon(self) -> None:
        self._loop.call_soon(self._end, Closed.UNREAD_LIMIT)

    def _has_unread(self) -> bool:
        try:
            return self._transport.get_write_buffer_size() > 0
        except AttributeError:
            # asyncio's TLS transport forgets its protocol when it is closed twice.
            return False


def address_of(transport: asyncio.Transport) -> str | None:
    """Whom a connection comes from, as `connection_limits` counts them."""
    peer = transport.get_extra_info("peername")
    # A unix socket's peer has no address, or a path.
    return caller_of(peer[0]) if isinstance(peer, tuple) else None
