"""The sparse index speeds things up and is believed in nothing.

Not covered: that it does speed things up (bench/usagelog.py).
"""

import struct
from pathlib import Path

import pytest

from rgd.adapters.usagelog.index import MARK_EVERY, index_path, load_marks, mend
from rgd.adapters.usagelog.reader import seek_time
from rgd.adapters.usagelog.settings import UsageLogSettings
from rgd.ports.usagelog import Fsync
from rgd.storage.marks import Mark, true_marks
from tests.unit.adapters.usagelog.logs import T0, pendings, read, segments_in, write_log

SETTINGS = UsageLogSettings(fsync=Fsync.NEVER)
COUNT = MARK_EVERY * 3 + 5
STEP_MS = 10


@pytest.fixture
def segment(tmp_path: Path) -> Path:
    write_log(tmp_path, pendings(COUNT, step_ms=STEP_MS), SETTINGS)
    return segments_in(tmp_path)[0]


def true_ones(segment: Path) -> list[Mark]:
    """The marks as a look at every entry gives them."""
    entries, _ = read(segment)
    return [
        Mark(item.entry.index or 0, item.entry.timestamp, item.offset)
        for item in entries[::MARK_EVERY]
    ]


DAMAGE = {
    "missing": None,
    "empty": b"",
    "half a mark": b"\0" * 23,
    "zeros": b"\0" * 240,
    "ones": b"\xff" * 240,
    "falling": struct.pack(">QQQ", 9, T0, 900) + struct.pack(">QQQ", 1, T0, 100),
    "another segment's": struct.pack(">QQQ", 10**6, T0, 0),
    "inside an entry": struct.pack(">QQQ", 0, T0, 0) + struct.pack(">QQQ", 128, T0 + 1280, 7),
}


@pytest.mark.parametrize("data", [pytest.param(data, id=name) for name, data in DAMAGE.items()])
def test_a_missing_or_wrong_index_changes_no_answer_and_is_repaired(
    segment: Path, data: bytes | None
) -> None:
    path = index_path(segment)
    path.unlink()
    if data is not None:
        path.write_bytes(data)
    for number in (0, 1, MARK_EVERY, COUNT - 1):
        position = seek_time(segment, T0 + number * STEP_MS)
        assert position is not None
        assert position.index == number
    mend(segment)
    assert load_marks(segment) == true_ones(segment)


def test_marks_behind_a_cut_are_not_true(segment: Path) -> None:
    marks = load_marks(segment)
    with segment.open("r+b") as file:
        file.truncate(marks[2].offset + 10)
        assert true_marks(file.fileno(), marks) == marks[:2]
