"""A day of PIP-82's case in the usage log, compressed: does the log stay within `log.local_bytes`?

    python bench/log_day.py [--json] [--dir FOLDER] [--rounds 86400] [--tier]

The daemon's own log (`SegmentedLog`: its writer thread, its roller, its retention) gets one entry for each of
86,400 rounds, as large as a round of 5,000 groups is: the records of `PATTERN` rounds of PIP-82's case are
encoded once, and their bytes are appended over and over, because encoding 432 million rows would take half an
hour. Broker time and the log's clock move one second a round. So sizes, rolls, syncs and deletions are a
day's. After each write the folder's bytes are compared with the limit. `--tier`: the uploader carries closed
segments to a folder meanwhile, and its lag is looked at after each roll.
"""

import argparse
import asyncio
import random
import shutil
import tempfile
import time
from collections.abc import Iterator
from itertools import cycle
from pathlib import Path
from typing import Final

from bench.harness import Figures, run
from bench.usagelog import T0, pip82_rounds, stop
from rgd.adapters.usagelog.reader import LogEntry, read_segment
from rgd.adapters.usagelog.retention import Limits
from rgd.adapters.usagelog.settings import UsageLogSettings
from rgd.adapters.usagelog.sources import folder_sources
from rgd.adapters.usagelog.tiering import TierParts, TierSettings, Uploader
from rgd.adapters.usagelog.writer import SegmentedLog
from rgd.backoff import Backoff
from rgd.core.units import NS_PER_S, Nanos
from rgd.storage.objects import Objects
from rgd.wire.log_records import LogEncoder

DAY: Final = 86_400
#: Rounds that are encoded; twice the longest chain of records.
PATTERN: Final = 128
BATCH: Final = 64
#: `log.local_bytes`, unless it is set.
LOCAL_BYTES: Final = 1 << 30


class Day:
    """A log under a clock that is the round's."""

    def __init__(self, root: Path, *, has_tier: bool) -> None:
        self.folder = root / "log" / "broker-1"
        self.now = Nanos(0)
        self.log = SegmentedLog(
            self.folder,
            # What `log.retention_s` is unless it is set.
            UsageLogSettings(limits=Limits(local_bytes=LOCAL_BYTES, retention_ms=30 * 86_400_000)),
            broker="broker-1",
            clock=lambda: self.now,
            on_alarm=stop,
        )
        self.uploader = self._uploader(root / "tier") if has_tier else None
        self.local_bytes_max = 0
        self.lag_max = 0
        self.rolled = 0

    async def write(self, payloads: Iterator[bytes], rounds: int) -> None:
        """The day."""
        await self.log.open()
        if self.uploader is not None:
            self.log.on_closed = self.uploader.wake
            self.uploader.start()
        segments: set[str] = set()
        for begin in range(0, rounds, BATCH):
            for number in range(begin, min(begin + BATCH, rounds)):
                self.log.append(next(payloads), broker_timestamp_ms=T0 + number * 1000)
            self.now = Nanos((begin + BATCH) * NS_PER_S)
            while self.log.appended + self.log.lost <= number:  # noqa: ASYNC110 -- a thread writes
                await asyncio.sleep(0)
            segments |= self._look()
        self.rolled = len(segments)
        await self.log.close()

    def _look(self) -> set[str]:
        """Compare the folder with the limit; its segments."""
        size, names = 0, set()
        for path in self.folder.iterdir():
            try:
                size += path.stat().st_size
            except FileNotFoundError:
                continue  # The uploader has just dropped it.
            if path.suffix == ".log":
                names.add(path.name)
        self.local_bytes_max = max(self.local_bytes_max, size)
        if size > LOCAL_BYTES:
            raise SystemExit(f"{size:,} bytes in {self.folder}, above log.local_bytes")
        lag = None if self.uploader is None else self.uploader.lag(T0)
        self.lag_max = max(self.lag_max, 0 if lag is None else lag.upload_segments)
        return names

    def _uploader(self, tier: Path) -> Uploader:
        parts = TierParts(
            objects=Objects(str(tier)),
            closed=lambda: self.log.closed,
            clock=lambda: self.now,
            backoff=Backoff(first_s=1, pause_s_max=60, dice=random.Random(1)),
            on_event=print,
        )
        return Uploader(self.folder, parts, TierSettings(), new_log="1")


def encoded() -> list[bytes]:
    """The records of some rounds of PIP-82's case."""
    encoder = LogEncoder()
    return [encoder.encode(record).data for record in pip82_rounds(PATTERN)]


def measure(options: argparse.Namespace) -> Figures:
    """All figures."""
    root = Path(tempfile.mkdtemp(dir=options.dir))
    try:
        payloads = encoded()
        day = Day(root, has_tier=options.tier)
        begun = time.perf_counter()
        asyncio.run(day.write(cycle(payloads), options.rounds))
        took_s = time.perf_counter() - begun
        figures: dict[str, float] = {
            "rounds": options.rounds,
            "entry_bytes_mean": round(sum(map(len, payloads)) / len(payloads)),
            "segments_rolled": day.rolled,
            "segments_deleted": sum(day.log.deleted.values()),
            "lost": day.log.lost,
            "local_bytes_limit": LOCAL_BYTES,
            "local_bytes_max": day.local_bytes_max,
            "writing_s": round(took_s, 1),
        }
        if day.uploader is not None:
            day.uploader.stop()
            figures["tier_segments"] = len(day.uploader.state.segments)
            figures["lag_segments_max"] = day.lag_max
        last = folder_sources(day.folder)[-1]
        found = list(read_segment(last))
        assert all(isinstance(one, LogEntry) for one in found)
        assert isinstance(found[-1], LogEntry)
        figures["last_index"] = found[-1].entry.index or 0
    finally:
        shutil.rmtree(root)
    return figures


def add_options(parser: argparse.ArgumentParser) -> None:
    """Where to write, and how much."""
    parser.add_argument("--dir", type=Path, help="folder to write in (default: the temporary one)")
    parser.add_argument("--rounds", type=int, default=DAY, help="rounds of the day")
    parser.add_argument("--tier", action="store_true", help="with an uploader to a folder")


if __name__ == "__main__":
    run(__doc__, measure, add_options=add_options)
