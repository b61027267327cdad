"""How long a fairness report takes: of a demo's log, cold, and of a long one, by the row.

    python bench/report.py [--json] [--rounds 2000] [--brokers 8] [--groups 50] [--only-log] [--warm 3]
    python bench/report.py --brokers 100 --rounds 500000 --groups 1 --segment-rounds 3600 --alike 50 --window-s 0 --only-log

The first figure is what a person waits for: a fresh process, Spark's start included, 3 brokers with
90 rounds of 3 groups. The others say how it grows: rows a second of one process that reads and
reduces a segment, of one that converts it to Parquet, and from Spark's readiness to the finished windows of 60 s, from the log
and from the lake, with processor time and the most memory; beside them the plain way, which makes an object of each row.
Only `--warm` leaves out all of Spark's start, of which a part is in its first jobs.
Not measured: a cluster.
"""

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import google_crc32c
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

#: In a process of its own, because one that has generated a log has the memory for that too. With a log to begin with
#: Spark runs already: its workers are there, modules imported, Java's code compiled. A line for each time.
REPORT = """\
import sys, time
from contextlib import nullcontext
from pathlib import Path
from bench.harness import Processes
from rgd.analysis.report import run_report
from rgd.analysis.session import session
log, out, window_s, warm, times = sys.argv[1:]
processes, marks = Processes(), {}
def note(what):
    marks[what.split()[0]] = (time.perf_counter(), processes.seconds())
with session() if warm else nullcontext():
    if warm:
        run_report([warm], Path(out))
    for _ in range(int(times)):
        begun = time.perf_counter()
        run_report([log], Path(out), window_s=float(window_s) or None, progress=note)
        (ready, before_s), (windows, after_s) = marks["comparing"], marks["drawing"]
        end = time.perf_counter()
        print(end - begun, windows - ready, after_s - before_s, end - windows, *processes.peaks_mb())
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


def write_log(
    folder: Path,
    *,
    brokers: int,
    rounds: int,
    groups: int,
    segment_rounds: int = 1000,
    alike: int = 1,
) -> int:
    """Write what daemons would have; the rows in it.

    So many brokers in a row are alike, but for their names: of few groups, to encode a record takes
    fifty times as long as to copy it.
    """
    for broker in range(0, brokers, alike):
        names = [_name(one) for one in range(broker, min(brokers, broker + alike))]
        for name in names:
            (folder / name).mkdir(parents=True)
        encoder = LogEncoder()
        for first in range(0, rounds, segment_rounds):
            last = min(rounds, first + segment_rounds)
            encoder.begin_segment()
            stored = [_entry(encoder, broker, number, groups) for number in range(first, last)]
            for name in names:
                own = (
                    stored
                    if name == names[0]
                    else [_renamed(one, names[0], name) for one in stored]
                )
                (folder / name / segment_name(first)).write_bytes(b"".join(own))
    return brokers * rounds * groups


def _name(broker: int) -> str:
    return f"broker-{broker:03}"


def _renamed(stored: bytes, name: str, other: str) -> bytes:
    """A stored entry of another broker, whose name is as long; its payload is not compressed."""
    data = stored.replace(name.encode(), other.encode())
    # Its length; the magic, the size and the bytes of the broker's part; the next magic.
    at = 4 + 6 + data[9] + 2
    checksum: int = google_crc32c.value(data[at + 4 :])
    return data[:at] + checksum.to_bytes(4, "big") + data[at + 4 :]


def _entry(encoder: LogEncoder, broker: int, number: int, groups: int) -> bytes:
    record = RoundRecord(
        sender=Sender(_name(broker), broker + 1),
        sequence=number + 1,
        period_ns=NS_PER_S,
        rows=_rows(broker, number, groups),
        ended_ns=(number + 1) * NS_PER_S,
    )
    payload = encoder.encode(record)
    entry = Entry(
        producer_name=_name(broker),
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


def report(
    log: Path, out: Path, window_s: int = 0, *, warm: Path | str = "", times: int = 1
) -> list[float]:
    """Of the middle one of several reports: seconds in all, from Spark's readiness to all windows, of processors for these, to draw; MB of driver, worker, Java."""
    taken = _printed(REPORT, log, out, window_s, warm, times)
    return sorted(taken, key=lambda one: one[1])[len(taken) // 2]


def _printed(program: str, *arguments: object) -> list[list[float]]:
    """The numbers of each line that a program prints."""
    command = [sys.executable, "-c", program, *map(str, arguments)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return [[*map(float, line.split())] for line in done.stdout.splitlines()]


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
    """All figures, or those of the long log's report."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        rows = write_log(
            home / "long",
            brokers=options.brokers,
            rounds=options.rounds,
            groups=options.groups,
            segment_rounds=options.segment_rounds,
            alike=options.alike,
        )
        begun_with = home / "demo" if options.warm else ""
        write_log(home / "demo", brokers=3, rounds=90, groups=3)
        taken = report(
            home / "long",
            home / "out",
            options.window_s,
            warm=begun_with,
            times=options.warm or 1,
        )
        of_log = _figures("long", rows, taken)
        return of_log if options.only_log else of_log | _others(home, rows)


def _others(home: Path, rows: int) -> dict[str, float]:
    """Of a demo's log, of the lake, of one process, and of the plain way."""
    demo_s, *_ = report(home / "demo", home / "demo-out")
    reduce_s = reduce_all(home / "long")
    convert_s, lake_bytes = convert_all(home / "long", home / "lake")
    of_lake = _figures("lake", rows, report(home / "lake", home / "lake-out", 60))
    [[plain_s]] = _printed(PLAIN, home / "long")
    return {
        "demo_report_s": round(demo_s, 2),
        **of_lake,
        "plain_rows_per_s": round(rows / plain_s),
        "reduce_rows_per_s_core": round(rows / reduce_s),
        "convert_rows_per_s_core": round(rows / convert_s),
        "lake_bytes_per_row": round(lake_bytes / rows, 2),
    }


def _figures(what: str, rows: int, taken: Sequence[float]) -> dict[str, float]:
    all_s, windows_s, cpu_s, drawing_s, driver_mb, worker_mb, java_mb = taken
    return {
        f"{what}_rows": rows,
        f"{what}_report_s": round(all_s, 2),
        f"{what}_report_drawing_s": round(drawing_s, 2),
        f"{what}_windows_rows_per_s": round(rows / windows_s),
        f"{what}_windows_cpu_us_per_row": round(1e6 * cpu_s / rows, 2),
        f"{what}_report_driver_mb": driver_mb,
        f"{what}_report_worker_mb": worker_mb,
        f"{what}_report_java_mb": java_mb,
    }


def add_options(parser: argparse.ArgumentParser) -> None:
    """How long the long log is, and what is measured."""
    parser.add_argument("--brokers", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=2000)
    parser.add_argument("--groups", type=int, default=50)
    parser.add_argument("--segment-rounds", type=int, default=1000)
    parser.add_argument("--alike", type=int, default=1, help="brokers in a row that log the same")
    parser.add_argument("--window-s", type=int, default=60, help="0: what a report chooses")
    parser.add_argument("--warm", type=int, default=0, help="reports of it in a Spark that runs")
    parser.add_argument("--only-log", action="store_true", help="only the long log's report")


if __name__ == "__main__":
    run(__doc__, measure, add_options=add_options)
