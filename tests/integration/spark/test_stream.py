"""The usage log as a Spark stream: each row is once in the table of a file sink, also when the query is killed.

Not covered: what a batch holds (tests/unit/analysis/test_stream.py), other sinks, 20 kills (bench/stream_kills.py).
"""

import random
import signal
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pyspark.errors import StreamingQueryException

from rgd.adapters.usagelog.index import mend
from rgd.analysis.session import read_rows
from tests.support.killed_stream import LAST_S_MAX, counted, stream_once, stream_until_killed
from tests.support.log_maker import LogMaker, Usage

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

GOLD, TRIAL = Usage("gold", admitted=10, wanted=20, quota=100), Usage("trial", admitted=1)


def test_a_growing_log_is_streamed_by_queries_one_after_the_other(
    spark: "SparkSession", tmp_path: Path
) -> None:
    logs, table = tmp_path / "logs", tmp_path / "table"
    makers = [LogMaker(logs / name, name, is_chained=True) for name in ("b1", "b2")]
    batches = []
    for query in range(2):
        # The second log appears with the second query.
        for maker in makers[: 1 + query]:
            maker.rounds(45, GOLD, TRIAL)
            stored = bytearray(maker.take_back())
            stored[-1] ^= 0xFF
            maker.put_again(bytes(stored))
            maker.rounds(25, GOLD)
            mend(maker.flush())
            maker.roll()
        batches.append(stream_once(spark, logs, table, maxEntriesPerTrigger="80"))

    assert batches == [1, 2]
    assert counted(spark.read.parquet(str(table))) == counted(read_rows(spark, [str(logs)]))


def test_lost_entries_end_the_query_with_the_remedy(spark: "SparkSession", tmp_path: Path) -> None:
    maker = LogMaker(tmp_path / "logs", "b1", is_chained=True)
    table = tmp_path / "table"
    maker.rounds(5, GOLD)
    maker.flush()
    stream_once(spark, maker.folder, table)
    maker.rounds(5, GOLD)
    deleted = maker.roll()
    maker.rounds(5, GOLD)
    maker.close()
    deleted.unlink()

    said = "entries 5 to 9 were not read: .*failOnDataLoss"
    with pytest.raises(StreamingQueryException, match=said):
        stream_once(spark, maker.folder, table)


def test_a_query_that_is_killed_has_each_row_once_in_its_table(
    spark: "SparkSession", tmp_path: Path
) -> None:
    logs, table = tmp_path / "logs", tmp_path / "table"
    maker = LogMaker(logs, "b1", is_chained=True)
    dice = random.Random(22)

    def grow() -> None:
        maker.rounds(1, GOLD, TRIAL)
        maker.flush()

    maker.rounds(200, GOLD, TRIAL)
    mend(maker.roll())
    ended = stream_until_killed(logs, table, dice.uniform(0, LAST_S_MAX), grow)
    assert ended == -signal.SIGKILL, table.with_suffix(".out").read_text()
    stream_once(spark, logs, table)

    assert counted(spark.read.parquet(str(table))) == counted(read_rows(spark, [str(logs)]))
