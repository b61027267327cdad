"""What `spark.readStream.format("rgd")` leaves in a table when its query is killed many times while logs grow.

    python bench/stream_kills.py [--json] [--kills 20] [--seed 1]

Each kill is a SIGKILL of Java and Python at a random moment after the first batch (tests/support/killed_stream.py). Every
second kill the logs roll. In the end a query reads the rest, and the table is compared with `spark.read`. By default three kills.
"""

import argparse
import random
import tempfile
import time
from pathlib import Path
from typing import Final

from bench.harness import Figures, run
from rgd.adapters.usagelog.index import mend
from rgd.analysis.session import read_rows, session
from tests.support.killed_stream import LAST_S_MAX, counted, stream_once, stream_until_killed
from tests.support.log_maker import LogMaker, Usage

BROKERS: Final = ("b1", "b2", "b3")
GROUPS: Final = [Usage(f"group-{number}", 10, 20, quota=100) for number in range(5)]


def measure(options: argparse.Namespace) -> Figures:
    """All figures."""
    dice = random.Random(options.seed)
    with tempfile.TemporaryDirectory() as folder:
        logs, table = Path(folder) / "logs", Path(folder) / "table"
        makers = [LogMaker(logs / name, name, is_chained=True) for name in BROKERS]

        def grow() -> None:
            for maker in makers:
                maker.rounds(dice.randrange(3), *GROUPS)
                maker.flush()

        begun = time.perf_counter()
        for kill in range(options.kills):
            for maker in makers:
                maker.rounds(100, *GROUPS)
                mend(maker.roll() if kill % 2 else maker.flush())
            stream_until_killed(logs, table, dice.uniform(0, LAST_S_MAX), grow)
        took_s = time.perf_counter() - begun
        with session("local[2]") as spark:
            stream_once(spark, logs, table)
            streamed = counted(spark.read.parquet(str(table)))
            there = counted(read_rows(spark, [str(logs)]))
        batches = len(list(Path(f"{table}.state/commits").glob("[0-9]*")))
    return {
        "kills": options.kills,
        "batches": batches,
        "rows": there.total(),
        "rows_missing": (there - streamed).total(),
        "rows_too_many": (streamed - there).total(),
        "kill_s": round(took_s / options.kills, 1),
    }


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declare what only this script has."""
    parser.add_argument("--kills", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1)


if __name__ == "__main__":
    run(__doc__, measure, add_options=add_options)
