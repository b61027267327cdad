"""The queue has limits, a failing disk is told once and tried again, and nobody ever waits in vain.

A disk that cannot be written is here a log folder under a path that is a file; disks that are full are
in test_full_disk.py. Not covered: how long `append` takes (bench/usagelog.py).
"""

import errno
import os
import stat
from pathlib import Path

import pytest

from rgd.adapters.usagelog.appender import Appender
from rgd.adapters.usagelog.index import index_path, load_marks
from rgd.adapters.usagelog.settings import UsageLogSettings
from rgd.adapters.usagelog.writer import SegmentedLog
from rgd.wire.frame import PAYLOAD_MAX
from tests.support.policy_tables import until
from tests.unit.adapters.usagelog.conftest import Alarms
from tests.unit.adapters.usagelog.logs import (
    T0,
    MakeLog,
    payload_of,
    payloads_in,
    pendings,
    segments_in,
    write_log,
)


def append(log: SegmentedLog, *numbers: int) -> None:
    for number in numbers:
        log.append(payload_of(number), broker_timestamp_ms=T0 + number)


async def test_the_largest_payload_is_kept_and_a_larger_one_is_lost(
    make_log: MakeLog, tmp_path: Path
) -> None:
    log = make_log()
    await log.open()
    for size in (PAYLOAD_MAX, PAYLOAD_MAX + 1, 1):
        log.append(bytes(size), broker_timestamp_ms=T0)
    await until(lambda: (log.appended, log.lost) == (2, 1))
    assert [len(payload) for payload in payloads_in(tmp_path / "log")] == [PAYLOAD_MAX, 1]


async def test_in_an_outage_the_newest_are_lost_once_the_queue_is_full(
    make_log: MakeLog, tmp_path: Path, alarms: Alarms
) -> None:
    obstacle = tmp_path / "root"
    obstacle.touch()
    log = make_log(obstacle / "log", retry_ms=1, queue_max=3)
    await log.open()
    append(log, *range(5))
    assert log.lost == 2
    obstacle.unlink()
    await until(lambda: log.appended == 3)
    assert payloads_in(obstacle / "log") == [payload_of(number) for number in range(3)]


async def test_a_read_only_folder_stops_logging_and_nothing_else(
    make_log: MakeLog, read_only_folder: Path, alarms: Alarms
) -> None:
    log = make_log(read_only_folder / "log")
    await log.open()
    append(log, 0)
    assert (await alarms.next()).trouble == log.trouble
    await log.close()
    assert (log.appended, log.lost, alarms.count) == (0, 1, 1)


async def test_a_sync_that_keeps_failing_is_reported_once(
    make_log: MakeLog, alarms: Alarms, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = make_log(fsync_ms=1, retry_ms=1)
    await log.open()
    fsync = os.fsync

    def fail(descriptor: int) -> None:
        if stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(os, "fsync", fail)
    for number in range(10):
        append(log, number)
        await until(lambda: log.lost > number)  # noqa: B023 -- it is awaited here
    # Written, but nobody can say whether they are on disk.
    assert (log.appended, log.lost, log.synced_index) == (10, 10, -1)
    assert os.strerror(errno.EIO) in ((await alarms.next()).trouble or "")
    monkeypatch.setattr(os, "fsync", fsync)
    append(log, 10)
    assert (await alarms.next()).trouble is None
    assert log.trouble is None
    await until(lambda: log.synced_index >= 0)
    assert alarms.count == 2


async def test_what_can_no_longer_be_synced_is_counted_before_the_log_is_closed(
    make_log: MakeLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = make_log(fsync_ms=600_000)
    await log.open()
    append(log, 0)
    await until(lambda: log.appended == 1)

    def fail(*args: object) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(os, "write", fail)
    monkeypatch.setattr(os, "fsync", fail)
    monkeypatch.setattr(Appender, "resume", fail)
    append(log, 1)
    await log.close()
    # The second was not written; whether the first is on disk, nobody can say.
    assert (log.appended, log.lost, log.synced_index) == (1, 2, -1)


async def test_a_bug_in_the_thread_is_reported_and_leaves_nobody_waiting(
    make_log: MakeLog, alarms: Alarms, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = make_log()
    await log.open()

    def break_down(appender: Appender, batch: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(Appender, "write", break_down)
    append(log, 0)
    assert "ZeroDivisionError" in ((await alarms.next()).trouble or "")
    append(log, 1)
    await log.close()
    assert (log.appended, log.lost) == (0, 2)
    # The lock is free again.
    await make_log().open()


async def test_closed_segments_get_their_sparse_index_back(
    make_log: MakeLog, tmp_path: Path
) -> None:
    folder = tmp_path / "log"
    write_log(folder, pendings(20), UsageLogSettings(segment_bytes=500))
    segments = segments_in(folder)
    marks = [load_marks(segment) for segment in segments]
    assert len(segments) > 2
    for segment in segments:
        index_path(segment).unlink()
    log = make_log()
    await log.open()
    await until(lambda: [load_marks(segment) for segment in segments] == marks)


async def test_damage_in_the_last_segment_is_counted(make_log: MakeLog, tmp_path: Path) -> None:
    folder = tmp_path / "log"
    write_log(folder, pendings(3), UsageLogSettings())
    data = bytearray(segments_in(folder)[0].read_bytes())
    data[-1] ^= 1
    segments_in(folder)[0].write_bytes(data)
    log = make_log()
    await log.open()
    assert log.damaged == 1
    assert log.trouble is None
