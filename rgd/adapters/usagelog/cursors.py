"""Readers' positions in a log, kept beside it: they hold back retention, within limits that have names.

Law: a position is kept over restarts. It holds back deletion while its reader acknowledged something
within `hold_s` and is at most `hold_bytes` behind; a restart begins the time again, because time without
the daemon is no fault of a reader, and a clock that jumps changes nothing. Beyond a limit retention
passes the reader: its position stays and says how much it lost, or it is forgotten (`on_overrun`).
"""

import json
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from rgd.adapters.usagelog.errors import LogUnwritable
from rgd.adapters.usagelog.retention import ClosedSegment
from rgd.core.units import NS_PER_S, Nanos
from rgd.ports.log_door import CURSORS_MAX, CursorRefused, UnknownCursor
from rgd.ports.usagelog import OnOverrun

CURSORS_NAME: Final = "cursors.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class CursorSettings:
    """How far and how long a reader holds back retention."""

    hold_s: float = 7 * 86_400
    #: Bytes of closed segments from its position on.
    hold_bytes: int = 1 << 40
    on_overrun: OnOverrun = OnOverrun.PASS


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
        """Read what is stored; what cannot be read is as good as none."""
        self._path = folder / CURSORS_NAME
        self._settings = settings
        self._clock = clock
        #: One change at a time; readers take the mapping as it is.
        self._changing = threading.Lock()
        now = clock()
        self._known: Mapping[str, Cursor] = {
            name: Cursor(name, index, now) for name, index in _read(self._path).items()
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

    def holds(self, cursor: Cursor, closed: Sequence[ClosedSegment]) -> bool:
        """Whether a position holds back deletion of these segments."""
        behind = sum(one.size for one in closed if one.last_index >= cursor.index)
        idle_ns = self._clock() - cursor.since
        settings = self._settings
        return idle_ns <= settings.hold_s * NS_PER_S and behind <= settings.hold_bytes

    def holding(self, closed: Sequence[ClosedSegment]) -> dict[str, int]:
        """The positions that hold back deletion, as `retention.removals` takes them.

        Those beyond a limit are forgotten here where the settings say so.
        """
        held = {one.name: one.index for one in self.all() if self.holds(one, closed)}
        if self._settings.on_overrun is OnOverrun.FORGET:
            for cursor in self.all():
                if cursor.name not in held:
                    self.forget(cursor.name)
        return held

    def _set(self, known: Mapping[str, Cursor]) -> None:
        draft = self._path.with_suffix(f".{os.getpid()}")
        positions = {name: cursor.index for name, cursor in known.items()}
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            draft.write_text(json.dumps(positions), encoding="utf-8")
            draft.replace(self._path)
        except OSError as error:
            raise LogUnwritable(self._path, error) from error
        self._known = known


def _read(path: Path) -> dict[str, int]:
    try:
        stored = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return {}
    if not isinstance(stored, dict):
        return {}
    sound = {name: index for name, index in stored.items() if type(index) is int and index >= 0}
    return dict(list(sound.items())[:CURSORS_MAX])
