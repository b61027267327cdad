"""The broker's work on backlogs: events in, slices of checks, effects out.

The state and every rule are in `rgd.core.backlog`.
"""

from rgd.core.backlog.store import BacklogStore
from rgd.core.broker.effects import BacklogChecked, Effect, Evict
from rgd.core.broker.events import (
    BacklogCheckAsked,
    BacklogEvicted,
    BacklogsReported,
    BacklogsWithdrawn,
)
from rgd.core.units import Nanos


class BacklogWork:
    """Handles the events of backlogs, and does the check that is due."""

    def __init__(self, backlogs: BacklogStore) -> None:
        self._backlogs = backlogs

    def on_reported(self, event: BacklogsReported) -> list[Effect]:
        """Take reports; one that is refused is counted."""
        for report in event.reports:
            self._backlogs.report(report, event.now)
        return []

    def on_withdrawn(self, event: BacklogsWithdrawn) -> list[Effect]:
        """Drop topics that their source no longer reports."""
        for topic in event.topics:
            self._backlogs.withdraw(topic, event.source)
        return []

    def on_evicted(self, event: BacklogEvicted) -> list[Effect]:
        """Count an eviction that was carried out."""
        self._backlogs.evicted_now(event.eviction)
        return []

    def on_check_asked(self, _event: BacklogCheckAsked) -> list[Effect]:
        """Have all backlogs checked in the next slices."""
        self._backlogs.ask()
        return []

    def work(self, now: Nanos) -> list[Effect]:
        """Do a slice of a check, if one is due."""
        due_at = self._backlogs.due_at(now)
        if due_at is None or now < due_at:
            return []
        before = self._backlogs.checks
        named = self._backlogs.work(now)
        effects: list[Effect] = [Evict(tuple(named))] if named else []
        if self._backlogs.checks != before:
            effects.append(
                BacklogChecked(
                    self._backlogs.checks, self._backlogs.began_at, self._backlogs.visited
                )
            )
        return effects
