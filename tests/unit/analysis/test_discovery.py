"""Segments are found where they lie, and of a time range only those parts are fetched that hold it.

Not covered: reports over tiers (tests/integration/spark/test_tiers.py).
"""

import errno
import os
from dataclasses import replace
from pathlib import Path

import pytest

from rgd.adapters.usagelog.index import index_path, mend
from rgd.analysis.asked import IndexRange, TimeRange
from rgd.analysis.discovery import Segment, find_segments, segments_within
from rgd.analysis.errors import NoLog
from rgd.analysis.segments import Contents, Damage, Logged, read_segment
from rgd.storage.manifest import TieredSegment
from rgd.storage.objects import Objects
from rgd.storage.tier import DELETED, SEGMENT, LogTier, checksum_of
from rgd.wire.segment import segment_name
from tests.support.log_maker import START_MS, LogMaker, Usage, log_of

HOUR_MS = 3_600_000


def test_a_tiers_segments_are_those_that_are_uploaded_and_not_marked(tier_place: str) -> None:
    objects = Objects(tier_place)
    for log in ("usage/a/1", "usage/b/2"):
        tier = LogTier(objects, log)
        for hour in range(5):
            data = f"{log} {hour}".encode()
            times = (HOUR_MS * hour, HOUR_MS * (hour + 1) - 1)
            facts = TieredSegment(10 * hour, 10 * hour + 9, *times, len(data), checksum_of(data))
            tier.put(facts, data, b"")
        objects.create(tier.name_of(0, DELETED), b"")
        # No manifest: its upload was cut off.
        objects.create(tier.name_of(50, SEGMENT), b"torn")

    found = find_segments([tier_place, tier_place])

    assert [(one.log.removeprefix(tier_place), one.size) for one in found] == [
        (f"/usage/{log}", len("usage/a/1 1")) for log in ("a/1", "b/2") for _ in range(4)
    ]
    assert found[0].ranges().read(100, 0) == b"usage/a/1 1"
    within = TimeRange(3 * HOUR_MS - 1, 3 * HOUR_MS + 1)
    for segment in found:
        objects.delete(segment.name.removeprefix(tier_place).removeprefix("/"))
    hours = [one.name[-len(segment_name(0)) :] for one in segments_within(found, within)]
    assert hours == [segment_name(20), segment_name(30)] * 2
    assert segments_within(found, TimeRange(5 * HOUR_MS)) == []


def test_a_file_url_is_the_folder(tmp_path: Path) -> None:
    segment = Segment.of(log_of(tmp_path / "a log", "b1", (1, Usage("gold", 1))))
    assert find_segments([(tmp_path / "a log").as_uri()]) == (segment,)


def test_links_to_folders_are_followed_once(tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    here, there = (Segment.of(log_of(at, "b", (1, Usage("gold", 1)))) for at in (logs, tmp_path))
    for link, target in {"b2": there.log, "again": there.log, "above": str(logs)}.items():
        (logs / link).symlink_to(target)
    assert set(find_segments([str(logs / "above")])) == {here, there}


def test_what_is_no_regular_file_is_named(tmp_path: Path) -> None:
    pipe = tmp_path / segment_name(0)
    os.mkfifo(pipe)
    with pytest.raises(NoLog, match=f"{pipe} cannot be read: expected a readable regular file"):
        find_segments([str(tmp_path)])


@pytest.mark.parametrize("name", ["b2", "lost+found"])
def test_a_folder_that_cannot_be_read_is_not_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    segment, closed = log_of(tmp_path, "b1", (1, Usage("gold", 1))), tmp_path / name
    closed.mkdir()
    scandir = os.scandir

    def refuse(path: str | Path) -> object:
        if Path(path) == closed:
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refuse)
    if name == "lost+found":
        assert find_segments([str(tmp_path)]) == (Segment.of(segment),)
        return
    with pytest.raises(NoLog, match=f"{closed} cannot be read: Permission denied"):
        find_segments([str(tmp_path)])


@pytest.fixture
def marked(tmp_path: Path) -> Path:
    """A segment of 2,000 rounds with its sparse index."""
    segment = log_of(tmp_path, "b1", (2000, Usage("gold", 1, quota=10)))
    mend(segment)
    return segment


HUNDRED = TimeRange(START_MS + 1_000_000, START_MS + 1_100_000)


def read(segment: Path, within: TimeRange | IndexRange) -> tuple[list[int], int]:
    """In which seconds there are records, and how many bytes were fetched."""
    fetched: list[int] = []
    counted = replace(Segment.of(segment), count=fetched.append)
    found = list(read_segment(counted, Contents("s"), within))
    assert not any(isinstance(one, Damage) for one in found)
    times = [(one.timestamp_ms - START_MS) // 1000 for one in found if isinstance(one, Logged)]
    return times, sum(fetched)


@pytest.mark.parametrize("within", [HUNDRED, IndexRange(999, 1099)])
@pytest.mark.slow
def test_the_index_finds_the_range_and_nothing_behind_it_is_fetched(
    marked: Path, within: TimeRange | IndexRange
) -> None:
    times, fetched = read(marked, within)
    assert times == list(range(1000, 1100))
    # A mark every 128 entries: at most two of them and 64 entries too many, and the blocks of three peeks.
    assert fetched < marked.stat().st_size * (100 + 2 * 128 + 64) / 2000 + 6 * 16384


@pytest.mark.parametrize("damage", ["absent", "foreign", "of a longer segment"])
@pytest.mark.slow
def test_a_wrong_index_costs_time_and_no_record(marked: Path, damage: str, tmp_path: Path) -> None:
    if damage == "absent":
        index_path(marked).unlink()
    elif damage == "foreign":
        maker = LogMaker(tmp_path / "other", "b1")
        maker.rounds(2000, Usage("another", 1), Usage("silver", 2))
        other = maker.close()
        mend(other)
        index_path(marked).write_bytes(index_path(other).read_bytes())
    else:
        stored = marked.read_bytes()
        marked.write_bytes(stored[: len(stored) * 1050 // 2000])
    times, _ = read(marked, HUNDRED)
    assert times == list(range(1000, 1100 if damage != "of a longer segment" else times[-1] + 1))
    assert times[-1] >= 1048
