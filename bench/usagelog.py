"""What the usage log costs: entries a second, the caller's wait in `append`, recovery, seeking, reading.

    python bench/usagelog.py [--json] [--dir FOLDER]

Payloads are `PAYLOAD_BYTES` of noise, about a round of 30 rows. `append` is timed twice: while the loop
offers entries as fast as it can (the worst case: the writing thread wants the processor too), and paced at
`PACED_PER_S`, a thousand times what a daemon does. Recovery and seeking are timed on one full segment of
the default size, with its sparse index and without.
"""

import argparse
import asyncio
import random
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final

from bench.harness import run
from rgd.adapters.usagelog.index import index_path
from rgd.adapters.usagelog.reader import read_entries, seek_time
from rgd.adapters.usagelog.recovery import recover
from rgd.adapters.usagelog.settings import UsageLogSettings
from rgd.adapters.usagelog.writer import LogAlarm, SegmentedLog
from rgd.core.units import Nanos
from rgd.ports.usagelog import Fsync

T0: Final = 1_795_234_300_000
PAYLOAD_BYTES: Final = 600
FLOOD_COUNT: Final = 50_000
PACED_COUNT: Final = 5_000
PACED_PER_S: Final = 1_000
ALWAYS_COUNT: Final = 500
SEEKS: Final = 200

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


def offer(log: SegmentedLog, payload: bytes, number: int) -> int:
    """Append one entry; how long that took the caller, in nanoseconds."""
    begun = time.perf_counter_ns()
    log.append(payload, broker_timestamp_ms=T0 + number)
    return time.perf_counter_ns() - begun


async def flood(folder: Path) -> Figures:
    """As fast as the loop can offer, until all is synced."""
    payload = random.Random(1).randbytes(PAYLOAD_BYTES)
    log = make_log(folder, DEFAULT)
    await log.open()
    begun = time.perf_counter()
    waits = [offer(log, payload, number) for number in range(FLOOD_COUNT)]
    await log.flush()
    elapsed_s = time.perf_counter() - begun
    await log.close()
    return {"entries_per_s": round(FLOOD_COUNT / elapsed_s), **quantiles_us("append_flood", waits)}


async def paced(folder: Path) -> Figures:
    """One entry after the other, as from a loop that has other work."""
    payload = random.Random(1).randbytes(PAYLOAD_BYTES)
    log = make_log(folder, replace(DEFAULT, fsync_ms=100))
    await log.open()
    waits = []
    for number in range(PACED_COUNT):
        waits.append(offer(log, payload, number))
        await asyncio.sleep(1 / PACED_PER_S)
    await log.close()
    return quantiles_us("append_paced", waits)


async def always(folder: Path) -> Figures:
    """Each entry synced before the next is offered."""
    log = make_log(folder, replace(DEFAULT, fsync=Fsync.ALWAYS))
    await log.open()
    begun = time.perf_counter()
    for number in range(ALWAYS_COUNT):
        log.append(bytes(PAYLOAD_BYTES), broker_timestamp_ms=T0 + number)
        await log.flush()
    elapsed_s = time.perf_counter() - begun
    await log.close()
    return {"entries_per_s_synced_one_by_one": round(ALWAYS_COUNT / elapsed_s)}


async def fill(folder: Path) -> int:
    """Fill one segment of the default size; how many entries it took."""
    payload = random.Random(1).randbytes(PAYLOAD_BYTES)
    log = make_log(folder, replace(DEFAULT, fsync=Fsync.NEVER, segment_age_s=1e9))
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


def measure(options: argparse.Namespace) -> Figures:
    """All figures."""
    root = Path(tempfile.mkdtemp(dir=options.dir))
    try:
        figures: Figures = {"payload_bytes": PAYLOAD_BYTES}
        figures |= asyncio.run(flood(root / "flood"))
        figures |= asyncio.run(paced(root / "paced"))
        figures |= asyncio.run(always(root / "always"))
        figures |= full_segment(root / "full")
    finally:
        shutil.rmtree(root)
    return figures


def add_options(parser: argparse.ArgumentParser) -> None:
    """Where to write."""
    parser.add_argument("--dir", type=Path, help="folder to write in (default: the temporary one)")


if __name__ == "__main__":
    run(__doc__, measure, add_options=add_options)
