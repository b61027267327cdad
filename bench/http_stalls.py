"""How long hostile and large calls hold the event loop: arrays, faults, new groups, lists.

    python bench/http_stalls.py [--json]

The whole daemon (`rgd.app.wiring`, on uvloop, with its rounds, usage log and file policies; only the
exchange is the in-memory one) answers in a process of its own. Beside its work it notes, every
millisecond that the loop is free, how much processor time its thread took since the last note: the
largest is the longest that anybody else waited for the loop. Processor time, because on a busy machine
wall time has what the process waited for a core.
"""

import argparse
import asyncio
import http.client
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Final

import uvloop

from bench.harness import Figures, groups_file, run
from rgd.app.door_wiring import http_settings
from rgd.app.process import tune_interpreter
from rgd.app.traffic import Traffic
from rgd.config.load import load_settings
from rgd.wire.dialect import CompactDialect
from tests.support.memory_bus import MemoryBus, MemoryExchange
from tests.support.whole_daemon import HttpServer, build

GROUPS: Final = 15_000
IN_USE: Final = 5_000
BODY_BYTES: Final = 256 << 10
TICK_S: Final = 0.001
SETTLE_S: Final = 2.5


# The daemon.


class Watch:
    """Notes how long the loop is held."""

    def __init__(self) -> None:
        self.longest_s = 0.0
        #: All holds since the last time, in seconds of processor time.
        self._holds_s: list[float] = []
        self._loop = asyncio.get_running_loop()
        self._last_s = time.thread_time()
        self._tick()

    def _tick(self) -> None:
        now_s = time.thread_time()
        self.longest_s = max(self.longest_s, now_s - self._last_s)
        self._holds_s.append(now_s - self._last_s)
        self._last_s = now_s
        self._loop.call_later(TICK_S, self._tick)

    def tell(self) -> None:
        """Print the longest since the last time, in milliseconds; begin again."""
        if not sys.stdin.readline():
            self._loop.remove_reader(sys.stdin)
            return
        print(round(self.longest_s * 1000, 2), round(self._wait_p99_s() * 1000, 2), flush=True)
        self.longest_s = 0.0
        self._holds_s = []

    def _wait_p99_s(self) -> float:
        """What one in a hundred callers waits at least for the loop, if it is busy all the time.

        Who comes at any moment waits until the hold ends into which it falls.
        """
        holds = sorted(self._holds_s, reverse=True)
        budget = sum(holds) / 100
        longer = 0.0
        for count, hold in enumerate(holds, start=1):
            longer += hold
            following = holds[count] if count < len(holds) else 0.0
            # Those who wait longer than `following` came in the first parts of these holds.
            if longer - count * following >= budget:
                return (longer - budget) / count
        return 0.0


async def serve(groups: int = GROUPS, **more: object) -> None:
    """The daemon, alone on a bus in memory, until SIGTERM; `more` are settings (`__` for dots)."""
    tune_interpreter()
    until = asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGTERM, until.set)
    with tempfile.TemporaryDirectory() as folder:
        file = groups_file(Path(folder), map(name, range(groups)))
        overrides = {
            "broker.name": "broker-1",
            "http.listen": "127.0.0.1:0",
            "exchange.url": "pulsar://127.0.0.1:6650",
            "policies.source": "file",
            "policies.file": file,
            "log.dir": Path(folder) / "log",
            **{key.replace("__", "."): value for key, value in more.items()},
        }
        settings = load_settings(None, {}, overrides)
        daemon, exposition = build(settings, settings.exchange.url)
        memory = MemoryExchange(MemoryBus())
        daemon.parts = replace(daemon.parts, exchange=memory)
        daemon.traffic = Traffic(memory, CompactDialect(), daemon.errors)
        door = http_settings(settings, insecure=False)
        async with HttpServer(daemon, door, metrics=exposition.render) as server:
            loop.add_reader(sys.stdin, Watch().tell)
            await daemon.run(until, on_up=lambda: print(server.port, flush=True))
        await daemon.close()


# The callers.


def name(number: int) -> str:
    """A group's name."""
    return f"group-{number:05}"


def array_of(groups: range) -> bytes:
    """A question for each group."""
    return json.dumps([{"group": name(number)} for number in groups]).encode()


class Daemon:
    """Asks the daemon, and hears how long its loop was held."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._stdin, self._stdout = process.stdin, process.stdout
        self.port = int(self._stdout.readline())

    def call(self, method: str, path: str, body: bytes | None = None) -> str | None:
        """Call; the next page's path, if there is one."""
        with closing(http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)) as client:
            client.request(method, path, body)
            response = client.getresponse()
            response.read()
            link = response.headers.get("Link", "")
        return link.partition("<")[2].partition(">")[0] or None

    def longest_ms(self) -> float:
        """The longest hold since the last time."""
        return self.waits_ms()[0]

    def waits_ms(self) -> tuple[float, float]:
        """The longest hold since the last time, and what one in a hundred callers waited for the loop."""
        self._stdin.write("\n")
        self._stdin.flush()
        longest, p99 = map(float, self._stdout.readline().split())
        return longest, p99

    def held_by(self, method: str, path: str, body: bytes | None = None) -> float:
        """The longest hold during a call, pages and all."""
        self.longest_ms()
        following: str | None = path
        while following is not None:
            following = self.call(method, following, body)
        return self.longest_ms()


@contextmanager
def daemon(script: str = __file__, *arguments: str, stderr: int | None = None) -> Iterator[Daemon]:
    """A daemon that a script serves, and that ends with the block."""
    with subprocess.Popen(
        [sys.executable, script, "--serve", *arguments],
        env=os.environ | {"NUMPY_MADVISE_HUGEPAGE": "0"},  # as `rgd serve`
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=stderr,
        text=True,
    ) as process:
        try:
            yield Daemon(process)
        finally:
            process.terminate()


def measure(options: argparse.Namespace) -> Figures:
    """All figures."""
    if options.serve:
        uvloop.run(serve())
        raise SystemExit(0)
    acquire = ("POST", "/v1/acquire")
    nested = b'{"messages":[' + b"[]," * 500 + b"[]]}"
    long_name = b'{"' + b"x" * (BODY_BYTES - 10) + b'":1}'
    figures: dict[str, float] = {"groups": GROUPS, "groups_in_use": IN_USE}
    with daemon() as running:
        time.sleep(SETTLE_S)
        running.longest_ms()
        time.sleep(SETTLE_S)
        figures["quiet_ms"] = running.longest_ms()
        empty = b"[" + b"{}," * (BODY_BYTES // 3 - 2) + b"{}]"
        figures["empty_objects_256_kib_ms"] = running.held_by(*acquire, empty)
        figures["empty_objects_1000_ms"] = running.held_by(*acquire, b"[" + b"{}," * 999 + b"{}]")
        faults = b"[" + b",".join([nested] * (BODY_BYTES // len(nested) - 10)) + b"]"
        figures["nested_faults_256_kib_ms"] = running.held_by(*acquire, faults)
        escaped = b'{"' + rb"\u0067roup" + b'":"%b"}' % (rb"\u0041" * 40)
        escapes = b"[" + b",".join([escaped] * (BODY_BYTES // len(escaped) - 10)) + b"]"
        figures["escaped_names_256_kib_ms"] = running.held_by(*acquire, escapes)
        figures["long_name_256_kib_ms"] = running.held_by(*acquire, long_name)
        for start in range(0, IN_USE, 1000):
            running.call(*acquire, array_of(range(start, start + 1000)))
        time.sleep(SETTLE_S)
        figures["list_groups_in_use_ms"] = running.held_by("GET", "/v1/groups?limit=1000")
        figures["list_names_ms"] = running.held_by("GET", "/admin/v2/resourcegroups")
        figures["new_groups_1000_ms"] = running.held_by(
            *acquire, array_of(range(IN_USE, IN_USE + 1000))
        )
        topics = [
            {"tenant": "acme", "namespace": "orders", "topic": f"topic-{number}"}
            for number in range(1000)
        ]
        figures["new_topics_1000_ms"] = running.held_by(*acquire, json.dumps(topics).encode())
    return figures


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declare what only this script has."""
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)


if __name__ == "__main__":
    run(__doc__, measure, add_options=add_options)
