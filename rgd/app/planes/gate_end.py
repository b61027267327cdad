"""The gate's end of the link: it does what the plane tells, answers what the plane asks, and notes what is new.

Laws: what comes is done in order. A turn of the loop works on it for `TURN_NS`, then requests are served. The gate
never waits for the plane; what it has to say is a note, at most one of a sort a turn.
"""

import asyncio
from collections.abc import Callable
from typing import Any, Final, cast

from rgd.app.containment import InternalErrors
from rgd.app.planes.frames import FAULT, NOTE, REPLY, Frames, framed
from rgd.core.gate.local import LocalGate
from rgd.core.units import NS_PER_MS, Nanos

#: How long one turn of the loop works for the plane.
TURN_NS: Final = NS_PER_MS // 4


class GateEnd(asyncio.Protocol):
    """One plane's link.

    Args:
        gate: where everything is done.
        host: has the methods that the plane calls by name.
        errors: counts what a bug raises.
        now: monotonic.
    """

    def __init__(
        self, gate: LocalGate, host: object, errors: InternalErrors, now: Callable[[], Nanos]
    ) -> None:
        self._gate = gate
        self._host = host
        self._errors = errors
        self._now = now
        self._frames = Frames()
        self._is_working = False
        #: When anything came last: a plane that is alive says something several times a second.
        self.received_at: Nanos | None = None
        #: Whether the plane still loads its modules and its groups file: it has not said how it is.
        self.is_starting = True

    # asyncio.Protocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._loop = asyncio.get_running_loop()

    def data_received(self, data: bytes) -> None:
        self.received_at = self._now()
        self._frames.feed(data)
        if not self._is_working:
            self._work()

    # The other way.

    def note(self, name: str, *args: object) -> None:
        """Have the plane's host do something."""
        self._write(framed((NOTE, name, args)))

    def close(self) -> None:
        """End the link, and with it the plane; nothing more of it is done."""
        self._frames = Frames()
        self._transport.abort()

    def _write(self, frame: bytes) -> None:
        if not self._transport.is_closing():
            self._transport.write(frame)

    def _work(self) -> None:
        """Do what came, until the turn is over; nothing more is read until all of it is done."""
        until = self._now() + TURN_NS
        while (frame := self._frames.take()) is not None:
            is_asked, called, args = frame
            self._do(called, args, is_asked=is_asked)
            if self._now() >= until:
                self._is_working = True
                self._transport.pause_reading()
                self._loop.call_soon(self._work)
                return
        if self._is_working:
            self._is_working = False
            if not self._transport.is_closing():
                self._transport.resume_reading()

    def _do(self, called: Any, args: tuple[object, ...], *, is_asked: bool) -> None:
        kind, value = REPLY, None
        try:
            if isinstance(called, str):
                value = getattr(self._host, called)(*args)
            else:
                value = called(self._gate, *args)
        except Exception as error:  # noqa: BLE001 -- a bug; requests have nothing to do with it
            self._errors.note("link", error)
            kind, value = FAULT, error
        if is_asked:
            self._answer(kind, value)
        elif kind == FAULT:
            # What was told is not in force, and nobody would say it again: the next plane says all anew.
            self.close()

    def _answer(self, kind: int, value: object) -> None:
        """Answer, with the groups that are gone as of now."""
        dropped = tuple(self._gate.news.dropped)
        self._gate.news.dropped.clear()
        try:
            answer = framed((kind, value, dropped))
        except Exception as error:  # noqa: BLE001 -- it cannot be pickled; the plane must not wait for ever
            answer = framed((FAULT, RuntimeError(repr(error)), dropped))
        self._write(answer)
