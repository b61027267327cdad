"""What tests of the usage log share: a clock, payloads, logs written in one go, and the lists read back."""

import time
from collections.abc import Callable, Iterable
from pathlib import Path

from rgd.adapters.usagelog.appender import Appender, Pending
from rgd.adapters.usagelog.reader import DamagedEntry, LogEntry, read_entries
from rgd.adapters.usagelog.settings import UsageLogSettings
from rgd.adapters.usagelog.writer import SegmentedLog
from rgd.core.units import Nanos

BROKER = "broker-1"
#: Some time in 2026, in milliseconds since 1970.
T0 = 1_795_234_300_000
#: Longest wait of a test for something that must happen.
TIMEOUT_S = 60

MakeLog = Callable[..., SegmentedLog]


def clock() -> Nanos:
    return Nanos(time.monotonic_ns())


def payload_of(number: int, size_max: int = 60) -> bytes:
    """A payload that says which one it is, of a length that depends on it."""
    return b"%d:" % number + b"x" * (number * 7919 % size_max)


def pendings(count: int, *, first: int = 0, step_ms: int = 10) -> list[Pending]:
    return [
        Pending(payload_of(number), T0 + number * step_ms, ordinal)
        for ordinal, number in enumerate(range(first, first + count))
    ]


def write_log(folder: Path, batch: Iterable[Pending], settings: UsageLogSettings) -> None:
    """Append a batch and close, as a process would that ends in peace."""
    appender = Appender(folder, settings, broker=BROKER)
    try:
        appender.resume()
        appender.write(list(batch))
        appender.sync()
    finally:
        appender.close()


def read(path: Path) -> tuple[list[LogEntry], list[DamagedEntry]]:
    """The entries and the damage at `path`."""
    items = list(read_entries(path))
    return (
        [item for item in items if isinstance(item, LogEntry)],
        [item for item in items if isinstance(item, DamagedEntry)],
    )


def payloads_in(path: Path) -> list[bytes]:
    """The payloads at `path`, which must be free of damage and have continuous indexes from 0."""
    entries, damaged = read(path)
    assert damaged == []
    assert [item.entry.index for item in entries] == list(range(len(entries)))
    return [item.entry.payload for item in entries]


def segments_in(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.log"))
