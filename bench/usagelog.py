"""What the usage log costs: bytes a row, entries a second, the caller's wait, opening, seeking, reading.

    python bench/usagelog.py [--json] [--dir FOLDER]

Payloads are `PAYLOAD_BYTES` of noise, about a round of 30 rows. `append` is timed twice: while the loop
offers entries as fast as it can (the worst case: the writing thread wants the processor too), and paced at
`PACED_PER_S`, a thousand times what a daemon does. Recovery and seeking are timed on one full segment of
the default size, with its sparse index and without.

`pip82_` are rounds of PIP-82's case: 5,000 groups of one broker with counts of a Poisson process around
heavy-tailed means, sizes that vary, a third of the shares moving by a percent each round. `writer_` is what the writing thread does with payloads
of such a round's size, in batches as large as it takes, beside plain buffered writes of the same entries. `open_` is a log of `OPEN_BYTES`.
"""

import argparse
import asyncio
import random
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final

import numpy as np

from bench.harness import run
from bench.log_rows import GROUPS, PERIOD_NS, record_of, rows_of
from rgd.adapters.usagelog.appender import Appender, Pending
from rgd.adapters.usagelog.index import index_path
from rgd.adapters.usagelog.reader import read_entries, seek_time
from rgd.adapters.usagelog.recovery import recover
from rgd.adapters.usagelog.retention import Limits
from rgd.adapters.usagelog.settings import UsageLogSettings
from rgd.adapters.usagelog.writer import BATCH_BYTES, BATCH_MAX, LogAlarm, SegmentedLog
from rgd.core.exchange.messages import Loggable, RoundRecord
from rgd.core.units import MILLI, Kind, Nanos
from rgd.ports.usagelog import Fsync
from rgd.wire.columns import SCALE
from rgd.wire.frame import Entry
from rgd.wire.log_records import LogEncoder, LogReader

T0: Final = 1_795_234_300_000
PAYLOAD_BYTES: Final = 600
FLOOD_COUNT: Final = 50_000
PACED_COUNT: Final = 5_000
PACED_PER_S: Final = 1_000
ALWAYS_COUNT: Final = 500
SEEKS: Final = 200

#: Twice the longest chain of records.
PIP82_ROUNDS: Final = 128
LARGE_COUNT: Final = 30
#: Parts of PIP-82's groups whose share moves in a round, and whose row is sent.
SHARES_MOVING: Final = 0.3
ROWS_SENT: Final = 0.1
#: About a round of 5,000 groups.
WRITER_PAYLOAD_BYTES: Final = 20_000
WRITER_COUNT: Final = 12_800
SMALL_COUNT: Final = 64_000
BATCH: Final = 64
MEDIUM_PAYLOAD_BYTES: Final = 2_000
OPEN_BYTES: Final = 2 << 30
OPEN_PAYLOAD_BYTES: Final = 64 << 10

DEFAULT = UsageLogSettings()
Figures = dict[str, float | int]


def stop(alarm: LogAlarm) -> None:
    """End the benchmark: figures of a failing disk mean nothing."""
    raise SystemExit(f"the disk fails: {alarm.trouble}")


def make_log(folder: Path, settings: UsageLogSettings) -> SegmentedLog:
    """A log whose queue loses nothing of a flood."""
    roomy = replace(settings, queue_max=1 << 20, queue_bytes_max=1 << 30)
    return SegmentedLog(
        folder, roomy, broker="bench", clock=lambda: Nanos(time.monotonic_ns()), on_alarm=stop
    )


def quantiles_us(name: str, waits_ns: list[int]) -> Figures:
    """p50, p99 and the largest, in microseconds."""
    ordered = sorted(waits_ns)
    return {
        f"{name}_p50_us": round(ordered[len(ordered) // 2] / 1000, 2),
        f"{name}_p99_us": round(ordered[len(ordered) * 99 // 100] / 1000, 2),
        f"{name}_max_us": round(ordered[-1] / 1000, 2),
    }


class Waits:
    """What `append` took its caller: by the clock, and in processor time, in nanoseconds."""

    def __init__(self) -> None:
        self.wall_ns: list[int] = []
        self.processor_ns: list[int] = []

    def offer(self, log: SegmentedLog, item: Loggable, number: int) -> None:
        """Append one item."""
        processor_ns, begun = time.thread_time_ns(), time.perf_counter_ns()
        log.append(item, broker_timestamp_ms=T0 + number)
        self.wall_ns.append(time.perf_counter_ns() - begun)
        self.processor_ns.append(time.thread_time_ns() - processor_ns)

    def figures(self, name: str) -> Figures:
        """Both; `_cpu_` is without what the system and other threads did meanwhile."""
        return {
            **quantiles_us(name, self.wall_ns),
            **quantiles_us(f"{name}_cpu", self.processor_ns),
        }


async def flood(folder: Path) -> Figures:
    """As fast as the loop can offer, until all is synced."""
    payload = random.Random(1).randbytes(PAYLOAD_BYTES)
    log = make_log(folder, DEFAULT)
    await log.open()
    begun = time.perf_counter()
    waits = Waits()
    for number in range(FLOOD_COUNT):
        waits.offer(log, payload, number)
    await log.close()
    elapsed_s = time.perf_counter() - begun
    return {"entries_per_s": round(FLOOD_COUNT / elapsed_s), **waits.figures("append_flood")}


async def paced(folder: Path) -> Figures:
    """One entry after the other, as from a loop that has other work."""
    payload = random.Random(1).randbytes(PAYLOAD_BYTES)
    log = make_log(folder, replace(DEFAULT, fsync_ms=100))
    await log.open()
    waits = Waits()
    for number in range(PACED_COUNT):
        waits.offer(log, payload, number)
        await asyncio.sleep(1 / PACED_PER_S)
    await log.close()
    return waits.figures("append_paced")


async def always(folder: Path) -> Figures:
    """Each entry synced before the next is offered."""
    log = make_log(folder, replace(DEFAULT, fsync=Fsync.ALWAYS))
    await log.open()
    begun = time.perf_counter()
    for number in range(ALWAYS_COUNT):
        log.append(bytes(PAYLOAD_BYTES), broker_timestamp_ms=T0 + number)
        while log.synced_index < number:  # noqa: ASYNC110 -- a thread writes
            await asyncio.sleep(0)
    elapsed_s = time.perf_counter() - begun
    await log.close()
    return {"entries_per_s_synced_one_by_one": round(ALWAYS_COUNT / elapsed_s)}


async def fill(folder: Path) -> int:
    """Fill one segment of the default size; how many entries it took."""
    payload = random.Random(1).randbytes(PAYLOAD_BYTES)
    log = make_log(folder, replace(DEFAULT, fsync=Fsync.NEVER, segment_age_ms=10**12))
    await log.open()
    count = DEFAULT.segment_bytes // (PAYLOAD_BYTES + 80)
    for number in range(count):
        log.append(payload, broker_timestamp_ms=T0 + number)
    await log.close()
    assert log.lost == 0
    return count


def timed_ms(work: Callable[[], object]) -> float:
    """How long `work` takes, in milliseconds."""
    begun = time.perf_counter()
    work()
    return round((time.perf_counter() - begun) * 1000, 3)


def full_segment(folder: Path) -> Figures:
    """Recovery, seeking and reading on a segment of the default size."""
    count = asyncio.run(fill(folder))
    (segment,) = folder.glob("*.log")
    dice = random.Random(2)
    times = [T0 + dice.randrange(count) for _ in range(SEEKS)]
    figures: Figures = {
        "segment_bytes": segment.stat().st_size,
        "segment_entries": count,
        "recovery_ms": timed_ms(lambda: recover(folder)),
        "seek_p50_ms": statistics.median(timed_ms(partial(seek_time, folder, at)) for at in times),
    }
    index_path(segment).unlink()
    figures["seek_without_index_ms"] = timed_ms(lambda: seek_time(folder, times[0]))
    figures["recovery_without_index_ms"] = timed_ms(lambda: recover(folder))
    read_ms = timed_ms(lambda: sum(1 for _ in read_entries(folder)))
    figures["entries_read_per_s"] = round(count / read_ms * 1000)
    return figures


def pip82_rounds(count: int) -> Iterator[RoundRecord]:
    """Rounds of PIP-82's case."""
    rows, counts = rows_of(Kind.PUBLISH)
    dice = np.random.default_rng(82)
    mean = np.array([pair.messages for pair in counts])
    size = np.array([pair.bytes for pair in counts]) / np.maximum(mean, 1)
    unmet = (rows.wanted - rows.admitted)[:, 0] // MILLI
    first = record_of(rows)
    totals, wanted_totals = first.rows.admitted_total, first.rows.wanted_total
    share = first.rows.share.copy()
    for sequence in range(1, count + 1):
        period_ns = PERIOD_NS + int(dice.integers(-1_000_000, 1_000_000))
        messages = dice.poisson(mean)
        noise = 1 + dice.normal(0, 0.3, GROUPS) / np.sqrt(np.maximum(messages, 1))
        admitted = np.stack([messages, np.rint(messages * size * noise).astype(np.int64)], 1)
        refused = np.stack([dice.poisson(unmet), np.zeros(GROUPS, np.int64)], 1)
        totals, wanted_totals = totals + admitted, wanted_totals + admitted + refused
        moves = dice.random(GROUPS) < SHARES_MOVING
        share = share.copy()
        share[moves, 0] = share[moves, 0] * (1 + dice.normal(0, 0.01, moves.sum()))
        usage = replace(
            rows,
            admitted=np.floor(admitted * (SCALE / period_ns)).astype(np.int64),
            wanted=np.floor((admitted + refused) * (SCALE / period_ns)).astype(np.int64),
        )
        sent = dice.random(GROUPS) < ROWS_SENT
        shown = replace(
            first.rows,
            usage=usage,
            share=share,
            refused=refused,
            sent=sent,
            admitted_total=totals,
            wanted_total=wanted_totals,
        )
        yield replace(first, sequence=sequence, period_ns=period_ns, rows=shown)


def pip82_figures() -> Figures:
    """Bytes and time of a row."""
    encoder, reader = LogEncoder(), LogReader()
    size = 0
    encoding_s = decoding_s = 0.0
    for record in pip82_rounds(PIP82_ROUNDS):
        begun = time.perf_counter()
        payload = encoder.encode(record)
        encoding_s += time.perf_counter() - begun
        size += len(payload.data)
        entry = Entry("b", 1, 2, payload.data, payload.properties, unknown=payload.metadata)
        begun = time.perf_counter()
        assert reader.read(entry) == record
        decoding_s += time.perf_counter() - begun
    rows = PIP82_ROUNDS * GROUPS
    return {
        "pip82_bytes_per_row": round(size / rows, 2),
        "pip82_encode_rows_per_s": round(rows / encoding_s),
        "pip82_decode_rows_per_s": round(rows / decoding_s),
    }


async def large_rounds(folder: Path) -> Figures:
    """How long the loop waits to hand over rounds of 5,000 groups."""
    log = make_log(folder, DEFAULT)
    await log.open()
    waits = Waits()
    for record in pip82_rounds(LARGE_COUNT):
        waits.offer(log, record, record.sequence)
        while log.appended + log.lost < len(waits.wall_ns):  # noqa: ASYNC110 -- a thread writes
            await asyncio.sleep(0)
    await log.close()
    return waits.figures("append_5000_groups")


def writer_figures(folder: Path, what: str, payload_bytes: int, count: int) -> Figures:
    """Bytes a second of the writing thread, and of buffered writes of the same entries; processor time."""
    payload = random.Random(1).randbytes(payload_bytes)
    appender = Appender(folder, replace(DEFAULT, fsync=Fsync.NEVER), broker="bench")
    appender.resume()
    size = min(BATCH_MAX, BATCH_BYTES // payload_bytes)
    batches = [
        [Pending(payload, T0 + at, at) for at in range(begin, min(begin + size, count))]
        for begin in range(0, count, size)
    ]
    begun = time.thread_time()
    for batch in batches:
        appender.write(batch)
    writing_s = time.thread_time() - begun
    appender.close()
    data = b"".join(path.read_bytes() for path in sorted(folder.glob("*.log")))
    size = len(data) // count
    entries = [data[begin : begin + size] for begin in range(0, len(data), size)]
    begun = time.thread_time()
    with (folder / "plain").open("wb") as file:
        for entry in entries:
            file.write(entry)
    plain_s = time.thread_time() - begun
    return {
        f"{what}_payload_bytes": payload_bytes,
        f"{what}_mb_per_s": round(len(data) / writing_s / 1e6, 1),
        f"{what}_buffered_mb_per_s": round(len(data) / plain_s / 1e6, 1),
        f"{what}_to_buffered": round(plain_s / writing_s, 2),
    }


def open_figures(folder: Path) -> Figures:
    """Opening a log of many segments, to opening one that has the last of them alone."""
    payload = random.Random(1).randbytes(OPEN_PAYLOAD_BYTES)
    roomy = replace(DEFAULT, fsync=Fsync.NEVER, limits=Limits(), segment_age_ms=10**12)
    appender = Appender(folder / "many", roomy, broker="bench")
    appender.resume()
    batch_bytes = BATCH * OPEN_PAYLOAD_BYTES
    for begin in range(0, OPEN_BYTES, batch_bytes):
        first = begin // OPEN_PAYLOAD_BYTES
        appender.write([Pending(payload, T0 + at, at) for at in range(first, first + BATCH)])
    appender.close()
    *_, last = sorted((folder / "many").glob("*.log"))
    (folder / "one").mkdir()
    for path in (last, index_path(last)):
        shutil.copy(path, folder / "one" / path.name)
    whole = sum(path.stat().st_size for path in (folder / "many").glob("*.log"))
    many, one = (
        min(timed_ms(partial(recover, folder / name)) for _ in range(3)) for name in ("many", "one")
    )
    return {"open_bytes": whole, "open_ms": many, "open_last_segment_alone_ms": one}


def measure(options: argparse.Namespace) -> Figures:
    """All figures."""
    root = Path(tempfile.mkdtemp(dir=options.dir))
    try:
        figures: Figures = {"payload_bytes": PAYLOAD_BYTES}
        figures |= asyncio.run(flood(root / "flood"))
        figures |= asyncio.run(paced(root / "paced"))
        figures |= asyncio.run(always(root / "always"))
        figures |= full_segment(root / "full")
        figures |= pip82_figures()
        figures |= asyncio.run(large_rounds(root / "large"))
        figures |= writer_figures(root / "writer", "writer", WRITER_PAYLOAD_BYTES, WRITER_COUNT)
        small = (PAYLOAD_BYTES, SMALL_COUNT)
        figures |= writer_figures(root / "small", "small_writer", *small)
        medium = (MEDIUM_PAYLOAD_BYTES, SMALL_COUNT // 2)
        figures |= writer_figures(root / "medium", "medium_writer", *medium)
        figures |= open_figures(root / "open")
    finally:
        shutil.rmtree(root)
    return figures


def add_options(parser: argparse.ArgumentParser) -> None:
    """Where to write."""
    parser.add_argument("--dir", type=Path, help="folder to write in (default: the temporary one)")


if __name__ == "__main__":
    run(__doc__, measure, add_options=add_options)
