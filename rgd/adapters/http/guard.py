"""What holds one connection within the limits: its place, its timers, its unread bytes.

Laws:
- A connection is counted from the moment it is accepted (its TLS handshake too) until its socket is
  closed. One beyond the limits is refused, or let in for probes only (`connection_limits`).
- A request head that trickles ends its connection after `request_timeout_s`.
- What an answer waits to be read is counted (`byte_limits`), and ends with the connection after `answer_timeout_s`.

What its bytes mean is `connection`'s and `fast_lane`'s business.
"""

import asyncio
from abc import abstractmethod
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


class Guarded(asyncio.Protocol):
    """A connection within its limits, which it shares with all others."""

    def __init__(self, bounds: Bounds) -> None:
        self._bounds = bounds
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport
        #: Its place among all connections; None before it was let in, and once it is lost.
        self.admission: Admission | None = None
        #: Runs while a request head has begun to arrive and is not whole.
        self._head_timer: asyncio.TimerHandle | None = None
        #: Runs while the client does not read its answer.
        self._answer_timer: asyncio.TimerHandle | None = None

    @abstractmethod
    def force_close(self) -> None:
        """Answer nothing more and close."""

    def _is_tls(self) -> bool:
        return self._transport.get_extra_info("sslcontext") is not None

    def _head_began(self) -> None:
        """A part of a request head is there. Idempotent."""
        if self._head_timer is None:
            self._head_timer = self._loop.call_later(
                self._bounds.request_timeout_s, self._end, Closed.SLOW_REQUEST
            )

    def _head_is_whole(self) -> None:
        """Nothing of a head is missing any more."""
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _writing_paused(self) -> None:
        """The client does not read what was written: from now on it has so much time."""
        if self.admission is None:
            return
        self._answer_timer = self._loop.call_later(
            self._bounds.answer_timeout_s, self._end, Closed.SLOW_READER
        )
        # Later: a transport that is writing cannot be aborted.
        count = self._transport.get_write_buffer_size()
        self._bounds.unread.add(self, count, self._end_soon)

    def _writing_resumed(self) -> None:
        """The client has read nearly all of it."""
        self._bounds.unread.remove(self)
        if self._answer_timer is not None:
            self._answer_timer.cancel()
            self._answer_timer = None

    def _close_later(self) -> None:
        """See that a closed connection ends although nobody reads the rest of its answer."""
        if self.admission is not None and self._has_unread():
            self._loop.call_later(self._bounds.answer_timeout_s, self._transport.abort)

    def _lost(self) -> None:
        """The socket is closed."""
        if self.admission is not None:
            self._bounds.connections.leave(self.admission)
            self.admission = None
        self._head_is_whole()
        self._writing_resumed()

    def _make_room(self) -> None:
        self.force_close()
        # A polite end would wait for a peer that has not read what it was sent.
        if self._has_unread() or self._is_tls():
            self._transport.abort()

    def _end(self, reason: Closed) -> None:
        if self.admission is None:
            return
        self._bounds.connections.closed[reason] += 1
        self.force_close()
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
