"""The last segment: closed at its age and at the end, carried to the tier, and kept, because the log goes on from it."""

from pathlib import Path

from rgd.adapters.usagelog.retention import Limits
from rgd.adapters.usagelog.tiering import closed_on_disk
from rgd.storage.objects import Objects
from rgd.wire.segment import segment_name
from tests.support.policy_tables import until
from tests.unit.adapters.usagelog.logs import MakeLog, payload_of, segments_in
from tests.unit.adapters.usagelog.test_writer import append
from tests.unit.adapters.usagelog.tier_world import COUNT, World, payloads


async def test_a_segment_is_closed_at_its_age_also_where_nothing_more_comes(
    make_log: MakeLog, tmp_path: Path
) -> None:
    log = make_log(segment_age_ms=100)
    await log.open()
    append(log, 0)
    await until(lambda: [one.last_index for one in log.closed] == [0])
    append(log, 1)
    await until(lambda: log.appended == 2)
    assert [path.name for path in segments_in(tmp_path / "log")] == [
        segment_name(0),
        segment_name(1),
    ]


async def test_a_log_that_ends_closes_its_segment_and_keeps_it(make_log: MakeLog) -> None:
    log = make_log(limits=Limits(retention_ms=0))
    await log.open()
    append(log, 0, 1)
    await log.close()
    assert [(one.first_index, one.last_index) for one in log.closed] == [(0, 1)]
    # The next one goes on from it.
    again = make_log(limits=Limits(retention_ms=0))
    await again.open()
    assert (again.next_index, len(again.closed)) == (2, 1)


async def test_a_segment_without_an_entry_is_begun_and_not_closed(
    make_log: MakeLog, tmp_path: Path
) -> None:
    """What a full disk or a kill leaves: the log goes on in it, so a tier that had it would hold another one."""
    log = make_log()
    await log.open()
    append(log, 0)
    await log.close()
    begun = tmp_path / "log" / segment_name(1)
    begun.touch()
    again = make_log(limits=Limits(retention_ms=0))
    await again.open()
    assert [one.first_index for one in again.closed] == [0]
    assert [one.first_index for one in closed_on_disk(begun.parent, with_last=True)] == [0]
    append(again, 1)
    await until(lambda: again.appended == 1)
    assert begun.stat().st_size > 0


def test_what_was_closed_last_goes_up_at_the_end_and_the_newest_stays_on_disk(
    tmp_path: Path,
) -> None:
    world = World(tmp_path)
    world.write()
    uploader = world.uploader(Objects(str(tmp_path / "tier")), bytes_per_s=1)
    uploader.start()
    (world.folder / segment_name(COUNT)).touch()
    world.with_last = True
    uploader.stop()
    assert uploader.state.waiting(world.closed()) == []
    assert payloads(tmp_path / "tier") == [payload_of(number) for number in range(COUNT)]
    # The last one has no entry.
    assert [path.stat().st_size > 0 for path in segments_in(world.folder)] == [True, False]
