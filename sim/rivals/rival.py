"""What the rivals have in common: a limiter, a round, reports said and heard.

Law: a rival is a `sim.member.Brain`, driven exactly as the core is, and decides
requests with the daemon's own `Limiter`; nothing but `_refresh` moves a share.

A rival has no hello, no isolation and no usage log: what its source does not
describe it does not do. What a round says, and what a report means, is the
business of each rule.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping

import numpy as np

from rgd.core.broker.effects import Effect, Publish
from rgd.core.broker.events import (
    BacklogCheckAsked,
    BacklogEvicted,
    BacklogsReported,
    BacklogsWithdrawn,
    Event,
    GateIsolated,
    GroupsAsked,
    GroupsResumed,
    MessageReceived,
    PoliciesChanged,
    ShardOpened,
    Started,
    StockBrokersListed,
    StockReportReceived,
    Stopping,
    Woken,
)
from rgd.core.broker.settings import BrokerSettings
from rgd.core.buckets.level import BucketSettings, GroupState
from rgd.core.buckets.limiter import Limiter
from rgd.core.demand.settings import DemandSettings
from rgd.core.demand.table import DemandTable
from rgd.core.errors import InvariantBroken
from rgd.core.exchange.columns import UsageColumns
from rgd.core.exchange.messages import Goodbye, Message, Report
from rgd.core.exchange.rows import UsageRow
from rgd.core.policies.model import UNLIMITED, Group, GroupKey, Rates
from rgd.core.policies.snapshot import EMPTY_SNAPSHOT, PolicySnapshot
from rgd.core.units import NS_PER_MS, Kind, Nanos, Pair
from sim.member import share_in, tokens_in


class Rival(ABC):
    """One member that shares by another rule than rgd's."""

    def __init__(self, settings: BrokerSettings, now: Nanos) -> None:
        self.settings = settings
        buckets = BucketSettings(
            settings.burst_ns, settings.request_max_ms, settings.round_ns // NS_PER_MS
        )
        self.limiter = Limiter(buckets, self._first_share)
        self.demand = DemandTable(
            DemandSettings(settings.round_ns, settings.min_interval_ns), self.limiter.news
        )
        self._slots: dict[GroupKey, int] = {}
        self.sequence = 0
        self._snapshot: PolicySnapshot = EMPTY_SNAPSHOT
        self._now = now
        self._round_end: Nanos | None = None

    @property
    def wake_at(self) -> Nanos | None:
        """When `Woken` is due next; None before the start."""
        return self._round_end

    def handle(self, event: Event) -> tuple[Effect, ...]:
        """Let an event happen; returns what the world should do, in order."""
        self._now = max(self._now, event.now)
        match event:
            case Started():
                self._round_end = Nanos(event.now + self.settings.round_ns)
            case Woken():
                return tuple(self._on_woken(event.now))
            case MessageReceived():
                self._hear(event.message)
            case PoliciesChanged():
                self._snapshot = event.snapshot
                self.limiter.set_policies(event.snapshot, event.now)
                self._refresh(self._keys(), event.now)
            case Stopping():
                return (Publish(Goodbye(self.settings.sender)),)
            case ShardOpened() | GroupsAsked() | GroupsResumed() | GateIsolated():
                pass
            case BacklogsReported() | BacklogsWithdrawn() | BacklogCheckAsked() | BacklogEvicted():
                pass  # No scenario has backlogs.
            case StockReportReceived() | StockBrokersListed():
                pass  # A rival knows nothing of stock brokers.
        return ()

    def listen(self, on_news: Callable[[], None]) -> None:
        """Call where the core does; a rival makes nothing of it."""
        self.limiter.news.on_news = on_news

    def counted(self, state: GroupState, now: Nanos) -> tuple[Pair, Pair]:
        """End a group's window: admitted and wanted in it, Milli per second."""
        slots = np.array([state.counters.slot])
        closed = self.demand.close(slots, np.array([False]), now)
        if closed is None:
            return Pair(), Pair()
        return Pair(*closed.admitted[0].tolist()), Pair(*closed.wanted[0].tolist())

    def share(self, key: GroupKey) -> Rates | None:
        """The share in force; None where the group is not in use here."""
        return share_in(self.limiter, key)

    def shares(self, key: GroupKey) -> Mapping[str, Rates] | None:  # noqa: ARG002 -- `Brain` asks for it
        """None: a rival computes no share but its own."""
        return None

    def tokens(self, key: GroupKey, now: Nanos) -> tuple[float, float]:
        """Messages and bytes in the group's buckets."""
        return tokens_in(self.limiter, key, now)

    def validate(self) -> None:
        """Check that no share in force is negative, the least that must hold of any rule.

        Raises:
            InvariantBroken: one is; a bug.
        """
        for state in self.limiter.states():
            for rate in (state.share.messages, state.share.bytes):
                if rate is not None and rate < 0:
                    raise InvariantBroken(f"{state.key}: {state.share}")

    @abstractmethod
    def _end_round(self, now: Nanos) -> list[UsageRow]:
        """Measure what the round showed; the rows to tell."""

    @abstractmethod
    def _hear(self, message: Message) -> None:
        """Take in what anybody says, this member too."""

    @abstractmethod
    def _compute(self, key: GroupKey, quota: Rates) -> Rates:
        """The share of a group as it is computed now."""

    def _on_woken(self, now: Nanos) -> list[Effect]:
        if self._round_end is None or now < self._round_end:
            return []
        rows = self._end_round(now)
        # Whole rounds that were missed are not made up for.
        ended = 1 + (now - self._round_end) // self.settings.round_ns
        self._round_end = Nanos(self._round_end + ended * self.settings.round_ns)
        self.sequence += 1
        return [Publish(self._report(rows))]

    def _report(self, rows: list[UsageRow]) -> Report:
        return Report(
            sender=self.settings.sender,
            sequence=self.sequence,
            period_ns=self.settings.round_ns,
            rows=UsageColumns.of(*rows),
        )

    def _refresh(self, keys: Iterable[GroupKey], now: Nanos) -> None:
        """Compute shares again and put them in force at once."""
        for key in keys:
            if (slot := self._slots.get(key)) is not None:
                self.limiter.set_share(slot, self._compute(key, self._quota(key)), now)

    def _keys(self) -> list[GroupKey]:
        return [state.key for state in self.limiter.states()]

    def _quota(self, key: GroupKey) -> Rates:
        group = self._snapshot.groups.get(key.group)
        return UNLIMITED if group is None else group.rates(key.kind)

    def _first_share(self, group: Group, kind: Kind, now: Nanos) -> tuple[int, Rates]:  # noqa: ARG002 -- a rival has its shares at once
        key = GroupKey(group.name, kind)
        slot = self._slots.setdefault(key, len(self._slots))
        return slot, self._compute(key, group.rates(kind))


def row_of(key: GroupKey, *, admitted: Pair, wanted: Pair) -> UsageRow:
    """A row of a rival's report."""
    return UsageRow(
        group=key.group,
        kind=key.kind,
        topics=1,
        admitted=admitted,
        wanted=wanted,
    )
