"""A daemon is stopped, another one is started under its name, and the first one goes on: real processes.

What the loads are granted is counted here, at the loads. Not covered: cut-offs, partitions and chance,
which tests/simulation/test_zombies.py covers.
"""

import asyncio
import time
from contextlib import AsyncExitStack
from pathlib import Path

import psutil
import pytest

from rgd.adapters.http.client import DaemonClient
from rgd.app.demo.cluster import Daemon
from rgd.app.demo.load import Load
from rgd.app.demo.plan import NAMESPACE
from tests.support.exchanges import embedded_exchange

pytestmark = pytest.mark.e2e

QUOTA = 500
GROUPS = f"""\
groups: {{gold: {{publish: {{messages: {QUOTA}}}}}}}
attach: {{namespaces: {{{"/".join(NAMESPACE)}: gold}}}}
"""
#: The name is free after 8 s, and who yields ends after 10 s, in which it is asked what it says. A message may take four
#: seconds to come back: who waits longer has been cut off, and has no better claim to the name than one that was stopped.
ROUND_S = 2.0
ENVIRON = {
    "RGD_EXCHANGE__ROUND_MS": "2000",
    "RGD_EXCHANGE__SETTLE_MAX_MS": "2000",
    "RGD_EXCHANGE__YIELD_ROUNDS": "5",
}
EXPIRY_S = 3 * ROUND_S
SOON_S = 300.0
#: Two full shares for good would be 1.5 quotas. On a busy machine answers of before are counted late.
ADMITTED_MAX = 1.35


async def test_the_one_that_was_stopped_yields_says_so_and_ends(tmp_path: Path) -> None:
    (tmp_path / "second").mkdir()
    for folder in (tmp_path, tmp_path / "second"):
        (folder / "groups.yaml").write_text(GROUPS)
    async with AsyncExitStack() as stack:
        broker = await stack.enter_async_context(embedded_exchange(tmp_path / "exchange"))
        zombie = Daemon("broker-1", tmp_path, broker.url, ENVIRON)
        other = Daemon("broker-2", tmp_path, broker.url, ENVIRON)
        twin = Daemon("broker-1", tmp_path / "second", broker.url, ENVIRON)
        for daemon in (zombie, other, twin):
            stack.push_async_callback(daemon.stop)
        async with asyncio.timeout(SOON_S):
            loads = [await load_of(stack, daemon) for daemon in (zombie, other)]
            await until_both_have_half([await client_of(stack, d) for d in (zombie, other)])
            stopped = psutil.Process(zombie.pid)
            both = (stopped, *stopped.children())
            for process in both:
                process.suspend()
            await until_alone(await client_of(stack, other))
            loads.append(await load_of(stack, twin))
            await until_both_have_half([await client_of(stack, d) for d in (twin, other)])
            await until_no_newcomer(await client_of(stack, twin))
            resumed = time.monotonic()
            for process in both:
                process.resume()
            await until_yielded(await client_of(stack, zombie))
            assert await zombie.wait() == 1
            ended = time.monotonic()
            assert await (await client_of(stack, twin)).is_ready()
            brokers = await (await client_of(stack, other)).brokers()
            assert [view["broker"] for view in brokers] == ["broker-1", "broker-2"]
            for load in loads[1:]:
                await told_until(load, await client_of(stack, other), ended)
    assert ended - resumed > EXPIRY_S
    total = sum(admitted(load, resumed, ended) for load in loads)
    assert 0.3 <= total / (QUOTA * (ended - resumed)) <= ADMITTED_MAX
    said = (tmp_path / "broker-1.log").read_text()
    assert len([line for line in said.splitlines() if '"name yielded"' in line]) == 1
    assert len([line for line in said.splitlines() if line.startswith("rgd: another daemon")]) == 1
    assert "Traceback" not in said


async def client_of(stack: AsyncExitStack, daemon: Daemon) -> DaemonClient:
    """A client of a daemon that listens."""
    return await stack.enter_async_context(DaemonClient(daemon.base))


async def load_of(stack: AsyncExitStack, daemon: Daemon) -> Load:
    """Start a daemon, and ask it for more than the whole quota."""
    await daemon.start()
    load = Load(seed=0)
    load.start(daemon.base)
    stack.push_async_callback(load.stop)
    load.wanted_per_s = 2 * QUOTA
    return load


def admitted(load: Load, begin: float, end: float) -> float:
    """Messages that a load counted as granted between two moments."""
    return load.tally.rates(begin * 1000, end * 1000)[1] * (end - begin)


async def told_until(load: Load, client: DaemonClient, moment: float) -> None:
    """Return once a load has counted what it did until then."""
    while not load.tally.rates(moment * 1000, (moment + 1) * 1000)[0]:
        await client.is_ready()


async def until_both_have_half(clients: list[DaemonClient]) -> None:
    """Return once the daemons of both brokers have half of the quota each."""
    while True:
        views = [(await client.group("gold"))["publish"] for client in clients]
        shares = [view["share"]["messages"] for view in views]
        if all(QUOTA * 0.4 < share < QUOTA * 0.6 for share in shares):
            return


async def until_alone(client: DaemonClient) -> None:
    """Return once the others have expired."""
    while len(await client.brokers()) > 1:
        pass


async def until_no_newcomer(client: DaemonClient) -> None:
    """Return once it is so old that it need not go if its name turns out to be taken."""
    while min(view["since_s"] for view in await client.brokers() if view["self"]) < 5 * ROUND_S:
        pass


async def until_yielded(client: DaemonClient) -> None:
    """Return once it says that it is not ready, and why."""
    while True:
        view = await client.readiness()
        if any(
            "another daemon speaks for broker 'broker-1'" in why for why in view.get("degraded", ())
        ):
            assert not view["ready"]
            return
