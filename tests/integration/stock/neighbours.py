"""Stock brokers and rgd daemons that share quotas, with load on both, for tests on a real Pulsar.

The law: what passed is counted where it was asked for, at the loads, and never taken from a metric. A wait is for
reports of the stock broker, because it changes its limits once between two of them.
Daemons are processes, as an operator starts them. Each producer has a client of its own: Pulsar pauses the whole
connection of one that it throttles.
"""

import asyncio
import sys
import time
from abc import ABC, abstractmethod
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import pulsar

from rgd.adapters.exchange.pulsar import PulsarExchange
from rgd.adapters.exchange.pulsar_log import client_log
from rgd.adapters.http.client import DaemonClient, DaemonRefused, DaemonUnreachable
from rgd.app.demo.cluster import Daemon
from rgd.core.exchange.dialects import STOCK_TOPIC
from rgd.wire.pulsar_usage import decode_stock_report
from tests.support.exchanges import opened
from tests.support.pulsar_operator import Operator
from tests.support.pulsar_standalone import PulsarStandalone

PERIOD_S: Final = 2
POLL_MS: Final = 1000
#: For a daemon to know a group that Pulsar has, and for a report that is due.
SOON_S: Final = 60.0
#: Work is offered this often.
TICK_S: Final = 0.1
#: For so long the test may stand still: loads and buckets make up for it.
STANDSTILL_S: Final = 1
#: Most messages of a producer under way: a throttled one offers no more.
PENDING_MAX: Final = 100
BODY: Final = bytes(100)


class Passed:
    """When work passed."""

    def __init__(self) -> None:
        self._times: list[float] = []

    def add(self, count: int = 1) -> None:
        """So much passed now; from any thread."""
        self._times += [time.monotonic()] * count

    def rate(self, periods: float, until: float | None = None) -> float:
        """Per second, in the last periods."""
        end = time.monotonic() if until is None else until
        span = periods * PERIOD_S
        return (bisect_left(self._times, end) - bisect_left(self._times, end - span)) / span


class Load(ABC):
    """Work that is offered at a rate, and what passed of it."""

    def __init__(self, wanted_per_s: float) -> None:
        self.wanted_per_s = wanted_per_s
        self.passed = Passed()
        self._owed = 0.0
        self.is_over = False

    async def run(self) -> None:
        """Offer work until it is over."""
        last = time.monotonic()
        while not self.is_over:
            await asyncio.sleep(TICK_S)
            now = time.monotonic()
            # A longer standstill of the test is no burst of demand.
            self._owed += self.wanted_per_s * min(now - last, STANDSTILL_S)
            last = now
            count, self._owed = int(self._owed), self._owed % 1
            if count:
                await self.offer(count)

    @abstractmethod
    async def offer(self, count: int) -> None:
        """Ask for so many messages now."""


class RgdLoad(Load):
    """Callers of one daemon."""

    def __init__(self, client: DaemonClient, namespace: str, wanted_per_s: float) -> None:
        super().__init__(wanted_per_s)
        self._client = client
        tenant, name = namespace.split("/")
        self._request = {"tenant": tenant, "namespace": name, "partial": True}

    async def offer(self, count: int) -> None:
        # A daemon that was killed answers nobody.
        with suppress(DaemonUnreachable):
            asked = {"messages": count, "bytes": count * len(BODY)}
            self.passed.add((await self._client.acquire(self._request | asked))["messages"])


class StockLoad(Load):
    """One producer at the stock broker."""

    def __init__(self, url: str, namespace: str, wanted_per_s: float) -> None:
        super().__init__(wanted_per_s)
        self._client = pulsar.Client(url, logger=client_log(), operation_timeout_seconds=30)
        self._producer = self._client.create_producer(
            f"persistent://{namespace}/load",
            batching_enabled=False,
            max_pending_messages=PENDING_MAX,
            block_if_queue_full=False,
            send_timeout_millis=0,
        )

    async def offer(self, count: int) -> None:
        with suppress(pulsar.ProducerQueueIsFull):
            for _ in range(count):
                self._producer.send_async(BODY, self._on_sent)

    def _on_sent(self, result: Any, _message_id: object) -> None:
        if result == pulsar.Result.Ok:
            self.passed.add()

    def close(self) -> None:
        """Leave; blocks, for a throttled producer until the broker reads again."""
        with suppress(pulsar.PulsarException):
            self._client.close()


class Neighbourhood:
    """One stock broker, some rgd daemons and groups of which both take part; an async context manager.

    Args:
        apache: a Pulsar with the transport, every `PERIOD_S`.
        folder: takes the daemons' logs.
        daemons: their names.
        settings: further ones of each daemon, as environment variables.
    """

    def __init__(
        self,
        apache: PulsarStandalone,
        folder: Path,
        daemons: Sequence[str],
        settings: Mapping[str, str] | None = None,
    ) -> None:
        self.apache = apache
        self.operator = Operator(apache)
        self._folder = folder
        environ = {
            "RGD_EXCHANGE__ADMIN_URL": apache.admin_url,
            "RGD_EXCHANGE__DIALECTS": "compact,pulsar",
            "RGD_EXCHANGE__PULSAR_PERIOD_S": str(PERIOD_S),
            "RGD_POLICIES__SOURCE": "pulsar-admin",
            "RGD_POLICIES__POLL_MS": str(POLL_MS),
            "RGD_SHARES__BURST_MS": str(STANDSTILL_S * 1000),
        } | dict(settings or {})
        self.daemons = {name: Daemon(name, folder, apache.service_url, environ) for name in daemons}
        self.clients: dict[str, DaemonClient] = {}
        self._topic = PulsarExchange(apache.service_url, STOCK_TOPIC)
        self._reported = asyncio.Condition()
        self._reports = 0
        self._stack = AsyncExitStack()
        self._loads: dict[str, Load] = {}
        self._tasks: list[asyncio.Task[None]] = []

    async def __aenter__(self) -> Self:
        async with AsyncExitStack() as stack:
            for daemon in self.daemons.values():
                stack.push_async_callback(daemon.stop)
                await daemon.start()
                client = DaemonClient(daemon.base)
                self.clients[daemon.name] = await stack.enter_async_context(client)
            await opened(self._topic.open)
            stack.push_async_callback(self._topic.close)
            self._stack = stack.pop_all()
        self._tasks.append(asyncio.create_task(self._count_reports()))
        self._tasks.append(asyncio.create_task(self._print_rates()))
        return self

    async def __aexit__(
        self,
        _type: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        for load in self._loads.values():
            load.is_over = True
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._stack.aclose()

    async def group(self, name: str, quota: float) -> str:
        """Make a group with a namespace of its own; the namespace's name."""
        namespace = f"{name}/neighbours"
        await self.operator.namespace(namespace)
        await self.operator.call("PUT", f"resourcegroups/{name}", {"publishRateInMsgs": quota})
        await self.operator.call("POST", f"namespaces/{namespace}/resourcegroup/{name}")
        return namespace

    async def rgd_load(self, daemon: str, namespace: str, wanted_per_s: float) -> RgdLoad:
        """Callers at a daemon that knows the group, at work."""
        # As a gateway would: before that the daemon refuses, or has nothing to refuse by.
        async with asyncio.timeout(SOON_S):
            while not await self._knows(daemon, namespace.partition("/")[0]):  # noqa: ASYNC110 -- nothing tells
                await asyncio.sleep(TICK_S)
        load = RgdLoad(self.clients[daemon], namespace, wanted_per_s)
        self._begin(f"{namespace} {daemon}", load)
        return load

    async def _knows(self, daemon: str, group: str) -> bool:
        try:
            return bool(await self.clients[daemon].group(group))
        except DaemonRefused:
            return False

    async def stock_load(self, namespace: str, wanted_per_s: float) -> StockLoad:
        """A producer at the stock broker, at work."""
        load = await asyncio.to_thread(StockLoad, self.apache.service_url, namespace, wanted_per_s)
        self._stack.push_async_callback(asyncio.to_thread, load.close)
        self._begin(f"{namespace} stock", load)
        return load

    def _begin(self, name: str, load: Load) -> None:
        self._loads[name] = load
        self._tasks.append(asyncio.create_task(load.run()))

    async def periods(self, count: int) -> None:
        """Wait for so many reports of the stock broker: it acts at the ends of its periods only."""
        until = self._reports + count
        async with asyncio.timeout(SOON_S + count * PERIOD_S), self._reported:
            await self._reported.wait_for(lambda: self._reports >= until)
        for task in self._tasks:
            if task.done():
                # A load that fails is no broker that gets nothing.
                task.result()

    async def _count_reports(self) -> None:
        while True:
            for payload in await self._topic.receive():
                if decode_stock_report(payload).broker == self.apache.service_url:
                    async with self._reported:
                        self._reports += 1
                        self._reported.notify_all()

    async def _print_rates(self) -> None:
        """Say what passed in each period, for whoever reads a failure."""
        while True:
            await self.periods(1)
            rates = (f"{name} {load.passed.rate(1):.1f}" for name, load in self._loads.items())
            sys.stdout.write(f"{time.monotonic():.0f} s: {', '.join(rates)}\n")
