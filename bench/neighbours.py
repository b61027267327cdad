"""What a question waits for beside its neighbours: who reads, scrapes, watches, or sends the worst legal bodies.

    python bench/neighbours.py [--json] [--seconds 3] [--turns 3] [--only reads] [--together]

The whole daemon (`rgd serve` on the embedded broker): 5,000 groups, each asked for once a second, 99 other brokers
that report a row in a hundred every second, 100,000 namespaces, a log that is written. One neighbour at a time, a process of the lowest
priority, calls without a pause, by turns with nobody (`alone_`). The process that answers has a core of its own and
all others share the rest; who asks goes first where the system lets it (root). With `--together` both processes of
the daemon share one core. `..._waits_ms` is how much longer the slowest question in a hundred takes than alone.
At the end the same daemon runs with a tier that takes connections and never answers (`hanging_tier_`), and each read route is called once by itself (`took_ms`).
"""

import argparse
import asyncio
import contextlib
import http.client
import json
import os
import re
import selectors
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from itertools import count, cycle
from pathlib import Path
from types import MappingProxyType
from typing import Final, NamedTuple

import numpy as np

from bench.harness import Figures, groups_file, run
from bench.rounds import Bench
from bench.rounds_http import (
    DAEMON_CORES,
    OTHER_CORES,
    SETTLE_S,
    Callers,
    all_heard,
    daemon,
    move,
    others,
    quantiles,
)
from rgd.adapters.exchange.embedded import EmbeddedBroker

NAMESPACES: Final = 100_000
#: Streams of the live view, and connections that read all routes.
STREAMS: Final = 64
READERS: Final = 4
#: Part of their rows that the others report.
CHANGED: Final = 0.01
#: The largest body (`http.body_max_bytes`), and the most questions in an array.
BODY_BYTES: Final = 256 << 10
ITEMS: Final = 1_000
#: Until a neighbour has begun.
BEGIN_S: Final = 1.0

#: What stands for the variable parts of the routes' paths.
PARTS: Final = MappingProxyType(
    {
        "group": "tenant-00000.namespace-0000000.resources",
        "tenant": "tenant-0000",
        "namespace": "namespace-000000",
        "topic": "topic",
        "subscription": "subscription",
    }
)
WATCH: Final = b"GET /v1/live HTTP/1.1\r\nHost: x\r\nAccept: text/event-stream\r\n\r\n"


# The neighbours.


class Call(NamedTuple):
    """One of a neighbour's."""

    path: str
    #: Of a `POST`; None: a `GET`.
    body: bytes | None = None


def call(client: http.client.HTTPConnection, what: Call) -> None:
    """Call, and read the answer; some reads are of what there is not, and some bodies are refused."""
    client.request("GET" if what.body is None else "POST", what.path, what.body)
    response = client.getresponse()
    response.read()
    if response.status >= 500 and what.path != "/readyz":
        raise SystemExit(f"{what.path}: {response.status}")


def read_paths(port: int) -> list[str]:
    """Every GET of the description, its variable parts filled in; of lists the largest first page."""
    with contextlib.closing(http.client.HTTPConnection("127.0.0.1", port)) as client:
        client.request("GET", "/openapi.json")
        description = json.load(client.getresponse())
    paths = []
    for path in (path for path, calls in description["paths"].items() if "get" in calls):
        filled = re.sub(r"\{(\w+)\}", lambda part: PARTS.get(part[1], "any"), path)
        if path == "/v1/explain":
            filled += "?tenant=tenant-0000&namespace=namespace-000000&topic=topic"
        elif path in {"/v1/groups", "/v1/brokers"}:
            filled += "?limit=1000"
        paths.append(filled)
    return paths


def reads(port: int) -> Iterator[Call]:
    """All read routes in turn; of lists the first page."""
    return map(Call, cycle(read_paths(port)))


def fresh_names(_: int) -> Iterator[Call]:
    """Arrays of topics that nobody has asked for, in this turn or another one."""
    for first in count(0, ITEMS):
        topics = [
            {"tenant": "acme", "namespace": "orders", "topic": f"{os.getpid()}-{number}"}
            for number in range(first, first + ITEMS)
        ]
        yield Call("/v1/acquire", json.dumps(topics).encode())


def same(path: str, body: bytes | None = None) -> Callable[[int], Iterator[Call]]:
    """One call for ever."""
    return lambda _: cycle([Call(path, body)])


def array_of(item: bytes) -> bytes:
    """As many items as a body, or an array, holds."""
    return b"[" + b",".join([item] * min(ITEMS, (BODY_BYTES - 1) // (len(item) + 1))) + b"]"


#: An item of which everything is wrong, and one whose name needs unescaping.
FAULTS: Final = b'{"messages":[' + b"[]," * 340 + b"[]]}"
ESCAPES: Final = b'{"' + rb"\u0067roup" + b'":"%b"}' % (rb"\u0041" * 160)

NEIGHBOURS: Final[dict[str, Callable[[int], Iterator[Call]]]] = {
    "reads": reads,
    "scrapes": same("/metrics"),
    "log": same("/v1/log/entries?limit=1000"),
    "arrays": same(
        "/v1/acquire", array_of(b'{"group":"tenant-00000.namespace-0000000.resources"}')
    ),
    "empty_objects": same("/v1/acquire", array_of(b"{}")),
    "too_many_objects": same("/v1/acquire", b"[" + b"{}," * (BODY_BYTES // 3 - 2) + b"{}]"),
    "nested_faults": same("/v1/acquire", array_of(FAULTS)),
    "escaped_names": same("/v1/acquire", array_of(ESCAPES)),
    "long_name": same("/v1/acquire", b'{"' + b"x" * (BODY_BYTES - 10) + b'":1}'),
    "fresh_names": fresh_names,
}


def be(name: str, port: int) -> None:
    """Be a neighbour until standard input ends."""
    os.nice(19)
    if name == "streams":
        subscribe(port)
        return
    over, done = threading.Event(), [0] * (READERS if name == "reads" else 1)

    def work(who: int) -> None:
        with contextlib.closing(
            http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        ) as client:
            for each in NEIGHBOURS[name](port):
                call(client, each)
                done[who] += 1
                if over.is_set():
                    return

    threads = [threading.Thread(target=work, args=(who,)) for who in range(len(done))]
    for thread in threads:
        thread.start()
    sys.stdin.read()
    is_whole = all(thread.is_alive() for thread in threads)
    over.set()
    print(sum(done) if is_whole else 0)


def subscribe(port: int) -> None:
    """Read streams of the live view until standard input ends."""
    received = 0
    with selectors.DefaultSelector() as ready, contextlib.ExitStack() as opened:
        ready.register(sys.stdin, selectors.EVENT_READ)
        for _ in range(STREAMS):
            one = opened.enter_context(socket.create_connection(("127.0.0.1", port)))
            one.sendall(WATCH)
            ready.register(one, selectors.EVENT_READ, one)
        while True:
            for key, _ in ready.select():
                if key.data is None:
                    print(received)
                    return
                came = len(key.data.recv(1 << 16))
                if not came:
                    raise SystemExit("a stream ended")
                received += came


@contextlib.asynccontextmanager
async def neighbour(name: str, port: int, done: dict[str, int]) -> AsyncIterator[None]:
    """A neighbour in a process of its own, and how much it got done; none for `alone`."""
    if name == "alone":
        yield
        return
    command = (sys.executable, __file__, "--be", name, "--port", str(port))
    process = await asyncio.create_subprocess_exec(
        *command, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    await asyncio.sleep(BEGIN_S)
    yield
    printed, _ = await process.communicate(b"")  # which ends its input
    if not int(printed or 0):
        raise SystemExit(f"the neighbour {name} failed, or got nothing done")
    done[name] = done.get(name, 0) + int(printed)


# The measurement.


def file_of(folder: Path, groups: Sequence[str]) -> Path:
    """A groups file that attaches the namespaces to the groups."""
    file = groups_file(folder, groups)
    lines = (
        f"    tenant-{place // 100:04}/namespace-{place:06}: {groups[place % len(groups)]}\n"
        for place in range(NAMESPACES)
    )
    with file.open("a") as text:
        text.write("attach:\n  namespaces:\n" + "".join(lines))
    return file


def each_route(port: int) -> dict[str, float]:
    """How long each read route takes by itself, a list its first page."""
    figures = {}
    with contextlib.closing(http.client.HTTPConnection("127.0.0.1", port, timeout=60)) as client:
        for path in read_paths(port):
            begun = time.perf_counter()
            call(client, Call(path))
            took_ms = (time.perf_counter() - begun) * 1000
            figures[f"took_ms {path.partition('?')[0]}"] = round(took_ms, 1)
    return figures


@contextlib.asynccontextmanager
async def hanging_tier() -> AsyncIterator[dict[str, str]]:
    """The settings of a tier that takes connections and never answers."""

    async def swallow(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
        while await reader.read(1 << 16):
            pass

    server = await asyncio.start_server(swallow, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with server:
        yield {
            "RGD_LOG__TIER_URL": "s3://bucket",
            "RGD_LOG__SEGMENT_BYTES": str(64 << 10),
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}",
            "AWS_ACCESS_KEY_ID": "bench",
            "AWS_SECRET_ACCESS_KEY": "bench",
            "AWS_REGION": "us-east-1",
        }


async def took_beside(
    names: Sequence[str], folder: Path, options: argparse.Namespace, settings: dict[str, str]
) -> tuple[dict[str, list[int]], dict[str, float]]:
    """What questions took beside each neighbour, in nanoseconds; how much each got done, and how long each route takes."""
    groups = Bench(1, 0.0).asked
    took: dict[str, list[int]] = {name: [] for name in names}
    done: dict[str, int] = {}
    broker = EmbeddedBroker(folder / "broker")
    url = await broker.ensure()
    try:
        with daemon(folder, url, file_of(folder, groups), settings=settings) as (port, process):
            if not options.together:
                for plane in process.children():
                    move(plane, OTHER_CORES)
            callers = Callers(port, [b'{"group":"%s"}' % group.encode() for group in groups])
            async with others(url, CHANGED):
                await all_heard(port)
                await asyncio.sleep(SETTLE_S)
                for name in [*names] * options.turns:
                    async with neighbour(name, port, done):
                        callers.took_ns.clear()
                        await asyncio.sleep(options.seconds)
                        took[name] += callers.took_ns
                figures = await asyncio.to_thread(each_route, port) if "reads" in names else {}
            callers.end()
    finally:
        await broker.stop()
    busy_s = options.turns * (options.seconds + BEGIN_S)
    per_s = {f"{name}_done_per_s": round(count / busy_s, 1) for name, count in done.items()}
    return took, per_s | figures


async def compare(options: argparse.Namespace) -> Figures:
    """All figures."""
    os.sched_setaffinity(0, OTHER_CORES)  # what is started from here inherits it
    names = [name for name in (*NEIGHBOURS, "streams") if options.only in name]
    if not names and options.only not in "hanging_tier":
        raise SystemExit(
            f"--only: expected a part of {', '.join(NEIGHBOURS)}, streams or hanging_tier"
        )
    with tempfile.TemporaryDirectory() as name:
        took, routes = await took_beside(["alone", *names], Path(name) / "first", options, {})
        if options.only in "hanging_tier":
            async with hanging_tier() as settings:
                again, _ = await took_beside(["alone"], Path(name) / "second", options, settings)
                took["hanging_tier"] = again["alone"]
    figures: dict[str, float] = {"cores": len(DAEMON_CORES | OTHER_CORES)}
    alone_ns = np.quantile(took["alone"], 0.99)
    for name, took_ns in took.items():
        figures |= quantiles(name, took_ns)
        waits_ns = float(np.quantile(took_ns, 0.99) - alone_ns)
        figures[f"{name}_waits_ms"] = round(waits_ns / 1e6, 3)
    return figures | routes


def measure(options: argparse.Namespace) -> Figures:
    """All figures."""
    if options.be:
        be(options.be, options.port)
        raise SystemExit(0)
    return asyncio.run(compare(options))


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declare what only this script has."""
    parser.add_argument("--seconds", type=float, default=3.0, help="length of each turn")
    parser.add_argument("--turns", type=int, default=3, help="of each neighbour")
    parser.add_argument("--only", default="", help="neighbours with this in their name")
    parser.add_argument("--together", action="store_true", help="one core for both processes")
    parser.add_argument("--be", help=argparse.SUPPRESS)
    parser.add_argument("--port", type=int, help=argparse.SUPPRESS)


if __name__ == "__main__":
    run(__doc__, measure, add_options=add_options)
