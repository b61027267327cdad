"""Reads beside requests: every read route in a loop, at 5,000 groups, 100 brokers and 100,000 namespaces.

    python bench/reads.py [--json] [--seconds 10] [--readers 4] [--streams 64]

The whole daemon (`rgd.app.wiring`, on uvloop, with its rounds, usage log and file policies; only the exchange
is the in-memory one) runs in a process of its own, on a core of its own where there are two; in it a task is
the 99 other brokers: their whole states at first, then a heartbeat each a round. Every group is asked for, so
all are in use, and has rows of 5 brokers.

First each route is called alone: how long it takes, and the longest that it held the event loop
(`stall_`, processor time as in `http_stalls`). Then `--readers` connections call all of them in turn while
another asks single questions: their latency, from a request's sending to its answer. Before that, and again afterwards,
`--streams` subscribers of `/v1/live` read its stream (`watched_`, beside `alone_` just before).
"""

import argparse
import asyncio
import contextlib
import http.client
import json
import os
import re
import selectors
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

import numpy as np
import uvloop

from bench.harness import Figures, run
from bench.http_stalls import Daemon, Watch, array_of, daemon, name
from rgd.adapters.metrics.exposition import Exposition
from rgd.app.door_wiring import http_settings
from rgd.app.live import Live
from rgd.app.logs import configure_logs
from rgd.app.process import tune_interpreter
from rgd.app.recent_events import RecentEvents
from rgd.app.telemetry import Telemetry
from rgd.config.load import load_settings
from rgd.core.exchange.columns import NO_USAGE, UsageColumns
from rgd.core.exchange.messages import Report, Sender
from rgd.core.exchange.usage_map import UsageMap
from rgd.core.units import MILLI, NS_PER_S
from rgd.wire.codec import encode
from rgd.wire.name_dictionary import NameEncoder
from tests.support.memory_bus import MemoryBus, MemoryExchange
from tests.support.whole_daemon import HttpServer, RgdDaemon, build

GROUPS: Final = 5_000
BROKERS: Final = 100
NAMESPACES: Final = 100_000
#: Brokers that have a row of a group, this one too.
BROKERS_A_GROUP: Final = 5
#: Single questions a second, and questions in an array that keeps groups in use.
PROBES_PER_S: Final = 400
ITEMS: Final = 1_000
SETTLE_S: Final = 6.0

#: What stands for the variable parts of the routes' paths.
PARTS: Final = {
    "group": name(0),
    "tenant": "tenant-000",
    "namespace": "namespace-000000",
    "topic": "topic",
    "subscription": "subscription",
}


# The daemon, and the others.


class Others:
    """What the 99 other brokers say, round by round."""

    def __init__(self) -> None:
        usage = UsageMap()
        self._senders = [Sender(f"broker-{number:03}", 1) for number in range(2, BROKERS + 1)]
        self._name_decoders = [NameEncoder() for _ in self._senders]
        self._sequence = 0
        self._states: list[UsageColumns] = []
        self._hashes: list[int] = []
        for number, sender in enumerate(self._senders):
            rows = _rows(number)
            usage.apply(Report(sender, 1, NS_PER_S, rows=rows))
            self._states.append(rows)
            self._hashes.append(usage.hash_of(sender.broker))

    def round(self) -> Iterator[bytes]:
        """What all of them say next: all they have to say, then that nothing has changed."""
        self._sequence += 1
        is_first = self._sequence == 1
        for sender, rows, rows_hash, numbering in zip(
            self._senders, self._states, self._hashes, self._name_decoders, strict=True
        ):
            report = Report(
                sender,
                self._sequence,
                NS_PER_S,
                rows=rows if is_first else NO_USAGE,
                full=is_first,
                rows_hash=rows_hash,
                members=BROKERS,
            )
            yield encode(report, numbering)


def _rows(number: int) -> UsageColumns:
    """The rows of one of the others: each group is one of four of them."""
    groups = [
        group for group in range(GROUPS) if (number - group) % (BROKERS - 1) < BROKERS_A_GROUP - 1
    ]
    wanted = np.full((len(groups), 2), [100 * MILLI, 20_000 * MILLI])
    return UsageColumns(
        groups=tuple(name(group) for group in groups),
        kinds=np.zeros(len(groups), np.uint8),
        topics=np.ones(len(groups), np.int64),
        admitted=wanted,
        wanted=wanted,
    )


async def speak(bus: MemoryBus) -> None:
    """Be the others, spread over each round."""
    others, exchange = Others(), MemoryExchange(bus)
    await exchange.open()
    while True:
        for payload in others.round():
            await exchange.publish(payload)
            await asyncio.sleep(0.9 / BROKERS)


def groups_file() -> str:
    """5,000 groups, and 100,000 namespaces that are attached to them."""
    groups = "".join(
        f"  {name(number)}: {{publish: {{messages: 1000}}}}\n" for number in range(GROUPS)
    )
    namespaces = "".join(
        f"    tenant-{number // 1000:03}/namespace-{number:06}: {name(number % GROUPS)}\n"
        for number in range(NAMESPACES)
    )
    return f"groups:\n{groups}attach:\n  namespaces:\n{namespaces}"


async def serve() -> None:
    """The daemon among the others until SIGTERM."""
    configure_logs()
    tune_interpreter()
    until = asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGTERM, until.set)
    with tempfile.TemporaryDirectory() as folder:
        groups = Path(folder) / "groups.yaml"
        groups.write_text(groups_file())
        overrides = {
            "broker.name": "broker-001",
            "http.listen": "127.0.0.1:0",
            "exchange.url": "pulsar://127.0.0.1:6650",
            "policies.source": "file",
            "policies.file": groups,
            "log.dir": Path(folder) / "log",
        }
        settings = load_settings(None, {}, overrides)
        bus = MemoryBus()
        daemon, _ = build(settings, settings.exchange.url)
        parts = replace(daemon.parts, exchange=MemoryExchange(bus))
        daemon = RgdDaemon(daemon.core, parts, settings.cluster)
        exposition = Exposition(Telemetry(daemon))
        door = http_settings(settings, insecure=False)
        live = Live(daemon, RecentEvents())
        async with HttpServer(daemon, door, metrics=exposition.render, live_door=live) as server:
            loop.add_reader(sys.stdin, Watch().tell)
            beside = [loop.create_task(speak(bus)), loop.create_task(live.follow())]
            await daemon.run(until, on_up=lambda: print(server.port, flush=True))
            for task in beside:
                task.cancel()
        await daemon.close()


# The callers.


def read_paths(description: dict[str, dict[str, dict[str, object]]]) -> list[str]:
    """Every GET of the description, its variable parts filled in; lists by their largest page."""
    paths = []
    for path, calls in description["paths"].items():
        if "get" not in calls:
            continue
        filled = re.sub(r"\{(\w+)\}", lambda part: PARTS.get(part[1], "any"), path)
        if path == "/v1/explain":
            filled += "?tenant=tenant-000&namespace=namespace-000000&topic=topic"
        elif path in {"/v1/groups", "/v1/brokers"}:
            filled += "?limit=1000"
        paths.append(filled)
    return paths


def get(client: http.client.HTTPConnection, path: str) -> str | None:
    """Call; the next page's path, if there is one."""
    client.request("GET", path)
    response = client.getresponse()
    response.read()
    if response.status >= 500 and path != "/readyz":
        raise SystemExit(f"{path}: {response.status}")
    return response.headers.get("Link", "").partition("<")[2].partition(">")[0] or None


#: What a subscriber sends.
WATCH: Final = b"GET /v1/live HTTP/1.1\r\nHost: x\r\nAccept: text/event-stream\r\n\r\n"


class Load:
    """Threads with a connection each."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._is_over = threading.Event()
        self._threads: list[threading.Thread] = []
        self.took_ns: list[int] = []
        self.reads = 0

    def ask(self) -> None:
        """Ask single questions, and measure."""
        self._start(self._ask)

    def keep_in_use(self) -> None:
        """Ask for every group once a second."""
        self._start(self._keep_in_use)

    def read(self, paths: Sequence[str]) -> None:
        """Call these in turn, pages and all."""
        self._start(lambda client: self._read(client, paths))

    def end(self) -> None:
        """Stop all of it."""
        self._is_over.set()
        for thread in self._threads:
            thread.join()

    def _start(self, work: object) -> None:
        def worker() -> None:
            client = http.client.HTTPConnection("127.0.0.1", self._port, timeout=60)
            with contextlib.closing(client):
                work(client)  # type: ignore[operator]

        self._threads.append(threading.Thread(target=worker, daemon=True))
        self._threads[-1].start()

    def _ask(self, client: http.client.HTTPConnection) -> None:
        questions = [b'{"group":"%s"}' % name(number).encode() for number in range(GROUPS)]
        begun, count = time.perf_counter(), 0
        while not self._is_over.wait(max(0.0, begun + count / PROBES_PER_S - time.perf_counter())):
            sent_ns = time.perf_counter_ns()
            client.request("POST", "/v1/acquire", questions[count % GROUPS])
            client.getresponse().read()
            self.took_ns.append(time.perf_counter_ns() - sent_ns)
            count += 1

    def _keep_in_use(self, client: http.client.HTTPConnection) -> None:
        arrays = [array_of(range(begin, begin + ITEMS)) for begin in range(0, GROUPS, ITEMS)]
        count = 0
        while not self._is_over.wait(ITEMS / GROUPS):
            client.request("POST", "/v1/acquire", arrays[count % len(arrays)])
            client.getresponse().read()
            count += 1

    def _read(self, client: http.client.HTTPConnection, paths: Sequence[str]) -> None:
        while not self._is_over.is_set():
            for path in paths:
                following: str | None = path
                while following is not None and not self._is_over.is_set():
                    following = get(client, following)
                    self.reads += 1


def quantiles(what: str, took_ns: Sequence[int]) -> dict[str, float]:
    """p50, p99 and the longest, in milliseconds."""
    took_ms = np.array(took_ns) / 1e6
    parts = {"p50_ms": 0.5, "p99_ms": 0.99, "longest_ms": 1.0}
    return {
        f"{what}_{part}": round(float(np.quantile(took_ms, at)), 2) for part, at in parts.items()
    }


# The measurement.


def pin(core: int) -> None:
    """Stay on one core, where there are two and this can be said."""
    if hasattr(os, "sched_setaffinity") and len(os.sched_getaffinity(0)) > 1:
        os.sched_setaffinity(0, {sorted(os.sched_getaffinity(0))[core]})


def each_alone(running: Daemon, paths: Sequence[str]) -> dict[str, float]:
    """Each route by itself: how long it takes with all its pages, and the longest stall."""
    figures = {}
    for path in paths:
        begun = time.perf_counter()
        stall_ms = running.held_by("GET", path)
        took_ms = (time.perf_counter() - begun) * 1000
        label = path.partition("?")[0]
        figures[f"took_ms {label}"] = round(took_ms, 1)
        figures[f"stall_ms {label}"] = stall_ms
    return figures


def subscribe(port: int, count: int) -> int:
    """Read so many streams of the live view until standard input ends; the bytes that came."""
    # The machine may have two cores: who measures goes first.
    os.nice(19)
    received = 0
    with selectors.DefaultSelector() as ready, contextlib.ExitStack() as opened:
        ready.register(sys.stdin, selectors.EVENT_READ)
        for _ in range(count):
            one = opened.enter_context(socket.create_connection(("127.0.0.1", port)))
            one.sendall(WATCH)
            ready.register(one, selectors.EVENT_READ, one)
        while True:
            for key, _ in ready.select():
                if key.data is None:
                    return received
                received += len(key.data.recv(1 << 16))


@contextlib.contextmanager
def subscribers(port: int, count: int) -> Iterator[list[int]]:
    """The same in a process of its own; afterwards the bytes are in the list."""
    received: list[int] = []
    command = [
        sys.executable,
        __file__,
        "--json",
        "--subscribe",
        str(port),
        "--streams",
        str(count),
    ]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        time.sleep(2)
        yield received
        process.stdin.close()
        received.append(json.loads(process.stdout.read())["received"])


def watched(running: Daemon, load: Load, options: argparse.Namespace) -> dict[str, float]:
    """Single questions with and without subscribers of the live view, in turn."""
    took: dict[str, list[int]] = {"unwatched": [], "watched": []}
    waits: dict[str, list[tuple[float, float]]] = {what: [] for what in took}
    total = 0
    for _ in range(options.turns):
        for what, count in (("unwatched", 0), ("watched", options.streams)):
            with subscribers(running.port, count) as received:
                running.longest_ms()
                load.took_ns.clear()
                time.sleep(options.seconds / options.turns)
                took[what] += load.took_ns
                waits[what].append(running.waits_ms())
            total += received[0]
    figures = quantiles("unwatched", took["unwatched"]) | quantiles("watched", took["watched"])
    figures["watched_p99_ratio"] = round(figures["watched_p99_ms"] / figures["unwatched_p99_ms"], 3)
    for what, of_turns in waits.items():
        figures[f"stall_ms {what}"] = max(longest for longest, _ in of_turns)
        figures[f"{what}_wait_p99_ms"] = round(statistics.median(p99 for _, p99 in of_turns), 3)
    figures["watched_mb_per_s"] = round(total / 1e6 / options.seconds, 1)
    return figures


def measure(options: argparse.Namespace) -> Figures:
    """All figures."""
    if options.serve:
        pin(0)
        uvloop.run(serve())
        raise SystemExit(0)
    if options.subscribe:
        return {"received": subscribe(options.subscribe, options.streams)}
    pin(-1)
    figures: dict[str, float] = {"groups": GROUPS, "brokers": BROKERS, "namespaces": NAMESPACES}
    with daemon(__file__, stderr=subprocess.DEVNULL) as running:
        port = running.port
        with contextlib.closing(http.client.HTTPConnection("127.0.0.1", port)) as client:
            client.request("GET", "/openapi.json")
            paths = read_paths(json.load(client.getresponse()))
        load = Load(port)
        load.keep_in_use()
        load.ask()
        time.sleep(SETTLE_S)
        running.longest_ms()
        load.took_ns.clear()
        time.sleep(options.seconds)
        figures |= quantiles("alone", load.took_ns)
        figures["stall_ms without reads"] = running.longest_ms()
        figures |= watched(running, load, options)
        if options.routes:
            figures |= each_alone(running, paths)
        for _ in range(options.readers):
            load.read(paths)
        time.sleep(1)
        running.longest_ms()
        load.took_ns.clear()
        load.reads = 0
        time.sleep(options.seconds)
        figures |= quantiles("beside", load.took_ns)
        figures["stall_ms beside all reads"] = running.longest_ms()
        figures["reads_per_s"] = round(load.reads / options.seconds)
        load.end()
    return figures


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declare what only this script has."""
    parser.add_argument("--seconds", type=float, default=10.0, help="length of each measurement")
    parser.add_argument("--readers", type=int, default=4, help="connections that read")
    parser.add_argument("--streams", type=int, default=64, help="subscribers of the live view")
    parser.add_argument("--subscribe", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--turns", type=int, default=4, help="with and without them, in turn")
    parser.add_argument("--routes", action=argparse.BooleanOptionalAction, default=True)
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)


if __name__ == "__main__":
    run(__doc__, measure, add_options=add_options)
