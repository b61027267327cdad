"""How soon every share is fair after a step of demand: ten daemons, nine saturated, the tenth wakes and stops.

    python bench/steps.py [--json] [--steps 10] [--daemons 10]

Real daemons (`rgd serve`) on the embedded broker share one quota. All but the last are asked for more
than their part all the time. The last one is asked as much for a while (`up_`) and then not at all
(`down_`), at other phases of the round each time. Everything is counted by the load: a share is what
a daemon grants between two of its answers at least `WINDOW_S` apart, and it is fair from the middle of the
first such window from which on, for `STAYS_S`, all are within 5 % of max-min. A step is over when every
daemon that is asked is fair.
"""

import argparse
import asyncio
import json
import math
import random
import statistics
import tempfile
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from bench.harness import Figures, run
from bench.rounds_http import CORES, READY_TIMEOUT_S, daemon, request
from rgd.adapters.exchange.embedded import EmbeddedBroker
from rgd.adapters.http.client import DaemonClient

#: Of all daemons together, messages a second.
QUOTA: Final = 5_000
#: Each daemon is asked for so many times its part, in an array every so many seconds.
OVERLOAD: Final = 4
ASK_S: Final = 0.02
#: Shortest time between two answers that a rate is taken of.
WINDOW_S: Final = 0.2
#: Answers that took longer are counted, and no window ends with them: it is unclear when they were given.
EXACT_S: Final = 0.005
STAYS_S: Final = 0.5
#: How long the demand stays after a step, and its part that moves the step within a round of a second.
HOLD_S: Final = 3.0
PHASE_S: Final = 1.0
NEAR: Final = 0.05


@dataclass
class Asked:
    """One daemon's caller, and what it was granted when."""

    port: int
    body: bytes
    is_on: bool = True
    #: The moment of each array that was answered within `EXACT_S`, and messages granted until then.
    at_s: list[float] = field(default_factory=list)
    granted: list[int] = field(default_factory=list)

    async def ask(self) -> None:
        """Ask until this task is cancelled."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        loop, question, total = asyncio.get_running_loop(), request(self.body), 0
        due = loop.time()
        while True:
            due = max(due + ASK_S, loop.time())
            await asyncio.sleep(due - loop.time())
            if not self.is_on:
                continue
            writer.write(question)
            sent_s = loop.time()
            head = await reader.readuntil(b"\r\n\r\n")
            length = int(head.lower().partition(b"content-length:")[2].split()[0])
            total += (await reader.readexactly(length)).count(b'"granted":true')
            if (answered_s := loop.time()) - sent_s < EXACT_S:
                self.at_s.append((sent_s + answered_s) / 2)
                self.granted.append(total)

    def fair_from(self, begin_s: float, part: float) -> float:
        """The moment after `begin_s` from which on this daemon grants its part; infinite where there was none."""
        fair: float | None = None
        first = 0
        for last, at in enumerate(self.at_s):
            while at - self.at_s[first + 1] >= WINDOW_S:
                first += 1
            begun = self.at_s[first]
            if begun < begin_s or at - begun < WINDOW_S:
                continue
            fair = begun if fair is None else fair
            if begun - fair > STAYS_S:
                return fair
            rate = (self.granted[last] - self.granted[first]) / (at - begun)
            if abs(rate - part) > NEAR * part:
                fair = (self.at_s[first + 1] + at) / 2
        return math.inf


async def ready(ports: list[int]) -> None:
    """Wait until every daemon knows all others."""
    async with asyncio.timeout(READY_TIMEOUT_S):
        for port in ports:
            async with DaemonClient(f"http://127.0.0.1:{port}") as client:
                while len(await client.brokers()) < len(ports):  # noqa: ASYNC110 -- in another process
                    await asyncio.sleep(0.1)


async def step(callers: list[Asked], *, up: bool) -> float:
    """Let the last caller begin or end; seconds until every daemon that is asked grants its part."""
    dice, loop = random.Random(len(callers[0].at_s)), asyncio.get_running_loop()
    await asyncio.sleep(dice.uniform(0, PHASE_S))
    callers[-1].is_on = up
    begun = loop.time()
    await asyncio.sleep(HOLD_S)
    asked = [caller for caller in callers if caller.is_on]
    return max(caller.fair_from(begun, QUOTA / len(asked)) for caller in asked) - begun


async def compare(options: argparse.Namespace) -> dict[str, float]:
    """All figures."""
    body = json.dumps([{"group": "gold"}] * round(QUOTA * OVERLOAD * ASK_S / options.daemons))
    figures: dict[str, float] = {"daemons": options.daemons, "steps": options.steps}
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        folder = Path(name)
        file = folder / "groups.yaml"
        file.write_text(f"groups:\n  gold: {{publish: {{messages: {QUOTA}}}}}\n")
        broker = EmbeddedBroker(folder / "broker")
        url = await broker.ensure()
        try:
            names = [f"broker-{number:02}" for number in range(options.daemons)]
            ports = [
                stack.enter_context(daemon(folder / one, url, file, broker=one, cores=CORES))[0]
                for one in names
            ]
            await ready(ports)
            callers = [Asked(port, body.encode()) for port in ports]
            async with asyncio.TaskGroup() as tasks:
                working = [tasks.create_task(caller.ask()) for caller in callers]
                callers[-1].is_on = False
                await asyncio.sleep(HOLD_S)
                pairs = [
                    (await step(callers, up=True), await step(callers, up=False))
                    for _ in range(options.steps)
                ]
                for task in working:
                    task.cancel()
            stack.close()
        finally:
            await broker.stop()
    for name, taken in zip(("up", "down"), zip(*pairs, strict=True), strict=True):
        figures[f"{name}_median_s"] = round(statistics.median(taken), 3)
        figures[f"{name}_longest_s"] = round(max(taken), 3)
    return figures


def measure(options: argparse.Namespace) -> Figures:
    """All figures."""
    return asyncio.run(compare(options))


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declare what only this script has."""
    parser.add_argument("--steps", type=int, default=10, help="times that the last daemon wakes")
    parser.add_argument("--daemons", type=int, default=10)


if __name__ == "__main__":
    run(__doc__, measure, add_options=add_options)
