"""Wherever a crash cuts a log, it goes on behind the last whole entry; other damage is left alone.

Not covered: damage to what no checksum protects (an entry's index and time), which is believed, and
crashes of real processes (test_kills.py).
"""

import os
import shutil
from pathlib import Path

import pytest

from rgd.adapters.usagelog import index
from rgd.adapters.usagelog.appender import Pending
from rgd.adapters.usagelog.index import index_path
from rgd.adapters.usagelog.recovery import Tail, recover
from rgd.adapters.usagelog.settings import UsageLogSettings
from rgd.ports.usagelog import Fsync
from rgd.storage.headers import header_of
from rgd.wire.segment import SegmentReader, Stored, segment_name
from tests.unit.adapters.usagelog.logs import (
    T0,
    payloads_in,
    pendings,
    read,
    segments_in,
    write_log,
)

pytestmark = pytest.mark.slow

ONE_SEGMENT = UsageLogSettings(fsync=Fsync.NEVER)
SMALL_SEGMENTS = UsageLogSettings(fsync=Fsync.NEVER, segment_bytes=250)
NEW = Pending(b"new", T0, 0)


def ends_of(segment: Path) -> list[int]:
    """Where each entry of a segment ends."""
    found = SegmentReader().feed(segment.read_bytes())
    return [header_of(item).end for item in found if isinstance(item, Stored)]


@pytest.fixture(params=["index kept", "index lost", "many marks"])
def index_case(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    case: str = request.param
    if case == "many marks":
        monkeypatch.setattr(index, "MARK_EVERY", 2)
    return case


@pytest.mark.parametrize("settings", [ONE_SEGMENT, SMALL_SEGMENTS], ids=["one", "several"])
def test_a_log_cut_at_any_byte_continues_behind_its_last_whole_entry(
    tmp_path: Path, settings: UsageLogSettings, index_case: str
) -> None:
    whole = tmp_path / "whole"
    write_log(whole, pendings(5), settings)
    payloads = payloads_in(whole)
    last = segments_in(whole)[-1]
    ends = ends_of(last)
    before = len(payloads) - len(ends)
    assert (before > 0) == (settings is SMALL_SEGMENTS)
    for size in range(last.stat().st_size + 1):
        folder = tmp_path / f"cut-{size}"
        shutil.copytree(whole, folder)
        with (folder / last.name).open("r+b") as file:
            file.truncate(size)
        if index_case == "index lost":
            index_path(folder / last.name).unlink()
        kept = before + sum(end <= size for end in ends)
        write_log(folder, [NEW], settings)
        assert payloads_in(folder) == [*payloads[:kept], b"new"]
        times = [item.entry.timestamp for item in read(folder)[0]]
        assert times == sorted(times)
        sequence = [item.entry.sequence_id for item in read(folder)[0]]
        assert sequence == sorted(set(sequence))


@pytest.mark.parametrize("entry", range(4))
@pytest.mark.parametrize("mark_every", [128, 1], ids=["one mark", "a mark each"])
def test_a_damaged_entry_stays_and_the_log_continues(
    tmp_path: Path, entry: int, mark_every: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rgd.adapters.usagelog.open_segment.MARK_EVERY", mark_every)
    write_log(tmp_path, pendings(4), ONE_SEGMENT)
    segment = segments_in(tmp_path)[0]
    end = ends_of(segment)[entry]
    data = bytearray(segment.read_bytes())
    data[end - 1] ^= 1
    segment.write_bytes(data)
    write_log(tmp_path, [NEW], ONE_SEGMENT)
    entries, damaged = read(tmp_path)
    # The damaged entry keeps its index, be it the last or not, and be it at a mark or not.
    assert [item.entry.index for item in entries] == [i for i in range(5) if i != entry]
    assert [(item.path, item.offset + item.size) for item in damaged] == [(str(segment), end)]
    assert segment.read_bytes()[: len(data)] == bytes(data)


def test_a_segment_that_is_damaged_from_end_to_end_is_followed_by_another(tmp_path: Path) -> None:
    strange = tmp_path / segment_name(7)
    strange.write_bytes(b"\xff" * 100)
    tail = recover(tmp_path)
    assert tail == Tail(next_index=8, path=strange, damaged=1)
    write_log(tmp_path, [NEW], ONE_SEGMENT)
    entries, damaged = read(tmp_path)
    assert [item.entry.index for item in entries] == [8]
    assert [item.size for item in damaged] == [100]


def test_time_and_sequence_come_from_the_last_segment_that_has_entries(tmp_path: Path) -> None:
    write_log(tmp_path, pendings(5), ONE_SEGMENT)
    (tmp_path / segment_name(5)).touch()
    tail = recover(tmp_path)
    assert (tail.next_index, tail.last_timestamp, tail.next_sequence_id) == (5, T0 + 40, 5)
    write_log(tmp_path, [NEW], ONE_SEGMENT)
    entries, _ = read(tmp_path)
    assert (entries[-1].entry.timestamp, entries[-1].entry.publish_time) == (T0 + 40, T0)
    assert Path(entries[-1].path).name == segment_name(5)


def test_only_the_end_of_a_large_segment_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_log(tmp_path, pendings(index.MARK_EVERY * 4 + 1), ONE_SEGMENT)
    fed: list[int] = []
    feed = SegmentReader.feed

    def counting_feed(reader: SegmentReader, data: bytes) -> object:
        fed.append(len(data))
        return feed(reader, data)

    monkeypatch.setattr(SegmentReader, "feed", counting_feed)
    recover(tmp_path)
    assert 0 < sum(fed) < 200
    index_path(segments_in(tmp_path)[0]).unlink()
    fed.clear()
    recover(tmp_path)
    assert sum(fed) == segments_in(tmp_path)[0].stat().st_size


def test_of_a_log_of_many_segments_only_the_last_is_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_log(tmp_path, pendings(200), UsageLogSettings(segment_bytes=2000))
    segments = segments_in(tmp_path)
    assert len(segments) > 5
    opened: list[Path] = []
    really_open = os.open

    def noted(path: Path, *args: int) -> int:
        opened.append(path)
        return really_open(path, *args)

    monkeypatch.setattr(os, "open", noted)
    assert recover(tmp_path).next_index == 200
    assert {path for path in opened if path.suffix == ".log"} == {segments[-1]}
