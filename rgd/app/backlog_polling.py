"""Polls the backlogs of the topics that this daemon's broker owns, from a stock Pulsar's admin API.

Laws: a topic that the broker does not own any more is dropped as soon as a poll sees it, before anything
else is read. A topic that the broker came to own is reported a poll later, when the daemon beside its former
owner has dropped it: so it is counted once, as long as polls keep up. An unreadable topic keeps its last report until that is too old to count. A Pulsar that
cannot be read for `FAILED_POLLS_MAX` polls, or whose list of live brokers lacks this one, leaves this
daemon without polled topics: another broker may own them. Polls never overlap, the pause after one is at
least as long as the poll, and nothing that the daemon does for callers waits for it.

`rgd.ports.stock_backlogs` has the reads; `rgd.app.backlog_evicting` carries out what a check names.
"""

import asyncio
import random
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

import structlog

from rgd.app.backlog_evicting import EvictionCarrier
from rgd.app.backlogs import Backlogs
from rgd.core.backlog.model import EVENT_TOPICS_MAX, Source, TopicBacklog
from rgd.core.units import NS_PER_S, Nanos
from rgd.ports.metrics import Sample
from rgd.ports.stock import StockError
from rgd.ports.stock_backlogs import BrokerAway, StockBacklogs

#: After so many polls in a row without a list of the broker's topics they are dropped.
FAILED_POLLS_MAX: Final = 2
#: The first poll comes after up to this fraction of the time between polls, so that daemons do not poll in
#: step. Later pauses are all alike: `BacklogPoller._settled` relies on it.
JITTER: Final = 0.1

_log = structlog.get_logger("rgd.backlogs")


class BacklogPoller:
    """Reads one broker of a stock Pulsar, and reports its topics to the core.

    Args:
        stock: the broker.
        carrier: carries out evictions there.
        dice: for the first pause.
        now: the time of a monotonic clock.
        poll_s: from the beginning of a poll to that of the next; also the longest time that one reads topics.
        topics_max: topics of one poll; topics that do not fit take turns.
    """

    def __init__(
        self,
        stock: StockBacklogs,
        carrier: EvictionCarrier,
        dice: random.Random,
        now: Callable[[], Nanos],
        *,
        poll_s: float,
        topics_max: int,
    ) -> None:
        self._stock = stock
        self._poll_s = poll_s
        self._topics_max = topics_max
        self._dice = dice
        self._now = now
        self.carrier = carrier
        #: Since which poll the broker has owned each of its topics; empty while that is not known.
        self._since: dict[str, float] = {}
        #: The topics that this daemon reported and has not withdrawn.
        self._reported: set[str] = set()
        self._pending: list[TopicBacklog] = []
        #: The last topic of the last poll, where topics take turns.
        self._last = ""
        self._failed = 0
        self._faulty: frozenset[str] = frozenset()
        self._is_turn_logged = False
        #: Why not all of the broker's topics are known; None if they are.
        self.trouble: str | None = "Pulsar was not read yet"
        # Figures.
        self._polls = self._failures = 0
        self._owned = self._unreadable = 0
        self._seconds = 0.0

    def topics(self) -> list[str]:
        """The topics that are polled now (full names)."""
        return [*self._reported]

    def samples(self) -> Iterator[Sample]:
        """The figures of polls and evictions."""
        yield Sample("rgd_backlog_polls_total", (), self._polls)
        yield Sample("rgd_backlog_poll_failures_total", (), self._failures)
        yield Sample("rgd_backlog_poll_seconds", (), self._seconds)
        yield Sample("rgd_backlog_topics_owned", (), self._owned)
        yield Sample("rgd_backlog_topics_unreadable", (), self._unreadable)
        yield from self.carrier.samples()

    async def follow(self, door: Backlogs) -> None:
        """Poll and evict until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self.carrier.follow(self._stock, door.named, door.evicted))
            tasks.create_task(self._poll_for_ever(door))

    async def _poll_for_ever(self, door: Backlogs) -> None:
        await asyncio.sleep(self._poll_s * JITTER * self._dice.random())
        while True:
            began = self._now()
            await self.poll(door)
            self._seconds = (self._now() - began) / NS_PER_S
            await asyncio.sleep(max(self._poll_s - self._seconds, self._seconds))

    async def poll(self, door: Backlogs) -> None:
        """Read the broker's topics once."""
        self._polls += 1
        began = self._now() / NS_PER_S
        try:
            owned = await self._stock.owned()
            lost, settled = self._settled(owned, began)
            await self._withdraw(door, lost)
            self._owned = len(owned)
            faults = await self._read(door, settled)
        except StockError as error:
            await self._tell_failed(door, error)
        else:
            self._tell_read(faults)

    async def close(self) -> None:
        """Close the connections."""
        await self._stock.close()

    def _settled(self, owned: Sequence[str], began: float) -> tuple[set[str], list[str]]:
        """The reported topics that are not owned any more, and the owned ones to report."""
        # Also at a start: the broker may have started just before, and been given topics.
        self._since = {topic: self._since.get(topic, began) for topic in owned}
        lost = self._reported.difference(owned)
        until = began - self._poll_s
        # A poll that comes a little early is still the next one.
        slack_s = JITTER * self._poll_s
        return lost, [topic for topic in owned if self._since[topic] <= until + slack_s]

    async def _read(self, door: Backlogs, owned: Sequence[str]) -> Mapping[str, str]:
        chosen = in_turn(owned, self._topics_max, self._last)

        def deliver(report: TopicBacklog) -> None:
            self._reported.add(report.topic)
            self._pending.append(report)
            if len(self._pending) == EVENT_TOPICS_MAX:
                self._flush(door)

        try:
            reading = await self._stock.read(chosen, deliver, self._poll_s)
        finally:
            self._flush(door)
        for topic in reading.gone:
            self._since.pop(topic, None)
        await self._withdraw(door, self._reported.intersection(reading.gone))
        self._last = reading.last or self._last
        if chosen and (len(chosen) < len(owned) or reading.last != chosen[-1]):
            self._tell_turns(len(owned))
        return reading.faults

    def _flush(self, door: Backlogs) -> None:
        pending, self._pending = self._pending, []
        if pending:
            door.report(pending)

    async def _withdraw(self, door: Backlogs, topics: set[str]) -> None:
        self._reported -= topics
        self.carrier.forget(topics)
        await door.withdraw_all(Source.POLLED, sorted(topics))

    # Logging: each problem once when it begins, and once when it is over.

    async def _tell_failed(self, door: Backlogs, error: StockError) -> None:
        self._failures += 1
        self._failed += 1
        self.trouble = str(error)
        if self._failed == 1:
            _log.warning(
                "cannot read backlogs from Pulsar",
                reason=str(error),
                remedy="check exchange.admin_url, its token's grants (docs/backlog.md) and "
                "backlog.broker_address",
            )
        if isinstance(error, BrokerAway) or self._failed >= FAILED_POLLS_MAX:
            await self._withdraw(door, set(self._reported))
            # Another broker may have owned them meanwhile.
            self._since = {}
            self._owned = 0

    def _tell_read(self, faults: Mapping[str, str]) -> None:
        if self._failed:
            _log.info("reads backlogs from Pulsar again")
        self._failed = 0
        self._unreadable = len(faults)
        fresh = [what for what in faults if what not in self._faulty]
        if fresh:
            _log.warning(
                "cannot read the backlogs of some topics",
                topics=len(faults),
                first=faults[fresh[0]],
                remedy="their last reports count until they are too old; check the token's grants",
            )
        elif self._faulty and not faults:
            _log.info("reads the backlogs of all topics again")
        self._faulty = frozenset(faults)
        self.trouble = None
        if faults:
            self.trouble = f"{len(faults)} topics cannot be read: {next(iter(faults.values()))}"

    def _tell_turns(self, owned: int) -> None:
        if not self._is_turn_logged:
            self._is_turn_logged = True
            _log.warning(
                "topics take turns: not all could be read in one poll",
                topics=owned,
                remedy="raise backlog.poll_topics_max, backlog.poll_ms or "
                "backlogQuotaCheckIntervalInSeconds",
            )


def in_turn(names: Sequence[str], count: int, last: str) -> list[str]:
    """The next names in order after the last one, from the beginning again after the end."""
    start = bisect_right(names, last)
    return [*names[start:], *names[:start]][:count]
