"""`POST /v1/acquire` over loopback: requests a second and their latency, one question and arrays.

    python bench/acquire.py [--json]

The whole daemon (`rgd.app.wiring`, on uvloop, with its rounds, usage log and file policies; only the
exchange is the in-memory one) answers in a process of its own, this process asks, `CONNECTIONS`
at once, each as soon as it was answered. Beside it, in the same run and by turns: an aiohttp
application with one handler that reads the body and answers a constant. Every case is bounded in
time and count. Two processes want two cores: with fewer free, all figures fall together.

The name is not http.py: a script's folder comes first on the path, and would hide the library's.
"""

import argparse
import asyncio
import json
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Final, cast

import uvloop
from aiohttp import web
from typing_extensions import override

from rgd.adapters.metrics.answer_times import AnswerTimes
from rgd.adapters.metrics.registry import HTTP_REQUEST_SECONDS
from rgd.app.door_wiring import http_settings
from rgd.app.traffic import Traffic
from rgd.config.load import load_settings
from rgd.wire.dialect import CompactDialect
from tests.support.memory_bus import MemoryBus, MemoryExchange
from tests.support.whole_daemon import HttpServer, build

CONNECTIONS: Final = 32
ITEMS: Final = 100
PASSES: Final = 3
PASS_S: Final = 1.2
REQUESTS_MAX: Final = 100_000
READY_TIMEOUT_S: Final = 20

GROUPS: Final = """\
groups:
  gold: {publish: {messages: 1000000000}}
attach:
  namespaces: {acme/orders: gold}
"""
QUESTION: Final = b'{"tenant":"acme","namespace":"orders","topic":"eu","messages":1,"bytes":1000}'
ARRAY: Final = b"[" + b",".join([QUESTION] * ITEMS) + b"]"
ANSWER: Final = b'{"granted":true,"messages":1,"bytes":1000}'

#: Who answers, and what is asked.
CASES: Final = {
    "single": ("rgd", QUESTION),
    "array": ("rgd", ARRAY),
    "bare_single": ("bare", QUESTION),
    "bare_array": ("bare", ARRAY),
}


# The two servers, each a process of its own.


async def serve_bare(until: asyncio.Event) -> None:
    """An aiohttp application with one handler."""

    async def handle(request: web.Request) -> web.Response:
        await request.read()
        return web.Response(body=ANSWER, content_type="application/json")

    app = web.Application()
    app.router.add_post("/v1/acquire", handle)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    print(runner.addresses[0][1], flush=True)
    await until.wait()
    await runner.cleanup()


async def serve_rgd(until: asyncio.Event) -> None:
    """The daemon, alone on a bus in memory."""
    with tempfile.TemporaryDirectory() as folder:
        groups = Path(folder) / "groups.yaml"
        groups.write_text(GROUPS)
        overrides = {
            "broker.name": "broker-1",
            "http.listen": "127.0.0.1:0",
            "exchange.url": "pulsar://127.0.0.1:6650",
            "policies.source": "file",
            "policies.file": groups,
            "log.dir": Path(folder) / "log",
        }
        settings = load_settings(None, {}, overrides)
        daemon, exposition = build(settings, settings.exchange.url)
        memory = MemoryExchange(MemoryBus())
        daemon.parts = replace(daemon.parts, exchange=memory)
        daemon.traffic = Traffic(memory, CompactDialect(), daemon.errors)
        server = HttpServer(
            daemon,
            http_settings(settings, insecure=False),
            metrics=exposition.render,
            observe=AnswerTimes(HTTP_REQUEST_SECONDS.buckets).observe_answer,
        )
        async with server:
            await daemon.run(until, on_up=lambda: print(server.port, flush=True))
        await daemon.close()


async def serve(who: str) -> None:
    """Serve until SIGTERM."""
    until = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, until.set)
    await (serve_rgd(until) if who == "rgd" else serve_bare(until))


# The load.


class Load:
    """How much is still to be asked, and how long the answers took."""

    def __init__(self, question: bytes) -> None:
        self.sent = b"".join(
            (
                b"POST /v1/acquire HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n",
                b"Content-Length: %d\r\n\r\n" % len(question),
                question,
            )
        )
        self.begun_ns = time.perf_counter_ns()
        self.until_ns = self.begun_ns + int(PASS_S * 1e9)
        self.took_ns: list[int] = []

    @property
    def is_over(self) -> bool:
        """Whether time or count is used up."""
        return time.perf_counter_ns() >= self.until_ns or len(self.took_ns) >= REQUESTS_MAX


class Caller(asyncio.Protocol):
    """One connection: asks again as soon as it was answered."""

    def __init__(self, load: Load) -> None:
        self.load = load
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._transport: asyncio.Transport | None = None
        self._got = b""
        self._asked_ns = 0

    @override
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._ask()

    @override
    def data_received(self, data: bytes) -> None:
        self._got += data
        head, blank, body = self._got.partition(b"\r\n\r\n")
        if not blank or len(body) < _length_of(head):
            return
        if not head.startswith(b"HTTP/1.1 200") or b'"granted":true' not in body:
            self.done.set_exception(SystemExit(f"not granted: {self._got[:300]!r}"))
            return
        self.load.took_ns.append(time.perf_counter_ns() - self._asked_ns)
        self._got = b""
        if not self.load.is_over:
            self._ask()
        elif not self.done.done():
            self.done.set_result(None)

    @override
    def connection_lost(self, exc: Exception | None) -> None:
        if not self.done.done():
            self.done.set_exception(SystemExit(f"the server hung up: {exc}"))

    def close(self) -> None:
        """Hang up."""
        if self._transport is not None:
            self._transport.close()

    def _ask(self) -> None:
        assert self._transport is not None
        self._asked_ns = time.perf_counter_ns()
        self._transport.write(self.load.sent)


def _length_of(head: bytes) -> int:
    return int(head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0])


async def ask(port: int, question: bytes) -> tuple[list[int], float]:
    """One pass: every latency in ns, and the seconds it took in all."""
    loop = asyncio.get_running_loop()
    load = Load(question)
    callers = [
        (await loop.create_connection(lambda: Caller(load), "127.0.0.1", port))[1]
        for _ in range(CONNECTIONS)
    ]
    await asyncio.gather(*(caller.done for caller in callers))
    elapsed_s = (time.perf_counter_ns() - load.begun_ns) / 1e9
    for caller in callers:
        caller.close()
    return load.took_ns, elapsed_s


def start(who: str, stack: ExitStack) -> int:
    """Start a server that ends with the stack; its port."""
    process = subprocess.Popen(
        [sys.executable, __file__, "--serve", who], stdout=subprocess.PIPE, text=True
    )
    stack.callback(process.wait, READY_TIMEOUT_S)
    stack.callback(process.terminate)
    assert process.stdout is not None
    stack.callback(process.stdout.close)
    return int(process.stdout.readline() or "0")


def measure() -> dict[str, float]:
    """All figures."""
    took_ns: dict[str, list[int]] = {name: [] for name in CASES}
    elapsed_s = dict.fromkeys(CASES, 0.0)
    with ExitStack() as stack:
        ports = {who: start(who, stack) for who in ("rgd", "bare")}
        for _ in range(PASSES):
            for name, (who, question) in CASES.items():
                took, passed_s = uvloop.run(ask(ports[who], question))
                took_ns[name] += took
                elapsed_s[name] += passed_s
    figures: dict[str, float] = {"connections": CONNECTIONS, "array_items": ITEMS}
    for name, took in took_ns.items():
        ordered = sorted(took)
        figures[f"{name}_requests_per_s"] = round(len(took) / elapsed_s[name])
        figures[f"{name}_p50_ms"] = round(ordered[len(ordered) // 2] / 1e6, 2)
        figures[f"{name}_p99_ms"] = round(ordered[len(ordered) * 99 // 100] / 1e6, 2)
    rate, bare_rate = figures["single_requests_per_s"], figures["bare_single_requests_per_s"]
    figures["single_to_bare"] = round(rate / bare_rate, 2)
    figures["array_decisions_per_s"] = round(figures["array_requests_per_s"] * ITEMS)
    figures["array_to_single_decisions"] = round(figures["array_decisions_per_s"] / rate, 1)
    return figures


def main() -> None:
    """Measure, print a table or one line of JSON."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--json", action="store_true", help="one line of JSON")
    parser.add_argument("--serve", choices=("rgd", "bare"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        uvloop.run(serve(options.serve))
        return
    figures = measure()
    if options.json:
        print(json.dumps(figures))
        return
    for name, value in figures.items():
        print(f"{name:28} {value:>12,}")


if __name__ == "__main__":
    main()
