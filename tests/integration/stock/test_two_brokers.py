"""Two real brokers of one cluster, a daemon beside each: whatever moves, each topic is counted once.

Both daemons ask at one address: Pulsar sends each to its own broker.
"""

import asyncio
import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from rgd.core.backlog.model import Eviction, Position, QuotaType, Source
from rgd.ports.stock_backlogs import EvictionOutcome
from tests.integration.stock.backlog_house import Polled, Topics, polled_by
from tests.integration.stock.stock_house import TIMEOUT_S
from tests.support.further_broker import SHARED_SETTINGS, FurtherBroker
from tests.support.pulsar_standalone import PulsarStandalone

pytestmark = [pytest.mark.pulsar, pytest.mark.xdist_group("two-brokers")]

NAMESPACE = "two-brokers/orders"
POLL_MS = 1000
NAMES = {f"t{number}" for number in range(12)}


class Cluster(Topics):
    """Both brokers, and which topics are where."""

    def __init__(self, first: PulsarStandalone, second: FurtherBroker) -> None:
        super().__init__(first, second.admin_url)
        self.second = second
        self.addresses = first.admin_url.removeprefix("http://"), second.address

    async def place(self, name: str, address: str) -> set[str]:
        """Move a topic's bundle to a broker; returns its topics."""
        path = f"persistent/{NAMESPACE}/{name}"
        bundle = (await self.text(f"lookup/v2/topic/{path}/bundle")).strip()
        unload = f"namespaces/{NAMESPACE}/{bundle}/unload?destinationBroker={address}"
        async with asyncio.timeout(TIMEOUT_S):
            while not await self.is_at(path, address):
                # The first one who asks has it loaded. Pulsar may have forgotten by then where.
                await self.call("PUT", unload)
        found = await self.get(f"persistent/{NAMESPACE}?bundle={bundle}")
        return {topic.rpartition("/")[2] for topic in found}

    async def is_at(self, path: str, address: str) -> bool:
        """Whether a broker owns a topic; it is loaded if nobody does."""
        told = json.loads(await self.text(f"lookup/v2/topic/{path}"))
        return str(told["httpUrl"]) == f"http://{address}"

    async def make(self) -> dict[str, set[str]]:
        """Topics with backlogs; by broker."""
        await self.namespace(NAMESPACE)
        # One broker looks up the owner of each bundle, before both need one: of two at once, each believes the other.
        for name in NAMES:
            await self.text(f"lookup/v2/topic/persistent/{NAMESPACE}/{name}")
        for name in NAMES:
            await self.subscribe(f"persistent://{NAMESPACE}/{name}", "all")
        left, placed = set(NAMES), {address: set[str]() for address in self.addresses}
        turn = 0
        while left:
            address = self.addresses[turn % 2]
            moved = await self.place(min(left), address)
            placed[address] |= moved
            left -= moved
            turn += 1
        return placed


@asynccontextmanager
async def cluster(folder: Path) -> AsyncIterator[Cluster]:
    """Two brokers."""
    first = PulsarStandalone(folder / "first", settings=SHARED_SETTINGS, is_shared=True)
    try:
        await asyncio.to_thread(first.start)
        second = FurtherBroker(first)
        try:
            await asyncio.to_thread(second.start)
            yield Cluster(first, second)
        finally:
            await asyncio.to_thread(second.stop)
    finally:
        await asyncio.to_thread(first.close)


async def until(one: Polled, topics: set[str]) -> None:
    """Wait until a daemon knows exactly these topics."""
    async with asyncio.timeout(TIMEOUT_S):
        while one.topics(NAMESPACE) != topics:
            await one.polls()


async def test_each_topic_is_counted_once_wherever_it_moves(tmp_path: Path) -> None:
    (tmp_path / "first").mkdir()
    async with cluster(tmp_path) as both:
        here, there = both.addresses
        placed = await both.make()
        assert all(placed.values())
        async with (
            polled_by(both.apache, tmp_path / "one", address=here, poll_ms=POLL_MS) as one,
            polled_by(
                both.apache, tmp_path / "other", name="broker-2", address=there, poll_ms=POLL_MS
            ) as other,
        ):
            doubles: list[set[str]] = []
            ended: dict[Polled, float] = {}

            def look(polled: Polled, beside: Polled) -> None:
                ended[polled] = now = time.monotonic()
                took_s = one.poller._seconds + other.poller._seconds
                # Polls keep up, as the law asks for: the other daemon began to ask Pulsar less than a poll ago, with
                # what this one's poll before took. (One that comes a tenth early is still the next one.)
                if now - ended.get(beside, 0) + took_s < 0.9 * POLL_MS / 1000:
                    doubles.append(one.topics(NAMESPACE) & other.topics(NAMESPACE))

            one.poller.on_polled = lambda: look(one, other)
            other.poller.on_polled = lambda: look(other, one)
            await until(one, placed[here])
            await until(other, placed[there])
            assert one.topics(NAMESPACE) | other.topics(NAMESPACE) == NAMES

            moved = await both.place(min(placed[here]), there)
            await until(one, placed[here] - moved)
            await until(other, placed[there] | moved)
            # The former owner's daemon can do nothing to it any more: Pulsar sends it away.
            topic = f"persistent://{NAMESPACE}/{min(moved)}"
            to = Eviction(topic, "all", Position(1, 1), None, (QuotaType.SIZE,), Source.POLLED)
            outcome, reason = await one.poller._stock.evict(to)
            assert outcome is EvictionOutcome.GONE
            assert "does not own it" in reason

            await asyncio.to_thread(both.second.stop)
            for name in NAMES:
                await both.get(f"persistent/{NAMESPACE}/{name}/internalStats")
            await until(other, set())
            await until(one, NAMES)
            assert other.poller.trouble is not None
            while len(doubles) <= 10:
                await one.polls()
            assert not any(doubles)
