"""What stock brokers and the core are told of each other, over a bus in memory.

Not covered: Pulsar's topic (tests/contract/exchange), its admin API (tests/unit/adapters/stock), and what the core
makes of it (tests/unit/core/stock).
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import pytest
from structlog.testing import capture_logs

from rgd.adapters.metrics.registry import BY_NAME
from rgd.app.stock_neighbours import STOCK_BROKERS, StockNeighbours, StockParts, live_names
from rgd.core.broker.events import Event, StockBrokersListed, StockReportReceived
from rgd.core.stock.members import SPACINGS_LEAST, StockMembers
from rgd.core.stock.messages import GroupUsage, StockReport
from rgd.core.units import NS_PER_S, Nanos, Pair
from rgd.ports.exchange import ExchangeDown
from rgd.ports.stock import StockDown, StockError
from rgd.ports.stock_brokers import ListedBroker
from rgd.wire.pulsar_usage import decode_stock_report, encode_stock_report
from tests.support.errors import no_end
from tests.support.memory_bus import MemoryBus, MemoryExchange

TIMEOUT_S = 60
STOCK = StockReport("pulsar://h:6650", (GroupUsage("gold", Pair(10, 1000)),))
OWN = StockReport("rgd://me", (GroupUsage("gold", Pair(5, 500)),))


class World:
    """A clock, an admin API and a bus."""

    def __init__(self) -> None:
        self.now_ms = 1_000_000
        self.brokers: Sequence[ListedBroker] | StockError = (
            ListedBroker("h:8080", "pulsar://h:6650"),
        )
        self.bus = MemoryBus(lambda: self.now_ms)

    def now(self) -> Nanos:
        return Nanos(self.now_ms * 1_000_000)

    def unix_ms(self) -> int:
        return self.now_ms

    async def listed(self) -> Sequence[ListedBroker]:
        if isinstance(self.brokers, StockError):
            raise self.brokers
        return self.brokers

    async def close(self) -> None:
        """Nothing is open."""


class LateExchange(MemoryExchange):
    """Cannot be joined so many times."""

    failures = 2

    async def open(self) -> None:
        if self.failures:
            self.failures -= 1
            raise ExchangeDown("not yet")
        await super().open()


class House:
    """The neighbours of one daemon, and the events that its core got."""

    def __init__(
        self, world: World, period_s: int = 5, exchange: type[MemoryExchange] = MemoryExchange
    ) -> None:
        self.world = world
        self.events: asyncio.Queue[Event] = asyncio.Queue()
        parts = StockParts(exchange(world.bus), world, period_s)
        self.members = StockMembers(5 * NS_PER_S)
        self.neighbours = StockNeighbours(
            parts, no_end(), world, handle=self.events.put_nowait, members=self.members, broker="me"
        )

    async def next(self, kind: type[Event]) -> Event:
        """The next event of a kind, heartbeats apart."""
        async with asyncio.timeout(TIMEOUT_S):
            while not isinstance(event := await self.events.get(), kind) or is_heartbeat(event):
                pass
        return event

    def figures(self) -> dict[str, float]:
        return {
            "".join((name, *labels)): value for name, labels, value in self.neighbours.samples()
        }


def is_heartbeat(event: Event) -> bool:
    return isinstance(event, StockReportReceived) and not event.report.usage


async def next_report(stock: MemoryExchange) -> StockReport:
    """The next report with groups that a stock broker receives."""
    async with asyncio.timeout(TIMEOUT_S):
        while True:
            for payload in await stock.receive():
                report = decode_stock_report(payload)
                if report.usage:
                    return report


@asynccontextmanager
async def running(
    world: World, exchange: type[MemoryExchange] = MemoryExchange
) -> AsyncIterator[tuple[House, MemoryExchange]]:
    """The neighbours at work, and a stock broker's end of the topic."""
    house, stock = House(world, exchange=exchange), MemoryExchange(world.bus)
    await stock.open()
    tasks = [asyncio.ensure_future(work()) for work in house.neighbours.works().values()]
    try:
        yield house, stock
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await house.neighbours.close()
        await stock.close()


async def test_reports_of_all_senders_reach_the_core_with_their_publish_times() -> None:
    async with running(World()) as (house, stock):
        await house.next(StockBrokersListed)
        house.neighbours.post(OWN)
        assert await next_report(stock) == OWN
        assert await house.next(StockReportReceived) == StockReportReceived(
            house.world.now(), OWN, 1_000_000
        )
        house.world.now_ms += 250
        await stock.publish(encode_stock_report(STOCK))
        event = await house.next(StockReportReceived)
        assert event == StockReportReceived(house.world.now(), STOCK, 1_000_250)
        figures = house.figures()
        assert figures["rgd_stock_reports_sent_total"] == 1
        assert figures["rgd_stock_reports_received_total"] == 1
        assert figures["rgd_stock_clock_ahead_secondspulsar://h:6650"] == 0
        assert house.neighbours.troubles() == {}
        assert house.neighbours.senders == {"me"}
        for name, labels, _ in house.neighbours.samples():
            assert len(BY_NAME[name].labels) == len(labels)


async def test_a_topic_that_cannot_be_joined_is_reported_and_tried_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("rgd.app.traffic.RECONNECT_S", 0.0)
    with capture_logs() as logs:
        async with running(World(), LateExchange) as (house, stock):
            await house.next(StockBrokersListed)
            await stock.publish(b"")
            while house.neighbours.troubles():  # noqa: ASYNC110 - nothing tells
                await asyncio.sleep(0)
    assert [(log["event"], log["what"]) for log in logs] == [
        ("cannot reach", "exchange with stock brokers"),
        ("reached", "exchange with stock brokers"),
    ]


async def test_a_list_that_cannot_be_read_changes_nothing_and_is_reported_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = World()
    house = House(world)
    with capture_logs() as logs:
        world.brokers = StockDown("connection refused")
        for _ in range(3):
            await house.neighbours.look()
        assert house.events.empty()
        assert house.neighbours.troubles()["list of stock brokers"] == "connection refused"
        world.brokers = (ListedBroker("h:8080", "pulsar://h:6650"),)
        await house.neighbours.look()
    assert [log["event"] for log in logs] == [
        "cannot list the stock brokers",
        "lists the stock brokers again",
    ]
    assert await house.next(StockBrokersListed) == StockBrokersListed(
        world.now(), frozenset({"pulsar://h:6650"})
    )
    assert house.figures()["rgd_stock_list_failures_total"] == 3


async def test_brokers_that_differ_from_the_settings_are_reported_once_until_they_agree() -> None:
    world = World()
    house = House(world)
    world.brokers = (
        ListedBroker("a:8080", "pulsar://a:6650", 60),
        ListedBroker("b:8080", "pulsar://b:6650", 0),
        ListedBroker("c:8080", "pulsar://c:6650", 5),
        ListedBroker("d:8080", "pulsar://d:6650", None),
    )
    house.neighbours._clocks.heard("pulsar://c:6650", world.now_ms - 6_000, world.now_ms)
    with capture_logs() as logs:
        for _ in range(2):
            await house.neighbours.look()
        assert len(logs) == 3
        said = house.neighbours.troubles()[STOCK_BROKERS]
        for words in (
            "a:8080 reports every 60 s, exchange.pulsar_period_s is 5",
            "b:8080 reports no usage",
            "the clock of pulsar://c:6650 is behind",
        ):
            assert words in said
        world.brokers = world.brokers[2:3]
        house.neighbours._clocks.forget(frozenset({"pulsar://c:6650"}))
        await house.neighbours.look()
    assert logs[-1]["event"] == "the stock brokers are as expected again"


def test_brokers_that_do_not_tell_their_name_are_found_by_their_host() -> None:
    listed = [
        ListedBroker("a:8080", "pulsar://a:6650"),
        ListedBroker("B.example.com:8080"),
        ListedBroker("[::1]:8080"),
    ]
    members = [
        "pulsar://a:6651",
        "pulsar://b.example.com:6650",
        "pulsar://[::1]:6650",
        "pulsar://c:6650",
        "//[",
        "h",
    ]
    assert live_names(listed, members) == {
        "pulsar://a:6650",
        "pulsar://b.example.com:6650",
        "pulsar://[::1]:6650",
    }


async def test_a_broker_in_another_period_is_reported_and_shown() -> None:
    house = House(World())
    for number in range(SPACINGS_LEAST + 2):
        house.members.receive("pulsar://h:6650", 60_000 * (number + 1), Nanos(number))
        house.members.is_newly_off_period("pulsar://h:6650")
    house.members.refused["rows"] += 1
    await house.neighbours.look()
    assert "is not heard every 5 s" in house.neighbours.troubles()[STOCK_BROKERS]
    figures = house.figures()
    assert figures["rgd_stock_period_secondspulsar://h:6650"] == 60
    assert figures["rgd_stock_period_differs"] == figures["rgd_stock_brokers"] == 1
    assert figures["rgd_stock_refused_totalrows"] == 1
