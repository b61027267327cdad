"""Daemons under load whose Apache Pulsar is killed and started again, and what that costs.

Law: whatever happens, no daemon outlives `cluster_on`.
How: three `rgd serve` share one quota; two of them are asked for more than all of it. While Pulsar is away,
the demand moves from one to another, so that after its return there is something to agree on. A daemon keeps its share
while it is cut off (`on_isolation: hold`). Judged by the daemons' own shares, rounds counted from the first moment at which
a plain client can publish and read on their topic: Pulsar is healthy up to half a second before that.
"""

import asyncio
import contextlib
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from operator import sub
from pathlib import Path
from typing import Any

import psutil
import pulsar

from rgd.adapters.exchange.pulsar import USAGE_TOPIC
from rgd.adapters.exchange.pulsar_client import PulsarSettings, connect
from rgd.adapters.http.client import DaemonClient, DaemonRefused, DaemonUnreachable
from rgd.app.demo.cluster import Daemon

NAMES = ("broker-1", "broker-2", "broker-3")
QUOTA = 300
ROUND_S = 1.0
#: Share of one of two busy daemons may differ from its part by so much of it.
NEAR = 0.05
TIMEOUT_S = 120.0
#: By how much of the quota a share may move within so many rounds and still be at its end.
STEADY = 0.005
STEADY_ROUNDS = 2
#: Each busy daemon is asked for 50 messages this often.
ASK_S = 0.05
_LOOK_S = 0.02
_AGAIN_S = 0.1
_READ_MS = 2000
_ASKED = [{"tenant": "acme", "namespace": "orders", "attempt": 1}] * 50
_GROUPS = f"""\
groups:
  gold: {{publish: {{messages: {QUOTA}}}}}
attach:
  namespaces: {{acme/orders: gold}}
"""
_SETTINGS = {
    "RGD_EXCHANGE__ROUND_MS": str(round(ROUND_S * 1000)),
    "RGD_EXCHANGE__ON_ISOLATION": "hold",
}


@dataclass(frozen=True)
class Outage:
    """One kill."""

    #: The largest change of a share while Pulsar was away, as a part of the quota.
    moved: float
    #: From Pulsar's return until the shares were those of the new demand.
    rounds_until_fair: float


@dataclass(frozen=True)
class Held:
    """What all daemons hold together."""

    descriptors: int
    threads: int
    memory_mb: float


class Cluster:
    """The running daemons, and the load on them."""

    def __init__(self, daemons: Sequence[Daemon], clients: Sequence[DaemonClient]) -> None:
        self._daemons = daemons
        self._clients = clients
        #: Whether the load ends.
        self.is_done = False
        #: Pairs of busy daemons, the present one first.
        self._pairs = deque([(0, 1), (0, 2), (1, 2)])

    async def load(self, place: int) -> None:
        """Ask one daemon for more than the quota while it is busy, until all is done."""
        while not self.is_done:
            if place in self._pairs[0]:
                with contextlib.suppress(DaemonRefused, DaemonUnreachable):
                    await self._clients[place].acquire_all(_ASKED)
            await asyncio.sleep(ASK_S)

    async def outage(
        self, kill: Callable[[], Awaitable[None]], restart: Callable[[], Awaitable[None]]
    ) -> Outage:
        """Take Pulsar away until every daemon has noticed, and bring it back to other demand.

        Args:
            kill: takes it away.
            restart: returns once Pulsar serves clients again.
        """
        before = await self._steady_shares()
        await kill()
        moved = 0.0
        while not all(view["state"] == "hold" for view in await self._views()):
            moved = max(moved, _distance(before, await self._shares()))
        moved = max(moved, _distance(before, await self._shares()))
        self._pairs.rotate()
        await restart()
        returned_s = asyncio.get_running_loop().time()
        await self.until_fair()
        back_s = asyncio.get_running_loop().time() - returned_s
        return Outage(moved, back_s / ROUND_S)

    async def until_fair(self) -> None:
        """Wait until each busy daemon has half of the quota."""
        async with asyncio.timeout(TIMEOUT_S):
            while not self._is_fair(await self._views()):  # noqa: ASYNC110 - another process
                await asyncio.sleep(_LOOK_S)

    async def _steady_shares(self) -> list[float]:
        """Wait until the fair shares have not moved for some rounds of each daemon; then they are at their end.

        Fair is already who is near it, and who moves on while Pulsar goes away would be taken for one who moved
        because of that.
        """
        steady, since = await self._shares(), await self._rounds()
        async with asyncio.timeout(TIMEOUT_S):
            while min(map(sub, await self._rounds(), since)) < STEADY_ROUNDS:
                await asyncio.sleep(_LOOK_S)
                views = await self._views()
                now = [_share(view) for view in views]
                if not self._is_fair(views) or _distance(steady, now) > STEADY:
                    steady, since = now, await self._rounds()
        return steady

    async def _rounds(self) -> list[int]:
        """The number of each daemon's last report."""
        views = [await client.brokers() for client in self._clients]
        return [next(int(one["sequence"]) for one in view if one["self"]) for view in views]

    def held(self) -> Held:
        """What the daemons' processes hold now."""
        gates = [psutil.Process(daemon.pid) for daemon in self._daemons]
        processes = [*gates, *(plane for gate in gates for plane in gate.children())]
        return Held(
            sum(process.num_fds() for process in processes),
            sum(process.num_threads() for process in processes),
            round(sum(process.memory_info().rss for process in processes) / 1e6, 1),
        )

    async def until_held(self, descriptors: int) -> None:
        """Wait until all daemons together hold at most so many descriptors."""
        async with asyncio.timeout(TIMEOUT_S):
            while self.held().descriptors > descriptors:  # noqa: ASYNC110 - other processes
                await asyncio.sleep(_LOOK_S)

    def _is_fair(self, views: Sequence[Mapping[str, Any]]) -> bool:
        part = QUOTA / len(self._pairs[0])
        near = [abs(_share(views[place]) - part) < NEAR * part for place in self._pairs[0]]
        return all(near) and all(view["state"] == "live" for view in views)

    async def _views(self) -> list[dict[str, Any]]:
        return [await client.group("gold") for client in self._clients]

    async def _shares(self) -> list[float]:
        return [_share(view) for view in await self._views()]


async def until_served(url: str, settings: PulsarSettings) -> None:
    """Wait until a plain client can publish on the daemons' topic and read that back."""
    async with asyncio.timeout(TIMEOUT_S):
        while not await asyncio.to_thread(_is_served, url, settings):  # noqa: ASYNC110 -- nothing tells
            await asyncio.sleep(_AGAIN_S)


def _is_served(url: str, settings: PulsarSettings) -> bool:
    client = connect(url, settings)
    try:
        reader = client.create_reader(USAGE_TOPIC, pulsar.MessageId.latest)
        # The daemons drop what is no message of theirs.
        client.create_producer(USAGE_TOPIC, send_timeout_millis=_READ_MS).send(b"?")
        while reader.read_next(_READ_MS).data() != b"?":
            pass
    except pulsar.PulsarException:
        return False
    finally:
        with contextlib.suppress(pulsar.PulsarException):
            client.close()
    return True


def _share(view: Mapping[str, Any]) -> float:
    return float(view["publish"]["share"]["messages"])


def _distance(before: Sequence[float], now: Sequence[float]) -> float:
    return max(abs(one - other) for one, other in zip(before, now, strict=True)) / QUOTA


def _write_groups(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "groups.yaml").write_text(_GROUPS)


@contextlib.asynccontextmanager
async def cluster_on(
    url: str, folder: Path, settings: Mapping[str, str] | None = None
) -> AsyncIterator[Cluster]:
    """Three daemons on a Pulsar, under load and fair.

    Args:
        url: Pulsar's service URL.
        folder: for files and logs.
        settings: further ones, as environment variables.
    """
    _write_groups(folder)
    environ = _SETTINGS | dict(settings or {})
    daemons = [Daemon(name, folder, url, environ) for name in NAMES]
    async with contextlib.AsyncExitStack() as stack:
        for daemon in daemons:
            stack.push_async_callback(daemon.stop)
            await daemon.start()
        clients = [await stack.enter_async_context(DaemonClient(one.base)) for one in daemons]
        cluster = Cluster(daemons, clients)
        async with asyncio.TaskGroup() as tasks:
            for place in range(len(NAMES)):
                tasks.create_task(cluster.load(place))
            await cluster.until_fair()
            yield cluster
            cluster.is_done = True
