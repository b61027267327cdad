"""Which closed segments may go, by broker time, sizes and cursors; and the files that do.

Not covered: what a tier deletes.
"""

from pathlib import Path

from rgd.adapters.usagelog.appender import Appender
from rgd.adapters.usagelog.index import index_path
from rgd.adapters.usagelog.retention import Limits, Reason, Removal, ages_ms, removals
from rgd.adapters.usagelog.settings import UsageLogSettings
from rgd.adapters.usagelog.trimming import Trimmer
from rgd.storage.manifest import ClosedSegment
from tests.support.policy_tables import until
from tests.unit.adapters.usagelog.logs import (
    BROKER,
    MakeLog,
    clock,
    pendings,
    read,
    segments_in,
    write_log,
)

GAP_MS = 60_000


def segment(number: int) -> ClosedSegment:
    """Ten entries each, a second after the one before it."""
    first_ms = number * 1000
    return ClosedSegment(number * 10, number * 10 + 9, first_ms, first_ms + 900, 100)


def test_a_segment_is_as_old_as_its_last_entry() -> None:
    assert ages_ms([segment(number) for number in range(5)], GAP_MS) == [4000, 3000, 2000, 1000, 0]


def test_a_cursor_holds_back_age_and_retention_bytes_but_not_a_full_disk() -> None:
    segments = [segment(number) for number in range(5)]
    cursors = {"late": 15, "later": 12, "fast": 50}
    for limits in (Limits(retention_ms=1), Limits(retention_bytes=1)):
        assert [
            one.segment.first_index for one in removals(segments, [9] * 5, limits, cursors=cursors)
        ] == [0]
    found = removals(segments, [0] * 5, Limits(local_bytes=300), cursors=cursors)
    assert [one.passed for one in found] == [(), ("late", "later")]


def test_what_the_next_segment_may_need_counts_for_the_disk_and_not_for_retention() -> None:
    segments, ages = [segment(number) for number in range(5)], [0] * 5
    assert not removals(segments, ages, Limits(retention_bytes=500), reserved_bytes=100)
    assert len(removals(segments, ages, Limits(retention_bytes=300), reserved_bytes=100)) == 2
    assert len(removals(segments, ages, Limits(local_bytes=500), reserved_bytes=100)) == 1


def test_a_log_stays_within_local_bytes_and_keeps_its_newest_entries(tmp_path: Path) -> None:
    settings = UsageLogSettings(segment_bytes=2000, limits=Limits(local_bytes=8000))
    trimmer = Trimmer(tmp_path, settings, clock)

    def make_room(first_index: int, size: int) -> None:
        trimmer.trim(active=first_index, reserved_bytes=size)

    appender = Appender(tmp_path, settings, broker=BROKER, make_room=make_room)
    appender.resume()
    for pending in pendings(500):
        appender.write([pending])
        assert sum(path.stat().st_size for path in tmp_path.glob("0*")) <= 8000
    appender.close()
    entries, damaged = read(tmp_path)
    indexes = [item.entry.index for item in entries]
    assert indexes == list(range(500 - len(indexes), 500))
    assert damaged == []
    assert trimmer.deleted == {Reason.LOCAL_BYTES: trimmer.deleted.total()}
    assert trimmer.deleted.total() > 5
    assert {path.stem for path in tmp_path.glob("*.idx")} == {
        path.stem for path in segments_in(tmp_path)
    }


def test_an_index_whose_segment_is_gone_is_swept(tmp_path: Path) -> None:
    write_log(tmp_path, pendings(3), UsageLogSettings(segment_bytes=1))
    first = segments_in(tmp_path)[0]
    first.unlink()
    Trimmer(tmp_path, UsageLogSettings(), clock).sweep()
    assert not index_path(first).exists()
    assert len(list(tmp_path.glob("*.idx"))) == 2


async def test_the_writer_tells_what_it_deleted_and_names_readers_that_it_passed(
    tmp_path: Path, make_log: MakeLog
) -> None:
    heard: list[Removal] = []
    log = make_log(
        tmp_path, segment_bytes=2000, limits=Limits(local_bytes=8000), on_trimmed=heard.append
    )
    log.cursors = lambda: {"slow": 0}
    await log.open()
    for pending in pendings(500):
        log.append(pending.item, broker_timestamp_ms=pending.timestamp_ms)
    await until(lambda: log.appended == 500)
    segments = segments_in(tmp_path)
    files = [*segments, *map(index_path, segments[:-1])]
    assert log.local_bytes == sum(path.stat().st_size for path in files)
    assert log.deleted["local_bytes"] == len(heard)
    assert {one.passed for one in heard} == {("slow",)}
