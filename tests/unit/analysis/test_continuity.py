"""What is missing is told from what was silent.

Not covered: what becomes of the counts of missing records (test_windows).
"""

from collections.abc import Callable, Collection
from dataclasses import replace
from pathlib import Path

import pytest

from rgd.analysis import wording
from rgd.analysis.asked import TimeRange
from rgd.analysis.continuity import Run, check_distinct
from rgd.analysis.errors import DuplicateLog, NothingLogged
from rgd.analysis.presence import RoundPart
from rgd.wire.segment import segment_name
from tests.support.log_maker import START_MS, LogMaker, Usage
from tests.unit.analysis.conftest import ReadLogs

GOLD = Usage("gold", admitted=10, wanted=20, quota=100)


def in_parts(maker: LogMaker, rounds: int, *, without: Collection[int] = ()) -> None:
    for _ in range(rounds):
        maker.round_in_parts(
            *([Usage(name, admitted=10, quota=100)] for name in ("gold", "silver", "trial")),
            without=without,
        )


def rounds_in_parts(maker: LogMaker) -> None:
    maker.rounds(2, GOLD)
    in_parts(maker, 3)
    maker.rounds(2, GOLD)


def early_reports(maker: LogMaker) -> None:
    maker.rounds(3, GOLD)
    maker.sequence += 5
    maker.rounds(3, GOLD)


def a_group_after_an_idle_time(maker: LogMaker) -> None:
    """All that it counted was in another segment."""
    tin = replace(GOLD, group="tin")
    maker.rounds(100, GOLD, tin)
    maker.roll()
    maker.rounds(5, GOLD)
    maker.silent(60)
    maker.round(tin)


def no_index(maker: LogMaker) -> None:
    """As without the interceptor, which is there later."""
    for maker.has_index in False, False, True, True:
        maker.roll()
        maker.rounds(5, GOLD)


@pytest.mark.parametrize(
    "log", [rounds_in_parts, early_reports, a_group_after_an_idle_time, no_index]
)
def test_nothing_is_missing_where_nothing_was_lost(
    tmp_path: Path, read_logs: ReadLogs, log: Callable[[LogMaker], None]
) -> None:
    maker = LogMaker(tmp_path, "broker-1")
    log(maker)
    maker.close()
    assert read_logs(tmp_path).facts().missing == 0


def test_records_damaged_at_a_segments_ends_are_missing(
    tmp_path: Path, read_logs: ReadLogs
) -> None:
    maker = LogMaker(tmp_path, "broker-1")
    segments = []
    for _ in range(2):
        maker.rounds(5, GOLD)
        segments.append(maker.roll())
    first, second = segments
    whole = first.read_bytes()
    first.write_bytes(whole[:-1] + bytes([whole[-1] ^ 0xFF]))
    size = len(second.read_bytes()) // 5
    second.write_bytes(b"\xff" * size + second.read_bytes()[size:])

    facts = read_logs(tmp_path).facts()

    assert (facts.damaged, facts.records, facts.missing) == (2, 8, 2)


def test_a_round_whose_parts_are_in_two_segments_is_no_duplicate_and_no_gap(
    tmp_path: Path, read_logs: ReadLogs
) -> None:
    maker = LogMaker(tmp_path, "broker-1")
    in_parts(maker, 1)
    last_part = maker.take_back()
    maker.roll()
    maker.put_again(last_part)
    in_parts(maker, 1)
    maker.close()

    logs = read_logs(tmp_path)

    check_distinct(run for one in logs.stats for run in one.runs)
    assert (logs.facts().records, logs.facts().missing) == (2, 0)


@pytest.mark.parametrize("without", [[1], [2], [3], [1, 3]])
def test_a_part_that_is_not_there_is_missing(
    tmp_path: Path, read_logs: ReadLogs, without: list[int]
) -> None:
    maker = LogMaker(tmp_path, "broker-1")
    in_parts(maker, 2)
    in_parts(maker, 1, without=without)
    maker.roll()
    in_parts(maker, 2)
    maker.close()

    assert read_logs(tmp_path).facts().missing == len(without)


def test_a_loss_between_segments_is_not_called_nothing(tmp_path: Path, read_logs: ReadLogs) -> None:
    maker = LogMaker(tmp_path, "broker-1")
    maker.rounds(5, GOLD)
    maker.roll()
    maker.lose(3, GOLD)
    maker.round(GOLD, last=True)
    maker.close()
    logs = read_logs(tmp_path)
    assert "may be missing" in wording.sentences([logs.found()], logs.facts())[-1]


def test_a_part_whose_entry_is_lost_is_missing_once(tmp_path: Path, read_logs: ReadLogs) -> None:
    maker = LogMaker(tmp_path, "broker-1")
    in_parts(maker, 2)
    maker.take_back()
    maker.index += 1
    maker.roll()
    in_parts(maker, 1)
    maker.close()

    assert read_logs(tmp_path).facts().missing == 1


@pytest.mark.parametrize(("from_ms", "records"), [(10_500, 7), (12_500, 5)])
def test_what_lies_outside_a_time_range_is_not_missing(
    tmp_path: Path, read_logs: ReadLogs, from_ms: int, records: int
) -> None:
    maker = LogMaker(tmp_path, "broker-1")
    for _ in range(3):
        maker.rounds(10, GOLD)
        maker.roll()
    damaged = tmp_path / segment_name(10)
    whole = bytearray(damaged.read_bytes())
    whole[len(whole) // 2 - 1] ^= 0xFF  # in the entry of the round that ends after 16 s
    damaged.write_bytes(whole)

    within = TimeRange(START_MS + from_ms, START_MS + 18_500)
    facts = read_logs(tmp_path, within=within).facts()

    assert (facts.damaged, facts.missing, facts.records, facts.open) == (1, 1, records, ())
    assert facts.from_ms == START_MS + from_ms + 500


def test_what_is_missing_of_groups_that_nobody_asks_about_is_missing(
    tmp_path: Path, read_logs: ReadLogs
) -> None:
    maker = LogMaker(tmp_path, "broker-1")
    tin = replace(GOLD, group="tin")
    maker.round()
    maker.roll()
    maker.rounds(3, GOLD, tin)
    maker.lose(3, tin)
    maker.rounds(3, GOLD, tin)
    maker.close()

    logs = read_logs(tmp_path, groups=frozenset({"gold"}))

    assert logs.facts().missing == 3
    assert logs.pieces["group"].unique().to_pylist() == ["gold"]


def test_logs_without_any_usage_are_refused_as_text(tmp_path: Path, read_logs: ReadLogs) -> None:
    maker = LogMaker(tmp_path, "broker-1")
    maker.append(b"somebody else's")
    maker.close()

    with pytest.raises(NothingLogged, match="1 entries of others, 0 damaged"):
        read_logs(tmp_path).facts()


def test_the_same_records_twice_are_refused() -> None:
    first, ninth, tenth, last = (RoundPart(sequence, 1, 1) for sequence in (1, 9, 10, 19))
    once = Run("broker-1", "01", first, ninth, segment="a/0.log")
    later = Run("broker-1", "01", tenth, last, segment="a/9.log")
    other_run = Run("broker-1", "02", first, ninth, segment="a/9.log")
    copy = Run("broker-1", "01", first, ninth, segment="b/0.log")

    check_distinct([later, once, other_run])
    with pytest.raises(DuplicateLog, match=r"a/0\.log and b/0\.log hold the same records"):
        check_distinct([once, later, copy])
