"""Rounds and policies on their way to the log: whole, in parts, in order, and counted where lost.

With the real segmented log. Not covered: what a part is, and how rows continue (tests/unit/wire).
"""

import asyncio
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from rgd.adapters.usagelog.reader import LogEntry, read_entries
from rgd.adapters.usagelog.settings import UsageLogSettings
from rgd.adapters.usagelog.writer import SegmentedLog
from rgd.app.clock import SystemClock
from rgd.app.recorder import Recorder
from rgd.core.exchange.columns import ShareColumns, UsageColumns
from rgd.core.exchange.messages import RoundRecord, Sender
from rgd.core.policies.model import Attachments, Group
from rgd.core.policies.snapshot import PolicySnapshot
from rgd.wire.log_policies import PolicyPart
from rgd.wire.log_records import LogReader
from tests.support.errors import no_end

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
    recorder = Recorder(log, no_end())
    for at, one in enumerate(records):
        recorder.add(one, 1000 + at)
    async with asyncio.timeout(WAIT_S):
        await log.close()
    assert log.lost == 0
    return rounds_in(folder)


def record(sequence: int, names: list[str], kinds: int = 1) -> RoundRecord:
    count = kinds * len(names)
    amounts = np.arange(2 * count, dtype=np.int64).reshape(count, 2)
    usage = UsageColumns(
        groups=tuple(name for name in names for _ in range(kinds)),
        kinds=np.tile(np.arange(kinds, dtype=np.uint8), len(names)),
        topics=amounts[:, 0],
        admitted=amounts,
        wanted=2 * amounts,
    )
    rows = ShareColumns(
        usage=usage,
        share=amounts,
        quota=amounts,
        policies=np.zeros(count, np.uint8),
        refused=amounts,
        sent=np.ones(count, np.bool_),
        admitted_total=amounts,
        wanted_total=2 * amounts,
    )
    return RoundRecord(Sender("b1", 1), sequence, 1_000_000_007, rows)


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


async def test_a_round_in_parts_goes_on_in_the_next_segment(tmp_path: Path) -> None:
    large = record(1, names(60_000, 80))
    records = await logged(tmp_path, large, segment_bytes=10_000, local_bytes=1 << 30)
    assert len(list(tmp_path.glob("*.log"))) > 1  # noqa: ASYNC240 -- a handful of files
    assert ShareColumns.join([one.rows for one in records]) == large.rows


async def test_what_was_lost_is_in_the_next_record(tmp_path: Path) -> None:
    log = make_log(tmp_path, queue_max=2)
    recorder = Recorder(log, no_end())
    for sequence in range(1, 6):
        recorder.add(record(sequence, ["gold"]), sequence)
    await log.open()
    await log.flush()
    recorder.add(record(6, ["gold"]), 6)
    await log.close()
    assert [(one.sequence, one.lost) for one in rounds_in(tmp_path)] == [(1, 3), (2, 3), (6, 3)]
    assert log.lost == 3


async def test_a_record_that_cannot_be_encoded_is_lost_and_the_others_are_not(
    tmp_path: Path,
) -> None:
    log, errors = make_log(tmp_path), no_end()
    recorder = Recorder(log, errors)
    log.on_fault = recorder.fault
    await log.open()
    for sequence, name in enumerate(("gold", "no name", "trial"), 1):
        recorder.add(record(sequence, [name]), sequence)
    await log.close()
    await asyncio.sleep(0)
    assert [(one.sequence, one.lost) for one in rounds_in(tmp_path)] == [(1, 0), (3, 1)]
    assert log.lost == 1
    assert errors.counts == {"record": 1}


async def test_each_segment_begins_with_the_policies_and_changes_follow(tmp_path: Path) -> None:
    log = make_log(tmp_path, segment_bytes=3000, local_bytes=1 << 30)
    await log.open()
    recorder = Recorder(log, no_end())
    gold, trial = Group("gold"), Group("trial", blocked=True)
    snapshot = PolicySnapshot({"gold": gold}, Attachments(tenants={"acme": "gold"}))
    recorder.policies(snapshot, 7)
    for sequence in range(1, 100):
        if sequence == 50:
            recorder.policies(replace(snapshot, groups={"gold": gold, "trial": trial}), 8)
            recorder.policies(replace(snapshot, groups={"trial": trial}), 9)
        recorder.add(record(sequence, names(sequence)), sequence)
    await log.close()
    assert log.lost == 0
    segments = sorted(tmp_path.glob("*.log"))  # noqa: ASYNC240 -- a handful of files
    assert len(segments) > 2
    keys = {"group:gold", "tenant:acme"}
    for segment in segments:
        # Each can be read without those before it.
        first, *others = items_in(segment)
        assert isinstance(first, PolicyPart)
        assert not first.is_change
        assert {key for key, _ in first.texts} == keys
        for item in others:
            if isinstance(item, PolicyPart):
                assert item.is_change
                assert dict(item.texts) == {"group:trial": '{"blocked":true}', "group:gold": "null"}
                assert item.policies_hash == 9
                keys = {"group:trial", "tenant:acme"}
    assert keys == {"group:trial", "tenant:acme"}
    assert [one.sequence for one in rounds_in(tmp_path)] == list(range(1, 100))


@pytest.mark.parametrize("lives", [3])
async def test_a_daemon_that_is_back_says_its_policies_again(tmp_path: Path, lives: int) -> None:
    for life in range(lives):
        log = make_log(tmp_path)
        await log.open()
        recorder = Recorder(log, no_end())
        recorder.policies(PolicySnapshot({"gold": Group("gold")}), 7)
        recorder.add(record(life + 1, ["gold"]), life)
        await log.close()
    shown = [isinstance(item, PolicyPart) for item in items_in(tmp_path)]
    assert shown == [True, False] * lives
