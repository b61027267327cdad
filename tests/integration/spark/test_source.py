"""The usage log as a Spark table.

Not covered: what is in a row (tests/unit/analysis/test_rows), a cluster of several machines.
"""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from rgd.analysis.schema import ROWS
from rgd.analysis.session import read_rows
from rgd.analysis.source import RgdRows
from rgd.wire.segment import segment_name
from tests.support.log_maker import START_MS, LogMaker, Usage

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

GOLD = Usage("gold", admitted=10, wanted=20, quota=100, share=50)
TRIAL = Usage("trial", admitted=1)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """Two brokers, three segments each of ten rounds of two groups; one entry is damaged."""
    for broker in ("broker-1", "broker-2"):
        maker = LogMaker(tmp_path / broker, broker)
        for _ in range(3):
            maker.rounds(10, GOLD, TRIAL)
            maker.roll()
    segment = tmp_path / "broker-2" / segment_name(20)
    stored = bytearray(segment.read_bytes())
    stored[-1] ^= 0xFF
    segment.write_bytes(stored)
    return tmp_path


def plan(frame: "DataFrame") -> str:
    described: Any = frame._jdf.queryExecution()
    return str(described.executedPlan().toString())


def test_every_row_is_there_and_damage_is_a_row(spark: "SparkSession", log: Path) -> None:
    rows = read_rows(spark, [str(log)])

    assert rows.columns == list(ROWS)
    # One for each segment.
    assert rows.rdd.getNumPartitions() == 6
    assert rows.where("damage is null").count() == 2 * 3 * 10 * 2 - 2
    (damaged,) = rows.where("damage is not null").collect()
    assert (damaged.damage, damaged.broker) == ("checksum", None)
    assert damaged.segment.endswith("broker-2/00000000000000000020.log")
    total = rows.where("`group` = 'gold'").groupBy("broker").agg({"admitted_messages": "sum"})
    assert {tuple(row) for row in total.collect()} == {("broker-1", 300.0), ("broker-2", 290.0)}


def test_the_example_notebook_runs(
    spark: "SparkSession", log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    del spark
    monkeypatch.setenv("RGD_LOG", str(log))
    monkeypatch.setenv("RGD_OUT", str(tmp_path / "out"))
    notebook = json.loads(Path("examples/usage_log.ipynb").read_text(encoding="utf-8"))
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert all(cell["outputs"] == [] for cell in cells)
    known: dict[str, Any] = {}
    for cell in cells:
        exec("".join(cell["source"]), known)
    assert {row["group"] for row in known["refused"].collect()} == {"gold", "trial"}
    assert Path(known["summary"].page).exists()


def test_several_paths_and_options_are_read_as_spark_hands_them_over(
    spark: "SparkSession", log: Path
) -> None:
    spark.dataSource.register(RgdRows)
    reader = spark.read.format("rgd").option("from_ms", START_MS + 13_000)

    rows = reader.option("to_ms", START_MS + 15_000).load(
        [str(log / "broker-1"), str(log / "broker-2")]
    )

    # A time range leaves out segments, and passes over entries.
    assert rows.rdd.getNumPartitions() == 2
    times = [row.broker_timestamp - START_MS for row in rows.collect()]
    assert sorted(times) == [13_000] * 4 + [14_000] * 4
    assert reader.load(str(log / "broker-1")).count() == 2 * 2
    assert reader.option("to_ms", START_MS).load(str(log)).count() == 0


def test_comparisons_of_the_time_are_pushed_down_and_others_are_not(
    spark: "SparkSession", log: Path
) -> None:
    rows = read_rows(spark, [str(log)]).where(
        f"broker_timestamp >= {START_MS + 13_000} and broker_timestamp < {START_MS + 15_000}"
        " and `group` = 'gold'"
    )

    assert rows.rdd.getNumPartitions() == 2
    assert rows.count() == 4
    filtered = plan(rows)
    assert "group" in filtered
    assert f"{START_MS + 13_000}" not in filtered.partition("Filter")[2].partition("\n")[0]


def test_a_spark_that_pushes_nothing_down_is_served_too(spark: "SparkSession", log: Path) -> None:
    setting = "spark.sql.python.filterPushdown.enabled"
    before = spark.conf.get(setting)
    spark.conf.set(setting, "false")
    try:
        rows = read_rows(spark, [str(log)]).where(f"broker_timestamp >= {START_MS + 30_000}")
        assert rows.rdd.getNumPartitions() == 6
        assert rows.count() == 2
    finally:
        spark.conf.set(setting, str(before))


def test_processes_that_java_starts_load_the_installed_pyspark(spark: "SparkSession") -> None:
    java: Any = spark.sparkContext._jvm
    places = java.org.apache.spark.api.python.PythonUtils.sparkPythonPath().split(":")
    # What is in a zip is compiled by each process anew.
    assert [place for place in places if place.endswith(".zip") and Path(place).exists()] == []
