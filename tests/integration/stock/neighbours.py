"""Stock brokers and rgd daemons that share quotas, with load on both, for tests on a real Pulsar.

The law: what passed is counted where it was asked for, at the loads, and never taken from a metric. A wait is for
whole periods of the stock brokers, because they change their limits at no other time.
Daemons are processes, as an operator starts them. Each producer has a client of its own: Pulsar pauses the whole
connection of one that it throttles.
"""

import asyncio
import time
from bisect import bisect_left
from collections.abc import Sequence
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import pulsar

from rgd.adapters.exchange.pulsar_log import client_log
from rgd.adapters.http.client import DaemonClient
from rgd.app.demo.cluster import Daemon
from tests.integration.stock.stock_house import Operator
from tests.support.pulsar_standalone import PulsarStandalone

PERIOD_S: Final = 5
POLL_MS: Final = 1000
#: Work is offered this often.
TICK_S: Final = 0.05
#: Most messages of a producer under way: a throttled one offers no more.
PENDING_MAX: Final = 20
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


class Load:
    """Work that is offered at a rate, and what passed of it."""

    def __init__(self, wanted_per_s: float) -> None:
        self.wanted_per_s = wanted_per_s
        self.passed = Passed()
        self._owed = 0.0

    async def run(self) -> None:
        """Offer work until cancelled."""
        last = time.monotonic()
        while True:
            await asyncio.sleep(TICK_S)
            now = time.monotonic()
            # A standstill of the test is no burst of demand.
            self._owed += self.wanted_per_s * min(now - last, 4 * TICK_S)
            last = now
            count, self._owed = int(self._owed), self._owed % 1
            if count:
                await self.offer(count)

    async def offer(self, count: int) -> None:
        """Ask for so many messages now."""
        raise NotImplementedError


class RgdLoad(Load):
    """Callers of one daemon."""

    def __init__(self, client: DaemonClient, namespace: str, wanted_per_s: float) -> None:
        super().__init__(wanted_per_s)
        self._client = client
        tenant, name = namespace.split("/")
        self._request = {"tenant": tenant, "namespace": name, "messages": 1, "bytes": len(BODY)}

    async def offer(self, count: int) -> None:
        # A daemon that was killed answers nobody.
        with suppress(OSError, Exception):
            answers = await self._client.acquire_all([self._request] * count)
            self.passed.add(sum(answer["granted"] for answer in answers))


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
        """Leave; a throttled producer may not get an answer."""
        with suppress(pulsar.PulsarException):
            self._client.shutdown()


class Neighbourhood:
    """One stock broker, some rgd daemons and groups of which both take part; an async context manager.

    Args:
        apache: a Pulsar with the transport, every `PERIOD_S`.
        folder: takes the daemons' logs.
        daemons: their names.
    """

    def __init__(self, apache: PulsarStandalone, folder: Path, daemons: Sequence[str]) -> None:
        self.apache = apache
        self.operator = Operator(apache)
        self._folder = folder
        environ = {
            "RGD_EXCHANGE__ADMIN_URL": apache.admin_url,
            "RGD_EXCHANGE__DIALECTS": "compact,pulsar",
            "RGD_EXCHANGE__PULSAR_PERIOD_S": str(PERIOD_S),
            "RGD_POLICIES__SOURCE": "pulsar-admin",
            "RGD_POLICIES__POLL_MS": str(POLL_MS),
        }
        self.daemons = {name: Daemon(name, folder, apache.service_url, environ) for name in daemons}
        self.clients: dict[str, DaemonClient] = {}
        self._stack = AsyncExitStack()
        self._tasks: list[asyncio.Task[None]] = []

    async def __aenter__(self) -> Self:
        async with AsyncExitStack() as stack:
            for daemon in self.daemons.values():
                stack.push_async_callback(daemon.stop)
                await daemon.start()
                client = DaemonClient(daemon.base)
                self.clients[daemon.name] = await stack.enter_async_context(client)
            stack.push_async_callback(self._end_loads)
            self._stack = stack.pop_all()
        return self

    async def __aexit__(
        self,
        _type: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        await self._stack.aclose()

    async def group(self, name: str, quota: float) -> str:
        """Make a group with a namespace of its own; the namespace's name."""
        namespace = f"{name}/neighbours"
        await self.operator.namespace(namespace)
        await self.operator.call("PUT", f"resourcegroups/{name}", {"publishRateInMsgs": quota})
        await self.operator.call("POST", f"namespaces/{namespace}/resourcegroup/{name}")
        return namespace

    async def rgd_load(self, daemon: str, namespace: str, wanted_per_s: float) -> RgdLoad:
        """Callers at a daemon, at work."""
        load = RgdLoad(self.clients[daemon], namespace, wanted_per_s)
        self._tasks.append(asyncio.create_task(load.run()))
        return load

    async def stock_load(self, namespace: str, wanted_per_s: float) -> StockLoad:
        """A producer at the stock broker, at work."""
        load = await asyncio.to_thread(StockLoad, self.apache.service_url, namespace, wanted_per_s)
        self._stack.callback(load.close)
        self._tasks.append(asyncio.create_task(load.run()))
        return load

    async def periods(self, count: float) -> None:
        """Let so many periods of the stock broker pass: it acts at their ends only."""
        await asyncio.sleep(count * PERIOD_S)

    async def _end_loads(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
