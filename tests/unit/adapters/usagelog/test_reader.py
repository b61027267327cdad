"""Readers get every entry in order and damage with its place, while the daemon writes too.

Not covered: what damage costs in particular bytes (tests/unit/wire/test_segment.py), and any sequence
of appends and restarts (tests/property/test_usagelog.py), the times that brokers stamped
(test_pip70_seek.py).
"""

import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from rgd.adapters.usagelog.appender import Appender, Pending
from rgd.adapters.usagelog.index import index_path
from rgd.adapters.usagelog.reader import read_entries, seek_time
from rgd.adapters.usagelog.settings import UsageLogSettings
from rgd.ports.usagelog import Fsync
from rgd.wire.errors import Reason
from rgd.wire.segment import segment_name
from tests.support.there import there
from tests.unit.adapters.usagelog.logs import (
    BROKER,
    T0,
    TIMEOUT_S,
    payload_of,
    payloads_in,
    pendings,
    read,
    segments_in,
    write_log,
)

SETTINGS = UsageLogSettings(fsync=Fsync.NEVER, segment_bytes=500)
COUNT = 30
STEP_MS = 10


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """A log of `COUNT` entries in several segments, one every `STEP_MS` from `T0` on."""
    folder = tmp_path / "log"
    write_log(folder, pendings(COUNT, step_ms=STEP_MS), SETTINGS)
    assert len(segments_in(folder)) > 4
    return folder


def test_the_torn_end_of_the_last_segment_is_not_damage_but_that_of_another_is(log: Path) -> None:
    first, *_, last = segments_in(log)
    for segment in (first, last):
        with segment.open("r+b") as file:
            file.truncate(segment.stat().st_size - 3)
    entries, damaged = read(log)
    assert [(item.path, item.reason) for item in damaged] == [(str(first), Reason.TORN)]
    assert len(entries) == COUNT - 2
    assert read(last)[1] == []
    assert len(read(first)[1]) == 1


def test_a_segment_that_is_removed_while_reading_is_left_out(log: Path) -> None:
    reading = read_entries(log)
    next(reading)
    removed = segments_in(log)[1]
    count = len(read(removed)[0])
    removed.unlink()
    assert 1 + len(list(reading)) == COUNT - count


@pytest.mark.slow
def test_a_log_reads_whole_at_every_moment_while_it_is_written(tmp_path: Path) -> None:
    appender = Appender(tmp_path, SETTINGS, broker=BROKER)
    appender.resume()
    total = 2000
    is_begun = threading.Event()

    def write() -> None:
        for number in range(total):
            appender.write([Pending(payload_of(number), T0 + number, number)])
            is_begun.set()

    thread = threading.Thread(target=write)
    thread.start()
    assert is_begun.wait(TIMEOUT_S)
    count = 0
    while count < total:
        payloads = payloads_in(tmp_path)
        assert payloads == [payload_of(number) for number in range(len(payloads))]
        assert len(payloads) >= count
        count = len(payloads)
        found = there(seek_time(tmp_path, T0 + count - 1))
        assert found.index == count - 1
    thread.join()
    appender.close()


def linear(folder: Path, timestamp_ms: int) -> int | None:
    """The index of the first entry at or after a time, by looking at all."""
    entries, _ = read(folder)
    return next(
        (item.entry.index for item in entries if item.entry.timestamp >= timestamp_ms), None
    )


TIMES = [T0 + delta for delta in range(-5, COUNT * STEP_MS + 5, 5)]


def untouched(folder: Path) -> None:
    pass


def without_indexes(folder: Path) -> None:
    for segment in segments_in(folder):
        index_path(segment).unlink()


def with_damage(folder: Path) -> None:
    """Break the length of the second entry of a segment, and a whole other segment."""
    _, second, third, *_ = segments_in(folder)
    offset = read(second)[0][1].offset
    data = bytearray(second.read_bytes())
    data[offset : offset + 4] = b"\xff" * 4
    second.write_bytes(data)
    third.write_bytes(b"\xee" * 300)


def with_an_empty_segment(folder: Path) -> None:
    (folder / segment_name(COUNT)).touch()


@pytest.mark.parametrize("change", [untouched, without_indexes, with_damage, with_an_empty_segment])
def test_seeking_finds_the_first_entry_at_or_after_a_time(
    log: Path, change: Callable[[Path], None]
) -> None:
    change(log)
    for time in TIMES:
        found = seek_time(log, time)
        assert (found.index if found else None) == linear(log, time)
