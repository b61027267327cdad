"""A Spark query that streams logs into a table of files, in a process that kills itself at a random moment.

Each one ends, by SIGKILL with Java, some time after its first batch.
"""

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from rgd.analysis.source import RgdRows
from tests.support.child_processes import start_dying_with_parent

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

TIMEOUT_S = 900
#: How long a query runs on: some of the later batches.
LAST_S_MAX = 1.5
_STREAM = """
import os, signal, sys, threading
from rgd.analysis.session import session
from rgd.analysis.source import RgdRows

logs, table, last_s = sys.argv[1:]
with session("local[2]") as spark:
    spark.dataSource.register(RgdRows)
    rows = spark.readStream.format("rgd").option("maxEntriesPerTrigger", 40).load(logs)
    writer = rows.writeStream.option("checkpointLocation", table + ".state")
    query = writer.start(table, "parquet")
    while not query.recentProgress:
        query.awaitTermination(0.1)
    # The group has Java in it; workers end with Java.
    threading.Timer(float(last_s), os.killpg, (0, signal.SIGKILL)).start()
    query.awaitTermination()
"""


def stream_until_killed(
    logs: Path, table: Path, last_s: float, meanwhile: Callable[[], None]
) -> int:
    """Stream in a process that is killed so long after its first batch; its exit status."""
    command: list[str | Path] = [sys.executable, "-c", _STREAM, logs, table, str(last_s)]
    output = table.with_suffix(".out")
    process = start_dying_with_parent(command, environment=os.environ, log=output)
    while True:
        try:
            return process.wait(0.05)
        except subprocess.TimeoutExpired:
            meanwhile()


def stream_once(spark: "SparkSession", logs: Path, table: Path, **options: str) -> int:
    """Stream what is there, in a query that ends; how many batches it took."""
    spark.dataSource.register(RgdRows)
    rows = spark.readStream.format("rgd").options(**options).load(str(logs))
    writer = rows.writeStream.trigger(availableNow=True)
    query = writer.option("checkpointLocation", f"{table}.state").start(str(table), "parquet")
    try:
        assert query.awaitTermination(TIMEOUT_S)
    finally:
        query.stop()
    return sum(progress["numInputRows"] > 0 for progress in query.recentProgress)


def counted(rows: "DataFrame") -> Counter[tuple[object, ...]]:
    """How often each row is there."""
    named = rows.select("segment", "offset", "index", "group", "wanted_messages_total")
    return Counter(tuple(row) for row in named.collect())
