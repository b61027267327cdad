"""The live view of a running daemon: a look at all groups each round, from which snapshots are made.

Laws: the look goes on whether anybody watches or not, because it also keeps the last ten minutes. A snapshot is made when the first caller asks
for it, and all others get the same one. All tables are bounded.
"""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Final

from rgd.app.containment import contained
from rgd.app.daemon import Agreeing
from rgd.app.live_history import History
from rgd.app.recent_events import RecentEvents
from rgd.core.errors import UnknownGroup
from rgd.core.exchange.columns import KINDS
from rgd.core.gate import looks
from rgd.core.policies.model import GroupKey
from rgd.core.units import NS_PER_S, Dimension, Nanos
from rgd.version import __version__
from rgd.views.live import backlogs_view, members_view
from rgd.views.live_model import (
    EventView,
    LiveGroupView,
    LiveView,
    LogView,
    PressuresView,
    PressureView,
    ReaderView,
    TierView,
)
from rgd.views.live_words import verdict_of
from rgd.views.pressure import (
    Counts,
    Pressure,
    RowKey,
    Table,
    coloured_of,
    counts_of,
    refused_between,
    row_of,
    table_of,
)

#: Rows of a snapshot: those under the most pressure. Search and pages have the others.
ROWS_MAX: Final = 50
#: Shortest time between two snapshots, where rounds are shorter.
PERIOD_MIN_S: Final = 0.2
#: How long a broker that is gone is shown, and how many of them.
GONE_S: Final = 600
GONE_MAX: Final = 20


class Live:
    """Fulfils `rgd.ports.live_door.LiveDoor`."""

    def __init__(self, daemon: Agreeing, events: RecentEvents) -> None:
        self._daemon = daemon
        self._core = daemon.core
        self.errors = daemon.errors
        self._events = events
        self._pressure = Pressure(self._core)
        self._history = History()
        #: What the shown groups had refused at the last look.
        self._counts: dict[GroupKey, Counts] = {}
        self._groups = PressuresView((), 0, 0, 0)
        self._coloured: tuple[str, ...] = ()
        self._number = 0
        self._view: LiveView | None = None
        self._looked = asyncio.Event()
        #: When each member was last one, those that are gone too.
        self._seen: dict[str, Nanos] = {}

    @property
    def _period_s(self) -> float:
        return max(PERIOD_MIN_S, self._core.settings.round_ns / NS_PER_S)

    async def follow(self) -> None:
        """Look once a round, for as long as the daemon runs."""
        loop = asyncio.get_running_loop()
        while True:
            due = loop.time() + self._period_s
            await self._look()
            await asyncio.sleep(max(0.0, due - loop.time()))

    async def _look(self) -> None:
        for _ in self._pressure.look():
            await asyncio.sleep(0)
        pressure = self._pressure
        # Policies may have changed since the look began.
        top = [row for row in pressure.top(ROWS_MAX) if self._is_limited(row)]
        keys = list(dict.fromkeys(row.key for row in top))
        now = self._daemon.now()
        table, counts = table_of(self._core, keys), counts_of(self._core, keys, now)
        self._coloured = coloured_of(table)
        rows = self._rows_of(top, table, counts)
        self._counts = counts
        self._groups = PressuresView(
            tuple(sorted((view for _, view in rows), key=lambda row: -row.pressure)),
            pressure.total,
            pressure.short,
            len(self._core.sharing.snapshot.groups),
        )
        self._history.add(rows, self._daemon.parts.clock.unix_ms())
        self._see(now)
        self._number += 1
        self._view = None
        looked, self._looked = self._looked, asyncio.Event()
        looked.set()

    def _see(self, now: Nanos) -> None:
        """Keep who is here, and who was."""
        here = dict.fromkeys(self._daemon.broker_names(), now)
        since = now - GONE_S * NS_PER_S
        gone = sorted((at, name) for name, at in self._seen.items() if at >= since)
        kept = [(at, name) for at, name in gone if name not in here][-GONE_MAX:]
        self._seen = here | {name: at for at, name in kept}

    # The door (rgd.ports.live_door).

    @contained("view")
    def view(self) -> LiveView:
        """The newest snapshot."""
        if self._view is None:
            self._view = self._snapshot()
        return self._view

    async def next(self, after: int) -> LiveView:
        """The newest snapshot, once its number is greater than this."""
        while self._number <= after:
            await self._looked.wait()
        return self.view()

    @contained("view")
    def group(self, name: str) -> LiveGroupView:
        """One group with all its brokers, and its last ten minutes."""
        group = self._core.sharing.snapshot.groups.get(name)
        if group is None:
            raise UnknownGroup(name)
        rows = self._rows_now(name, is_whole=True)
        found = (self._history.of(key) for key, _ in rows)
        history = tuple(one for one in found if one is not None)
        return LiveGroupView(name, group.blocked, tuple(view for _, view in rows), history)

    @contained("view")
    def rows(self, name: str) -> list[PressureView]:
        """The rows of a group; none where there is no such group."""
        return [view for _, view in self._rows_now(name, is_whole=False)]

    def events(self) -> tuple[EventView, ...]:
        """The last events of the daemon's log."""
        return self._events.all()

    def _is_limited(self, row: RowKey) -> bool:
        quota = self._core.sharing.policies.quota(row.key)
        group = self._core.sharing.snapshot.groups.get(row.key.group)
        return bool(group and not group.blocked) and quota.of(row.dimension) is not None

    def _rows_now(self, name: str, *, is_whole: bool) -> list[tuple[RowKey, PressureView]]:
        """The rows of a group as they are now, perhaps with each broker by itself."""
        rows = [
            RowKey(GroupKey(name, kind), dimension) for kind in KINDS for dimension in Dimension
        ]
        keys = list(dict.fromkeys(row.key for row in rows if self._is_limited(row)))
        now = self._daemon.now()
        return self._rows_of(
            [row for row in rows if row.key in keys and self._is_limited(row)],
            table_of(self._core, keys),
            counts_of(self._core, keys, now),
            is_whole=is_whole,
        )

    def _rows_of(
        self,
        rows: Sequence[RowKey],
        table: Table,
        counts: Mapping[GroupKey, Counts],
        *,
        is_whole: bool = False,
    ) -> list[tuple[RowKey, PressureView]]:
        """Those of the rows whose groups are in the table, with what was refused since the last look, if that read them."""
        coloured = None if is_whole else self._coloured
        views = []
        for row in rows:
            if row.key in table.keys:
                before = self._counts.get(row.key)
                refused = refused_between(before, counts[row.key], row.dimension)
                views.append((row, row_of(self._core, table, row, coloured, refused)))
        return views

    def _snapshot(self) -> LiveView:
        core, daemon, now = self._core, self._daemon, self._daemon.now()
        here = {*daemon.broker_names()}
        gone = {name: at for name, at in self._seen.items() if name not in here}
        health = daemon.health()
        brokers = members_view(core, now, gone)
        backlogs = backlogs_view(core)
        return LiveView(
            number=self._number,
            unix_ms=daemon.parts.clock.unix_ms(),
            round_s=core.settings.round_ns / NS_PER_S,
            version=__version__,
            broker=daemon.broker,
            cluster=daemon.cluster,
            verdict=verdict_of(
                ready=health.ready,
                degraded=health.degraded,
                brokers=brokers,
                groups=self._groups,
                backlogs=backlogs,
            ),
            ready=health.ready,
            degraded=health.degraded,
            brokers=brokers,
            coloured=self._coloured,
            groups=self._groups,
            backlogs=backlogs,
            leases=core.gate.ask(looks.leases).leases,
            log=self._log(),
            last_event=self._events.last,
        )

    def _log(self) -> LogView | None:
        parts = self._daemon.parts
        keeper = parts.log_keeper
        if keeper is None:
            return None
        lag = None if keeper.uploader is None else keeper.uploader.lag(parts.clock.unix_ms())
        tier = None
        if lag is not None:
            tier = TierView(
                lag.upload_records, lag.upload_bytes, lag.upload_segments, lag.upload_oldest_s
            )
        readers = tuple(
            ReaderView(one.name, one.behind, round(one.idle_s, 1), one.holds)
            for one in keeper.cursors()
        )
        return LogView(parts.usage_log.appended, parts.usage_log.lost, tier, readers)
