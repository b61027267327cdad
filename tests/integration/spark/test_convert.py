"""Spark's tasks convert logs to a lake, in a folder and in a bucket, and Spark reads it.

Not covered: what is in the files (tests/unit/analysis/test_lake.py).
"""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from rgd.analysis.asked import EVERYTHING, Asked, TimeRange
from rgd.analysis.convert import Converted, convert_logs
from rgd.analysis.errors import AnalysisError, NoLog
from rgd.analysis.report import run_report
from rgd.analysis.session import read_rows
from rgd.cli.main import app
from rgd.errors import ConfigError
from rgd.storage.objects import Objects
from rgd.wire.segment import segment_name
from tests.support.log_maker import START_MS, LogMaker, Usage

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("spark")]

#: In UTC.
MIDNIGHT_MS = 1_795_305_600_000
GOLD = Usage("gold", admitted=70, wanted=90, quota=100)
TIN = Usage("tin", admitted=1)


@pytest.fixture
def logs(tmp_path: Path) -> list[LogMaker]:
    """Two brokers with two segments each, the second half open."""
    makers = [LogMaker(tmp_path / "logs" / name, name) for name in ("b1", "b2")]
    for maker in makers:
        maker.rounds(60, GOLD, TIN)
        maker.roll()
        maker.rounds(20, GOLD)
        maker.roll()
    return makers


@pytest.mark.usefixtures("workers_see_s3")
def test_what_is_new_is_added_and_a_lake_is_read_as_tables(
    logs: list[LogMaker], tier_place: str, tmp_path: Path
) -> None:
    source = [str(tmp_path / "logs")]
    early = TimeRange(to_ms=START_MS + 61_000)

    assert convert_logs(source, tier_place, within=early) == Converted(2, 240, 0)
    assert convert_logs(source, tier_place) == Converted(2, 40, 2)
    logs[0].rounds(5, GOLD)
    logs[0].close()
    assert convert_logs(source, tier_place) == Converted(1, 5, 4)

    objects = Objects(tier_place)
    copy = tmp_path / "copy"
    for name in objects.names("usage"):
        file = copy / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(objects.read(name))
    assert ds.dataset(copy / "usage", partitioning="hive").count_rows() == 285


def test_spark_reads_the_same_sums_from_the_lake_as_from_the_log(
    logs: list[LogMaker], tmp_path: Path, spark: "SparkSession"
) -> None:
    source, out = [str(logs[0].folder.parent)], str(tmp_path / "lake")
    shown = CliRunner().invoke(app, ["log", "convert", *source, "--out", out])
    assert shown.exit_code == 0, shown.output
    assert (
        shown.output
        == f"{out}: 4 segments with 280 rows converted, 0 had been or have no entry yet\n"
    )

    def sums(rows: Any) -> set[tuple[Any, ...]]:
        found = rows.groupBy("broker", "group").sum("admitted_messages", "refused_messages")
        return {tuple(row) for row in found.collect()}

    lake = spark.read.parquet(f"{out}/usage")
    assert sums(lake) == sums(read_rows(spark, source))
    assert lake.where("day = '2026-11-21'").count() == 280


def test_a_report_from_the_lake_is_the_one_from_the_logs(tmp_path: Path) -> None:
    """Over midnight, with a loss, a restart, segments that end within minutes, and one that cannot be read."""
    start_ms = MIDNIGHT_MS - 5 * 60_000
    makers = [LogMaker(tmp_path / "logs" / name, name, start_ms=start_ms) for name in ("b1", "b2")]
    for number, maker in enumerate(makers):
        maker.rounds(130, GOLD, TIN)
        maker.lose(3, GOLD)
        maker.roll()
        maker.rounds(200 + number, GOLD)
        maker.restart()
        maker.rounds(250, replace(GOLD, admitted=30 * number), TIN)
        maker.close()
    (makers[0].folder / segment_name(10**6)).write_bytes(b"\xff" * 99)
    source, lake = [str(tmp_path / "logs")], str(tmp_path / "lake")
    convert_logs(source, lake)

    def made(places: list[str], asked: Asked) -> tuple[Any, ...]:
        summary = run_report(places, tmp_path / "out", window_s=60, asked=asked)
        rows = pq.read_table(tmp_path / "out" / "windows").to_pylist()
        log = summary.to_json()["log"]
        rows.sort(key=lambda row: (row["group"], row["start_ms"]))
        return rows, summary.groups, log | {"fetched_bytes": 0, "stored_bytes": 0}

    whole = made([lake], EVERYTHING)
    assert whole == made(source, EVERYTHING)
    assert whole[2]["damaged_entries"] == 1
    # Of a range of minutes, the windows that begin in it.
    within = TimeRange(MIDNIGHT_MS - 60_000, MIDNIGHT_MS + 60_000)
    rows, groups, _ = made([lake], Asked(within, groups=frozenset({"gold"})))
    assert [row["start_ms"] for row in rows] == [MIDNIGHT_MS - 60_000, MIDNIGHT_MS]
    assert rows[0] in whole[0]
    assert [one["group"] for one in groups] == ["gold"]

    with pytest.raises(ConfigError, match="whole minutes"):
        run_report([lake], tmp_path / "out", window_s=90)
    with pytest.raises(NoLog, match="is a lake"):
        convert_logs([lake], str(tmp_path / "other"))


def test_a_file_that_a_conversion_replaces_under_a_report_is_one_line(
    logs: list[LogMaker], tmp_path: Path
) -> None:
    lake = tmp_path / "lake"
    convert_logs([str(logs[0].folder)], str(lake))

    def replace_files(_: str) -> None:
        for file in lake.glob("minutes/*/*.parquet"):
            file.unlink()

    with pytest.raises(AnalysisError, match=r"(?s)^Spark failed: [^\n]*repeat it[^\n]*$"):
        run_report([str(lake)], tmp_path / "out", progress=replace_files)


def test_clocks_that_were_off_are_named_by_a_report_from_the_lake(tmp_path: Path) -> None:
    makers = [LogMaker(tmp_path / "logs" / name, name) for name in ("b1", "b2", "b3")]
    makers[1].clock_ahead_ms = 600_000
    for maker in makers:
        maker.peers = [other for other in makers if other is not maker]
    for _ in range(100):
        for maker in makers:
            maker.round(GOLD)
    for maker in makers:
        maker.close()
    convert_logs([str(tmp_path / "logs")], str(tmp_path / "lake"))
    summary = run_report([str(tmp_path / "lake")], tmp_path / "out")
    log = summary.to_json()["log"]
    assert (log["uncorrected_clocks"], log["clocks"]) == (["b2"], [])
    assert summary.sentences[0].startswith(
        "Warning: do not use these figures. Clocks of b2 were off"
    )
