"""The three grounds on which the behaviour suite of the exchange stands, and how a test waits there.

A backend makes exchanges and policy stores that are not open yet, all on one fresh, empty topic and
table, and knows how to take its broker away and bring it back. Which ones a test runs on is in
conftest.py. A test waits for messages, changes or conditions, under TIMEOUT_S, and never for time.
"""

import asyncio
import contextlib
import os
import shutil
import signal
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol, TypeVar

import psutil
import pytest

from rgd.adapters.exchange.embedded import EmbeddedBroker
from rgd.adapters.exchange.embedded_folder import EmbeddedFolder
from rgd.adapters.exchange.pulsar import PulsarExchange, PulsarSettings
from rgd.adapters.exchange.pulsar_table import PulsarPolicyStore
from rgd.adapters.exchange.seal import SealSettings
from rgd.app.access import topic_of
from rgd.core.exchange.shards import WHOLE, Shard
from rgd.ports.exchange import Exchange, ExchangeDown, PolicyStore
from tests.support.exchanges import embedded_exchange
from tests.support.memory_bus import MemoryBus, MemoryExchange, MemoryPolicyStore
from tests.support.policy_tables import until
from tests.support.pulsar_operator import Operator, ensure_namespace
from tests.support.pulsar_standalone import PulsarStandalone

#: Far more than anything takes here; only a fault reaches it.
TIMEOUT_S = 60
#: A busy broker may take seconds for anything, and a session that does not hear itself for as long as a publish may
#: take is replaced, with what was under way.
PATIENT = PulsarSettings(open_timeout_s=30, sign_timeout_s=30, send_timeout_ms=30_000)
#: For tests that take the broker away, so that this is noticed soon.
IMPATIENT = PulsarSettings(open_timeout_s=10, send_timeout_ms=1000)
NAMESPACE = "public/rgd-contract"
QUEUE_MAX = 10_000
#: Turns of another thread, for `longest_standstill`: a sixth of a second at least.
STANDSTILL_MAX = 150

_T = TypeVar("_T")

MakeExchange = Callable[..., Exchange]
MakeStore = Callable[..., PolicyStore]


class Backend(Protocol):
    """One empty topic and one empty table."""

    def exchange(self, *, queue_max: int = QUEUE_MAX, shard: Shard = WHOLE) -> Exchange: ...

    def store(self) -> PolicyStore: ...

    async def wipe(self) -> None:
        """Put an empty table in place of the present one, under whoever has it open."""


class MemoryBackend:
    def __init__(self) -> None:
        self._bus = MemoryBus(lambda: time.time_ns() // 1_000_000)
        #: Each topic is a bus of its own.
        self._buses = {WHOLE: self._bus}

    def exchange(self, *, queue_max: int = QUEUE_MAX, shard: Shard = WHOLE) -> MemoryExchange:
        bus = self._buses.setdefault(shard, MemoryBus())
        return MemoryExchange(bus, queue_max=queue_max)

    def store(self) -> MemoryPolicyStore:
        return MemoryPolicyStore(self._bus)

    async def wipe(self) -> None:
        self._bus.wipe_table()


class PulsarBackend(ABC):
    """Topics of one test on a broker that speaks Pulsar."""

    def __init__(self, url: str, name: str, settings: PulsarSettings = PATIENT) -> None:
        self.url = url
        self.settings = settings
        self.usage = f"non-persistent://{NAMESPACE}/usage-{name}"
        self.policies = f"persistent://{NAMESPACE}/policies-{name}"

    def exchange(self, *, queue_max: int = QUEUE_MAX, shard: Shard = WHOLE) -> PulsarExchange:
        topic = self.usage if shard == WHOLE else topic_of(self.usage, shard)
        return PulsarExchange(self.url, topic, settings=self.settings, queue_max=queue_max)

    def store(self) -> PulsarPolicyStore:
        return PulsarPolicyStore(self.url, self.policies, settings=self.settings)

    @abstractmethod
    async def kill(self) -> None:
        """End the broker with SIGKILL."""

    @abstractmethod
    async def restart(self) -> None:
        """Bring it back on its port and its data, and wait until it serves."""

    @abstractmethod
    async def wipe(self) -> None:
        """Put an empty table in place of the present one, under whoever has it open."""


class EmbeddedBackend(PulsarBackend):
    """As daemons use it: every message is sealed."""

    def __init__(
        self, broker: EmbeddedBroker, folder: Path, name: str, settings: PulsarSettings
    ) -> None:
        seal = SealSettings(EmbeddedFolder(folder).secret, time.monotonic_ns)
        super().__init__(broker.url, name, replace(settings, seal=seal))
        self._broker = broker
        self._folder = folder

    @classmethod
    @contextlib.asynccontextmanager
    async def running(
        cls, folder: Path, name: str, settings: PulsarSettings = PATIENT
    ) -> AsyncIterator["EmbeddedBackend"]:
        """On a broker of its own, until the end."""
        async with embedded_exchange(folder) as broker:
            yield cls(broker, folder, name, settings)

    async def wipe(self) -> None:
        await self.kill()
        shutil.rmtree(self._folder / "broker.rocksdb")
        (self._folder / "broker.metadata.json").unlink()
        await self.restart()

    async def kill(self) -> None:
        assert self._broker.pid is not None
        os.kill(self._broker.pid, signal.SIGKILL)
        await until(lambda: self._broker.pid is None)

    async def restart(self) -> None:
        supervision = asyncio.create_task(self._broker.supervise())
        await until(lambda: self._broker.pid is not None)
        supervision.cancel()
        await asyncio.gather(supervision, return_exceptions=True)
        await self._broker.ensure()

    @contextlib.asynccontextmanager
    async def frozen(self) -> AsyncIterator[None]:
        """A broker that is there and answers nothing."""
        process = psutil.Process(self._broker.pid)
        process.suspend()
        await until(lambda: process.status() == psutil.STATUS_STOPPED)
        try:
            yield
        finally:
            process.resume()


class ApacheBackend(PulsarBackend):
    def __init__(self, apache: PulsarStandalone, name: str, settings: PulsarSettings) -> None:
        super().__init__(apache.service_url, name, settings)
        self.apache = apache

    @classmethod
    async def start(
        cls, apache: PulsarStandalone, name: str, settings: PulsarSettings = PATIENT
    ) -> "ApacheBackend":
        await ensure_namespace(apache.admin_url, NAMESPACE)
        return cls(apache, name, settings)

    async def wipe(self) -> None:
        """Delete the topic, as an operator can; whoever uses it makes a new one."""
        path = self.policies.replace("://", "/")
        await Operator(self.apache).call("DELETE", f"{path}?force=true")

    async def kill(self) -> None:
        await asyncio.to_thread(self.apache.kill)

    async def restart(self) -> None:
        """Start it again."""
        await self.apache.restart_registered()


def threads_of_clients() -> int:
    """The threads of this process but for those of pools, which are made when they are needed, up to a bound, and stay."""
    pools = ("rgd-pulsar-opening", "rgd-pulsar-closing", "asyncio_")
    pooled = sum(thread.name.startswith(pools) for thread in threading.enumerate())
    threads: int = psutil.Process().num_threads()
    return threads - pooled


async def begun(work: Coroutine[Any, Any, _T]) -> asyncio.Task[_T]:
    """A task that has come to where it waits: one turn of the loop takes it there, and no time."""
    task = asyncio.create_task(work)
    await asyncio.sleep(0)
    assert not task.done()
    return task


async def hear(exchange: Exchange, count: int) -> list[bytes]:
    """The next messages of a member, at least `count`."""
    heard: list[bytes] = []
    async with asyncio.timeout(TIMEOUT_S):
        while len(heard) < count:
            heard += await exchange.receive()
    return heard


async def learn(store: PolicyStore, count: int) -> list[tuple[str, bytes]]:
    """The next changes that a store tells, at least `count`."""
    learnt: list[tuple[str, bytes]] = []
    async with asyncio.timeout(TIMEOUT_S):
        while len(learnt) < count:
            learnt += await store.changes()
    return learnt


async def read(store: PolicyStore) -> dict[str, bytes]:
    """Open a store; the table that the records it read make."""
    return {key: value for key, value in dict(await store.open()).items() if value}


async def lost(store: PolicyStore, *, match: str | None = None) -> None:
    """Read a store's changes until it says that its table is lost."""
    async with asyncio.timeout(TIMEOUT_S):
        with pytest.raises(ExchangeDown, match=match):
            await _forever(store)


async def _forever(store: PolicyStore) -> None:
    while True:
        await store.changes()


async def open_all(members: Sequence[Exchange]) -> None:
    """Open all at once, as daemons that start together do."""
    async with asyncio.timeout(TIMEOUT_S), asyncio.TaskGroup() as group:
        for member in members:
            group.create_task(member.open())


async def longest_standstill(work: asyncio.Task[object]) -> int:
    """The most turns that another thread had between two turns of the event loop until the work was done.

    Turns and not seconds, because on a busy machine both wait for a processor alike. That thread asks for a turn
    every millisecond at most. The sleeps wait for nothing: they are the probes.
    """
    turns, is_over = 0, threading.Event()

    def count() -> None:
        nonlocal turns
        while not is_over.wait(0.001):
            turns += 1

    thread = threading.Thread(target=count)
    thread.start()
    longest = last = 0
    try:
        while not work.done():
            await asyncio.sleep(0.001)
            longest, last = max(longest, turns - last), turns
    finally:
        is_over.set()
        thread.join()
    return longest
