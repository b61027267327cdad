"""The backlogs of this broker's topics: reports come in, checks find what exceeds its quota.

Laws: a topic has one report, its newest; a polled one never replaces a pushed one that still
counts, because the topic's broker knows better. A report that is not repeated is dropped after
`BacklogSettings.stale_ns`. A check visits each topic once, in slices, and one check runs at a time. Producers are blocked only by what a check found.

The check runs every `interval_ns` while there are topics, and when it is asked for.
"""

from collections import Counter
from collections.abc import Callable, Iterator

from rgd.core.backlog.model import Eviction, QuotaType, Source, TopicBacklog
from rgd.core.backlog.quota import Blocked, blocking, quota_in_force
from rgd.core.backlog.settings import BacklogSettings
from rgd.core.backlog.topic import TopicState
from rgd.core.bounds import BOUNDS, BacklogBounds
from rgd.core.policies.model import BacklogAction, Backlogs
from rgd.core.policies.names import namespace_of_topic, partitioned_topic_of
from rgd.core.units import Nanos


class BacklogStore:
    """The topics with their backlogs, and the check.

    Args:
        settings: of backlogs.
        block: called with a topic whose producers are blocked, or no longer are (None).
        bounds: of the tables and slices.
    """

    def __init__(
        self,
        settings: BacklogSettings,
        block: Callable[[str, Blocked | None], None],
        bounds: BacklogBounds = BOUNDS.backlog,
    ) -> None:
        self.settings = settings
        self._bounds = bounds
        self._block = block
        self._topics: dict[str, TopicState] = {}
        #: Subscriptions and ledgers of all topics; bounded.
        self.subscriptions = self.ledgers = 0
        #: The topics with evictions that no report has shown to be done.
        self._evicting: dict[str, None] = {}
        #: How many topics each namespace has, and how often their backlogs were evicted.
        self.namespaces: Counter[str] = Counter()
        self.evicted_in: Counter[tuple[str, QuotaType]] = Counter()
        #: Since the start: evictions; and how often a check found a quota exceeded.
        self.evicted: Counter[QuotaType] = Counter()
        #: Evictions that were named to their carriers: once for each report that needs one.
        self.named: Counter[QuotaType] = Counter()
        self.exceeded: Counter[tuple[QuotaType, BacklogAction]] = Counter()
        #: Reports that came in, by source; and topics that were refused because there are too many.
        self.reported: Counter[Source] = Counter()
        self.refused = 0
        #: Topics whose report was not repeated in time.
        self.expired = 0
        #: The policies in force.
        self.backlogs = Backlogs()
        #: Checks that ended.
        self.checks = 0
        self.check_at: Nanos | None = None
        #: The names that the running check has yet to visit; None: no check is running.
        self._left: Iterator[str] | None = None
        self._is_asked = self._enforces = False
        #: When the last check began, and topics that it visited so far.
        self.began_at = self._now = Nanos(0)
        self.visited = 0
        self._named: list[Eviction] = []

    # Queries.

    def __len__(self) -> int:
        return len(self._topics)

    def get(self, topic: str) -> TopicState | None:
        """A topic (full name), if its backlog is known."""
        return self._topics.get(topic)

    def names(self) -> list[str]:
        """The topics whose backlogs are known."""
        return [*self._topics]

    def partitions_of(self, topic: str) -> list[str]:
        """The partitions of a partitioned topic whose backlogs are known."""
        beginning = f"{topic}-"
        return [
            name
            for name in self._topics
            if name.startswith(beginning) and partitioned_topic_of(name) == topic
        ]

    def evicting(self) -> list[str]:
        """The topics with evictions that no report has shown to be done."""
        return [*self._evicting]

    @property
    def is_checking(self) -> bool:
        """Whether a check has slices left."""
        return self._left is not None

    @property
    def next_check(self) -> int:
        """The number of the next check to begin."""
        return self.checks + 1 + self.is_checking

    def due_at(self, now: Nanos) -> Nanos | None:
        """When `work` has something to do; None: not before a report or `ask`."""
        if self.is_checking or self._is_asked:
            return now
        return self.check_at if self._topics else None

    # Changes.

    def report(self, report: TopicBacklog, now: Nanos) -> bool:
        """Take a report; False if it is refused because there are too many topics or parts."""
        state = self._topics.get(report.topic)
        if state is not None and self._is_outranked(report, state, now):
            return True
        subscriptions, ledgers = len(report.subscriptions), len(report.ledgers)
        if state is not None:
            subscriptions -= len(state.report.subscriptions)
            ledgers -= len(state.report.ledgers)
        if (
            len(self._topics) + (state is None) > self._bounds.topics_max
            or self.subscriptions + subscriptions > self._bounds.subscriptions_max
            or self.ledgers + ledgers > self._bounds.ledgers_max
        ):
            self.refused += 1
            return False
        self.reported[report.source] += 1
        if state is None:
            self._add(TopicState(report, now), now)
        else:
            before = state.blocked
            state.replace(report, now)
            self._note(state, before)
        self.subscriptions += subscriptions
        self.ledgers += ledgers
        return True

    def withdraw(self, topic: str, source: Source) -> None:
        """Drop a topic that its source no longer reports."""
        state = self._topics.get(topic)
        if state is not None and state.report.source is source:
            self._drop(state)

    def evicted_now(self, eviction: Eviction) -> None:
        """Count an eviction that was carried out: by this daemon, or by the one that pushes the topic, who says so."""
        state = self._topics.get(eviction.topic)
        if state is None or state.report.source is not eviction.source:
            return
        # Once for each report that needs one, by the limits exceeded.
        if state.evicted_for is not state.report:
            state.evicted_for = state.report
            namespace = namespace_of_topic(eviction.topic)
            counts = zip(QuotaType, state.evicted, strict=True)
            state.evicted = tuple(count + (which in eviction.exceeded) for which, count in counts)
            self.evicted.update(eviction.exceeded)
            self.evicted_in.update((namespace, which) for which in eviction.exceeded)

    def ask(self) -> None:
        """Begin a check with the next work; after the present one, if one is running."""
        self._is_asked = True

    def work(self, now: Nanos) -> list[Eviction]:
        """Do a slice of a check, if one is due; returns the evictions that it named.

        A check has ended when `checks` is higher than before.
        """
        self._now, self._named = now, []
        is_due = self.check_at is not None and now >= self.check_at and bool(self._topics)
        if not self.is_checking and (self._is_asked or is_due):
            # Whoever asks for a check gets one, as in Pulsar.
            self._enforces = self._is_asked or self.settings.is_checked
            self._is_asked = False
            self.began_at, self.visited = now, 0
            self.check_at = Nanos(now + self.settings.interval_ns)
            self._left = iter(self.names())
        if self._left is not None:
            self._visit_some(self._left)
        return self._named

    # Internals.

    def _is_outranked(self, report: TopicBacklog, state: TopicState, now: Nanos) -> bool:
        """Whether a polled report meets a pushed one that still counts."""
        return (
            report.source is Source.POLLED
            and state.report.source is Source.PUSHED
            and now - state.received_at <= self.settings.stale_ns
        )

    def _add(self, state: TopicState, now: Nanos) -> None:
        topic = state.report.topic
        if not self._topics:
            self.check_at = Nanos(now + self.settings.interval_ns)
        self._topics[topic] = state
        self.namespaces[namespace_of_topic(topic)] += 1

    def _drop(self, state: TopicState) -> None:
        report, topic = state.report, state.report.topic
        del self._topics[topic]
        self._evicting.pop(topic, None)
        self.subscriptions -= len(report.subscriptions)
        self.ledgers -= len(report.ledgers)
        namespace = namespace_of_topic(topic)
        self.namespaces[namespace] -= 1
        if not self.namespaces[namespace]:
            del self.namespaces[namespace]
            for which in QuotaType:
                self.evicted_in.pop((namespace, which), None)
        if state.blocked is not None:
            self._block(topic, None)

    def _note(self, state: TopicState, before: Blocked | None) -> None:
        """Bring the block and the list of evictions in line with a topic's state."""
        topic = state.report.topic
        if state.blocked != before:
            self._block(topic, state.blocked)
        if state.evictions:
            self._evicting[topic] = None
        else:
            self._evicting.pop(topic, None)

    def _visit_some(self, names: Iterator[str]) -> None:
        bounds, subscriptions = self._bounds, 0
        for topics, name in enumerate(names, 1):
            if (state := self._topics.get(name)) is not None:
                subscriptions += len(state.report.subscriptions)
                self._visit(state)
            if topics >= bounds.slice_topics or subscriptions >= bounds.slice_subscriptions:
                return
        self._left = None
        self.checks += 1

    def _visit(self, state: TopicState) -> None:
        if self._now - state.received_at > self.settings.stale_ns:
            self.expired += 1
            self._drop(state)
            return
        self.visited += 1
        # A block ends once the backlog is inside its quota again, whoever had it checked.
        if self._enforces or state.blocked is not None:
            before = state.blocked
            self._check(state)
            self._note(state, before)

    def _check(self, state: TopicState) -> None:
        """Find the oldest message and its age, compare with the quota, and act."""
        now, settings = self._now, self.settings
        quota = state.quota
        if quota is None or state.backlogs is not self.backlogs:
            quota = quota_in_force(self.backlogs, state.report.topic, settings.default)
            state.quota, state.backlogs = quota, self.backlogs
        checked = state.checked = state.look(now, is_precise=settings.is_precise)
        oldest = state.oldest
        exceeded: tuple[QuotaType, ...] = ()
        if checked is not None and oldest is not None:
            exceeded = quota.exceeded(oldest.size_bytes, checked.age_ms)
        for which in exceeded:
            self.exceeded[which, quota.action_of(which)] += 1
        state.blocked = self._blocked(state.blocked, blocking(quota, exceeded), now)
        if exceeded and not self._enforces:
            # Nobody asked for this check, which loses messages; the block alone is renewed.
            return
        state.evictions = state.evictions_for(quota, exceeded, now)
        self._named += state.evictions
        if state.evictions and state.named_for is not state.report:
            state.named_for = state.report
            self.named.update(exceeded)

    def _blocked(
        self, before: Blocked | None, found: tuple[QuotaType, BacklogAction] | None, now: Nanos
    ) -> Blocked | None:
        """The block of producers; a hold that goes on keeps its end."""
        if found is None:
            return None
        which, action = found
        if action is BacklogAction.REFUSE:
            held_until = Nanos(0)
        elif before is not None and before.action is BacklogAction.HOLD:
            held_until = before.held_until
        else:
            held_until = Nanos(now + self.settings.hold_max_ns)
        return Blocked(which, action, held_until, Nanos(now + self.settings.interval_ns))
