"""The plane's end of the link: it tells, and it asks and waits for the answer.

Laws: what is told and asked is done in order. Nothing of the plane runs while it waits for an answer: notes that come meanwhile
are done in a later turn of the loop. Without a gate there is no daemon, so the end of the link ends the process.

The plane has its process to itself, so waiting holds nobody up. An answer takes the gate a turn of its loop.
"""

import asyncio
import socket
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, TypeVar, TypeVarTuple

import structlog

from rgd.app.planes.frames import FAULT, NOTE, Frames, framed
from rgd.core.gate.local import LocalGate
from rgd.errors import RgdError

#: What is told waits to be sent with the rest of a turn, up to so many bytes.
TOLD_BYTES_MAX: Final = 64 << 10

_log = structlog.get_logger("rgd.daemon")

_READ_BYTES: Final = 256 << 10

_Args = TypeVarTuple("_Args")
_Result = TypeVar("_Result")


class LinkEnded(RgdError):
    """The gate's process has ended."""


def _log_fault(error: Exception) -> None:
    _log.error("internal error", where="link", traceback=repr(error))


class PlaneEnd:
    """The link to the gate.

    Args:
        connected: a socket that blocks.
        on_end: called once when the gate has gone.
    """

    def __init__(self, connected: socket.socket, on_end: Callable[[], None]) -> None:
        self._socket = connected
        self._on_end = on_end
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(connected.fileno(), self._read_notes)
        # uvloop has made it one that does not wait.
        connected.settimeout(None)
        self._frames = Frames()
        self._told = bytearray()
        self._notes: list[tuple[str, tuple[Any, ...]]] = []
        #: Has the methods that notes name.
        self.host: object = None
        #: Called with what a note raises.
        self.on_fault: Callable[[Exception], None] = _log_fault
        #: The slot ids of groups that no longer exist, as of the last answer.
        self.dropped: list[int] = []

    def tell(self, function: Callable[[LocalGate, *_Args], Any], *args: *_Args) -> None:
        """Have the gate do something."""
        self._tell(function, args)

    def ask(self, function: Callable[[LocalGate, *_Args], _Result], *args: *_Args) -> _Result:
        """Have the gate do something, and wait for what it gives.

        Raises:
            LinkEnded: there is no gate any more.
            Exception: what the gate raised.
        """
        result: _Result = self._ask(function, args)
        return result

    def ask_each(
        self, function: Callable[[LocalGate, Any], _Result], pieces: Iterable[object]
    ) -> list[_Result]:
        """[pieces] what the gate gives for each, which may serve requests between two; raises as `ask`."""
        return self._ask_all([framed((True, function, (piece,))) for piece in pieces])

    def tell_host(self, name: str, *args: object) -> None:
        """Have the gate's process do something, by the name of a method."""
        self._tell(name, args)

    def ask_host(self, name: str, *args: object) -> Any:
        """The same, and wait for what it gives; raises as `ask`."""
        return self._ask(name, args)

    def flush(self) -> None:
        """Send what was told."""
        if self._told:
            told, self._told = self._told, bytearray()
            try:
                self._socket.sendall(told)
            except OSError as error:
                raise self._ended() from error

    def _tell(self, called: object, args: tuple[object, ...]) -> None:
        if not self._told:
            self._loop.call_soon(self.flush)
        self._told += framed((False, called, args))
        if len(self._told) > TOLD_BYTES_MAX:
            self.flush()

    def _ask(self, called: object, args: tuple[object, ...]) -> Any:
        return self._ask_all([framed((True, called, args))])[0]

    def _ask_all(self, asks: Sequence[bytes]) -> list[Any]:
        self._told += b"".join(asks)
        self.flush()
        # All are taken before any is raised, so that what is asked next meets its own answer.
        answers = [self._answer() for _ in asks]
        # What came with the last of them is notes.
        self._take_notes()
        for kind, value in answers:
            if kind == FAULT:
                raise value
        return [value for _, value in answers]

    def _answer(self) -> tuple[int, Any]:
        """The next answer, whose turn it is, and its kind."""
        while True:
            while (frame := self._frames.take()) is None:
                self._receive(0)
            kind, value, rest = frame
            if kind != NOTE:
                self.dropped += rest
                return kind, value
            self._later(value, rest)

    def _receive(self, flags: int) -> None:
        try:
            data = self._socket.recv(_READ_BYTES, flags)
        except BlockingIOError:
            return
        except OSError as error:
            raise self._ended() from error
        if not data:
            raise self._ended()
        self._frames.feed(data)

    def _read_notes(self) -> None:
        try:
            self._receive(socket.MSG_DONTWAIT)
        except LinkEnded:
            return
        self._take_notes()

    def _take_notes(self) -> None:
        while (frame := self._frames.take()) is not None:
            self._later(*frame[1:])

    def _later(self, name: str, args: tuple[Any, ...]) -> None:
        if not self._notes:
            self._loop.call_soon(self._do_notes)
        self._notes.append((name, args))

    def _do_notes(self) -> None:
        notes, self._notes = self._notes, []
        for name, args in notes:
            try:
                getattr(self.host, name)(*args)
            except Exception as error:  # noqa: BLE001 -- the next one has nothing to do with it
                self.on_fault(error)

    def _ended(self) -> LinkEnded:
        _log.error("the gate's process has gone")
        self._loop.remove_reader(self._socket.fileno())
        self._on_end()
        return LinkEnded("the gate's process has ended")
