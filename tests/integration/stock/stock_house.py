"""A daemon that follows a real Pulsar's policies, and a Pulsar operator beside it.

The daemon is the one that `rgd serve` builds, with an exchange in memory: what is watched here are
policies. `two_polls` is how a test waits: for whole polls, never for time.
"""

import asyncio
import json
import urllib.error
import urllib.request
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from http import HTTPStatus
from pathlib import Path
from typing import Any
from urllib.parse import urljoin

from rgd.adapters.exchange.memory import MemoryBus, MemoryExchange
from rgd.app.daemon import RgdDaemon
from rgd.app.policies.source import OnSnapshot
from rgd.app.policies.stock import PulsarAdminPolicies
from rgd.app.wiring import build
from rgd.config.settings import Settings
from rgd.core.buckets.decision import Request, TooLarge
from rgd.core.policies.names import namespace_of_topic
from rgd.core.units import Kind
from tests.support.pulsar_standalone import PulsarStandalone

TIMEOUT_S = 60
#: Of one call; asked again, Pulsar answers.
CALL_TIMEOUT_S = 15
#: Pause before Pulsar is asked again.
REPEAT_S = 0.1
POLL_MS = 200
#: More than any quota lets pass: the answer names the limit that is in force.
TOO_MANY = 10**9
#: `shares.request_max_s`.
REQUEST_MAX_S = 10


class CountedPolicies(PulsarAdminPolicies):
    """The source itself, which tells when a poll is over."""

    polls = 0
    polled: asyncio.Condition

    async def poll(self, on_snapshot: OnSnapshot) -> None:
        await super().poll(on_snapshot)
        async with self.polled:
            self.polls += 1
            self.polled.notify_all()

    async def two_polls(self) -> None:
        """Wait for two polls to end: the first may have begun before what a test did just now."""
        until = self.polls + 2
        async with asyncio.timeout(TIMEOUT_S), self.polled:
            await self.polled.wait_for(lambda: self.polls >= until)


class StockHouse:
    """One daemon and the questions that tests ask it."""

    def __init__(self, daemon: RgdDaemon) -> None:
        self.daemon = daemon
        policies = daemon.parts.policies
        assert isinstance(policies, PulsarAdminPolicies)
        policies.__class__ = CountedPolicies
        assert isinstance(policies, CountedPolicies)
        policies.polled = asyncio.Condition()
        self.policies = policies

    async def two_polls(self) -> None:
        """Wait for two polls to end."""
        await self.policies.two_polls()

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
async def stock_house(
    apache: PulsarStandalone, folder: Path, groups: Path | None = None
) -> AsyncIterator[StockHouse]:
    """A daemon that runs."""
    settings = Settings.from_layers(
        {
            "broker": {"name": "broker-1"},
            "exchange": {"admin_url": apache.admin_url, "round_ms": 100},
            "policies": {"source": "pulsar-admin", "poll_ms": POLL_MS, "file": groups},
            "log": {"dir": folder},
        }
    )
    daemon, _ = build(settings, apache.service_url)
    daemon.parts = replace(daemon.parts, exchange=MemoryExchange(MemoryBus()))
    house, until, is_up = StockHouse(daemon), asyncio.Event(), asyncio.Event()
    try:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(daemon.run(until, on_up=is_up.set))
            try:
                await is_up.wait()
                yield house
            finally:
                until.set()
    finally:
        await daemon.close()


def is_to_be_repeated(error: urllib.error.HTTPError) -> bool:
    """Whether a bundle is between two brokers, or its new owner is not there yet: Pulsar says itself to ask again."""
    said = error.read()
    return b"redo the lookup" in said or error.code == HTTPStatus.SERVICE_UNAVAILABLE


def is_in_force(found: bytes, body: dict[str, int] | None) -> bool:
    """Whether Pulsar has this policy, or none."""
    policy = json.loads(found or b"null")
    if body is None or policy is None:
        return policy is body
    return bool(body.items() <= policy.items())


class Operator:
    """Changes a Pulsar over REST, as pulsar-admin does.

    Args:
        apache: the cluster's first broker.
        further: the admin URLs of its other brokers. A broker never answers a question about a bundle that gets its
            owner while it looks the owner up; then the next broker is asked.
    """

    def __init__(self, apache: PulsarStandalone, *further: str) -> None:
        self._brokers = deque([apache.admin_url, *further])

    @property
    def _url(self) -> str:
        return f"{self._brokers[0]}/admin/v2/"

    async def call(self, method: str, path: str, body: Any = None) -> None:
        """One change; fails the test if Pulsar refuses it."""
        data = None if body is None else json.dumps(body).encode()
        headers = {"Content-Type": "application/json"}
        is_repeated = False
        after_all = HTTPStatus.NOT_FOUND if method == "DELETE" else HTTPStatus.CONFLICT

        def is_done(url: str) -> bool:
            request = urllib.request.Request(url, method=method, data=data, headers=headers)
            try:
                with urllib.request.urlopen(request, timeout=CALL_TIMEOUT_S):
                    return True
            except urllib.error.HTTPError as error:
                # urllib follows redirects of reads only.
                if error.code == HTTPStatus.TEMPORARY_REDIRECT:
                    return is_done(error.headers["Location"])
                if is_to_be_repeated(error):
                    return False
                # What it did not answer in time it may have done.
                if is_repeated and error.code == after_all:
                    return True
                raise

        def is_done_in_time() -> bool:
            nonlocal is_repeated
            try:
                return is_done(self._url + path)
            except TimeoutError:
                is_repeated = True
                self._brokers.rotate()
                return False

        async with asyncio.timeout(TIMEOUT_S):
            # Pulsar needs the processor for what it is asked again for.
            while not await asyncio.to_thread(is_done_in_time):  # noqa: ASYNC110 - another process
                await asyncio.sleep(REPEAT_S)

    async def answer(self, path: str) -> bytes:
        """What Pulsar answers to a path below /admin/v2/, or a whole URL; fails the test if it refuses."""

        def ask() -> bytes | None:
            try:
                with urllib.request.urlopen(
                    urljoin(self._url, path), timeout=CALL_TIMEOUT_S
                ) as said:
                    return bytes(said.read())
            except urllib.error.HTTPError as error:
                if is_to_be_repeated(error):
                    return None
                raise
            except TimeoutError:
                self._brokers.rotate()
                return None
            except urllib.error.URLError as error:
                # It was sent on to a broker that has just ended.
                if isinstance(error.reason, ConnectionRefusedError):
                    return None
                raise

        async with asyncio.timeout(TIMEOUT_S):
            while (found := await asyncio.to_thread(ask)) is None:  # noqa: ASYNC110 - another process
                await asyncio.sleep(REPEAT_S)
        return found

    async def policy(self, path: str, body: dict[str, int] | None) -> None:
        """Set a policy of a topic, or delete it.

        Pulsar writes it to a topic that it reads itself, so it answers before the policy is in force.
        """
        await self.call("DELETE" if body is None else "POST", path, body)
        async with asyncio.timeout(TIMEOUT_S):
            while not is_in_force(await self.answer(path), body):
                pass

    async def namespace(self, name: str) -> None:
        """A namespace, with its tenant."""
        tenant = name.partition("/")[0]
        await self.call("PUT", f"tenants/{tenant}", {"allowedClusters": ["standalone"]})
        await self.call("PUT", f"namespaces/{name}", {})

    async def topic(self, full: str, subscription: str) -> None:
        """A topic that stays, because it has a subscription."""
        path = full.replace("://", "/")
        await self.call("PUT", path)
        await self.call("PUT", f"{path}/subscription/{subscription}", "latest")
