"""Round records on their way to the log: whole, in parts, in order, bounded, and counted where lost.

With the real segmented log where parts matter. Not covered: what a part is (tests/unit/wire).
"""

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from types import MappingProxyType

import numpy as np
import pytest

from rgd.adapters.usagelog.reader import LogEntry, read_entries
from rgd.adapters.usagelog.settings import UsageLogSettings
from rgd.adapters.usagelog.writer import SegmentedLog
from rgd.app import recorder as recorder_module
from rgd.app.clock import SystemClock
from rgd.app.recorder import Recorder
from rgd.core.exchange.columns import ShareColumns, UsageColumns
from rgd.core.exchange.messages import RoundRecord, Speaker
from rgd.wire.record import decode_record, record_of
from rgd.wire.record_parts import parts_of
from tests.support.errors import no_end

WAIT_S = 60


class ListLog:
    """A usage log that keeps payloads in a list."""

    appended = damaged = lost = 0
    local_bytes = 0
    synced_index = -1
    trouble = None
    deleted: Mapping[str, int] = MappingProxyType({})

    def __init__(self) -> None:
        self.payloads: list[bytes] = []
        self.times: list[int] = []
        self.has_payload = asyncio.Event()

    async def open(self) -> None:
        """Always open."""

    def append(self, payload: bytes, *, broker_timestamp_ms: int) -> None:
        self.payloads.append(payload)
        self.times.append(broker_timestamp_ms)
        self.has_payload.set()

    async def flush(self) -> None:
        """Always flushed."""

    async def close(self) -> None:
        """Never closed."""

    def records(self) -> list[RoundRecord]:
        return [decode_record(payload) for payload in self.payloads]


def record(sequence: int, names: list[str], kinds: int = 1) -> RoundRecord:
    count = kinds * len(names)
    amounts = np.arange(2 * count, dtype=np.int64).reshape(count, 2)
    usage = UsageColumns(
        groups=tuple(name for name in names for _ in range(kinds)),
        kinds=np.tile(np.arange(kinds, dtype=np.uint8), len(names)),
        topics=amounts[:, 0],
        admitted=amounts,
        wanted=2 * amounts,
        admitted_total=amounts,
        wanted_total=2 * amounts,
    )
    rows = ShareColumns(
        usage=usage,
        share=amounts,
        quota=amounts,
        policies=np.zeros(count, np.uint8),
        refused=amounts,
        sent=np.ones(count, np.bool_),
    )
    return RoundRecord(Speaker("b1", 1), sequence, 1_000_000_007, rows)


@asynccontextmanager
async def running(recorder: Recorder) -> AsyncIterator[asyncio.Task[None]]:
    task = asyncio.create_task(recorder.run())
    try:
        yield task
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


def names(count: int, length: int = 5) -> list[str]:
    return [f"{place:0{length}}" for place in range(count)]


async def test_a_round_of_a_hundred_thousand_groups_is_in_the_log_whole(tmp_path: Path) -> None:
    log = SegmentedLog(
        tmp_path,
        UsageLogSettings(),
        broker="b1",
        clock=SystemClock().now,
        on_alarm=lambda _alarm: None,
    )
    await log.open()
    recorder = Recorder(log, no_end())
    before, large, after = (
        record(1, ["gold"]),
        record(2, names(100_000, 80), kinds=2),
        record(3, ["gold"]),
    )
    turns = 0
    async with asyncio.timeout(WAIT_S), running(recorder):
        for at, one in enumerate((before, large, after)):
            recorder.add(one, 1000 + at)
        while not log.appended or recorder._waiting or recorder._parts:
            turns += 1
            await asyncio.sleep(0.001)
        await log.flush()
    await log.close()
    found = [item for item in read_entries(tmp_path) if isinstance(item, LogEntry)]
    records = [read for item in found if (read := record_of(item.entry)) is not None]
    parts = [one for one in records if one.sequence == 2]
    assert len(parts) > 1
    assert [one.part for one in parts] == list(range(1, len(parts) + 1))
    assert {(one.parts, one.period_ns, one.speaker) for one in parts} == {
        (len(parts), large.period_ns, large.speaker)
    }
    # Whole, and told apart from the others; at one moment, so that a report counts one round.
    assert ShareColumns.join([one.rows for one in parts]) == large.rows
    assert [one.sequence for one in records] == [1, *[2] * len(parts), 3]
    assert {item.entry.broker_timestamp for item in found} == {1000, 1001, 1002}
    assert (log.lost, recorder.lost, recorder.lost_total) == (0, 0, 0)
    # The loop had its turn while each part was made.
    assert turns > len(parts)


async def test_what_a_stopped_recorder_leaves_is_appended_at_the_end() -> None:
    log = ListLog()
    recorder = Recorder(log, no_end())
    async with asyncio.timeout(WAIT_S), running(recorder):
        recorder.add(record(1, names(30_000, 300)), 7)
        recorder.add(record(2, ["gold"]), 8)
        await log.has_payload.wait()
    recorder.finish()
    records = log.records()
    assert [one.sequence for one in records] == [1] * (len(records) - 1) + [2]
    assert [one.part for one in records[:-1]] == list(range(1, records[0].parts + 1))
    assert sum(len(one.rows) for one in records) == 30_001
    assert recorder.lost == 0


async def test_at_the_end_a_record_that_cannot_be_divided_is_lost_and_the_others_are_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def divided(one: RoundRecord) -> Iterable[RoundRecord]:
        if one.sequence == 1:
            raise OverflowError
        return parts_of(one)

    monkeypatch.setattr(recorder_module, "parts_of", divided)
    log, errors = ListLog(), no_end()
    recorder = Recorder(log, errors)
    for sequence in (1, 2, 3):
        recorder.add(record(sequence, ["gold"]), sequence)
    recorder.finish()
    assert [one.sequence for one in log.records()] == [2, 3]
    assert recorder.lost == 1
    assert errors.counts == {"record": 1}


async def test_records_that_wait_are_bounded_by_their_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recorder_module, "WAITING_ROWS_MAX", 10)
    log = ListLog()
    recorder = Recorder(log, no_end())
    for sequence, count in enumerate((4, 4, 4, 25, 3), 1):
        recorder.add(record(sequence, names(count)), sequence)
    # The fourth is too large to wait beside any other; the fifth beside it.
    recorder.finish()
    assert [one.sequence for one in log.records()] == [5]
    assert recorder.lost_total == 4


async def test_records_that_wait_are_bounded_by_their_number() -> None:
    log = ListLog()
    recorder = Recorder(log, no_end())
    for sequence in range(1, recorder_module.RECORDS_MAX + 3):
        recorder.add(record(sequence, ["gold"]), sequence)
    recorder.finish()
    assert next(one.sequence for one in log.records()) == 3
    assert recorder.lost == 2


async def test_what_was_lost_is_in_the_next_record() -> None:
    log = ListLog()
    log.lost = 5
    recorder = Recorder(log, no_end())
    for sequence in range(1, recorder_module.RECORDS_MAX + 2):
        recorder.add(record(sequence, ["gold"]), sequence)
    recorder.finish()
    assert {one.lost for one in log.records()} == {6}


async def test_a_record_that_cannot_be_written_is_lost_and_the_others_are_not() -> None:
    log = ListLog()
    recorder = Recorder(log, no_end())
    for sequence, name in enumerate(("gold", "no name", "trial"), 1):
        recorder.add(record(sequence, [name]), sequence)
    async with asyncio.timeout(WAIT_S), running(recorder):
        while len(log.payloads) < 2:
            log.has_payload.clear()
            await log.has_payload.wait()
    assert [one.sequence for one in log.records()] == [1, 3]
    assert recorder.lost_total == 1
