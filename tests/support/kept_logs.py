"""A log folder that nobody writes just now, its readers, and where wanted its tier."""

import random
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import cast

from rgd.adapters.usagelog.cursors import Cursors, CursorSettings
from rgd.adapters.usagelog.tiering import TierParts, TierSettings, Uploader, closed_on_disk
from rgd.adapters.usagelog.writer import SegmentedLog
from rgd.app.log_keeping import LogKeeper
from rgd.app.log_reading import LogPlace
from rgd.backoff import Backoff
from rgd.core.units import NS_PER_S, Nanos
from rgd.storage.manifest import ClosedSegment
from rgd.storage.objects import Objects


class StillLog:
    """What the writer of a log says of it; the folder is looked at each time."""

    first_index = 0

    def __init__(self, folder: Path, next_index: int) -> None:
        self.folder = folder
        self.next_index = next_index
        self.on_closed: Callable[[], None] = lambda: None
        self.cursors: Callable[[], Mapping[str, int]] = dict

    @property
    def closed(self) -> tuple[ClosedSegment, ...]:
        return tuple(closed_on_disk(self.folder))


class SetClock:
    """A clock that the test moves."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def now(self) -> Nanos:
        return Nanos(round(self.seconds * NS_PER_S))

    def unix_ms(self) -> int:
        return 1_795_234_300_000 + round(self.seconds * 1000)


def keeper_of(
    folder: Path,
    next_index: int,
    *,
    clock: SetClock,
    settings: CursorSettings | None = None,
    uploader: Uploader | None = None,
    exposes_metadata: bool = False,
    log: SegmentedLog | None = None,
) -> LogKeeper:
    """The keeper of a folder whose log, unless it is given, ends before `next_index`."""
    return LogKeeper(
        LogPlace(folder, "usage", "broker-1", exposes_metadata),
        log or cast("SegmentedLog", StillLog(folder, next_index)),
        Cursors(folder, settings or CursorSettings(), clock.now),
        clock,
        uploader,
    )


def uploader_of(folder: Path, tier: str, clock: Callable[[], Nanos]) -> Uploader:
    """The uploader of a folder's closed segments to a tier."""
    parts = TierParts(
        objects=Objects(tier),
        closed=lambda: closed_on_disk(folder),
        clock=clock,
        backoff=Backoff(first_s=1, pause_s_max=1, dice=random.Random(1)),
        on_event=lambda _: None,
    )
    return Uploader(folder, parts, TierSettings(), new_log="1")
