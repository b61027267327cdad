"""What every usage log promises the daemon (rgd.ports.usagelog), under every way of syncing.

Reading back goes through the reader, as `rgd log cat` and tests of the daemon do.
Not covered: failing disks and full queues (tests/unit/adapters/usagelog).
"""

import asyncio
import time
from collections.abc import AsyncGenerator, Callable
from pathlib import Path

import pytest

from rgd.adapters.usagelog.files import log_folder
from rgd.adapters.usagelog.reader import LogEntry, read_entries
from rgd.adapters.usagelog.settings import UsageLogSettings
from rgd.adapters.usagelog.writer import LogAlarm, SegmentedLog
from rgd.core.units import Nanos
from rgd.ports.usagelog import Fsync, LogLocked, UsageLog
from rgd.wire.frame import Entry
from tests.support.policy_tables import until

BROKER = "broker-1"
T0 = 1_795_234_300_000
TIMEOUT_S = 60

VARIANTS = {
    "interval": UsageLogSettings(fsync=Fsync.INTERVAL, fsync_ms=1),
    "always": UsageLogSettings(fsync=Fsync.ALWAYS),
    "never": UsageLogSettings(fsync=Fsync.NEVER),
    "a segment an entry": UsageLogSettings(segment_bytes=1),
    "an entry at a time": UsageLogSettings(queue_max=1),
}

MakeLog = Callable[[], UsageLog]


@pytest.fixture(params=VARIANTS)
def variant(request: pytest.FixtureRequest) -> UsageLogSettings:
    return VARIANTS[request.param]


@pytest.fixture
async def make_log(tmp_path: Path, variant: UsageLogSettings) -> AsyncGenerator[MakeLog]:
    """Makes logs that all stand for the same one on disk."""
    made: list[UsageLog] = []

    def fail(alarm: LogAlarm) -> None:
        pytest.fail(f"an alarm: {alarm}")

    def make() -> UsageLog:
        made.append(
            SegmentedLog(
                log_folder(tmp_path, BROKER),
                variant,
                broker=BROKER,
                clock=lambda: Nanos(time.monotonic_ns()),
                on_alarm=fail,
            )
        )
        return made[-1]

    yield make
    async with asyncio.timeout(TIMEOUT_S):
        for log in made:
            await log.close()


@pytest.fixture
async def log(make_log: MakeLog) -> UsageLog:
    made = make_log()
    await made.open()
    return made


def entries_in(root: Path) -> list[Entry]:
    items = list(read_entries(root))
    return [item.entry for item in items if isinstance(item, LogEntry)]


async def append_all(log: UsageLog, *payloads: bytes) -> None:
    for number, payload in enumerate(payloads):
        log.append(payload, broker_timestamp_ms=T0 + number)
        # A queue of one has room again once that one is written.
        await written(log, number + 1)


async def written(log: UsageLog, count: int) -> None:
    await until(lambda: log.appended == count, timeout_s=TIMEOUT_S)


async def test_what_was_written_can_be_read_in_order(log: UsageLog, tmp_path: Path) -> None:
    payloads = [b"one", b"", b"three" * 1000]
    await append_all(log, *payloads)
    entries = entries_in(tmp_path)
    assert [entry.payload for entry in entries] == payloads
    assert [entry.index for entry in entries] == [0, 1, 2]
    assert [entry.broker_timestamp for entry in entries] == [T0, T0 + 1, T0 + 2]
    assert {entry.producer_name for entry in entries} == {BROKER}
    assert (log.appended, log.lost, log.damaged, log.trouble) == (3, 0, 0, None)


async def test_what_was_closed_is_durable_unless_told_never_to(
    log: UsageLog, variant: UsageLogSettings
) -> None:
    assert log.synced_index == -1
    await append_all(log, b"a", b"b")
    await log.close()
    assert log.synced_index == (-1 if variant.fsync is Fsync.NEVER else 1)


async def test_closing_keeps_what_was_appended_and_is_idempotent(
    log: UsageLog, tmp_path: Path
) -> None:
    log.append(b"last", broker_timestamp_ms=T0)
    await asyncio.gather(log.close(), log.close())
    await log.close()
    assert [entry.payload for entry in entries_in(tmp_path)] == [b"last"]


async def test_what_comes_after_closing_is_lost_and_nobody_is_hurt(
    log: UsageLog, tmp_path: Path
) -> None:
    await log.close()
    log.append(b"late", broker_timestamp_ms=T0)
    assert (log.appended, log.lost) == (0, 1)
    assert entries_in(tmp_path) == []


async def test_what_comes_before_opening_is_kept(make_log: MakeLog, tmp_path: Path) -> None:
    early = make_log()
    early.append(b"early", broker_timestamp_ms=T0)
    await early.open()
    await written(early, 1)
    assert [entry.payload for entry in entries_in(tmp_path)] == [b"early"]


async def test_a_log_continues_where_it_was_closed(
    make_log: MakeLog, tmp_path: Path, variant: UsageLogSettings
) -> None:
    for life in range(3):
        log = make_log()
        await log.open()
        # What a life finds, it may build on: it is on disk.
        expected = life - 1 if variant.fsync is not Fsync.NEVER else -1
        assert (log.appended, log.synced_index) == (0, expected)
        log.append(b"%d" % life, broker_timestamp_ms=T0 - life)
        await log.close()
    entries = entries_in(tmp_path)
    assert [entry.payload for entry in entries] == [b"0", b"1", b"2"]
    assert [entry.index for entry in entries] == [0, 1, 2]
    assert [entry.sequence_id for entry in entries] == [0, 1, 2]
    assert [entry.broker_timestamp for entry in entries] == [T0, T0, T0]
    assert [entry.publish_time for entry in entries] == [T0, T0 - 1, T0 - 2]


async def test_a_log_has_one_writer_at_a_time(log: UsageLog, make_log: MakeLog) -> None:
    other = make_log()
    with pytest.raises(LogLocked) as refused:
        await other.open()
    assert refused.value.transient
    await log.close()
    await other.open()
