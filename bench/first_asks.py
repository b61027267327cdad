"""100,000 groups asked for the first time within one round: what that costs everybody else, and the record.

    python bench/first_asks.py [--json] [--groups 100000] [--round-ms 30000] [--items 1000]

The whole daemon (`rgd serve` on the embedded broker) has a core of its own where there are two; all others share the
rest. One caller asks for every group once, in arrays of `--items`, one after the other, while another asks single
questions for groups that are in use: `asking_` is what the other waits meanwhile, `after_` from then until the
round's record is written and `/metrics` was read once. In the end the log is read: the round's record must have all groups.
"""

import argparse
import asyncio
import contextlib
import http.client
import json
import os
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from bench.harness import Figures, groups_file, run
from bench.rounds_http import OTHER_CORES, Callers, daemon, quantiles
from rgd.adapters.exchange.embedded import EmbeddedBroker
from rgd.adapters.usagelog.reader import LogEntry, read_entries
from rgd.core.exchange.messages import RoundRecord
from rgd.wire.log_records import LogReader

#: Groups that are in use before: those that the other caller asks for.
IN_USE: Final = 5_000
SETTLE_ROUNDS: Final = 1.2
RECORD_TIMEOUT_S: Final = 120


def name(number: int) -> str:
    """A group's name."""
    return f"group-{number:06}"


def array_of(groups: Sequence[int]) -> bytes:
    """A question for each group."""
    return json.dumps([{"group": name(number)} for number in groups]).encode()


def timed_calls(port: int, method: str, path: str, bodies: Sequence[bytes | None]) -> list[int]:
    """Call with each of these bodies; how long each took, in nanoseconds."""
    took = []
    client = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
    with contextlib.closing(client):
        for body in bodies:
            begun = time.perf_counter_ns()
            client.request(method, path, body)
            response = client.getresponse()
            response.read()
            if response.status != 200:
                raise SystemExit(f"{path}: {response.status}")
            took.append(time.perf_counter_ns() - begun)
    return took


def most_rows(folder: Path) -> int:
    """Groups of the round that has most, over all its parts."""
    reader, rows = LogReader(), dict[int, set[str]]()
    for found in read_entries(folder / "log"):
        record = reader.read(found.entry) if isinstance(found, LogEntry) else None
        if isinstance(record, RoundRecord):
            rows.setdefault(record.sequence, set()).update(record.rows.usage.groups)
    return max((len(groups) for groups in rows.values()), default=0)


def await_record(folder: Path, groups: int) -> float:
    """Wait until a round's record has all groups; seconds."""
    begun = time.perf_counter()
    while most_rows(folder) < groups:
        if time.perf_counter() - begun > RECORD_TIMEOUT_S:
            raise SystemExit(f"the largest record has {most_rows(folder):,} of {groups:,} groups")
        time.sleep(1)
    return time.perf_counter() - begun


def burst(port: int, options: argparse.Namespace, folder: Path) -> dict[str, float]:
    """The first asks, and what follows."""
    load = Callers(port, [b'{"group":"%s"}' % name(one).encode() for one in range(IN_USE)])
    time.sleep(options.round_ms / 1000 * SETTLE_ROUNDS)
    load.begin()
    time.sleep(2)
    figures = load.figures("alone")
    ranges = [
        range(begin, min(begin + options.items, options.groups))
        for begin in range(IN_USE, options.groups, options.items)
    ]
    bodies = [array_of(some) for some in ranges]
    load.begin()
    begun = time.perf_counter()
    arrays = timed_calls(port, "POST", "/v1/acquire", bodies)
    figures["asking_s"] = round(time.perf_counter() - begun, 2)
    figures["first_ask_us"] = round(sum(arrays) / 1000 / (options.groups - IN_USE), 1)
    figures |= quantiles("array", arrays) | load.figures("asking")
    load.begin()
    (metrics_ns,) = timed_calls(port, "GET", "/metrics", [None])
    figures["metrics_ms"] = round(metrics_ns / 1e6, 1)
    figures |= load.figures("beside_metrics")
    load.begin()
    # The asks may take longer than a short round: the record of the largest is then smaller.
    whole = options.groups - IN_USE if options.round_ms >= 10_000 else 1
    figures["record_s"] = round(await_record(folder, whole), 1)
    figures |= load.figures("after")
    load.end()
    return figures


async def compare(options: argparse.Namespace) -> Figures:
    """All figures."""
    os.sched_setaffinity(0, OTHER_CORES)  # what is started from here inherits it
    figures: dict[str, float] = {"groups": options.groups, "round_ms": options.round_ms}
    settings = {"RGD_EXCHANGE__ROUND_MS": str(options.round_ms), "RGD_LOG__FSYNC_MS": "100"}
    with tempfile.TemporaryDirectory() as kept:
        folder = Path(kept)
        broker = EmbeddedBroker(folder / "broker")
        url = await broker.ensure()
        file = groups_file(folder, map(name, range(options.groups)))
        try:
            with daemon(folder, url, file, settings=settings) as (port, _):
                figures |= await asyncio.to_thread(burst, port, options, folder)
        finally:
            await broker.stop()
        figures["record_groups"] = most_rows(folder)
    return figures


def measure(options: argparse.Namespace) -> Figures:
    """All figures."""
    return asyncio.run(compare(options))


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declare what only this script has."""
    parser.add_argument("--groups", type=int, default=100_000, help="groups asked for")
    parser.add_argument("--round-ms", type=int, default=30_000, help="length of a round")
    parser.add_argument("--items", type=int, default=1_000, help="questions in an array")


if __name__ == "__main__":
    run(__doc__, measure, add_options=add_options)
