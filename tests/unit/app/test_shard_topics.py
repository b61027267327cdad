"""The topics of shards: each is reached by itself, written to from the first message on, and left."""

import asyncio
import math
from collections import defaultdict
from collections.abc import AsyncIterator

import pytest

from rgd.app import shard_topics
from rgd.app.shard_topics import ShardTopics
from rgd.app.traffic import OUTBOX_MAX
from rgd.core.exchange.columns import UsageColumns
from rgd.core.exchange.messages import Report, Sender
from rgd.core.exchange.shards import Shard
from rgd.ports.exchange import Exchange, ExchangeDown, Received
from rgd.wire.codec import decode
from rgd.wire.name_dictionary import NameDecoders
from tests.support.errors import no_end
from tests.support.memory_bus import MemoryBus, MemoryExchange
from tests.support.policy_tables import until
from tests.unit.core.values import usage

HERE, DOWN, OTHER = Shard(0, 4), Shard(1, 4), Shard(7, 8)
TIMEOUT_S = 60


class UnreachableExchange(MemoryExchange):
    async def open(self) -> None:
        raise ExchangeDown("nobody is there")


class Place:
    """A bus for each shard, and what the topics told."""

    def __init__(self) -> None:
        self.buses: defaultdict[Shard, MemoryBus] = defaultdict(MemoryBus)
        self.taken: asyncio.Queue[Received] = asyncio.Queue()
        self.opened: asyncio.Queue[Shard] = asyncio.Queue()
        self.topics = ShardTopics(
            self._make,
            take=self.taken.put_nowait,
            opened=self.opened.put_nowait,
            errors=no_end(),
            outdated_s=math.inf,
        )

    def _make(self, shard: Shard) -> Exchange:
        kind = UnreachableExchange if shard == DOWN else MemoryExchange
        return kind(self.buses[shard])

    async def member(self, shard: Shard) -> MemoryExchange:
        """Somebody else who reads a shard."""
        member = MemoryExchange(self.buses[shard])
        await member.open()
        return member


@pytest.fixture
async def place(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Place]:
    """A place; a parameter says after how long topics that are only written to are left."""
    monkeypatch.setattr(shard_topics, "IDLE_S", getattr(request, "param", shard_topics.IDLE_S))
    made = Place()
    async with asyncio.timeout(TIMEOUT_S):
        yield made
        await made.topics.close()
    assert not any(bus.inboxes for bus in made.buses.values())


def report(sequence: int, shard: Shard) -> Report:
    rows = UsageColumns.of(usage(5))
    return Report(Sender("b1", 1), sequence, 10**9, rows, shard=shard)


async def test_a_topic_that_is_unreachable_holds_up_no_other(place: Place) -> None:
    place.topics.listen({HERE, DOWN})
    assert await place.opened.get() == HERE
    # As many as a large state has parts.
    for sequence in range(1, OUTBOX_MAX + 1):
        place.topics.post(report(sequence, DOWN), DOWN)
    place.topics.post(report(1, HERE), HERE)
    assert decode((await place.taken.get()).payload) == report(1, HERE)
    assert place.opened.empty()
    assert not place.topics.dropped
    assert place.topics.trouble == "shard 1 of 4: unreachable: nobody is there"
    place.topics.listen({HERE})
    assert place.topics.trouble is None


@pytest.mark.parametrize("place", [-1.0], indirect=True)
async def test_a_topic_that_was_left_numbers_names_anew(place: Place) -> None:
    reader, names = await place.member(OTHER), NameDecoders()
    place.topics.post(report(1, OTHER), OTHER)
    first = decode((await reader.receive())[0], names)
    # Any message for a shard without a topic is an occasion to leave idle ones.
    place.topics.post(report(1, DOWN), DOWN)
    other = Report(Sender("b1", 1), 2, 10**9, UsageColumns.of(usage(5, group="iron")), shard=OTHER)
    place.topics.post(other, OTHER)
    second = decode((await reader.receive())[0], names)
    assert (first, second) == (report(1, OTHER), other)
    await reader.close()


@pytest.mark.parametrize("place", [-1.0], indirect=True)
async def test_a_message_for_an_open_topic_is_an_occasion_to_leave_idle_ones(place: Place) -> None:
    place.topics.listen({HERE})
    place.topics.post(report(1, DOWN), DOWN)
    await until(lambda: place.topics.trouble is not None)
    place.topics.post(report(1, HERE), HERE)
    assert place.topics.trouble is None


async def test_nothing_is_joined_after_the_end(place: Place) -> None:
    await place.topics.close()
    place.topics.post(report(1, HERE), HERE)
    assert place.topics.dropped["unsent"] == 1
