"""Any sequence of appends, rolls, restarts and crashes reads back exactly; seeking agrees with looking.

The model is a list. Crashes cut the last segment anywhere and take, break or outdate its sparse index.
Not covered: damage in the middle (tests/unit/adapters/usagelog/test_recovery.py, test_reader.py) and
failing disks.
"""

import asyncio
import shutil
import tempfile
import time
from pathlib import Path

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from rgd.adapters.usagelog.appender import Appender, Pending
from rgd.adapters.usagelog.index import index_path
from rgd.adapters.usagelog.reader import LogEntry, read_entries, seek_time
from rgd.adapters.usagelog.settings import UsageLogSettings
from rgd.adapters.usagelog.writer import LogAlarm, SegmentedLog
from rgd.core.units import Nanos
from rgd.ports.usagelog import Fsync
from rgd.storage.headers import header_at

pytestmark = pytest.mark.slow

BROKER = "broker-1"
T0 = 1_795_234_300_000
TIMEOUT_S = 60

payloads = st.binary(max_size=200)
#: From one entry to the next, by a clock that jumps.
steps_ms = st.integers(-3_000, 5_000)
bursts = st.lists(st.tuples(payloads, steps_ms), max_size=8)
segment_sizes = st.sampled_from([1, 150, 700, 1 << 20])


def read(path: Path) -> list[LogEntry]:
    """The entries at `path`, which must be free of damage."""
    items = list(read_entries(path))
    entries = [item for item in items if isinstance(item, LogEntry)]
    assert len(entries) == len(items)
    return entries


class AnyHistory(RuleBasedStateMachine):
    """A log's appender against a list of (payload, publish time)."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.model: list[tuple[bytes, int]] = []
        self.now_ms = T0
        self.offered = 0

    @initialize(segment_bytes=segment_sizes)
    def begin(self, segment_bytes: int) -> None:
        self.settings = UsageLogSettings(
            fsync=Fsync.NEVER, segment_bytes=segment_bytes, segment_age_ms=10_000
        )
        self.open()

    def open(self) -> None:
        self.appender = Appender(self.folder, self.settings, broker=BROKER)
        self.appender.resume()
        self.offered = 0

    @rule(burst=bursts, lost=st.integers(0, 2))
    def append(self, burst: list[tuple[bytes, int]], lost: int) -> None:
        batch = []
        self.offered += lost
        for payload, step_ms in burst:
            self.now_ms = max(self.now_ms + step_ms, 0)
            batch.append(Pending(payload, self.now_ms, self.offered))
            self.model.append((payload, self.now_ms))
            self.offered += 1
        self.appender.write(batch)

    @rule(segment_bytes=segment_sizes)
    def restart(self, segment_bytes: int) -> None:
        self.appender.close()
        self.settings = UsageLogSettings(
            fsync=Fsync.NEVER, segment_bytes=segment_bytes, segment_age_ms=10_000
        )
        self.open()

    @rule()
    def resume_in_place(self) -> None:
        self.appender.resume()

    @rule(cut=st.integers(0, 600), fate=st.sampled_from(["kept", "lost", "cut", "zeros"]))
    def crash(self, cut: int, fate: str) -> None:
        self.appender.close()
        segments = sorted(self.folder.glob("*.log"))
        if segments:
            last = segments[-1]
            whole = read(last)
            size = max(last.stat().st_size - cut, 0)
            with last.open("r+b") as file:
                ends = [header_at(file.fileno(), item.offset).end for item in whole]
                file.truncate(size)
            gone = sum(end > size for end in ends)
            self.model = self.model[: len(self.model) - gone]
            self.change_index(last, fate)
        self.open()

    def change_index(self, segment: Path, fate: str) -> None:
        path = index_path(segment)
        match fate:
            case "lost":
                path.unlink(missing_ok=True)
            case "cut":
                path.write_bytes(path.read_bytes()[:-5] if path.exists() else b"")
            case "zeros":
                path.write_bytes(bytes(48))
            case _:
                pass

    @invariant()
    def everything_reads_back(self) -> None:
        entries = [item.entry for item in read(self.folder)]
        assert [(entry.payload, entry.publish_time) for entry in entries] == self.model
        assert [entry.index for entry in entries] == list(range(len(entries)))
        times = [entry.timestamp for entry in entries]
        assert times == sorted(times)
        assert all(entry.timestamp >= entry.publish_time for entry in entries)
        sequence = [entry.sequence_id for entry in entries]
        assert sequence == sorted(set(sequence))

    @rule(delta_ms=st.integers(-10_000, 60_000))
    def seek(self, delta_ms: int) -> None:
        entries = read(self.folder)
        expected = next((i for i in entries if i.entry.timestamp >= T0 + delta_ms), None)
        found = seek_time(self.folder, T0 + delta_ms)
        assert (found is None) == (expected is None)
        if found is not None and expected is not None:
            assert (found.path, found.offset) == (expected.path, expected.offset)

    def teardown(self) -> None:
        self.appender.close()
        shutil.rmtree(self.folder)


AnyHistory.TestCase.settings = settings(stateful_step_count=15)
TestAnyHistory = AnyHistory.TestCase


@given(st.lists(bursts, min_size=1, max_size=3), segment_sizes, st.sampled_from(Fsync))
def test_whatever_the_daemon_appends_reads_back_over_restarts(
    lives: list[list[tuple[bytes, int]]], segment_bytes: int, fsync: Fsync
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(live(Path(folder), lives, segment_bytes=segment_bytes, fsync=fsync))
        entries = [item.entry for item in read(Path(folder))]
        assert [entry.payload for entry in entries] == [p for life in lives for p, _ in life]
        assert [entry.index for entry in entries] == list(range(len(entries)))


async def live(
    folder: Path, lives: list[list[tuple[bytes, int]]], *, segment_bytes: int, fsync: Fsync
) -> None:
    """One log after another in one folder, each appending its bursts and closing."""

    def fail(alarm: LogAlarm) -> None:
        raise AssertionError(alarm)

    now_ms = T0
    for life in lives:
        log = SegmentedLog(
            folder,
            UsageLogSettings(segment_bytes=segment_bytes, fsync=fsync),
            broker=BROKER,
            clock=lambda: Nanos(time.monotonic_ns()),
            on_alarm=fail,
        )
        async with asyncio.timeout(TIMEOUT_S):
            await log.open()
            for payload, step_ms in life:
                now_ms += step_ms
                log.append(payload, broker_timestamp_ms=now_ms)
            await log.close()
        assert (log.appended, log.lost) == (len(life), 0)
