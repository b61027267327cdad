"""A poller, its broker, and the daemon's store of backlogs, for tests that say when it polls.

The stock Pulsar is a list of topics behind its port; the door and the store are the daemon's own.
"""

import random
from collections.abc import Sequence

from rgd.app.backlog_evicting import EvictionCarrier
from rgd.app.backlog_polling import BacklogPoller
from rgd.app.backlogs import Backlogs
from rgd.core.backlog.model import (
    Eviction,
    Ledger,
    Position,
    QuotaType,
    Source,
    SubscriptionBacklog,
    TopicBacklog,
)
from rgd.core.backlog.settings import BacklogSettings
from rgd.core.backlog.store import BacklogStore
from rgd.core.broker.events import BacklogEvicted, BacklogsReported, BacklogsWithdrawn, Event
from rgd.core.units import NS_PER_S, Nanos
from rgd.ports.stock import StockError
from rgd.ports.stock_backlogs import BacklogReading, Deliver, EvictionOutcome, StockBacklogs

POLL_S = 60
TOPICS = [f"persistent://acme/orders/t{number}" for number in range(5)]


def report(topic: str, source: Source = Source.POLLED) -> TopicBacklog:
    """A topic with one unacknowledged message."""
    subscription = SubscriptionBacklog("s1", Position(1, 0))
    return TopicBacklog(topic, (Ledger(1, 1, 10),), (subscription,), source, 1000)


class World(StockBacklogs):
    """A broker with topics."""

    def __init__(self, topics: Sequence[str]) -> None:
        self.topics = list(topics)
        self.error: StockError | None = None
        self.gone: set[str] = set()
        self.faults: dict[str, str] = {}
        self.reads: list[list[str]] = []
        #: Topics for which there is time.
        self.time = 1000
        self.outcome = EvictionOutcome.DONE
        self.evicted: list[Eviction] = []

    async def owned(self) -> Sequence[str]:
        if self.error is not None:
            raise self.error
        return self.topics

    async def read(self, topics: Sequence[str], deliver: Deliver, seconds: float) -> BacklogReading:
        del seconds
        read = list(topics)[: self.time]
        self.reads.append(read)
        for topic in read:
            if topic not in self.gone and topic not in self.faults:
                deliver(report(topic))
        return BacklogReading(read[-1] if read else None, tuple(self.gone), self.faults)

    async def evict(self, eviction: Eviction) -> tuple[EvictionOutcome, str]:
        self.evicted.append(eviction)
        return self.outcome, "because" if self.outcome is EvictionOutcome.FAILED else ""

    async def close(self) -> None:
        pass


def s(seconds: float) -> Nanos:
    """A moment of the daemon's clock."""
    return Nanos(round(seconds * NS_PER_S))


class Still:
    """A clock that stands still."""

    def now(self) -> Nanos:
        return Nanos(0)

    def unix_ms(self) -> int:
        return 1000


class House:
    """A poller, its broker, and the daemon's store of backlogs."""

    def __init__(self, world: World, *, topics_max: int = 100, is_enforced: bool = True) -> None:
        self.store = BacklogStore(BacklogSettings(), lambda _topic, _blocked: None)
        self.door = Backlogs(self.store, self._handle, Still())
        self.carrier = EvictionCarrier(is_enforced=is_enforced)
        self.now_s = 0.0
        dice, now = random.Random(1), lambda: s(self.now_s)
        self.poller = BacklogPoller(
            world, self.carrier, dice, now, poll_s=POLL_S, topics_max=topics_max
        )
        self.world = world
        self.counted: list[Eviction] = []
        self.named: dict[tuple[str, str], Eviction] = {}

    def _handle(self, event: Event) -> None:
        match event:
            case BacklogsReported():
                for one in event.reports:
                    self.store.report(one, event.now)
            case BacklogsWithdrawn():
                for topic in event.topics:
                    self.store.withdraw(topic, event.source)
            case BacklogEvicted():
                self.counted.append(event.eviction)
            case _:
                raise AssertionError(f"not an event of polled backlogs: {event}")

    async def begin(self) -> list[str]:
        """Two polls: the first sees the topics, the second reports them."""
        await self.poll()
        return await self.poll()

    async def poll(self) -> list[str]:
        """One poll, a minute after the last; the topics that the daemon knows afterwards."""
        self.now_s += POLL_S
        await self.poller.poll(self.door)
        return sorted(self.store.names())

    async def carry_out(self, *evictions: Eviction) -> None:
        """Have evictions carried out."""
        self.name(*evictions)
        await self.carrier.carry_out(
            self.world, lambda *key: self.named.get(key), self.door.evicted
        )

    def name(self, *evictions: Eviction) -> None:
        """Have a check name evictions."""
        self.named |= {(one.topic, one.subscription): one for one in evictions}
        self.carrier.add(evictions)

    def figures(self) -> dict[str, float]:
        return {":".join((one.name, *one.labels)): one.value for one in self.poller.samples()}


def eviction(to: int, before_ms: int | None = None, topic: str = TOPICS[0]) -> Eviction:
    position = Position(1, to)
    return Eviction(topic, "s1", position, before_ms, (QuotaType.SIZE,), Source.POLLED)
