"""Which topics are read, with how many calls, what becomes of bad answers, and evictions.

The admin API is a pretended one that plays recorded answers; a real Pulsar is in tests/integration/stock.
"""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from rgd.adapters.stock import backlog_reader as module
from rgd.adapters.stock.backlog_reader import StockBacklogReader
from rgd.adapters.stock.client import StockClient
from rgd.config.backlog_settings import BacklogSettings
from rgd.config.settings import ExchangeSettings
from rgd.core.backlog.model import Eviction, Position, QuotaType, Source, TopicBacklog
from rgd.ports.stock_backlogs import BacklogReading, BrokerAway, EvictionOutcome
from tests.unit.adapters.stock.pretend_pulsar import PretendPulsar

RECORDED: dict[str, Any] = json.loads((Path(__file__).parent / "backlog_recorded.json").read_text())
NOW_MS = 1795345700000
BROKER = "127.0.0.1:30207"
OWNED = f"brokers/standalone/{BROKER}/ownedNamespaces"
EU, US = "persistent://t1/n1/eu", "persistent://t1/n1/us-partition-1"
FIRST, SECOND = (
    "persistent/t1/n1?bundle=0x40000000_0x80000000",
    "persistent/t1/n1?bundle=0x80000000_0xc0000000",
)
STATS, INFO, PEEK = (
    "persistent/t1/n1/eu/internalStats",
    "persistent/t1/n1/eu/internal-info",
    "persistent/t1/n1/eu/ledger/5/entry/0",
)
EXPIRE = "persistent/t1/n1/eu/subscription/s1/expireMessages"


@asynccontextmanager
async def reading(
    pulsar: PretendPulsar, *, is_precise: bool = True, address: str | None = BROKER
) -> AsyncIterator[StockBacklogReader]:
    """A reader of the pretended broker."""
    settings = BacklogSettings(broker_address=address, preciseTimeBasedBacklogQuotaCheck=is_precise)
    client = StockClient(ExchangeSettings(admin_url=pulsar.url))
    names = {"cluster": "standalone", "broker": "broker-1"}
    reader = StockBacklogReader(client, settings, lambda: NOW_MS, **names)
    try:
        yield reader
    finally:
        await reader.close()


@pytest.fixture
async def pulsar() -> AsyncIterator[PretendPulsar]:
    async with PretendPulsar({}) as made:
        made.say(OWNED, RECORDED["ownedNamespaces"])
        made.say(FIRST, [EU])
        made.say(SECOND, [US])
        for topic in ("eu", "us-partition-1"):
            made.say(f"persistent/t1/n1/{topic}/internalStats", RECORDED["internalStats"])
            made.say(f"persistent/t1/n1/{topic}/internal-info", RECORDED["internal-info"])
            peek = f"persistent/t1/n1/{topic}/ledger/5/entry/0"
            made.say(peek, headers=RECORDED["headers"])
        yield made


async def read(
    reader: StockBacklogReader, topics: list[str], seconds: float = 60
) -> tuple[dict[str, TopicBacklog], BacklogReading]:
    """The reports by topic, and the result."""
    found: dict[str, TopicBacklog] = {}
    result = await reader.read(topics, lambda one: found.update({one.topic: one}), seconds)
    return found, result


def eviction(to: Position, before_ms: int | None = None, subscription: str = "s1") -> Eviction:
    """Skip to a position."""
    return Eviction(EU, subscription, to, before_ms, (QuotaType.SIZE,), Source.POLLED)


async def test_a_steady_topic_costs_one_call(pulsar: PretendPulsar) -> None:
    async with reading(pulsar) as reader:
        await reader.owned()
        pulsar.calls.clear()
        first, _ = await read(reader, [EU])
        assert sorted(pulsar.calls) == sorted([STATS, INFO, PEEK])
        pulsar.calls.clear()
        second, result = await read(reader, [EU])
        assert pulsar.calls == [STATS]
    assert first == second
    assert (result.last, result.gone, dict(result.faults)) == (EU, (), {})
    report = first[EU]
    assert [ledger.closed_at_ms for ledger in report.ledgers] == [
        1795345631627,
        1795345631671,
        None,
    ]
    times = {one.name: (one.broker_time_ms, one.publish_time_ms) for one in report.subscriptions}
    assert times == {"s1": (None, None), "gone": (None, None), "s2": (1795345631604, 1795345631590)}
    assert (report.source, report.read_at_ms) == (Source.POLLED, NOW_MS)


async def test_without_the_precise_check_no_message_is_read(pulsar: PretendPulsar) -> None:
    async with reading(pulsar, is_precise=False) as reader:
        await reader.owned()
        found, _ = await read(reader, [EU])
    assert PEEK not in pulsar.calls
    assert [one.message_time_ms for one in found[EU].subscriptions] == [None] * 3


@pytest.mark.parametrize("status", [404, 500], ids=["gone", "unreadable"])
async def test_a_message_without_a_time_leaves_its_time_unknown(
    pulsar: PretendPulsar, status: int
) -> None:
    pulsar.say(PEEK, "", status=status)
    async with reading(pulsar) as reader:
        await reader.owned()
        found, result = await read(reader, [EU])
        assert found[EU].subscriptions[2].message_time_ms is None
        assert not result.faults


@pytest.mark.parametrize("path", [STATS, INFO, PEEK])
async def test_a_topic_that_moved_is_gone(pulsar: PretendPulsar, path: str) -> None:
    pulsar.redirect(path, f"http://another:8080/admin/v2/{path}")
    async with reading(pulsar) as reader:
        await reader.owned()
        found, result = await read(reader, [EU, US])
    assert list(found) == [US]
    assert result.gone == (EU,)
    assert not result.faults


@pytest.mark.parametrize(
    "bad",
    [
        pytest.param({"body": {"ledgers": {}}}, id="other"),
        pytest.param({"body": {"reason": "no grant"}, "status": 403}, id="forbidden"),
        pytest.param({"body": "x" * (module.TOPIC_BYTES_MAX + 1)}, id="too-large"),
    ],
)
@pytest.mark.parametrize("path", [STATS, INFO])
async def test_an_unreadable_topic_is_a_fault_and_reports_nothing(
    pulsar: PretendPulsar, path: str, bad: dict[str, Any]
) -> None:
    pulsar.say(path, **bad)
    async with reading(pulsar) as reader:
        await reader.owned()
        found, result = await read(reader, [EU, US])
    assert list(found) == [US]
    assert list(result.faults) == [f"topics/{EU}"]
    assert result.gone == ()


async def test_a_bundle_whose_topics_cannot_be_listed_keeps_those_it_had(
    pulsar: PretendPulsar,
) -> None:
    async with reading(pulsar) as reader:
        await reader.owned()
        pulsar.say(FIRST, {"reason": "oops"}, status=500)
        assert await reader.owned() == [EU, US]
        _, result = await read(reader, [US])
    assert list(result.faults) == ["bundles/t1/n1/0x40000000_0x80000000"]


async def test_a_broker_that_is_not_alive_owns_nothing(pulsar: PretendPulsar) -> None:
    pulsar.say(OWNED, {"reason": "Broker id not found in available brokers."}, status=404)
    async with reading(pulsar) as reader:
        with pytest.raises(BrokerAway, match="not alive"):
            await reader.owned()


@pytest.mark.parametrize(
    ("alive", "address"),
    [
        pytest.param(["a:8080", "{admin}"], "{admin}", id="the-admin-url"),
        pytest.param(["a:8080", "127.0.0.1:1"], "127.0.0.1:1", id="another-port-of-the-admin-url"),
        pytest.param(["a:8080", "broker-1.pulsar.svc:8080"], "broker-1.pulsar.svc:8080", id="name"),
        pytest.param(["a:8080", "broker-1:8080"], "broker-1:8080", id="host"),
    ],
)
async def test_the_address_of_the_own_broker_is_derived(
    pulsar: PretendPulsar, alive: list[str], address: str
) -> None:
    admin = pulsar.url.removeprefix("http://")
    pulsar.say("brokers", [one.format(admin=admin) for one in alive])
    path = f"brokers/standalone/{address.format(admin=admin)}/ownedNamespaces"
    pulsar.say(path, {})
    async with reading(pulsar, address=None) as reader:
        assert await reader.owned() == []
    assert pulsar.calls == ["brokers", path]


@pytest.mark.parametrize("alive", [[], ["a:8080"], ["broker-1:8080", "broker-1.x:8080"]])
async def test_an_address_that_is_not_clear_is_asked_for(
    pulsar: PretendPulsar, alive: list[str]
) -> None:
    # One live broker is not enough: this daemon's own may be down, and that one has its own daemon.
    pulsar.say("brokers", alive)
    async with reading(pulsar, address=None) as reader:
        with pytest.raises(BrokerAway, match=r"set backlog\.broker_address"):
            await reader.owned()


async def test_an_eviction_acknowledges_up_to_the_entry_before_its_target(
    pulsar: PretendPulsar,
) -> None:
    pulsar.say(EXPIRE, status=204)
    async with reading(pulsar) as reader:
        await reader.owned()
        assert await reader.evict(eviction(Position(9, 0))) == (EvictionOutcome.DONE, "")
    assert json.loads(pulsar.posted[EXPIRE]) == {"ledgerId": 5, "entryId": 9, "partitionIndex": -1}


async def test_an_eviction_by_age_lets_pulsar_find_the_first_younger_message(
    pulsar: PretendPulsar,
) -> None:
    pulsar.say(f"{EXPIRE}/91", status=204)
    async with reading(pulsar) as reader:
        await reader.owned()
        # More than 90 s old: rounded up, so that nothing young is evicted.
        outcome = await reader.evict(eviction(Position(9, 0), NOW_MS - 90_001))
    assert outcome == (EvictionOutcome.DONE, "")
    assert pulsar.posted == {f"{EXPIRE}/91": ""}


@pytest.mark.parametrize("target", [Position(5, 3), Position(5, 0), Position(3, 7)])
async def test_a_subscription_that_is_further_stays(
    pulsar: PretendPulsar, target: Position
) -> None:
    async with reading(pulsar) as reader:
        await reader.owned()
        assert await reader.evict(eviction(target)) == (EvictionOutcome.PASSED, "")
    assert pulsar.posted == {}


async def test_a_topic_that_moved_is_not_evicted(pulsar: PretendPulsar) -> None:
    async with reading(pulsar) as reader:
        await reader.owned()
        pulsar.redirect(STATS, f"http://another:8080/admin/v2/{STATS}")
        outcome, _ = await reader.evict(eviction(Position(9, 0)))
        assert outcome is EvictionOutcome.GONE
        pulsar.say(STATS, RECORDED["internalStats"])
        # It moves between the look and the eviction.
        pulsar.redirect(EXPIRE, f"http://another:8080/admin/v2/{EXPIRE}")
        outcome, _ = await reader.evict(eviction(Position(9, 0)))
        assert outcome is EvictionOutcome.GONE
        outcome, reason = await reader.evict(eviction(Position(9, 0), subscription="none"))
        assert (outcome, reason) == (EvictionOutcome.GONE, f"{EU} has no subscription none")


async def test_a_refused_eviction_says_why(pulsar: PretendPulsar) -> None:
    pulsar.say(EXPIRE, {"reason": "ongoing message expiration not finished"}, status=409)
    async with reading(pulsar) as reader:
        outcome, reason = await reader.evict(eviction(Position(9, 0)))
        assert (outcome, reason) == (EvictionOutcome.FAILED, "the broker was not read yet")
        await reader.owned()
        outcome, reason = await reader.evict(eviction(Position(9, 0)))
    assert outcome is EvictionOutcome.FAILED
    assert "ongoing message expiration" in reason


async def test_a_topic_that_is_not_owned_any_more_is_forgotten(pulsar: PretendPulsar) -> None:
    async with reading(pulsar) as reader:
        await reader.owned()
        await read(reader, [EU])
        pulsar.say(FIRST, [])
        assert await reader.owned() == [US]
        pulsar.say(FIRST, [EU])
        await reader.owned()
        pulsar.calls.clear()
        # It may have been deleted and made again meanwhile.
        await read(reader, [EU])
    assert sorted(pulsar.calls) == sorted([STATS, INFO, PEEK])
