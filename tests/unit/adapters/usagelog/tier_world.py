"""A log folder, a clock that the test moves, and uploaders of that folder: what tests of the tier share."""

import random
from collections.abc import Sequence
from pathlib import Path

from rgd.adapters.usagelog.reader import LogEntry, read_entries
from rgd.adapters.usagelog.settings import UsageLogSettings
from rgd.adapters.usagelog.tiering import (
    TierAlarm,
    TierDeleted,
    TierParts,
    TierSettings,
    Uploader,
    closed_on_disk,
)
from rgd.backoff import Backoff
from rgd.core.units import NS_PER_S, Nanos
from rgd.storage.manifest import ClosedSegment
from rgd.storage.objects import Objects
from tests.unit.adapters.usagelog.logs import pendings, write_log

SETTINGS = UsageLogSettings(segment_bytes=1024)
STEP_MS = 10
COUNT = 100
BROKER = "broker-1"


class World:
    """A log folder, a clock that the test moves, and uploaders of that folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / BROKER
        self.now = Nanos(0)
        self.with_last = False
        self.events: list[TierAlarm | TierDeleted] = []

    def write(self, count: int = COUNT, first: int = 0) -> None:
        write_log(self.folder, pendings(count, first=first, step_ms=STEP_MS), SETTINGS)

    def closed(self) -> Sequence[ClosedSegment]:
        return closed_on_disk(self.folder, with_last=self.with_last)

    def uploader(self, objects: Objects, log: str = "1", **settings: object) -> Uploader:
        parts = TierParts(
            objects=objects,
            closed=self.closed,
            clock=lambda: self.now,
            backoff=Backoff(first_s=0.001, pause_s_max=0.01, dice=random.Random(1)),
            on_event=self._tell,
        )
        return Uploader(self.folder, parts, TierSettings(**settings), new_log=log)  # type: ignore[arg-type]

    def pass_s(self, seconds: float) -> None:
        self.now = Nanos(self.now + round(seconds * NS_PER_S))

    def _tell(self, event: TierAlarm | TierDeleted) -> None:
        self.events.append(event)


def payloads(place: str | Path) -> list[bytes]:
    found = list(read_entries(place))
    assert all(isinstance(one, LogEntry) for one in found)
    return [one.entry.payload for one in found if isinstance(one, LogEntry)]
