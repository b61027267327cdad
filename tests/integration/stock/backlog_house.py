"""Real backlogs on a real Pulsar, and a daemon that polls them through a proxy that blanks Pulsar's answers.

The daemon is the one that `rgd serve` builds, with an exchange in memory. Messages have the publish times
that a test says: they are sent frame by frame, because no client lets anybody choose them.
`Polled.polls` is how a test waits: for whole polls, never for time.
"""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable, Collection, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Self

import pulsar
from aiohttp import ClientSession, web
from aiohttp.test_utils import TestServer

from rgd.adapters.exchange.pulsar_log import client_log
from rgd.app.backlog_polling import BacklogPoller
from rgd.app.backlogs import Backlogs
from rgd.app.policies.stock import PulsarAdminPolicies
from tests.integration.stock.stock_house import TIMEOUT_S, counted, running_beside
from tests.support.pulsar_operator import Operator
from tests.support.pulsar_standalone import PulsarStandalone
from tests.support.raw_pulsar import RawProducer, message
from tests.support.whole_daemon import RgdDaemon

POLL_MS = 200
#: Payload of each message.
PAYLOAD = b"x" * 100

#: What Pulsar says of backlogs itself, in `stats` and elsewhere. The poller must not need any of it.
BLANKED = frozenset(
    {
        "backlogQuotaLimitSize",
        "backlogQuotaLimitTime",
        "oldestBacklogMessageAgeSeconds",
        "oldestBacklogMessageSubscriptionName",
        "backlogSize",
        "msgBacklog",
        "msgBacklogNoDelayed",
        "earliestMsgPublishTimeInBacklog",
        "earliestMsgPublishTimeInBacklogs",
    }
)


class BlankingProxy:
    """Passes calls of the admin API on, and removes what Pulsar says of backlogs from every answer."""

    def __init__(self, apache: PulsarStandalone) -> None:
        self._to = apache.admin_url
        #: Methods and paths, in order.
        self.calls: list[tuple[str, str]] = []
        #: Calls wait here while it is cleared.
        self.gate = asyncio.Event()
        self.gate.set()
        self.url = ""

    async def __aenter__(self) -> Self:
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", self._pass_on)
        self._session = ClientSession()
        self._server = TestServer(app)
        await self._server.start_server(shutdown_timeout=0.1)
        self.url = f"http://127.0.0.1:{self._server.port}"
        return self

    async def __aexit__(self, *_exception: object) -> None:
        await self._session.close()
        await self._server.close()

    async def _pass_on(self, request: web.Request) -> web.StreamResponse:
        self.calls.append((request.method, request.raw_path))
        await self.gate.wait()
        headers = {"Content-Type": request.headers.get("Content-Type", "application/json")}
        async with self._session.request(
            request.method,
            self._to + request.raw_path,
            data=await request.read(),
            headers=headers,
            allow_redirects=False,
        ) as answer:
            body = await answer.read()
            kept = {
                name: value
                for name, value in answer.headers.items()
                if name.startswith("X-Pulsar") or name in {"Content-Type", "Location"}
            }
            return web.Response(status=answer.status, headers=kept, body=blanked(body))


def blanked(body: bytes) -> bytes:
    """JSON without the fields of `BLANKED`; anything else as it is."""
    try:
        return json.dumps(_without(json.loads(body))).encode()
    except ValueError:
        return body


def _without(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without(inner) for name, inner in value.items() if name not in BLANKED}
    return [_without(inner) for inner in value] if isinstance(value, list) else value


class Topics(Operator):
    """Makes backlogs: publishes, acknowledges, closes ledgers, and asks Pulsar what it says."""

    def __init__(self, apache: PulsarStandalone, *further: str) -> None:
        super().__init__(apache, *further)
        self.apache = apache
        #: Consumers and readers that stay connected.
        self.kept: list[pulsar.Consumer | pulsar.Reader] = []

    async def publish(self, topic: str, ages_s: Sequence[float]) -> None:
        """Publish messages that are as old as this, each an entry."""
        now_ms = round(time.time() * 1000)
        about = (
            message((1, b"raw"), (2, at), (3, now_ms - round(age_s * 1000)))
            for at, age_s in enumerate(ages_s)
        )
        async with RawProducer(self.apache.ports.service, topic) as producer:
            await producer.send((one, PAYLOAD) for one in about)
            assert (producer.taken, producer.refused) == (len(ages_s), 0)

    async def publish_batches(self, topic: str, batches: int, size: int) -> None:
        """Publish batches of messages now, each an entry."""

        def publish() -> None:
            client = pulsar.Client(self.apache.service_url, logger=client_log())
            producer = client.create_producer(
                topic,
                batching_enabled=True,
                batching_max_messages=size,
                batching_max_publish_delay_ms=60_000,
            )
            for _ in range(batches):
                for _ in range(size):
                    producer.send_async(PAYLOAD, None)
                producer.flush()
            client.close()

        await asyncio.to_thread(publish)

    async def subscribe(self, topic: str, *names: str) -> None:
        """Subscriptions at the beginning of a topic."""
        path = topic.replace("://", "/")
        earliest = {"ledgerId": -1, "entryId": -1, "partitionIndex": -1}
        for name in names:
            await self.call("PUT", f"{path}/subscription/{name}", earliest)

    async def acknowledge(self, topic: str, subscription: str, which: Collection[int]) -> None:
        """Receive messages until all of these (counted from the next one) are there, and acknowledge them."""

        def consume() -> None:
            client = pulsar.Client(self.apache.service_url, logger=client_log())
            # Exclusive: Pulsar's dispatcher of shared subscriptions may stall for ever after an unload
            # (apache/pulsar#26454).
            consumer = client.subscribe(topic, subscription)
            for at in range(max(which) + 1):
                received = consumer.receive(TIMEOUT_S * 1000)
                if at in which:
                    consumer.acknowledge(received)
            consumer.close()
            client.close()

        await asyncio.to_thread(consume)

    async def consumer(self, topic: str, subscription: str) -> pulsar.Client:
        """A consumer that receives nothing, connected until its client is closed."""

        def connect() -> pulsar.Client:
            client = pulsar.Client(self.apache.service_url, logger=client_log())
            shared = pulsar.ConsumerType.Shared
            self.kept.append(client.subscribe(topic, subscription, consumer_type=shared))
            return client

        return await asyncio.to_thread(connect)

    async def read(self, topic: str) -> pulsar.Client:
        """A reader at the beginning, which Pulsar forgets with its client."""

        def read() -> pulsar.Client:
            client = pulsar.Client(self.apache.service_url, logger=client_log())
            self.kept.append(client.create_reader(topic, pulsar.MessageId.earliest))
            return client

        return await asyncio.to_thread(read)

    async def close_ledger(self, topic: str) -> None:
        """Have the ledger that is written closed: what follows is written to another one."""
        await self.call("PUT", f"{topic.replace('://', '/')}/unload")
        await self.internal(topic)

    async def text(self, path: str) -> str:
        """What Pulsar answers at a path that is not below `/admin/v2/`."""
        return str(await self.answer(f"/{path}"), "utf-8")

    async def stats(self, topic: str) -> dict[str, Any]:
        """Pulsar's stats of a topic, partitioned or not."""
        partitions = await self.get(f"{topic.replace('://', '/')}/partitions")
        which = "partitioned-stats" if partitions["partitions"] else "stats"
        found: dict[str, Any] = await self.get(f"{topic.replace('://', '/')}/{which}")
        return found

    async def internal(self, topic: str) -> dict[str, Any]:
        """Ledgers and cursors of a topic."""
        found: dict[str, Any] = await self.get(f"{topic.replace('://', '/')}/internalStats")
        return found

    async def mark(self, topic: str, subscription: str) -> str:
        """A subscription's mark-delete position."""
        found: str = (await self.internal(topic))["cursors"][subscription]["markDeletePosition"]
        return found


class CountedPoller(BacklogPoller):
    """The poller itself, which tells when a poll is over."""

    polls = 0
    polled: asyncio.Condition
    on_polled: Callable[[], None] = staticmethod(lambda: None)

    async def poll(self, door: Backlogs) -> None:
        await super().poll(door)
        self.on_polled()
        async with self.polled:
            self.polls += 1
            self.polled.notify_all()


class Polled:
    """One daemon and what it knows of backlogs."""

    def __init__(self, daemon: RgdDaemon) -> None:
        self.daemon = daemon
        poller = daemon.parts.poller
        assert poller is not None
        poller.__class__ = CountedPoller
        assert isinstance(poller, CountedPoller)
        poller.polled = asyncio.Condition()
        self.poller = poller
        is_followed = isinstance(daemon.parts.policies, PulsarAdminPolicies)
        self.policies = counted(daemon) if is_followed else None

    async def polls(self) -> None:
        """Wait for three polls to end.

        The first may have begun before what a test did just now, and a topic that the second finds is
        reported by the third.
        """
        until = self.poller.polls + 3
        async with asyncio.timeout(TIMEOUT_S), self.poller.polled:
            await self.poller.polled.wait_for(lambda: self.poller.polls >= until)

    async def check(self) -> None:
        """Have all backlogs checked with what is true now."""
        await self.polls()
        if self.policies is not None:
            # The quotas of topics that were polled just now.
            await self.policies.two_polls()
            await self.polls()
        await self.daemon.backlogs.check()

    def topics(self, namespace: str) -> set[str]:
        """The known topics of a namespace, by their last names."""
        prefix = f"persistent://{namespace}/"
        names = self.daemon.core.backlogs.names()
        return {name.removeprefix(prefix) for name in names if name.startswith(prefix)}

    def figures(self) -> dict[tuple[str, ...], float]:
        """The poller's figures by name and labels."""
        return {(one.name, *one.labels): one.value for one in self.poller.samples()}


@asynccontextmanager
async def polled_by(
    apache: PulsarStandalone,
    folder: Path,
    *,
    name: str = "broker-1",
    address: str | None = None,
    admin_url: str | None = None,
    groups: Path | None = None,
    **backlog: Any,
) -> AsyncIterator[Polled]:
    """A daemon that runs beside the broker at an address, by default that of this Pulsar.

    Args:
        apache: the Pulsar.
        folder: of the usage log.
        name: of its broker in the exchange.
        address: `backlog.broker_address`.
        admin_url: where the daemon asks; by default Pulsar itself.
        groups: the groups file that has the policies; without one Pulsar has them.
        backlog: settings of `backlog`.
    """
    beside = address or apache.admin_url.removeprefix("http://")
    source = "pulsar-admin" if groups is None else "file"
    async with running_beside(
        apache,
        folder,
        name,
        exchange={} if admin_url is None else {"admin_url": admin_url},
        policies={"source": source, "poll_ms": POLL_MS, "file": groups},
        backlog={"poll": True, "poll_ms": POLL_MS, "broker_address": beside, **backlog},
    ) as daemon:
        house = Polled(daemon)
        while not daemon.health().ready:
            await house.polls()
        yield house
