"""100,000 groups asked for the first time within one round: what that costs everybody else, and the record.

    python bench/first_asks.py [--json] [--groups 100000] [--round-ms 30000] [--items 1000]

The whole daemon (`rgd.app.wiring`, on uvloop, with its rounds, usage log and file policies; only the exchange
is the in-memory one) runs in a process of its own, on a core of its own where there are two. One caller asks for
every group once, in arrays of `--items`, one after the other, while another asks single questions for groups
that are in use: `asking_` is what the other waits meanwhile, `after_` from then until the round's record is
written and `/metrics` was read once. `_stall_` is the longest that the loop was held, as in `http_stalls`, and
`_wait_p99_` what one in a hundred callers waited for it, by the holds: processor time, so that it does not
depend on what else runs on the machine. In
the end the log is read: the round's record must have all groups.
"""

import argparse
import asyncio
import contextlib
import http.client
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

import uvloop

from bench.harness import Figures, groups_file, run
from bench.http_stalls import Daemon, Watch, array_of, daemon, name
from bench.reads import Load, pin, quantiles
from rgd.adapters.usagelog.reader import LogEntry, read_entries
from rgd.app.door_wiring import http_settings
from rgd.app.logs import configure_logs
from rgd.app.process import tune_interpreter
from rgd.config.load import load_settings
from rgd.core.exchange.messages import RoundRecord
from rgd.wire.log_records import LogReader
from tests.support.memory_bus import MemoryBus, MemoryExchange
from tests.support.whole_daemon import HttpServer, build

#: Groups that are in use before: those that the other caller asks for.
IN_USE: Final = 5_000
SETTLE_ROUNDS: Final = 1.2
RECORD_TIMEOUT_S: Final = 120


async def serve(options: argparse.Namespace) -> None:
    """The daemon, alone on a bus in memory, until SIGTERM."""
    configure_logs()
    tune_interpreter()
    until = asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGTERM, until.set)
    groups = groups_file(options.folder, map(name, range(options.groups)))
    overrides = {
        "broker.name": "broker-1",
        "http.listen": "127.0.0.1:0",
        "exchange.url": "pulsar://127.0.0.1:6650",
        "exchange.round_ms": options.round_ms,
        "policies.source": "file",
        "policies.file": groups,
        "log.dir": options.folder / "log",
        "log.fsync_ms": 100,
    }
    settings = load_settings(None, {}, overrides)
    running, exposition = build(settings, settings.exchange.url)
    running.parts = replace(running.parts, exchange=MemoryExchange(MemoryBus()))
    door = http_settings(settings, insecure=False)
    async with HttpServer(running, door, metrics=exposition.render) as server:
        loop.add_reader(sys.stdin, Watch().tell)
        await running.run(until, on_up=lambda: print(server.port, flush=True))
    await running.close()


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


def held(what: str, running: Daemon) -> dict[str, float]:
    """How long the loop was held since the last time."""
    longest, p99 = running.waits_ms()
    return {f"{what}_stall_ms": longest, f"{what}_wait_p99_ms": p99}


def burst(running: Daemon, options: argparse.Namespace) -> Figures:
    """The first asks, and what follows."""
    load = Load(running.port)
    load.ask()
    time.sleep(options.round_ms / 1000 * SETTLE_ROUNDS)
    load.took_ns.clear()
    running.longest_ms()
    time.sleep(2)
    figures = quantiles("alone", load.took_ns) | held("alone", running)
    ranges = [
        range(begin, min(begin + options.items, options.groups))
        for begin in range(IN_USE, options.groups, options.items)
    ]
    bodies = [array_of(some) for some in ranges]
    load.took_ns.clear()
    begun = time.perf_counter()
    arrays = timed_calls(running.port, "POST", "/v1/acquire", bodies)
    figures["asking_s"] = round(time.perf_counter() - begun, 2)
    figures["first_ask_us"] = round(sum(arrays) / 1000 / (options.groups - IN_USE), 1)
    figures |= quantiles("array", arrays) | quantiles("asking", load.took_ns)
    figures |= held("asking", running)
    load.took_ns.clear()
    (metrics_ns,) = timed_calls(running.port, "GET", "/metrics", [None])
    figures["metrics_ms"] = round(metrics_ns / 1e6, 1)
    figures |= held("beside_metrics", running)
    figures |= quantiles("beside_metrics", load.took_ns)
    load.took_ns.clear()
    figures["record_s"] = round(await_record(options.folder, options.whole), 1)
    figures |= quantiles("after", load.took_ns) | held("after", running)
    load.end()
    return figures


def measure(options: argparse.Namespace) -> Figures:
    """All figures."""
    if options.serve:
        pin(0)
        uvloop.run(serve(options))
        raise SystemExit(0)
    pin(-1)
    with tempfile.TemporaryDirectory() as folder:
        options.folder = Path(folder)
        #: The asks may take longer than a round: the record of the largest is then smaller.
        options.whole = options.groups - IN_USE if options.round_ms >= 10_000 else 1
        arguments = ("--folder", folder, "--groups", options.groups, "--round-ms", options.round_ms)
        with daemon(__file__, *map(str, arguments), stderr=subprocess.DEVNULL) as running:
            figures: dict[str, float] = {"groups": options.groups, "round_ms": options.round_ms}
            figures |= burst(running, options)
        figures["record_groups"] = most_rows(options.folder)
    return figures


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declare what only this script has."""
    parser.add_argument("--groups", type=int, default=100_000, help="groups asked for")
    parser.add_argument("--round-ms", type=int, default=30_000, help="length of a round")
    parser.add_argument("--items", type=int, default=1_000, help="questions in an array")
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)


if __name__ == "__main__":
    run(__doc__, measure, add_options=add_options)
