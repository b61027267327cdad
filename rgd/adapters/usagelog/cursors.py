"""Readers' positions in a log, kept beside it: they hold back retention, within limits that have names.

Law: a position is kept over restarts. It holds back deletion while its reader acknowledged something
within `hold_s` and is at most `hold_bytes` behind; a restart begins the time again, because time without
the daemon is no fault of a reader, and a clock that jumps changes nothing. Beyond a limit retention
passes the reader: its position stays, and says how much it lost.
"""

import contextlib
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Final

import msgspec
from msgspec import Meta

from rgd.adapters.usagelog.errors import LogUnwritable
from rgd.adapters.usagelog.side_files import read_side_file
from rgd.config.plain_files import replace_file
from rgd.core.policies.names import ENTITY, NAME_MAX
from rgd.core.units import NS_PER_S, Nanos
from rgd.ports.log_door import CURSORS_MAX, CursorRefused, UnknownCursor
from rgd.storage.manifest import ClosedSegment, Whole

CURSORS_NAME: Final = "cursors.json"
#: Largest file that is read: 64 names of 512 characters take half of it.
CURSORS_BYTES_MAX: Final = 64 << 10

_Name = Annotated[str, Meta(pattern=rf"^{ENTITY.pattern}\Z", max_length=NAME_MAX)]
_decoder: Final[msgspec.json.Decoder[dict[str, int]]] = msgspec.json.Decoder(
    Annotated[dict[_Name, Whole], Meta(max_length=CURSORS_MAX)]
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CursorSettings:
    """How far and how long a reader holds back retention."""

    hold_s: float = 7 * 86_400
    #: Bytes of closed segments from its position on.
    hold_bytes: int = 1 << 40


@dataclass(frozen=True, slots=True)
class Cursor:
    """A reader's position."""

    name: str
    #: Of the first entry that it has not acknowledged.
    index: int
    #: When it acknowledged, or when the log was opened.
    since: Nanos


class Cursors:
    """The positions of one log's readers."""

    def __init__(self, folder: Path, settings: CursorSettings, clock: Callable[[], Nanos]) -> None:
        """Read what is stored; a file that makes no sense is set aside."""
        self._path = folder / CURSORS_NAME
        self._settings = settings
        self._clock = clock
        #: One change at a time; readers take the mapping as it is.
        self._changing = threading.Lock()
        now = clock()
        stored, self.set_aside = read_side_file(self._path, CURSORS_BYTES_MAX, _decoder.decode)
        self._known: Mapping[str, Cursor] = {
            name: Cursor(name, index, now) for name, index in (stored or {}).items()
        }

    def all(self) -> tuple[Cursor, ...]:
        """Every position, by name."""
        return tuple(cursor for _, cursor in sorted(self._known.items()))

    def get(self, name: str) -> Cursor:
        """One position.

        Raises:
            UnknownCursor: there is none.
        """
        cursor = self._known.get(name)
        if cursor is None:
            raise UnknownCursor(name)
        return cursor

    def put(self, name: str, index: int) -> Cursor:
        """Keep a position; blocks for the disk.

        Raises:
            CursorRefused: there are too many.
            LogUnwritable: the disk refuses.
        """
        with self._changing:
            if name not in self._known and len(self._known) >= CURSORS_MAX:
                raise CursorRefused(f"cursor {name}: there are {CURSORS_MAX} already; forget one")
            cursor = Cursor(name, index, self._clock())
            self._set({**self._known, name: cursor})
        return cursor

    def forget(self, name: str) -> None:
        """Keep a position no longer; blocks for the disk.

        Raises:
            UnknownCursor: there is none.
            LogUnwritable: the disk refuses.
        """
        with self._changing:
            self.get(name)
            self._set({one: cursor for one, cursor in self._known.items() if one != name})

    def lower(self, end: int) -> list[tuple[str, int]]:
        """Bring positions beyond the end of the log back to it; returns those by name, as they were.

        A log that lost entries gives their indexes to new ones, which a reader would never get.
        Blocks for the disk; where that refuses, the next position that is acknowledged stores all.
        """
        with self._changing:
            beyond = [(one.name, one.index) for one in self.all() if one.index > end]
            if beyond:
                lowered = {
                    name: replace(one, index=min(one.index, end))
                    for name, one in self._known.items()
                }
                self._known = lowered
                with contextlib.suppress(LogUnwritable):
                    self._set(lowered)
        return beyond

    def holds(self, cursor: Cursor, closed: Sequence[ClosedSegment]) -> bool:
        """Whether a position holds back deletion of these segments."""
        behind = sum(one.size for one in closed if one.last_index >= cursor.index)
        idle_ns = self._clock() - cursor.since
        settings = self._settings
        return idle_ns <= settings.hold_s * NS_PER_S and behind <= settings.hold_bytes

    def holding(self, closed: Sequence[ClosedSegment]) -> dict[str, int]:
        """The positions that hold back deletion, as `retention.removals` takes them."""
        return {one.name: one.index for one in self.all() if self.holds(one, closed)}

    def _set(self, known: Mapping[str, Cursor]) -> None:
        positions = {name: cursor.index for name, cursor in known.items()}
        try:
            replace_file(self._path, msgspec.json.encode(positions))
        except OSError as error:
            raise LogUnwritable(self._path, error) from error
        self._known = known
