"""How long a fairness report takes: of a demo's log, cold, and of a long one, by the row.

    python bench/report.py [--json] [--rounds 2000] [--brokers 8] [--groups 50]

The first figure is what a person waits for: a fresh process, Spark's start included, 3 brokers with
90 rounds of 3 groups. The others say how it grows: rows a second of one process that reads and
reduces a segment, of one that converts it to Parquet, and of whole reports in windows of 60 s from the log
and from the lake, Spark's start taken off; beside them the plain way, which makes an object of each row.
Not measured: a cluster.
"""

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from bench.harness import run
from rgd.analysis.discovery import Segment
from rgd.analysis.lake import claim, convert_segment
from rgd.analysis.reading import segment_pieces
from rgd.core.exchange.columns import ShareColumns, UsageColumns, kind_code, policy_code
from rgd.core.exchange.messages import RoundRecord, Sender
from rgd.core.policies.model import SharePolicyName
from rgd.core.shares.columns import NO_RATE
from rgd.core.units import MILLI, NS_PER_S, Kind
from rgd.wire.frame import BrokerEntryMetadata, Entry, encode_entry
from rgd.wire.log_records import LogEncoder
from rgd.wire.segment import encode_stored, segment_name

START_MS = 1_795_234_300_000
SEGMENT_ROUNDS = 1000

REPORT = """\
import resource, sys, time
from pathlib import Path
from rgd.analysis.report import run_report
begun, marks = time.perf_counter(), {}
window_s = float(sys.argv[3]) or None
run_report([sys.argv[1]], Path(sys.argv[2]), window_s=window_s, progress=lambda s: marks.setdefault(s.split()[0], time.perf_counter()))
end = time.perf_counter()
print(end - begun, end - marks["comparing"], resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)
"""

#: The plain way: an object a row, and the max-min parts by a function of each window.
PLAIN = """\
import sys, time
import numpy as np
from rgd.analysis.fairness import max_min_parts
from rgd.analysis.session import read_rows, session

def counted(row):
    window = row.broker_timestamp // 60_000
    return (row.group, row.kind, window, row.broker), (row.quota_messages, row.wanted_messages * row.period_ms / 60_000)

def parts(window):
    quota, wanted = window
    return max_min_parts(np.array([[quota, np.nan]]), np.array([[(one, 0) for one in wanted]]))

with session() as spark:
    begun = time.perf_counter()
    rows = read_rows(spark, [sys.argv[1]]).rdd
    brokers = rows.map(counted).reduceByKey(lambda a, b: (a[0], a[1] + b[1]))
    windows = brokers.map(lambda one: (one[0][:3], (one[1][0], [one[1][1]])))
    windows.reduceByKey(lambda a, b: (a[0], a[1] + b[1])).mapValues(parts).count()
    print(time.perf_counter() - begun)
"""


def write_log(folder: Path, *, brokers: int, rounds: int, groups: int) -> int:
    """Write what daemons would have; the rows in it."""
    for broker in range(brokers):
        home = folder / f"broker-{broker}"
        home.mkdir(parents=True)
        encoder = LogEncoder()
        for first in range(0, rounds, SEGMENT_ROUNDS):
            last = min(rounds, first + SEGMENT_ROUNDS)
            encoder.begin_segment()
            stored = b"".join(
                _entry(encoder, broker, number, groups) for number in range(first, last)
            )
            (home / segment_name(first)).write_bytes(stored)
    return brokers * rounds * groups


def _entry(encoder: LogEncoder, broker: int, number: int, groups: int) -> bytes:
    record = RoundRecord(
        sender=Sender(f"broker-{broker}", broker + 1),
        sequence=number + 1,
        period_ns=NS_PER_S,
        rows=_rows(broker, number, groups),
        ended_ns=(number + 1) * NS_PER_S,
    )
    payload = encoder.encode(record)
    entry = Entry(
        producer_name=f"broker-{broker}",
        sequence_id=number,
        publish_time=START_MS + 1000 * number,
        payload=payload.data,
        properties=payload.properties,
        unknown=payload.metadata,
        broker=BrokerEntryMetadata(START_MS + 1000 * (number + 1) + 137 * broker, number),
    )
    return encode_stored(encode_entry(entry))


def _rows(broker: int, number: int, groups: int) -> ShareColumns:
    """Demand that moves about, of which each broker gets 30 of 100 at the most."""
    wanted = 20 + (7 * broker + 3 * np.arange(groups) + number // 20) % 40
    admitted = np.minimum(30, wanted)
    return ShareColumns(
        usage=UsageColumns(
            groups=tuple(f"group-{group:04}" for group in range(groups)),
            kinds=np.full(groups, kind_code(Kind.PUBLISH), np.uint8),
            topics=np.full(groups, 3),
            admitted=np.outer(admitted, (MILLI, 1000 * MILLI)),
            wanted=np.outer(wanted, (MILLI, 1000 * MILLI)),
        ),
        share=np.tile((30 * MILLI, NO_RATE), (groups, 1)),
        quota=np.tile((100 * MILLI, NO_RATE), (groups, 1)),
        policies=np.full(groups, policy_code(SharePolicyName.MAX_MIN), np.uint8),
        refused=np.outer(wanted - admitted, (1, 0)),
        sent=np.ones(groups, np.bool_),
        admitted_total=np.tile((30 * (number + 1), 30_000 * (number + 1)), (groups, 1)),
        wanted_total=np.tile((60 * (number + 1), 60_000 * (number + 1)), (groups, 1)),
    )


def report(log: Path, out: Path, window_s: int = 0) -> list[float]:
    """Seconds that a report takes in a process of its own, in all and from Spark's readiness on; its MB."""
    return _printed(REPORT, log, out, window_s)


def _printed(program: str, *arguments: object) -> list[float]:
    command = [sys.executable, "-c", program, *map(str, arguments)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return [*map(float, done.stdout.split())]


def reduce_all(log: Path) -> float:
    """Seconds of a processor that this process takes to read and reduce every segment."""
    begun = time.process_time()
    for segment in sorted(log.rglob("*.log")):
        for _ in segment_pieces(Segment.of(segment), 1000, round_ms=1000.0):
            pass
    return time.process_time() - begun


def convert_all(log: Path, lake: Path) -> tuple[float, int]:
    """Seconds of a processor that this process takes to make Parquet of every segment, and the bytes of it."""
    claim(str(lake))
    begun = time.process_time()
    for segment in sorted(log.rglob("*.log")):
        convert_segment(Segment.of(segment), str(lake))
    took_s = time.process_time() - begun
    return took_s, sum(file.stat().st_size for file in (lake / "usage").rglob("*.parquet"))


def measure(options: argparse.Namespace) -> dict[str, float]:
    """All figures."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        write_log(home / "demo", brokers=3, rounds=90, groups=3)
        demo_s, *_ = report(home / "demo", home / "demo-out")
        rows = write_log(
            home / "long", brokers=options.brokers, rounds=options.rounds, groups=options.groups
        )
        reduce_s = reduce_all(home / "long")
        convert_s, lake_bytes = convert_all(home / "long", home / "lake")
        long_s, work_s, driver_mb = report(home / "long", home / "long-out", 60)
        lake_s, lake_work_s, _ = report(home / "lake", home / "lake-out", 60)
        (plain_s,) = _printed(PLAIN, home / "long")
    return {
        "demo_report_s": round(demo_s, 2),
        "long_rows": rows,
        "long_report_s": round(long_s, 2),
        "long_report_rows_per_s": round(rows / work_s),
        "long_report_driver_mb": driver_mb,
        "lake_report_s": round(lake_s, 2),
        "lake_report_rows_per_s": round(rows / lake_work_s),
        "plain_rows_per_s": round(rows / plain_s),
        "reduce_rows_per_s_core": round(rows / reduce_s),
        "convert_rows_per_s_core": round(rows / convert_s),
        "lake_bytes_per_row": round(lake_bytes / rows, 2),
        # Java; a worker is smaller.
        "largest_process_mb": resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024,
    }


def add_options(parser: argparse.ArgumentParser) -> None:
    """How long the long log is."""
    parser.add_argument("--brokers", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=2000)
    parser.add_argument("--groups", type=int, default=50)


if __name__ == "__main__":
    run(__doc__, measure, add_options=add_options)
