"""What a broker does with backlogs: takes the reports of their sources in, and checks them in slices."""

from collections.abc import Iterable, Iterator

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
    """The work on one broker's backlogs; methods are handlers of events, and `work` is a slice."""

    def __init__(self, store: BacklogStore) -> None:
        self._store = store

    def on_reported(self, event: BacklogsReported) -> Iterable[Effect]:
        """A source read some backlogs."""
        for report in event.reports:
            self._store.report(report, event.now)
        return ()

    def on_withdrawn(self, event: BacklogsWithdrawn) -> Iterable[Effect]:
        """A source no longer reports some topics."""
        for topic in event.topics:
            self._store.withdraw(topic, event.source)
        return ()

    def on_evicted(self, event: BacklogEvicted) -> Iterable[Effect]:
        """An eviction was carried out."""
        self._store.evicted_now(event.eviction)
        return ()

    def on_check_asked(self, _event: BacklogCheckAsked) -> Iterable[Effect]:
        """All backlogs are to be checked now."""
        self._store.ask()
        return ()

    def work(self, now: Nanos) -> Iterator[Effect]:
        """Do a slice of a check of backlogs, if one is due."""
        store, due_at = self._store, self._store.due_at(now)
        if due_at is None or now < due_at:
            return
        before = store.checks
        if named := store.work(now):
            yield Evict(tuple(named))
        if store.checks != before:
            yield BacklogChecked(store.checks, store.began_at, store.visited)
