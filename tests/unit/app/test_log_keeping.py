"""What readers hold back, and for how long; the figures of a log's readers and of its tier."""

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from rgd.adapters.metrics.registry import BY_NAME
from rgd.adapters.usagelog.cursors import CURSORS_NAME, CursorSettings
from rgd.adapters.usagelog.retention import Limits
from rgd.adapters.usagelog.settings import UsageLogSettings
from rgd.adapters.usagelog.tiering import closed_on_disk
from rgd.adapters.usagelog.writer import SegmentedLog
from rgd.app.log_keeping import LogKeeper
from tests.support.kept_logs import SetClock, StillLog, keeper_of, uploader_of
from tests.support.policy_tables import until
from tests.unit.adapters.usagelog.logs import (
    BROKER,
    T0,
    clock,
    payload_of,
    pendings,
    segments_in,
    write_log,
)

COUNT = 200
SETTINGS = UsageLogSettings(segment_bytes=2048)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_log(tmp_path / "broker-1", pendings(COUNT), SETTINGS)
    return tmp_path / "broker-1"


def held_by(keeper: LogKeeper) -> dict[str, int]:
    log = keeper._kept
    assert isinstance(log, StillLog)
    return dict(log.cursors())


def figures(keeper: LogKeeper) -> dict[str, float]:
    return {sample.name: sample.value for sample in keeper.samples()}


async def test_a_cursor_holds_so_many_bytes(folder: Path) -> None:
    closed = closed_on_disk(folder)
    settings = CursorSettings(hold_bytes=sum(one.size for one in closed[1:]))
    keeper = keeper_of(folder, COUNT, clock=SetClock(), settings=settings)
    await keeper.acknowledge("reader", closed[1].first_index - 1)
    assert held_by(keeper) == {}
    await keeper.acknowledge("reader", closed[1].first_index)
    assert held_by(keeper) == {"reader": closed[1].first_index}


async def test_a_cursor_beyond_its_time_holds_nothing_and_stays(
    folder: Path, tmp_path: Path
) -> None:
    clock = SetClock()
    uploader = uploader_of(folder, str(tmp_path / "tier"), clock.now)
    settings = CursorSettings(hold_s=60)
    keeper = keeper_of(folder, COUNT, clock=clock, settings=settings, uploader=uploader)
    await keeper.acknowledge("reader", 10)
    clock.seconds = 61
    assert figures(keeper)["rgd_log_cursor_holds"] == 0
    assert dict(uploader.cursors()) == {}
    assert held_by(keeper) == {"tier": 0}
    assert keeper.cursor("reader").index == 10


async def test_what_retention_passes_is_shown_but_not_what_was_closed_just_now(
    tmp_path: Path,
) -> None:
    time, settings = SetClock(), replace(SETTINGS, limits=Limits(local_bytes=1))
    log = SegmentedLog(tmp_path, settings, broker=BROKER, clock=time.now, on_alarm=lambda _: None)
    keeper = keeper_of(tmp_path, 0, clock=time, log=log)
    holding = log.cursors
    passed: list[int] = []

    def looks() -> Mapping[str, int]:
        passed.extend(view.passed for view in keeper.cursors())
        return holding()

    log.cursors = looks
    await log.open()
    await keeper.acknowledge("reader", 0)
    for number in range(40):
        log.append(payload_of(number), broker_timestamp_ms=T0)
    await until(lambda: log.appended == 40)
    # As each of the two segments begins.
    assert passed == [0, 0]
    await keeper.acknowledge("reader", 3)
    time.seconds = 61
    log.append(b"", broker_timestamp_ms=T0)
    await until(lambda: not log.closed)
    first, told = int(segments_in(tmp_path)[0].stem), figures(keeper)
    assert (told["rgd_log_cursor_passed"], told["rgd_log_cursor_lag"]) == (first - 3, 41 - 3)
    await log.close()


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"[]",
        b'{"reader": -1, "b": true, "c": 5}',
        b'{"\\ud800": 1, "c": 5}',
        b'{"a b": 1, "c": 5}',
        b'{"big": 9223372036854775808, "c": 5}',
        b"[" * 100_000,
        b'{"a": ' * 900 + b"1" + b"}" * 900,
        b"\xff\xfe{\x00}\x00",
        b" " * (1 << 17),
    ],
    ids=map(str, range(10)),
)
async def test_positions_that_make_no_sense_are_set_aside(folder: Path, data: bytes) -> None:
    path = folder / CURSORS_NAME
    path.write_bytes(data)
    keeper = keeper_of(folder, COUNT, clock=SetClock())
    assert not keeper.cursors()
    assert figures(keeper)["rgd_log_files_set_aside_total"] == 1
    assert path.with_name(f"{CURSORS_NAME}.damaged-0").read_bytes() == data
    again = keeper_of(folder, COUNT, clock=SetClock())
    assert figures(again)["rgd_log_files_set_aside_total"] == 0


@pytest.mark.parametrize("unreadable", [0, -1])
async def test_a_cursor_beyond_the_end_of_a_log_that_lost_entries_goes_back_to_it(
    folder: Path, unreadable: int
) -> None:
    (folder / CURSORS_NAME).write_text(f'{{"ahead": {COUNT + 13}, "behind": 7, "there": {COUNT}}}')
    segment = segments_in(folder)[unreadable]
    whole = segment.rename(folder / "whole")
    os.mkfifo(segment)
    settings = replace(SETTINGS, retry_ms=1)
    log = SegmentedLog(folder, settings, broker=BROKER, clock=clock, on_alarm=lambda _: None)
    keeper = keeper_of(folder, 0, clock=SetClock(), log=log)
    await log.open()
    keeper.start()
    assert log.trouble is not None
    # Without its last segment the end of a log is not known.
    assert keeper.cursor("ahead").index == (COUNT if unreadable == 0 else COUNT + 13)
    whole.rename(segment)
    log.append(b"", broker_timestamp_ms=T0)
    await until(lambda: log.appended == 1)
    await log.close()
    # Stored, too.
    again = keeper_of(folder, COUNT, clock=SetClock())
    positions = {"ahead": COUNT, "behind": 7, "there": COUNT}
    for views in (keeper.cursors(), again.cursors()):
        assert {view.name: view.index for view in views} == positions


async def test_a_fifo_in_the_place_of_the_positions_does_not_stop_the_start(folder: Path) -> None:
    os.mkfifo(folder / CURSORS_NAME)
    keeper = keeper_of(folder, COUNT, clock=SetClock())
    await keeper.acknowledge("reader", 5)
    assert (folder / CURSORS_NAME).is_file()


async def test_the_figures_of_the_tier_are_there_until_the_log_closes(
    folder: Path, tmp_path: Path
) -> None:
    clock = SetClock()
    uploader = uploader_of(folder, str(tmp_path / "tier"), clock.now)
    keeper = keeper_of(folder, COUNT, clock=clock, uploader=uploader)
    waiting = closed_on_disk(folder)
    told = figures(keeper)
    assert told["rgd_upload_tier_lag"] == waiting[-1].last_index + 1
    assert told["rgd_remote_copy_lag_bytes"] == sum(one.size for one in waiting)
    assert told["rgd_remote_copy_lag_segments"] == len(waiting)
    # The uploader's own position holds back what is not in the tier.
    assert held_by(keeper) == {"tier": 0}
    uploader.cycle()
    assert held_by(keeper) == {"tier": waiting[-1].last_index + 1}
    assert figures(keeper)["rgd_upload_tier_lag"] == 0
    for sample in keeper.samples():
        assert len(sample.labels) == len(BY_NAME[sample.name].labels)
    lags = [one for one in keeper.samples() if BY_NAME[one.name].labels == ("topic", "partition")]
    assert {one.labels for one in lags} == {("usage", "broker-1")}
    assert len(lags) == 13
    held = figures(keeper)
    assert held["rgd_remote_log_segments"] == len(waiting)
    assert held["rgd_remote_log_size_bytes"] == sum(one.size for one in uploader.state.segments)
    await keeper.close()
    assert keeper.samples() == []


async def test_segments_that_count_again_are_held_until_they_are_in_a_tier(
    folder: Path, tmp_path: Path
) -> None:
    clock = SetClock()
    uploader = uploader_of(folder, str(tmp_path / "tier"), clock.now)
    uploader.cycle()
    keeper = keeper_of(folder, COUNT, clock=clock, uploader=uploader)
    for segment in segments_in(folder):
        segment.unlink()
    # The writer asks when it has closed the first one, before that is among the closed ones.
    log = keeper._kept
    assert isinstance(log, StillLog)
    log.next_index = 10
    assert held_by(keeper) == {"tier": 9}
    write_log(folder, pendings(COUNT, step_ms=11), SETTINGS)
    assert held_by(keeper) == {"tier": 0}
