"""One topic's last report, and what the last check made of it.

Laws: what a check found stays until the next check, as PIP-323 says, so that age, limits and
consequences agree. The exception is a backlog that is gone: the age, a block of producers and
evictions are reset with the report that shows it.
"""

from dataclasses import dataclass, field
from typing import NamedTuple

from rgd.core.backlog.estimate import (
    KEPT_PERCENT,
    Oldest,
    keep_by_ledger_age,
    keep_by_message_age,
    keep_by_size,
    oldest_of,
    positions_of,
    unacknowledged,
)
from rgd.core.backlog.model import Eviction, Position, QuotaType, TopicBacklog
from rgd.core.backlog.quota import Blocked, QuotaInForce
from rgd.core.policies.model import BacklogAction, Backlogs
from rgd.core.units import NS_PER_MS, Nanos


class Checked(NamedTuple):
    """The oldest unacknowledged message of a topic as the last check found it (PIP-323's cache)."""

    subscription: str
    position: Position
    #: The time of the message or of its ledger's end, ms since 1970; None if neither is known.
    time_ms: int | None
    #: Its age at the check; None if not known.
    age_ms: int | None
    #: Whether time and age are the message's own; otherwise they are its ledger's.
    is_precise: bool


@dataclass(slots=True, eq=False)
class TopicState:
    """A topic's report and the result of its last check."""

    report: TopicBacklog
    received_at: Nanos
    oldest: Oldest | None = field(init=False)
    #: Unacknowledged messages by subscription; None: not computed (`messages`).
    unacknowledged: tuple[tuple[str, int], ...] | None = None
    #: The quota in force at the last check, and the policies that it was found in.
    quota: QuotaInForce | None = None
    backlogs: Backlogs | None = None
    checked: Checked | None = None
    blocked: Blocked | None = None
    #: What the last check named and no report has shown to be done.
    evictions: tuple[Eviction, ...] = ()
    #: The reports for which evictions were named, and counted as done, last.
    named_for: TopicBacklog | None = None
    evicted_for: TopicBacklog | None = None
    #: How often this backlog was evicted, by the limit that it exceeded: each of `QuotaType`.
    evicted: tuple[int, ...] = (0,) * len(QuotaType)

    def __post_init__(self) -> None:
        self.oldest = oldest_of(self.report)

    def replace(self, report: TopicBacklog, now: Nanos) -> None:
        """Take a newer report."""
        oldest = oldest_of(report)
        self.report, self.received_at, self.oldest = report, now, oldest
        self.unacknowledged = None
        if oldest is None:
            self.checked = self.blocked = None
            self.evictions = ()
        elif self.evictions:
            at = {one.name: position for position, one in positions_of(report)}
            self.evictions = tuple(
                one
                for one in self.evictions
                if one.source is report.source and at.get(one.subscription, one.to) < one.to
            )

    def messages(self) -> tuple[tuple[str, int], ...]:
        """Each subscription with its unacknowledged messages that are not delayed."""
        if self.unacknowledged is None:
            self.unacknowledged = tuple(unacknowledged(self.report))
        return self.unacknowledged

    def look(self, now: Nanos, *, is_precise: bool) -> Checked | None:
        """The oldest message with its age now; None if there is no backlog.

        Args:
            now: the time of the check.
            is_precise: prefer the message's own time to that of its ledger's end. The other one is
                used where the preferred one is not known.
        """
        oldest = self.oldest
        if oldest is None:
            return None
        age_ms, of_message = oldest.message_age_ms, True
        if age_ms is None or (not is_precise and oldest.ledger_age_ms is not None):
            age_ms, of_message = oldest.ledger_age_ms, False
        if age_ms is None:
            return Checked(oldest.subscription, oldest.position, None, None, of_message)
        time_ms = self.report.read_at_ms - age_ms
        age_ms += (now - self.received_at) // NS_PER_MS
        return Checked(oldest.subscription, oldest.position, time_ms, age_ms, of_message)

    def evictions_for(
        self, quota: QuotaInForce, exceeded: tuple[QuotaType, ...], now: Nanos
    ) -> tuple[Eviction, ...]:
        """What to skip so that the backlog is inside the limits that evict and are exceeded."""
        checked, report = self.checked, self.report
        which = tuple(one for one in exceeded if quota.action_of(one) is BacklogAction.EVICT)
        if checked is None or not which:
            return ()
        to, since_ms = checked.position, None
        if QuotaType.TIME in which:
            kept_ms = quota.limit_s * 10 * KEPT_PERCENT
            since_ms = report.read_at_ms + (now - self.received_at) // NS_PER_MS - kept_ms
            keep = keep_by_message_age if checked.is_precise else keep_by_ledger_age
            to = keep(report, checked.position, since_ms)
        if QuotaType.SIZE in which:
            to = max(to, keep_by_size(report, checked.position, quota.limit_bytes))
        before_ms = since_ms if checked.is_precise and which == (QuotaType.TIME,) else None
        return tuple(
            Eviction(report.topic, one.name, to, before_ms, which, report.source)
            for position, one in positions_of(report)
            if position < to
        )
