"""What callers notice when the process that agrees is killed, many times: answers, grants, shares, the log.

    python bench/plane_kills.py [--json] [--kills 20]

Two daemons on the embedded exchange, with one group whose quota both want whole. At
random moments the plane of one of them gets a SIGKILL. Each question of its callers is timed.
"""

import argparse
import asyncio
import http.client
import random
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from multiprocessing import Pipe, get_context
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import psutil

from bench.harness import Figures, go_first, run
from rgd.adapters.exchange.embedded import EmbeddedBroker
from rgd.adapters.http.client import DaemonClient, DaemonRefused
from rgd.app.demo.cluster import Daemon

QUOTA: Final = 200
#: Questions a second to each daemon, each for one message.
ASKED_PER_S: Final = 300
ROUND_S: Final = 1.0
WINDOW_S: Final = 10.0
#: Of its part of the quota.
FAIR_WITHIN: Final = 0.05
LIVES_S: Final = (2.0, 5.0)

#: When it came, how long it took, in seconds, and its status.
Answer = tuple[float, float, int]

_GROUPS: Final = f"groups: {{gold: {{publish: {{messages: {QUOTA}}}}}}}\n"
_BODY: Final = '{"group":"gold"}'


def begin_asking(base: str) -> Connection:
    """Ask one daemon in a process of its own, for here it would wait for Python's lock; whatever is sent to it has it send its answers."""
    ours, its = Pipe()
    get_context("spawn").Process(target=ask, args=(base, its), daemon=True).start()
    return ours


def ask(base: str, end: Connection) -> None:
    """Ask until something is sent here, and send the answers back."""
    go_first()
    connection = http.client.HTTPConnection(urlsplit(base).netloc)
    answers: list[Answer] = []
    begun = time.monotonic()
    while not end.poll(max(0.0, begun + len(answers) / ASKED_PER_S - time.monotonic())):
        sent = time.monotonic()
        connection.request("POST", "/v1/acquire", _BODY)
        answer = connection.getresponse()
        answer.read()
        now = time.monotonic()
        answers.append((now, now - sent, answer.status))
    end.send(answers)


def plane_of(daemon: Daemon) -> psutil.Process | None:
    """The process to be killed, once it is there."""
    children = psutil.Process(daemon.pid).children()
    planes = [one for one in children if "rgd.app.planes.plane_process" in one.cmdline()]
    return planes[0] if planes else None


async def until(holds: Callable[[], Awaitable[bool]]) -> float:
    """How long it takes, in seconds."""
    begun = time.monotonic()
    async with asyncio.timeout(120):
        while not await holds():  # noqa: ASYNC110 -- in other processes
            await asyncio.sleep(0.01)
    return time.monotonic() - begun


async def measured(options: argparse.Namespace) -> Figures:
    """Kill it again and again."""
    dice = random.Random(1)
    back_s, fair_s = [], []
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        (folder / "groups.yaml").write_text(_GROUPS)
        broker = EmbeddedBroker(folder / "exchange")
        url = await broker.ensure()
        stack.push_async_callback(broker.stop)
        daemons = [Daemon(name, folder, url) for name in ("one", "two")]
        clients = []
        for daemon in daemons:
            await daemon.start()
            stack.push_async_callback(daemon.stop)
            clients.append(await stack.enter_async_context(DaemonClient(daemon.base)))

        async def is_back() -> bool:
            try:
                return "plane" not in str(await clients[0].readiness()) and bool(
                    await clients[0].group("gold")
                )
            except DaemonRefused:
                return False

        async def is_fair() -> bool:
            groups = [await client.group("gold") for client in clients]
            shares = [group["publish"]["share"]["messages"] for group in groups]
            states = {group["state"] for group in groups}
            part = QUOTA / len(daemons)
            is_near = all(abs(share - part) <= FAIR_WITHIN * part for share in shares)
            return states == {"live"} and is_near

        callers = [begin_asking(daemon.base) for daemon in daemons]
        await until(is_fair)
        # What was granted at the start is not of these figures.
        await asyncio.sleep(WINDOW_S)
        begun = time.monotonic()
        for _ in range(options.kills):
            await asyncio.sleep(dice.uniform(*LIVES_S))
            plane = plane_of(daemons[0])
            assert plane is not None
            plane.kill()
            back_s.append(await until(is_back))
            fair_s.append(await until(is_fair))
        for caller in callers:
            caller.send(None)
        answers = [answer for caller in callers for answer in caller.recv()]
        return _figures([answer for answer in answers if answer[0] >= begun]) | {
            "kills": options.kills,
            "back_s": round(statistics.median(back_s), 2),
            "back_longest_s": round(max(back_s), 2),
            "fair_rounds": round(statistics.median(fair_s) / ROUND_S, 1),
            "fair_longest_rounds": round(max(fair_s) / ROUND_S, 1),
        }


def _figures(answers: list[Answer]) -> dict[str, float]:
    took_ms = sorted(took * 1000 for _, took, _ in answers)
    granted = sorted(at for at, _, status in answers if status == 200)
    most = begin = 0
    for end, at in enumerate(granted):
        while granted[begin] < at - WINDOW_S:
            begin += 1
        most = max(most, end - begin + 1)
    return {
        "asked": len(answers),
        "failed": sum(status not in {200, 429} for _, _, status in answers),
        "p99_ms": round(took_ms[int(0.99 * len(took_ms))], 2),
        "longest_ms": round(took_ms[-1], 2),
        "granted_to_quota": round(most / (QUOTA * WINDOW_S), 4),
    }


def measure(options: argparse.Namespace) -> Figures:
    """All figures."""
    return asyncio.run(measured(options))


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declare what only this script has."""
    parser.add_argument("--kills", type=int, default=5)


if __name__ == "__main__":
    run(__doc__, measure, add_options=add_options)
