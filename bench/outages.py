"""How soon members of the exchange are back after outages, and what they leave behind.

    python bench/outages.py [--json] [--outages 20] [--shortest-s 5] [--longest-s 200] [--apache]

Three members, in this process, speak four times a second through a TCP proxy in front of a real broker
(the embedded one, or Apache Pulsar). Outages differ in length, evenly on a logarithmic scale and in a
shuffled order, and in kind, by turns: connections are refused; nothing passes, and later everything
does; nothing passes, and later new connections only. A member is back when it reads every member's new
messages. By default four outages of 5 to 20 s; `docs/performance.md` has the figures of the long run.
"""

import argparse
import asyncio
import logging
import random
import tempfile
import time
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Final

import psutil

from bench.harness import Figures, run
from rgd.adapters.exchange.embedded import EmbeddedBroker
from rgd.adapters.exchange.pulsar import PulsarExchange
from rgd.ports.exchange import ExchangeDown
from tests.support.pulsar_operator import ensure_namespace
from tests.support.pulsar_standalone import PulsarStandalone
from tests.support.tcp_proxy import TcpProxy

MEMBERS: Final = 3
#: Between two messages of a member; a daemon that is cut off sends four a round.
SPEAK_S: Final = 0.25
#: Between two outages, so that each meets members that are at rest.
REST_S: Final = 6.0
KINDS: Final = ("refused", "frozen", "stranded")
LENGTHS_SEED: Final = 10


class Member:
    """One exchange that speaks all the time, and what it has read."""

    def __init__(self, name: str, url: str) -> None:
        self.name = name
        self.exchange = PulsarExchange(url)
        #: The last number read, by its sender.
        self.read: dict[str, int] = {}

    async def speak(self) -> None:
        number = 0
        while True:
            number = time.monotonic_ns()
            try:
                await self.exchange.publish(f"{self.name} {number}".encode())
            except ExchangeDown:
                continue
            await asyncio.sleep(SPEAK_S)

    async def listen(self) -> None:
        while True:
            for payload in await self.exchange.receive():
                sender, number = payload.decode().split()
                self.read[sender] = int(number)


async def outage(proxy: TcpProxy, kind: str, seconds: float) -> None:
    """Make one outage of the given length and end it."""
    if kind == "refused":
        await proxy.refuse()
    else:
        proxy.freeze()
    await asyncio.sleep(seconds)
    if kind == "stranded":
        await proxy.strand()
    else:
        await proxy.pass_on()


async def seconds_until_back(members: list[Member]) -> float:
    """Until every member reads what every member says from now on."""
    begun = time.monotonic_ns()
    pairs = [(member, other.name) for member in members for other in members]
    while any(member.read.get(name, 0) < begun for member, name in pairs):  # noqa: ASYNC110 - it is no event of ours
        await asyncio.sleep(0.005)
    return (time.monotonic_ns() - begun) / 1e9


def lengths_s(options: argparse.Namespace) -> list[float]:
    """The outages' lengths, shuffled."""
    steps = max(options.outages - 1, 1)
    growth = (options.longest_s / options.shortest_s) ** (1 / steps)
    lengths = [options.shortest_s * growth**step for step in range(options.outages)]
    random.Random(LENGTHS_SEED).shuffle(lengths)
    return lengths


def state() -> dict[str, float]:
    """What this process holds."""
    process = psutil.Process()
    return {
        "descriptors": process.num_fds(),
        "threads": process.num_threads(),
        "rss_mb": round(process.memory_info().rss / 1e6, 1),
    }


async def broker_port(stack: AsyncExitStack, *, is_apache: bool) -> int:
    """Start a broker that ends with the stack; where it listens."""
    if is_apache:
        apache = await asyncio.to_thread(stack.enter_context, PulsarStandalone())
        await ensure_namespace(apache.admin_url, "public/rgd")
        return apache.ports.service
    folder = stack.enter_context(tempfile.TemporaryDirectory())
    broker = EmbeddedBroker(Path(folder))
    url = await broker.ensure()
    stack.push_async_callback(broker.stop)
    return int(url.rpartition(":")[2])


async def measured(options: argparse.Namespace) -> Figures:
    """Run all outages, one after the other."""
    figures: dict[str, float] = {"outages": options.outages}
    async with AsyncExitStack() as stack:
        port = await broker_port(stack, is_apache=options.apache)
        proxy = await stack.enter_async_context(TcpProxy(port))
        url = f"pulsar://127.0.0.1:{proxy.port}"
        members = [Member(f"member-{number}", url) for number in range(MEMBERS)]
        for member in members:
            await member.exchange.open()
            stack.push_async_callback(member.exchange.close)
        async with asyncio.TaskGroup() as tasks:
            working = [tasks.create_task(m.speak()) for m in members]
            working += [tasks.create_task(m.listen()) for m in members]
            await seconds_until_back(members)
            await asyncio.sleep(REST_S)
            figures |= {f"{name}_before": value for name, value in state().items()}
            backs = await all_outages(proxy, members, lengths_s(options), figures)
            figures |= {f"{name}_after": value for name, value in state().items()}
            for task in working:
                task.cancel()
    figures["longest_back_s"] = max(backs)
    figures["mean_back_s"] = round(sum(backs) / len(backs), 3)
    figures["attempts"] = sum(member.exchange.attempts for member in members)
    return figures


async def all_outages(
    proxy: TcpProxy, members: list[Member], lengths: list[float], figures: dict[str, float]
) -> list[float]:
    """How long it took each time; adds a figure for each outage."""
    backs = []
    for number, seconds in enumerate(lengths):
        kind = KINDS[number % len(KINDS)]
        await outage(proxy, kind, seconds)
        backs.append(round(await seconds_until_back(members), 3))
        figures[f"back_s_{number:02}_{kind}_{seconds:.0f}s"] = backs[-1]
        # Their descriptors are the proxy's, in this same process.
        await proxy.cut_stranded()
        await asyncio.sleep(REST_S)
    return backs


def measure(options: argparse.Namespace) -> Figures:
    """All figures."""
    logging.getLogger("rgd.pulsar").setLevel(logging.CRITICAL)
    return asyncio.run(measured(options))


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declare what only this script has."""
    parser.add_argument("--outages", type=int, default=4)
    parser.add_argument("--shortest-s", type=float, default=5)
    parser.add_argument("--longest-s", type=float, default=20)
    parser.add_argument("--apache", action="store_true", help="Apache Pulsar, not the embedded one")


if __name__ == "__main__":
    run(__doc__, measure, add_options=add_options)
