"""Requests beside rounds: `POST /v1/acquire` while 99 brokers report at PIP-82's scale.

    python bench/rounds_http.py [--json] [--seconds 10] [--changed 1.0] [--apart]

The whole daemon (`rgd serve`, on the embedded broker) with 5,000 groups of its own, each asked for
once a second in arrays; a process of its own publishes, once a second, what 99
other brokers report (5,000 rows each, all of them changed unless `--changed` says less). Latency is
from a request's sending to its answer, over loopback, first without the others (`alone_`), then with
them (`beside_`). Both processes of the daemon share one core, and all others (the callers, the
publisher, the exchange) share the rest; the callers go first where the system lets them (root). With
`--apart` the daemon's answering process has the one core, and the agreeing one is with the others.
"""

import argparse
import asyncio
import contextlib
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import BinaryIO, Final

import numpy as np
import psutil

from bench.harness import Figures, go_first, groups_file, run
from bench.rounds import BROKERS, OWN_GROUPS, Bench
from rgd.adapters.exchange.embedded import EmbeddedBroker
from rgd.adapters.exchange.pulsar import PulsarExchange
from rgd.adapters.http.client import DaemonClient, DaemonUnreachable
from rgd.core.exchange.messages import Report
from rgd.wire.codec import encode
from rgd.wire.name_dictionary import NameEncoder

#: Single questions a second, whose latency is measured, and questions in an array.
PROBES_PER_S: Final = 400
ITEMS: Final = 10
#: Time for everything to have happened once.
SETTLE_S: Final = 3.0
READY_TIMEOUT_S: Final = 120
#: Others that begin in a round: what a daemon has no time to read, the exchange drops, and nobody here says it again.
BEGINNING: Final = 5
#: Rounds of the others that are made before they begin to speak, for making one may take longer than a second; further ones are made on the way.
REHEARSED: Final = 40

ROOT: Final = Path(__file__).resolve().parents[1]

#: The core that only the daemon uses, and the others; the same where there is no other.
CORES: Final = sorted(os.sched_getaffinity(0))
DAEMON_CORES: Final = frozenset(CORES[:1])
OTHER_CORES: Final = frozenset(CORES[1:] or CORES)


# The others.


class Others:
    """What the 99 other brokers say, round by round, ready to be sent."""

    def __init__(self, changed: float) -> None:
        self._bench = Bench(1, changed)
        self._name_decoders = [NameEncoder() for _ in range(BROKERS - 1)]
        self._sequence = 0

    def round(self) -> list[bytes]:
        """What all of them say next; the first time it is all that one has to say."""
        begun = self._sequence * BEGINNING
        self._sequence += 1
        self._bench.sequence = self._sequence
        payloads = []
        for place, groups in enumerate(self._bench.rows_of[: begun + BEGINNING]):
            is_first = place >= begun
            dice = self._bench.dice.random(len(groups))
            told = groups if is_first else groups[dice < self._bench.changed]
            report = self._report(place, told, is_first=is_first)
            payloads.append(encode(report, self._name_decoders[place]))
        return payloads

    def _report(self, place: int, told: Sequence[int], *, is_first: bool) -> Report:
        report = self._bench.report(place, np.asarray(told))
        return replace(report, full=is_first, members=BROKERS)


async def speak(url: str, changed: float) -> None:
    """Be the 99 others, once a second, until the standard input ends."""
    # Making further rounds must not take the core from a daemon's process that is beside it.
    os.nice(19)
    others = Others(changed)
    rounds = [others.round() for _ in range(REHEARSED)]
    exchange = PulsarExchange(url)
    await exchange.open()
    print("ready", flush=True)
    loop = asyncio.get_running_loop()
    ended = loop.run_in_executor(None, sys.stdin.read)
    at = loop.time()
    while not ended.done():
        if not rounds:
            rounds = [await asyncio.to_thread(others.round)]
        for payload in rounds.pop(0):
            await exchange.publish(payload)
        await exchange.receive()
        at = max(at + 1.0, loop.time())
        await asyncio.sleep(at - loop.time())
    await exchange.close()


# The load.


class Callers:
    """Two threads with a connection each, so that nobody waits for a client's own event loop.

    One asks for everything once a second, in arrays of `ITEMS`; the other asks single questions,
    so many a second, and measures from a request's sending to its answer.
    """

    def __init__(self, port: int, questions: Sequence[bytes], per_s: int = PROBES_PER_S) -> None:
        self._port = port
        self._items = min(ITEMS, len(questions))
        self._arrays = [
            request(b"[" + b",".join(questions[place : place + ITEMS]) + b"]")
            for place in range(0, len(questions), ITEMS)
        ]
        self._probes = [request(question) for question in questions]
        #: Nanoseconds that each single question took since `begin`.
        self.took_ns: list[int] = []
        #: Why a thread ended that nobody told to.
        self._failures: list[BaseException] = []
        #: Questions answered so far, to each of the two.
        self.answered = [0, 0]
        self._is_over = threading.Event()
        self._threads = [
            threading.Thread(
                target=self._ask, args=(0, self._arrays, len(self._arrays)), daemon=True
            ),
            threading.Thread(target=self._ask, args=(1, self._probes, per_s), daemon=True),
        ]
        for thread in self._threads:
            thread.start()

    def begin(self) -> None:
        """Forget what was measured so far."""
        self.took_ns.clear()

    def figures(self, what: str) -> dict[str, float]:
        """Of the single questions since `begin`; what failed meanwhile is raised."""
        self._check()
        return quantiles(what, self.took_ns)

    def end(self) -> None:
        """Stop asking."""
        self._is_over.set()
        for thread in self._threads:
            thread.join()
        self._check()

    def _check(self) -> None:
        for failure in self._failures:
            raise failure

    def _ask(self, who: int, requests: Sequence[bytes], per_s: int) -> None:
        try:
            self._ask_on(who, requests, per_s)
        except (OSError, SystemExit) as failure:
            self._failures.append(failure)

    def _ask_on(self, who: int, requests: Sequence[bytes], per_s: int) -> None:
        go_first()
        with socket.create_connection(("127.0.0.1", self._port)) as connection:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            answers = connection.makefile("rb")
            begun, count = time.perf_counter(), 0
            while not self._is_over.wait(max(0.0, begun + count / per_s - time.perf_counter())):
                sent_ns = time.perf_counter_ns()
                connection.sendall(requests[count % len(requests)])
                _read_answer(answers)
                if who == 1:
                    self.took_ns.append(time.perf_counter_ns() - sent_ns)
                self.answered[who] += 1 if who == 1 else self._items
                count += 1


def quantiles(what: str, took_ns: Sequence[int]) -> dict[str, float]:
    """p50, p99, p99.9 and the longest, in milliseconds."""
    parts = {"p50_ms": 0.5, "p99_ms": 0.99, "p999_ms": 0.999, "longest_ms": 1.0}
    took_ms = np.array(took_ns) / 1e6
    return {
        f"{what}_{name}": round(float(np.quantile(took_ms, part)), 3)
        for name, part in parts.items()
    }


def _read_answer(answers: BinaryIO) -> None:
    length, status = 0, answers.readline()
    if status.split()[1:2] not in ([b"200"], [b"429"]):
        raise SystemExit(f"the daemon answered {status!r}")
    while (line := answers.readline()) != b"\r\n":
        if not line:
            raise SystemExit("the daemon hung up")
        name, _, value = line.partition(b":")
        if name.lower() == b"content-length":
            length = int(value)
    answers.read(length)


def request(body: bytes) -> bytes:
    """The bytes of a `POST /v1/acquire`."""
    return (
        b"POST /v1/acquire HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        b"Content-Length: %d\r\n\r\n%s" % (len(body), body)
    )


# The daemon.


@contextlib.contextmanager
def daemon(
    folder: Path,
    url: str,
    file: Path,
    *,
    broker: str = "broker-000",
    cores: Iterable[int] = DAEMON_CORES,
    settings: Mapping[str, str] = MappingProxyType({}),
) -> Iterator[tuple[int, psutil.Process]]:
    """A daemon that holds to a groups file, with further settings, as in the environment; its port, and its process."""
    command = [sys.executable, "-m", "rgd", "serve", "--broker", broker]
    command += ["--listen", "127.0.0.1:0", "--exchange", url, "--log-dir", str(folder / "log")]
    own = {"RGD_POLICIES__SOURCE": "file", "RGD_POLICIES__FILE": str(file)}
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    process = subprocess.Popen(
        command,
        env={**os.environ, **own, **settings, "PYTHONPATH": path},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    # All of its threads: they begin later, and inherit it.
    os.sched_setaffinity(process.pid, cores)
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        port = int(line.partition("127.0.0.1:")[2].split()[0].strip(",;"))
        yield port, psutil.Process(process.pid)
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(READY_TIMEOUT_S)


def move(process: psutil.Process, cores: Iterable[int]) -> None:
    """Have all threads of a process run there."""
    for thread in process.threads():
        os.sched_setaffinity(thread.id, cores)


@contextlib.asynccontextmanager
async def others(url: str, changed: float) -> AsyncIterator[None]:
    """The others in a process of their own."""
    command = (sys.executable, __file__, "--others", url, "--changed", str(changed))
    process = await asyncio.create_subprocess_exec(
        *command, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None
    assert process.stdin is not None
    if await process.stdout.readline() != b"ready\n":
        raise SystemExit("the others do not come up")
    try:
        yield
    finally:
        process.stdin.close()
        await process.wait()


async def cores_of(processes: Sequence[psutil.Process], seconds: float) -> float:
    """How many cores processes take together from now on, for so long."""
    before_s = sum(sum(one.cpu_times()[:2]) for one in processes)
    await asyncio.sleep(seconds)
    after_s = sum(sum(one.cpu_times()[:2]) for one in processes)
    return round(float(after_s - before_s) / seconds, 2)


async def all_heard(port: int) -> float:
    """Wait until the daemon holds every row of the others and believes them; how long it took."""
    begun = time.perf_counter()
    async with asyncio.timeout(READY_TIMEOUT_S), DaemonClient(f"http://127.0.0.1:{port}") as client:
        while not await _is_all_heard(client):  # noqa: ASYNC110 -- in another process
            await asyncio.sleep(0.1)
    return round(time.perf_counter() - begun, 1)


async def _is_all_heard(client: DaemonClient) -> bool:
    try:
        brokers, readiness = await client.brokers(), await client.readiness()
    except DaemonUnreachable:
        # It is busy with 99 full states at once.
        return False
    whole = [view for view in brokers if view["rows"] >= OWN_GROUPS // 2]
    is_cut_off = any("unreachable" in note for note in readiness.get("degraded", ()))
    return len(whole) == BROKERS and not is_cut_off


async def compare(options: argparse.Namespace) -> dict[str, float]:
    """The figures without the others, and with them."""
    # What is started from here inherits it, too.
    os.sched_setaffinity(0, OTHER_CORES)
    groups = Bench(1, 0.0).asked
    figures: dict[str, float] = {"groups": len(groups), "cores": len(CORES)}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        file = groups_file(folder, groups)
        broker = EmbeddedBroker(folder / "broker")
        url = await broker.ensure()
        try:
            with daemon(folder, url, file) as (port, process):
                planes = process.children()
                if options.apart:
                    for plane in planes:
                        move(plane, OTHER_CORES)
                callers = Callers(port, [b'{"group":"%s"}' % group.encode() for group in groups])
                # The first seconds make every bucket and meter, and then every row of the others.
                await asyncio.sleep(SETTLE_S)
                callers.begin()
                figures["alone_cores"] = await cores_of([process, *planes], options.seconds)
                figures |= callers.figures("alone")
                async with others(url, options.changed):
                    figures["joined_s"] = await all_heard(port)
                    await asyncio.sleep(SETTLE_S)
                    callers.begin()
                    figures["beside_cores"] = await cores_of([process, *planes], options.seconds)
                    figures |= callers.figures("beside")
                callers.end()
        finally:
            await broker.stop()
    return figures


def measure(options: argparse.Namespace) -> Figures:
    """All figures."""
    if options.others:
        asyncio.run(speak(options.others, options.changed))
        raise SystemExit(0)
    return asyncio.run(compare(options))


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declare what only this script has."""
    parser.add_argument("--seconds", type=float, default=10.0, help="length of each measurement")
    parser.add_argument("--changed", type=float, default=1.0, help="part of the rows told, 0 to 1")
    parser.add_argument("--apart", action="store_true", help="a core for each of the processes")
    parser.add_argument("--others", metavar="URL", help=argparse.SUPPRESS)


if __name__ == "__main__":
    run(__doc__, measure, add_options=add_options)
