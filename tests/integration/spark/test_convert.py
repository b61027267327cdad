"""Spark's tasks convert logs to a lake, in a folder and in a bucket, and Spark reads it.

Not covered: what is in the files (tests/unit/analysis/test_lake.py).
"""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.dataset as ds
import pytest
from typer.testing import CliRunner

from rgd.analysis.asked import TimeRange
from rgd.analysis.convert import Converted, convert_logs
from rgd.analysis.session import read_rows
from rgd.cli.main import app
from rgd.storage.objects import Objects
from tests.support.log_maker import START_MS, LogMaker, Usage

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

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


@pytest.fixture
def _workers_see_s3(
    tier_place: str, spark: "SparkSession", monkeypatch: pytest.MonkeyPatch
) -> None:
    """The workers' environment is otherwise what it was when the one Spark of the run was started."""
    assert tier_place
    for name in ("AWS_ENDPOINT_URL", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_REGION"):
        if name in os.environ:
            monkeypatch.setitem(spark.sparkContext.environment, name, os.environ[name])


@pytest.mark.usefixtures("_workers_see_s3")
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
    assert shown.output == f"{out}: 4 segments with 280 rows converted, 0 unchanged\n"

    def sums(rows: Any) -> set[tuple[Any, ...]]:
        found = rows.groupBy("broker", "group").sum("admitted_messages", "refused_messages")
        return {tuple(row) for row in found.collect()}

    lake = spark.read.parquet(f"{out}/usage")
    assert sums(lake) == sums(read_rows(spark, source))
    assert lake.where("day = '2026-11-21'").count() == 280
