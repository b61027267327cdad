"""Segments on disk are found and read, whatever is in them.

Not covered: how entries stand in a file (tests of rgd.wire.segment), segments that are being written.
"""

from pathlib import Path

import pytest

from rgd.analysis.asked import ALWAYS, IndexRange, TimeRange
from rgd.analysis.discovery import Segment, find_segments
from rgd.analysis.errors import NoLog
from rgd.analysis.reading import segment_pieces
from rgd.analysis.segments import TIME_MS_MAX, Contents, Damage, Logged, read_segment
from tests.support.log_maker import START_MS, LogMaker, Usage, log_of

GOLD = Usage("gold", admitted=10, quota=100)


def read(
    segment: Path, within: TimeRange | IndexRange = ALWAYS
) -> tuple[list[Logged | Damage], Contents]:
    contents = Contents(str(segment))
    return list(read_segment(Segment.of(segment), contents, within)), contents


def times(found: list[Logged | Damage]) -> list[int]:
    """In seconds since the log began."""
    return [(item.timestamp_ms - START_MS) // 1000 for item in found if isinstance(item, Logged)]


def test_one_segment_file_may_have_any_name(tmp_path: Path) -> None:
    renamed = log_of(tmp_path, "broker-1", (1, GOLD)).rename(tmp_path / "copy")

    assert find_segments([str(renamed)]) == (Segment.of(renamed),)


@pytest.mark.parametrize(
    ("paths", "said"),
    [
        pytest.param([], "no log was named", id="none"),
        pytest.param(["{tmp}/absent"], "does not exist", id="absent"),
        pytest.param(["{tmp}"], "holds no segment files", id="empty folder"),
        pytest.param(["ftp://host/log"], "expected a folder, file", id="url"),
    ],
)
def test_what_cannot_be_read_is_refused_with_the_remedy(
    tmp_path: Path, paths: list[str], said: str
) -> None:
    with pytest.raises(NoLog, match=said):
        find_segments([path.format(tmp=tmp_path) for path in paths])


def test_a_record_of_a_later_version_is_damage_and_anybody_elses_entry_is_not(
    tmp_path: Path,
) -> None:
    maker = LogMaker(tmp_path, "broker-1")
    maker.round(GOLD)
    maker.append(b"anything", (("rgd", "99"),))
    maker.append(b"somebody else's", (("app", "1"),))
    maker.round(GOLD)

    found, contents = read(maker.close())

    assert times(found) == [1, 2]
    assert [item.reason for item in found if isinstance(item, Damage)] == ["unknown_version"]
    assert (contents.foreign, contents.damaged, contents.lost_entries) == (1, 1, 0)


def test_a_torn_end_is_no_damage(tmp_path: Path) -> None:
    maker = LogMaker(tmp_path, "broker-1")
    maker.rounds(3, GOLD)
    size = maker.offset_of(3) - maker.offset_of(2)
    segment = maker.close()
    segment.write_bytes(segment.read_bytes()[:-7])

    found, contents = read(segment)

    assert times(found) == [1, 2]
    assert (contents.damaged, contents.torn_bytes) == (0, size - 7)


def test_seeking_passes_over_what_lies_before_without_reading_it(tmp_path: Path) -> None:
    maker = LogMaker(tmp_path, "broker-1")
    maker.rounds(4, GOLD)
    second = maker.offset_of(1)
    segment = maker.close()
    stored = bytearray(segment.read_bytes())
    stored[second - 1] ^= 0xFF  # the first record's last byte
    segment.write_bytes(stored)

    _, whole = read(segment)
    found, sought = read(segment, TimeRange(START_MS + 3000, None))

    assert whole.damaged == 1
    assert (times(found), sought.damaged) == ([3, 4], 0)


@pytest.mark.parametrize("within", [TimeRange(to_ms=START_MS + 6001), IndexRange(0, 6)])
def test_a_wrong_stamp_of_one_entry_ends_no_range(
    tmp_path: Path, within: TimeRange | IndexRange
) -> None:
    """No checksum covers what the broker added."""
    maker = LogMaker(tmp_path, "broker-1", is_chained=True)
    maker.rounds(2, GOLD)
    maker.now_ms, maker.index = maker.now_ms + 90_000, maker.index + 90
    maker.round(GOLD)
    maker.now_ms, maker.index = maker.now_ms - 90_000, maker.index - 90
    maker._stamped_ms = 0  # noqa: SLF001 -- the law that is broken here
    maker.rounds(6, GOLD)

    found, _ = read(maker.close(), within)

    assert times(found) == [1, 2, 4, 5, 6]


@pytest.mark.parametrize("stamp", [TIME_MS_MAX, 1 << 53, (1 << 64) - 9999])
def test_what_is_stamped_beyond_the_calendar_is_damaged(tmp_path: Path, stamp: int) -> None:
    found, _ = read(log_of(tmp_path, "broker-1", (1, GOLD), start_ms=stamp))
    assert [item.reason for item in found if isinstance(item, Damage)] == ["bad_number"]


def test_a_round_without_a_length_behind_a_gap_is_read(tmp_path: Path) -> None:
    maker = LogMaker(tmp_path, "broker-1", period_ms=0)
    maker.rounds(1, GOLD)
    maker.now_ms += 9000
    maker.silent(2)
    maker.rounds(1, GOLD)
    assert list(segment_pieces(Segment.of(maker.close()), 1000, round_ms=1000.0))
