"""Rounds come into the log whole, in parts, in order, and are counted where lost.

Not covered: what a part is, and how rows continue (tests/unit/wire).
"""

import asyncio
from pathlib import Path

import numpy as np
import pytest

from rgd.adapters.usagelog.reader import LogEntry, read_entries
from rgd.adapters.usagelog.settings import UsageLogSettings
from rgd.adapters.usagelog.writer import SegmentedLog
from rgd.app.clock import SystemClock
from rgd.core.exchange.columns import ShareColumns
from rgd.core.exchange.messages import RoundRecord
from rgd.wire.log_policies import PolicyPart
from rgd.wire.log_records import LogReader
from tests.support.columns import round_of

WAIT_S = 60


def make_log(folder: Path, **settings: object) -> SegmentedLog:
    return SegmentedLog(
        folder,
        UsageLogSettings(**settings),  # type: ignore[arg-type]
        broker="b1",
        clock=SystemClock().now,
        on_alarm=lambda _alarm: None,
    )


def items_in(folder: Path) -> list[RoundRecord | PolicyPart]:
    reader = LogReader()
    found = [item for item in read_entries(folder) if isinstance(item, LogEntry)]
    return [read for item in found if (read := reader.read(item.entry)) is not None]


def rounds_in(folder: Path) -> list[RoundRecord]:
    return [item for item in items_in(folder) if isinstance(item, RoundRecord)]


async def logged(folder: Path, *records: RoundRecord, **settings: object) -> list[RoundRecord]:
    """Log rounds and read them back; nothing may be lost."""
    log = make_log(folder, **settings)
    await log.open()
    for at, one in enumerate(records):
        log.append(one, broker_timestamp_ms=1000 + at)
    async with asyncio.timeout(WAIT_S):
        await log.close()
    assert log.lost == 0
    return rounds_in(folder)


def record(sequence: int, names: list[str], kinds: int = 1) -> RoundRecord:
    count = kinds * len(names)
    amounts = np.arange(2 * count, dtype=np.int64).reshape(count, 2)
    return round_of(sequence, names, amounts, kinds)


def names(count: int, length: int = 5) -> list[str]:
    return [f"{place:0{length}}" for place in range(count)]


@pytest.mark.slow
async def test_a_round_of_a_hundred_thousand_groups_is_in_the_log_whole(tmp_path: Path) -> None:
    large = record(2, names(100_000, 80), kinds=2)
    records = await logged(tmp_path, record(1, ["gold"]), large, record(3, ["gold"]))
    parts = [one for one in records if one.sequence == 2]
    assert len(parts) > 1
    assert [one.part for one in parts] == list(range(1, len(parts) + 1))
    assert {(one.parts, one.period_ns, one.sender) for one in parts} == {
        (len(parts), large.period_ns, large.sender)
    }
    # Whole, and told apart from the others; at one moment, so that a report counts one round.
    assert ShareColumns.join([one.rows for one in parts]) == large.rows
    assert [one.sequence for one in records] == [1, *[2] * len(parts), 3]
    entries = [item.entry for item in read_entries(tmp_path) if isinstance(item, LogEntry)]
    assert {entry.broker_timestamp for entry in entries} == {1000, 1001, 1002}


async def test_a_record_that_cannot_be_encoded_is_lost_and_the_others_are_not(
    tmp_path: Path,
) -> None:
    log, errors = make_log(tmp_path), list[Exception]()
    log.on_fault = errors.append
    await log.open()
    for sequence, name in enumerate(("gold", "no name", "trial"), 1):
        log.append(record(sequence, [name]), broker_timestamp_ms=sequence)
    await log.close()
    await asyncio.sleep(0)
    assert [(one.sequence, one.lost) for one in rounds_in(tmp_path)] == [(1, 0), (3, 1)]
    assert log.lost == 1
    assert len(errors) == 1
