"""What readers hold back, and for how long; the figures of a log's readers and of its tier."""

import asyncio
from pathlib import Path

import pytest

from rgd.adapters.metrics.registry import BY_NAME
from rgd.adapters.usagelog.cursors import CURSORS_NAME, CursorSettings
from rgd.adapters.usagelog.settings import UsageLogSettings
from rgd.adapters.usagelog.tiering import closed_on_disk
from rgd.app.log_keeping import LogKeeper
from rgd.ports.log_door import UnknownCursor
from rgd.ports.usagelog import OnOverrun
from tests.support.kept_logs import SetClock, StillLog, keeper_of, uploader_of
from tests.unit.adapters.usagelog.logs import pendings, segments_in, write_log

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


async def test_a_cursor_holds_for_so_long_after_it_acknowledged(folder: Path) -> None:
    clock = SetClock()
    keeper = keeper_of(folder, COUNT, clock=clock, settings=CursorSettings(hold_s=60))
    await keeper.acknowledge("reader", 10)
    for seconds, held in ((60, {"reader": 10}), (61, {})):
        clock.seconds = seconds
        assert held_by(keeper) == held
        assert figures(keeper)["rgd_log_cursor_holds"] == bool(held)
    assert keeper.cursor("reader").index == 10
    await keeper.acknowledge("reader", 20)
    assert held_by(keeper) == {"reader": 20}
    # Time without the daemon is no fault of the reader.
    later = SetClock()
    later.seconds = 10**6
    again = keeper_of(folder, COUNT, clock=later, settings=CursorSettings(hold_s=60))
    assert held_by(again) == {"reader": 20}


async def test_a_cursor_holds_so_many_bytes(folder: Path) -> None:
    closed = closed_on_disk(folder)
    settings = CursorSettings(hold_bytes=sum(one.size for one in closed[1:]))
    keeper = keeper_of(folder, COUNT, clock=SetClock(), settings=settings)
    await keeper.acknowledge("reader", closed[1].first_index - 1)
    assert held_by(keeper) == {}
    await keeper.acknowledge("reader", closed[1].first_index)
    assert held_by(keeper) == {"reader": closed[1].first_index}


async def test_beyond_its_limits_it_may_be_forgotten(folder: Path) -> None:
    clock = SetClock()
    settings = CursorSettings(hold_s=60, on_overrun=OnOverrun.FORGET)
    keeper = keeper_of(folder, COUNT, clock=clock, settings=settings)
    await keeper.acknowledge("reader", 10)
    clock.seconds = 61
    assert held_by(keeper) == {}
    with pytest.raises(UnknownCursor):
        keeper.cursor("reader")


async def test_what_retention_passes_is_shown(folder: Path) -> None:
    keeper = keeper_of(folder, COUNT, clock=SetClock())
    await keeper.acknowledge("reader", 10)
    assert figures(keeper)["rgd_log_cursor_passed"] == 0
    first = int(segments_in(folder)[2].stem)
    for segment in segments_in(folder)[:2]:
        segment.unlink()
    told = figures(keeper)
    assert (told["rgd_log_cursor_passed"], told["rgd_log_cursor_lag"]) == (first - 10, COUNT - 10)


@pytest.mark.parametrize("data", [b"", b"[]", b'{"reader": -1, "b": true, "c": 5}'])
async def test_stored_positions_that_make_no_sense_are_left_out(folder: Path, data: bytes) -> None:
    folder.joinpath(CURSORS_NAME).write_bytes(data)
    keeper = keeper_of(folder, COUNT, clock=SetClock())
    assert [view.name for view in keeper.cursors()] == (["c"] if b"5" in data else [])


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
    assert len(lags) == 7
    await keeper.close()
    assert keeper.samples() == []


async def test_reads_wait_for_their_turn_and_not_too_many(folder: Path) -> None:
    from rgd.app.log_keeping import READS_WAITING_MAX, ReadsWaiting
    from rgd.ports.log_door import From

    keeper = keeper_of(folder, COUNT, clock=SetClock())
    async with keeper._turn:
        waiting = [
            asyncio.get_running_loop().create_task(keeper.entries(From(number), 1))
            for number in range(READS_WAITING_MAX)
        ]
        await asyncio.sleep(0)
        with pytest.raises(ReadsWaiting):
            await keeper.entries(From(), 1)
    answers = await asyncio.gather(*waiting)
    assert [answer.next_index for answer in answers] == list(range(1, READS_WAITING_MAX + 1))
