"""A daemon that follows a real Pulsar's policies.

The daemon is the one that `rgd serve` builds, with an exchange in memory: what is watched here are
policies. `two_polls` is how a test waits: for whole polls that read everything, never for time.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from rgd.app.policies.source import OnSnapshot
from rgd.app.policies.stock import PulsarAdminPolicies
from rgd.config.settings import Settings
from rgd.core.buckets.decision import Request, TooLarge
from rgd.core.policies.names import namespace_of_topic
from rgd.core.units import Kind
from tests.support.memory_bus import MemoryBus, MemoryExchange
from tests.support.pulsar_standalone import PulsarStandalone
from tests.support.whole_daemon import RgdDaemon, build

TIMEOUT_S = 60
POLL_MS = 200
#: More than any quota lets pass: the answer names the limit that is in force.
TOO_MANY = 10**9
#: `shares.request_max_s`.
REQUEST_MAX_S = 10


class CountedPolicies(PulsarAdminPolicies):
    """The source itself, which tells when a poll is over."""

    #: By whether they read everything.
    polls: Counter[bool]
    polled: asyncio.Condition

    async def poll(self, on_snapshot: OnSnapshot) -> None:
        await super().poll(on_snapshot)
        async with self.polled:
            self.polls[self.trouble is None] += 1
            self.polled.notify_all()

    async def two_polls(self, *, are_whole: bool = True) -> None:
        """Wait for two polls to end: the first may have begun before what a test did just now."""
        until = self.polls[are_whole] + 2
        async with asyncio.timeout(TIMEOUT_S), self.polled:
            await self.polled.wait_for(lambda: self.polls[are_whole] >= until)


def counted(daemon: RgdDaemon) -> CountedPolicies:
    """A daemon's policies, counted from now on."""
    policies = daemon.parts.policies
    policies.__class__ = CountedPolicies
    assert isinstance(policies, CountedPolicies)
    policies.polls, policies.polled = Counter(), asyncio.Condition()
    return policies


class StockHouse:
    """One daemon and the questions that tests ask it."""

    def __init__(self, daemon: RgdDaemon) -> None:
        self.daemon = daemon
        self.policies = counted(daemon)
        self.two_polls = self.policies.two_polls

    async def until_ready(self) -> None:
        """Wait until the start is over: until then the limiter forgets now and then who asked."""
        while not self.daemon.health().ready:
            await self.two_polls()

    def limit(
        self,
        name: str,
        kind: Kind = Kind.PUBLISH,
        *,
        subscription: str | None = None,
        of: str = "messages",
    ) -> tuple[str, str | None, float] | None:
        """What limits a namespace or full topic first: level, group, units per second; None: nothing."""
        is_topic = "://" in name
        answer = self.daemon.acquire(
            Request(
                kind=kind,
                messages=TOO_MANY if of == "messages" else 0,
                bytes=TOO_MANY if of == "bytes" else 0,
                namespace=namespace_of_topic(name) if is_topic else name,
                topic=name if is_topic else None,
                subscription=subscription,
            )
        )
        if isinstance(answer, TooLarge):
            return answer.level.value, answer.group, answer.most / REQUEST_MAX_S
        return None

    def notes(self) -> list[str]:
        """What is degraded in the policies."""
        return [note for note in self.daemon.health().degraded if note.startswith("policies:")]


@asynccontextmanager
async def running_beside(
    apache: PulsarStandalone, folder: Path, name: str = "broker-1", **more: Mapping[str, Any]
) -> AsyncIterator[RgdDaemon]:
    """A daemon that runs, with short rounds.

    Args:
        apache: the Pulsar that it asks.
        folder: of the usage log.
        name: of its broker.
        more: settings, by section.
    """
    exchange = {"admin_url": apache.admin_url, "round_ms": 100, **more.pop("exchange", {})}
    sections = {"broker": {"name": name}, "exchange": exchange, "log": {"dir": folder}}
    daemon, _ = build(Settings.model_validate(sections | more), apache.service_url)
    daemon.parts = replace(daemon.parts, exchange=MemoryExchange(MemoryBus()))
    until, is_up = asyncio.Event(), asyncio.Event()
    try:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(daemon.run(until, on_up=is_up.set))
            try:
                await is_up.wait()
                yield daemon
            finally:
                until.set()
    finally:
        await daemon.close()


@asynccontextmanager
async def stock_house(
    apache: PulsarStandalone, folder: Path, groups: Path | None = None
) -> AsyncIterator[StockHouse]:
    """A daemon that runs."""
    policies = {"source": "pulsar-admin", "poll_ms": POLL_MS, "file": groups}
    async with running_beside(apache, folder, policies=policies) as daemon:
        yield StockHouse(daemon)
