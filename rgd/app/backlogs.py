"""The daemon's door for backlogs: reports in, checks on demand, views; `rgd.ports.backlogs`.

Law: reports become events of at most `EVENT_TOPICS_MAX` topics, between which the loop goes on.
Whoever asks for a check is answered when one that began afterwards has ended, or when the daemon
stops, because no check ends after that.
"""

import asyncio
from collections.abc import Callable, Iterable, Sequence

from rgd.app.clock import Clock
from rgd.core.backlog.model import EVENT_TOPICS_MAX, Eviction, Source, TopicBacklog
from rgd.core.backlog.store import BacklogStore
from rgd.core.broker.events import (
    BacklogCheckAsked,
    BacklogEvicted,
    BacklogsReported,
    BacklogsWithdrawn,
    Event,
)
from rgd.core.policies.model import BacklogQuota
from rgd.errors import Unavailable
from rgd.views.backlog import BacklogView, backlog_view
from rgd.views.topic_stats import TopicStats, no_partitions, topic_stats


def nobody_listens(_what: object) -> None:
    """The default of those who hear of backlogs."""


class Backlogs:
    """Brings reports to the core's one door.

    Args:
        store: the core's state, only looked at here.
        handle: gives the core an event.
        clock: the daemon's.
    """

    def __init__(self, store: BacklogStore, handle: Callable[[Event], None], clock: Clock) -> None:
        self.store = store
        self._handle = handle
        self._clock = clock
        #: The number of the last check that ended, and who waits for the next one.
        self._checks = 0
        self._ended = asyncio.Event()
        self._is_closed = False

    @property
    def default(self) -> BacklogQuota:
        """The quota of topics where neither they nor their namespaces have one."""
        return self.store.settings.default

    def unix_ms(self) -> int:
        """The time now, ms since 1970."""
        return self._clock.unix_ms()

    # Reports.

    def report(self, reports: Sequence[TopicBacklog]) -> None:
        """Take some reports at once, each checked."""
        assert len(reports) <= EVENT_TOPICS_MAX, "a slice of reports"
        self._handle(BacklogsReported(self._clock.now(), tuple(reports)))

    def is_kept(self, report: TopicBacklog) -> bool:
        """Whether a report is the one that counts for its topic."""
        state = self.store.get(report.topic)
        return state is not None and state.report is report

    def withdraw(self, source: Source, topics: Sequence[str]) -> None:
        """Drop some topics at once that a source no longer reports."""
        assert len(topics) <= EVENT_TOPICS_MAX, "a slice of topics"
        self._handle(BacklogsWithdrawn(self._clock.now(), source, tuple(topics)))

    async def withdraw_all(self, source: Source, topics: Iterable[str]) -> None:
        """Drop any number of topics that a source no longer reports, slice by slice."""
        left = [*topics]
        for begin in range(0, len(left), EVENT_TOPICS_MAX):
            self.withdraw(source, left[begin : begin + EVENT_TOPICS_MAX])
            await asyncio.sleep(0)

    def evicted(self, eviction: Eviction) -> None:
        """An eviction was carried out."""
        self._handle(BacklogEvicted(self._clock.now(), eviction))

    def named(self, topic: str, subscription: str) -> Eviction | None:
        """What is to be evicted of a subscription; None: nothing."""
        state = self.store.get(topic)
        named = () if state is None else state.evictions
        return next((one for one in named if one.subscription == subscription), None)

    def confirm(self, topic: str, subscription: str) -> bool:
        """The carrier of a named eviction has done it; False if there is none of this subscription."""
        found = self.named(topic, subscription)
        if found is not None:
            self.evicted(found)
        return found is not None

    # Checks.

    async def check(self) -> None:
        """Have all backlogs checked now; returns when that is done.

        Raises:
            Unavailable: the daemon stops.
        """
        number = self.store.next_check
        self._handle(BacklogCheckAsked(self._clock.now()))
        while self._checks < number:
            if self._is_closed:
                raise Unavailable("the daemon is stopping; ask for a check when it is up again")
            await self._ended.wait()

    def checked(self, number: int) -> None:
        """A check has ended."""
        self._checks = number
        self._wake()

    def close(self) -> None:
        """The daemon stops: nobody waits for a check any more."""
        self._is_closed = True
        self._wake()

    def _wake(self) -> None:
        ended, self._ended = self._ended, asyncio.Event()
        ended.set()

    # Views.

    def backlog(self, topic: str) -> BacklogView | None:
        """A topic's backlog; None if it is not known."""
        return backlog_view(self.store, topic, self._clock.now())

    def evicting(self) -> list[str]:
        """The topics on which something is to be skipped."""
        return self.store.evicting()

    def stats(self, topic: str) -> TopicStats | None:
        """The stats of one topic; None if its backlog is not known."""
        return topic_stats(self.store, topic)

    def no_partitions(self, topic: str) -> TopicStats:
        """The stats of a partitioned topic, to which no partition was added yet."""
        return no_partitions(self.store, topic)

    def partitions_of(self, topic: str) -> list[str]:
        """The known partitions of a topic."""
        return self.store.partitions_of(topic)
