"""A broker's work with stock Pulsar brokers: taking in their reports, and reporting to them.

Law: a stock broker's rows are in the usage map like a peer's, so shares are computed from one map;
`rgd.core.stock.members` has what they reported, `rgd.core.stock.steering` the rules.

Reports are sent at once after usage of stock brokers changed (of the changed groups), because a
stock broker calculates from the last report of each before its next calculation; and once in a
stock period of all groups, because the topic may lose any of them. Each daemon reports its part of
what rgd reports as a whole, so no daemon leads the others. Only the lowest live name reports for
those that are gone: zeros, because a stock broker never forgets a row.

All of it is done in slices, one task after another.
"""

from collections import deque
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import islice
from typing import Final

from rgd.core.broker.effects import Alarm, AlarmCode, Effect, SendStockReport
from rgd.core.broker.events import StockBrokersListed, StockReportReceived
from rgd.core.broker.settings import BrokerSettings
from rgd.core.broker.sharing import Sharing
from rgd.core.broker.stock_reports import StockReports, in_parts, nothing_used
from rgd.core.exchange.columns import UsageColumns
from rgd.core.exchange.messages import Report, Sender
from rgd.core.exchange.peers import Peers
from rgd.core.exchange.rows import UsageRow
from rgd.core.exchange.usage_map import UsageMap
from rgd.core.policies.model import GroupKey
from rgd.core.stock.members import StockMembers
from rgd.core.stock.messages import GroupUsage
from rgd.core.stock.names import is_of_rgd, is_service_url, stock_name
from rgd.core.stock.rows import Usage
from rgd.core.stock.steering import USAGE_MAX, rate_of
from rgd.core.units import Kind, Nanos, Pair

#: How often in a stock period silent brokers are searched for.
CHECKS_A_PERIOD: Final = 4

#: Stock periods in which zeros are reported for a broker that is gone.
ZEROS_PERIODS: Final = 3

_ENDED: Final = object()
_UNKNOWN: Final = Pair(USAGE_MAX, USAGE_MAX)


class StockWork:
    """The stock brokers of one broker's exchange; without a stock period it does nothing."""

    def __init__(
        self, settings: BrokerSettings, usage: UsageMap, sharing: Sharing, peers: Peers
    ) -> None:
        self._settings = settings
        self._bounds = settings.bounds.stock
        self._period_ns = settings.stock_period_ns
        self._usage = usage
        self._sharing = sharing
        self._peers = peers
        self.members = StockMembers(self._period_ns, self._bounds)
        sharing.broker_index.stock_names = self.members.names
        self._reports = StockReports(settings, self.members, usage, sharing)
        self._tasks: deque[Iterator[None]] = deque()
        self._pending = self._pending_entries = 0
        self._effects: list[Effect] = []
        self._now = Nanos(0)
        #: Groups whose usage changed since a report was sent.
        self._changed: dict[str, None] = {}
        #: When the changed groups, and all groups, are to be reported, and not before when.
        self._rested_at = Nanos(0)
        self._send_at: Nanos | None = None
        self._send_all_at: Nanos | None = None
        self._check_at: Nanos | None = None
        #: The rgd brokers that may have reported, and for how long to report zeros for whom.
        self._known = set(settings.stored_peers)
        self._gone: dict[str, int] = {}
        #: How many reports were received, and sent.
        self.reports_received = 0
        self.reports_sent = 0

    def due_at(self, now: Nanos) -> Nanos | None:
        """When `work` has work; None where it has none."""
        if self._tasks:
            return now
        due = (self._send_at, self._send_all_at, self._check_at)
        return min([at for at in due if at is not None], default=None)

    def on_report(self, event: StockReportReceived) -> list[Effect]:
        """Take in a report of a stock broker."""
        report = event.report
        if not self._period_ns or is_of_rgd(report.broker):
            return []
        # Another name may be that of an rgd broker that joins later: one broker cannot be both.
        is_ours = self._peers.get(report.broker) or report.broker == self._settings.sender.broker
        if is_ours or not is_service_url(report.broker):
            self.members.refused["name"] += 1
            return []
        entries, bounds = len(report.usage), self._bounds
        pending_entries = self._pending_entries + entries
        if self._pending >= bounds.pending_max or pending_entries > bounds.pending_entries_max:
            self.members.refused["pending"] += 1
            return []
        self._pending += 1
        self._pending_entries = pending_entries
        is_alone = not self._tasks
        self._tasks.append(self._take(event))
        return self.work(event.now) if is_alone else []

    def on_listed(self, event: StockBrokersListed) -> list[Effect]:
        """Note which stock brokers the admin API lists."""
        if self._period_ns:
            self.members.listed = event.names
            self._check_at = event.now if len(self.members) else None
        return []

    def work(self, now: Nanos) -> list[Effect]:
        """Do a slice of what is due."""
        self._now = now
        if not self._tasks:
            self._begin_due(now)
        if self._tasks:
            task = self._tasks.popleft()
            # A task that raises is not continued; later reports repair what it left undone.
            if next(task, _ENDED) is not _ENDED:
                self._tasks.appendleft(task)
        effects, self._effects = self._effects, []
        return effects

    def renew(self, now: Nanos) -> None:
        """Apply all rows to the usage map again, because it may lack some: policies changed."""
        if len(self.members):
            self._now = now
            self._tasks.append(self._apply_all())

    def farewell(self) -> list[Effect]:
        """Report zeros, because this broker is leaving."""
        if not self.reports_sent:
            return []
        groups = self.members.groups()
        return [
            SendStockReport(part)
            for begin in range(0, len(groups), self._bounds.report_groups)
            for part in in_parts(
                self._own_name, nothing_used(groups[begin : begin + self._bounds.report_groups])
            )
        ]

    # Details.

    @property
    def _own_name(self) -> str:
        return stock_name(self._settings.sender.broker)

    def _begin_due(self, now: Nanos) -> None:
        if self._check_at is not None and now >= self._check_at:
            self._check_silence(now)
        if self._send_all_at is not None and now >= self._send_all_at:
            self._tasks.append(self._send_all())
        elif self._send_at is not None and now >= self._send_at:
            groups = list(self._changed)
            self._changed.clear()
            self._tasks.append(self._send(groups))
        else:
            return
        self._send_at = None

    # Taking in.

    def _take(self, event: StockReportReceived) -> Iterator[None]:
        report = event.report
        self._pending -= 1
        self._pending_entries -= len(report.usage)
        is_new = self.members.receive(report.broker, event.published_ms, event.now)
        if is_new is None:
            return
        self.reports_received += 1
        if is_new:
            self._welcome(report.broker)
        if self.members.is_newly_off_period(report.broker):
            self._alert(AlarmCode.STOCK_PERIOD_DIFFERS, report.broker)
        entries, groups = iter(report.usage), set[str]()
        while some := list(islice(entries, self._bounds.slice_entries)):
            changed = [row for entry in some for row in self.members.put(report.broker, entry)]
            self._apply(report.broker, changed)
            groups.update(entry.group for entry in some)
            yield
        # A report names every group that its broker has registered.
        yield from self._drop(report.broker, groups)

    def _drop(self, name: str, kept: Collection[str] = ()) -> Iterator[None]:
        """Remove a broker's rows of all groups but these."""
        dropped: list[GroupKey] = []
        for seen, key in enumerate(self.members.keys_of(name), 1):
            if key.group not in kept:
                self.members.drop(name, key)
                dropped.append(key)
            if len(dropped) == self._bounds.slice_entries or seen % self._bounds.slice_keys == 0:
                self._apply(name, [(key, Pair()) for key in dropped])
                dropped = []
                yield
        self._apply(name, [(key, Pair()) for key in dropped])

    def _welcome(self, name: str) -> None:
        self._sharing.refresh_all(self._now)
        self._alert(AlarmCode.STOCK_BROKER_JOINED, name)
        if self._check_at is None:
            self._check_at = Nanos(self._now + self._period_ns // CHECKS_A_PERIOD)
            self._send_all_at = self._now

    def _apply(self, name: str, rows: Sequence[tuple[GroupKey, Usage]]) -> None:
        """Write rows to the usage map, and have their groups shared out and reported."""
        if not rows:
            return
        # A report may have a group twice; its last amounts count.
        columns = UsageColumns.of(*(self._row(*row) for row in dict(rows).items()))
        report = Report(Sender(name, 0), 0, self._period_ns, rows=columns)
        self._sharing.refresh(self._usage.apply(report), self._now)
        self._changed.update((key.group, None) for key, _ in rows)
        if self._send_at is None:
            self._send_at = Nanos(max(self._now, self._rested_at))

    def _row(self, key: GroupKey, usage: Usage) -> UsageRow:
        if usage is None:
            admitted, wanted = Pair(), _UNKNOWN
        else:
            admitted = wanted = Pair(*(rate_of(count, self._period_ns) for count in usage))
        return UsageRow(key.group, key.kind, 1, admitted, wanted)

    def _apply_all(self) -> Iterator[None]:
        for name in self.members.names():
            keys = self.members.keys_of(name)
            for begin in range(0, len(keys), self._bounds.slice_entries):
                some = keys[begin : begin + self._bounds.slice_entries]
                self._apply(name, [(key, self.members.counted(name, key)) for key in some])
                yield

    # Leaving.

    def _check_silence(self, now: Nanos) -> None:
        left, silent = self.members.silent(now)
        self._tasks.extend(self._part_with(name, AlarmCode.STOCK_BROKER_LEFT) for name in left)
        self._tasks.extend(self._part_with(name, AlarmCode.STOCK_BROKER_SILENT) for name in silent)
        self._check_at = Nanos(now + self._period_ns // CHECKS_A_PERIOD)

    def _part_with(self, name: str, why: AlarmCode) -> Iterator[None]:
        if self.members.get(name) is None:
            return
        if why is AlarmCode.STOCK_BROKER_LEFT:
            # The other stock brokers would divide by its usage for ever.
            self._note_gone(name)
        yield from self._drop(name)
        self.members.remove(name)
        self._usage.remove(name)
        self._sharing.refresh_all(self._now)
        self._alert(why, name)
        if not len(self.members):
            self._check_at = self._send_at = self._send_all_at = None

    def _note_gone(self, name: str) -> None:
        if len(self._gone) < self._bounds.gone_max:
            self._gone[name] = ZEROS_PERIODS

    # Reporting.

    def _send_all(self) -> Iterator[None]:
        self._send_all_at = Nanos(self._now + self._period_ns)
        self._changed.clear()
        groups = self.members.groups()
        yield from self._send(groups)
        if not self._sharing.mode.believes_map:
            return
        me = self._settings.sender.broker
        live = {me, *self._peers.names()}
        for name in sorted(self._known - live):
            self._note_gone(stock_name(name))
        self._known = live
        names = {stock_name(name) for name in live} | set(self.members.names())
        self._gone = {name: left for name, left in self._gone.items() if name not in names}
        for name in list(self._gone):
            for begin in range(
                0, len(groups) if me == min(live) else 0, self._bounds.report_groups
            ):
                self._post(name, nothing_used(groups[begin : begin + self._bounds.report_groups]))
                yield
            self._gone[name] -= 1
            if not self._gone[name]:
                del self._gone[name]

    def _send(self, groups: Sequence[str]) -> Iterator[None]:
        """Report some groups; a broker without shares from the map has nothing to report."""
        a_slice = self._groups_a_slice
        rest_ns = max(self._settings.min_interval_ns, len(groups) * self._bounds.rest_ns // a_slice)
        self._rested_at = Nanos(self._now + rest_ns)
        entries: list[GroupUsage] = []
        for begin in range(0, len(groups), a_slice):
            if not self._sharing.mode.believes_map:
                return
            some = groups[begin : begin + a_slice]
            entries += self._reports.entries(some)
            if len(entries) + self._bounds.slice_groups > self._bounds.report_groups:
                self._post(self._own_name, entries)
                entries = []
            yield
        self._post(self._own_name, entries)

    @property
    def _groups_a_slice(self) -> int:
        shares_of_group = len(Kind) * len(self._sharing.brokers)
        return max(1, min(self._bounds.slice_groups, self._bounds.slice_shares // shares_of_group))

    def _post(self, name: str, entries: Iterable[GroupUsage]) -> None:
        effects = [SendStockReport(report) for report in in_parts(name, entries)]
        self.reports_sent += len(effects)
        self._effects += effects

    def _alert(self, code: AlarmCode, name: str) -> None:
        self._effects.append(Alarm(code, name))
