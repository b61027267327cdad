"""A broker's work with stock Pulsar brokers: taking in their reports, and reporting to them.

Laws: a stock broker's rows are in the usage map like a peer's, so shares are computed from one map;
`rgd.core.stock.members` has what they reported, `rgd.core.stock.steering` the rules. The daemons' reports of a group
sum to what rgd reports as a whole (`steering.foreign_usage`), because all of them compute it from the same map and
split it by the same shares.

Reports are sent at once after usage of stock brokers changed (of the changed groups), because a
stock broker calculates from the last report of each before its next calculation; and once in a
stock period of all groups, because the topic may lose any of them. Each daemon reports its part of
what rgd reports as a whole, so no daemon leads the others. Only the lowest live name reports for
those that are gone: zeros, because a stock broker never forgets a row.

A report is taken in at once. Reports to stock brokers are made in pieces of `StockBounds.report_groups` groups, one a wake.
"""

from collections import deque
from collections.abc import Collection, Iterable, Sequence
from typing import Final

import numpy as np

from rgd.core.broker.effects import Alarm, AlarmCode, Effect, SendStockReport
from rgd.core.broker.events import StockBrokersListed, StockReportReceived
from rgd.core.broker.settings import BrokerSettings
from rgd.core.broker.sharing import Sharing
from rgd.core.exchange.columns import UsageColumns, rates
from rgd.core.exchange.messages import Report, Sender
from rgd.core.exchange.peers import Peers
from rgd.core.exchange.rows import UsageRow
from rgd.core.exchange.usage_map import UsageMap
from rgd.core.policies.model import GroupKey
from rgd.core.stock.members import StockMembers
from rgd.core.stock.messages import GroupUsage, StockReport
from rgd.core.stock.names import is_of_rgd, is_service_url, stock_name
from rgd.core.stock.rows import Usage
from rgd.core.stock.steering import USAGE_MAX, foreign_usage, rate_of, split
from rgd.core.units import Kind, Nanos, Pair

#: How often in a stock period silent brokers are searched for.
CHECKS_A_PERIOD: Final = 4

#: Stock periods in which zeros are reported for a broker that is gone.
ZEROS_PERIODS: Final = 3

_UNKNOWN: Final = Pair(USAGE_MAX, USAGE_MAX)
_NOTHING: Final = Pair()


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
        #: What is still to be reported: in whose name, and some groups.
        self._unsent: deque[tuple[str, Sequence[str]]] = deque()
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
        due = [self._check_at]
        if self._sharing.mode.believes_map:
            due += (now if self._unsent else None, self._send_at, self._send_all_at)
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
        is_new = self.members.receive(report.broker, event.published_ms, event.now)
        if is_new is None:
            return []
        self.reports_received += 1
        effects: list[Effect] = []
        if is_new:
            self._welcome(event.now)
            effects.append(Alarm(AlarmCode.STOCK_BROKER_JOINED, report.broker))
        if self.members.is_newly_off_period(report.broker):
            effects.append(Alarm(AlarmCode.STOCK_PERIOD_DIFFERS, report.broker))
        changed = [row for entry in report.usage for row in self.members.put(report.broker, entry)]
        # A report names every group that its broker has registered.
        changed += self._drop(report.broker, {entry.group for entry in report.usage})
        self._apply(report.broker, changed, event.now)
        return effects

    def on_listed(self, event: StockBrokersListed) -> list[Effect]:
        """Note which stock brokers the admin API lists."""
        if self._period_ns:
            self.members.listed = event.names
            self._check_at = event.now if len(self.members) else None
        return []

    def work(self, now: Nanos) -> list[Effect]:
        """Do what is due, and send a piece of what is to be reported."""
        effects: list[Effect] = []
        if self._check_at is not None and now >= self._check_at:
            effects += self._check_silence(now)
        if not self._sharing.mode.believes_map:
            # A broker without shares from the map has nothing to report yet.
            return effects
        if not self._unsent:
            self._begin_due(now)
        if self._unsent:
            name, groups = self._unsent.popleft()
            is_own = name == self._own_name
            effects += self._post(name, self._entries(groups) if is_own else _nothing_used(groups))
        return effects

    def renew(self, now: Nanos) -> None:
        """Report all groups again, and apply the rows of which the usage map lacks some: policies changed."""
        for name in self.members.names():
            if self._usage.is_partial(name):
                keys = self.members.keys_of(name)
                rows = [(key, self.members.counted(name, key)) for key in keys]
                self._apply(name, rows, now, full=True)
        self._note_changed(self.members.groups(), now)

    def farewell(self) -> list[Effect]:
        """Report zeros, because this broker is leaving."""
        if not self.reports_sent:
            return []
        return [
            SendStockReport(StockReport(self._own_name, _nothing_used(groups)))
            for groups in self._pieces(self.members.groups())
        ]

    # Details.

    @property
    def _own_name(self) -> str:
        return stock_name(self._settings.sender.broker)

    def _pieces(self, groups: Sequence[str]) -> list[Sequence[str]]:
        count = self._bounds.report_groups
        return [groups[begin : begin + count] for begin in range(0, len(groups), count)]

    def _begin_due(self, now: Nanos) -> None:
        if self._send_all_at is not None and now >= self._send_all_at:
            self._send_all_at = Nanos(now + self._period_ns)
            self._send(self.members.groups(), now)
            self._send_zeros()
        elif self._send_at is not None and now >= self._send_at:
            self._send(list(self._changed), now)

    # Taking in.

    def _drop(self, name: str, kept: Collection[str] = ()) -> list[tuple[GroupKey, Usage]]:
        """Remove a broker's rows of all groups but these."""
        dropped = [key for key in self.members.keys_of(name) if key.group not in kept]
        for key in dropped:
            self.members.drop(name, key)
        return [(key, Pair()) for key in dropped]

    def _welcome(self, now: Nanos) -> None:
        self._sharing.refresh_all(now)
        if self._check_at is None:
            self._check_at = Nanos(now + self._period_ns // CHECKS_A_PERIOD)
            self._send_all_at = now

    def _apply(
        self, name: str, rows: Sequence[tuple[GroupKey, Usage]], now: Nanos, *, full: bool = False
    ) -> None:
        """Write rows to the usage map, and have their groups shared out and reported."""
        if not rows:
            return
        # A report may have a group twice; its last amounts count.
        columns = UsageColumns.of(*(self._row(*row) for row in dict(rows).items()))
        report = Report(Sender(name, 0), 0, self._period_ns, rows=columns, full=full)
        self._sharing.refresh(self._usage.apply(report), now)
        self._note_changed([key.group for key, _ in rows], now)

    def _note_changed(self, groups: Iterable[str], now: Nanos) -> None:
        self._changed.update(dict.fromkeys(groups))
        if self._changed and self._send_at is None:
            self._send_at = Nanos(max(now, self._rested_at))

    def _row(self, key: GroupKey, usage: Usage) -> UsageRow:
        if usage is None:
            admitted, wanted = Pair(), _UNKNOWN
        else:
            admitted = wanted = Pair(*(rate_of(count, self._period_ns) for count in usage))
        return UsageRow(key.group, key.kind, 1, admitted, wanted)

    # Leaving.

    def _check_silence(self, now: Nanos) -> list[Effect]:
        left, silent = self.members.silent(now)
        for name in left:
            # The other stock brokers would divide by its usage for ever.
            self._note_gone(name)
        for name in (*left, *silent):
            self._note_changed([key.group for key, _ in self._drop(name)], now)
            self.members.remove(name)
            self._usage.remove(name)
        if left or silent:
            self._sharing.refresh_all(now)
        self._check_at = Nanos(now + self._period_ns // CHECKS_A_PERIOD)
        if not len(self.members):
            self._check_at = self._send_at = self._send_all_at = None
        return [
            *(Alarm(AlarmCode.STOCK_BROKER_LEFT, name) for name in left),
            *(Alarm(AlarmCode.STOCK_BROKER_SILENT, name) for name in silent),
        ]

    def _note_gone(self, name: str) -> None:
        if len(self._gone) < self._bounds.gone_max:
            self._gone[name] = ZEROS_PERIODS

    # Reporting.

    def _send(self, groups: Sequence[str], now: Nanos) -> None:
        """Report some groups, among them all that changed."""
        self._unsent.extend((self._own_name, piece) for piece in self._pieces(groups))
        self._changed.clear()
        self._send_at = None
        rest_ns = max(self._settings.min_interval_ns, len(groups) * self._bounds.rest_ns)
        self._rested_at = Nanos(now + rest_ns)

    def _send_zeros(self) -> None:
        """Report zeros for brokers that are gone, if no live one has a lower name."""
        me = self._settings.sender.broker
        live = {me, *self._peers.names()}
        for name in sorted(self._known - live):
            self._note_gone(stock_name(name))
        self._known = live
        names = {stock_name(name) for name in live} | set(self.members.names())
        self._gone = {name: left for name, left in self._gone.items() if name not in names}
        if me == min(live):
            pieces = self._pieces(self.members.groups())
            self._unsent.extend((name, piece) for name in self._gone for piece in pieces)
        self._gone = {name: left - 1 for name, left in self._gone.items() if left > 1}

    def _post(self, name: str, entries: tuple[GroupUsage, ...]) -> list[SendStockReport]:
        self.reports_sent += bool(entries)
        return [SendStockReport(StockReport(name, entries))] if entries else []

    def _entries(self, groups: Sequence[str]) -> tuple[GroupUsage, ...]:
        """This broker's entries of some groups.

        A group without policies here is left out; one with usage that is not known yet is
        unchanged.
        """
        known = [name for name in groups if name in self._sharing.snapshot.groups]
        used = {key: self.members.used(key) for name in known for key in _keys_of(name)}
        reported = self._reported({key: pair for key, pair in used.items() if pair and any(pair)})
        entries = []
        for name in known:
            publish, dispatch = (
                None if used[key] is None else reported.get(key, _NOTHING) for key in _keys_of(name)
            )
            entries.append(GroupUsage(name, publish, dispatch))
        return tuple(entries)

    def _reported(self, used: dict[GroupKey, Pair]) -> dict[GroupKey, Pair]:
        """This broker's part of what rgd reports of groups that stock brokers use."""
        found = [(key, slot) for key in used if (slot := self._usage.index.find(key)) is not None]
        if not found:
            return {}
        keys = [key for key, _ in found]
        quota = rates(map(self._sharing.policies.quota, keys))
        index = self._sharing.broker_index
        slots = np.array([slot for _, slot in found], np.int64)
        policies = [self._sharing.policies.policy(key) for key in keys]
        table = index.share_out(slots, quota, policies, stock_is_hungry=True).of_all()
        is_stock = index.is_stock
        own = np.array([used[key] for key in keys], np.float64)
        whole = foreign_usage(
            own, quota, table[:, is_stock].sum(axis=1), self._settings.stock_period_ns
        )
        shares = np.maximum(table[:, ~is_stock], 0).swapaxes(0, 1)
        at = int(np.count_nonzero(~is_stock[: index.own]))
        return {
            key: Pair(*pair)
            for key, pair in zip(keys, split(whole, shares, at).tolist(), strict=True)
        }


def _nothing_used(groups: Iterable[str]) -> tuple[GroupUsage, ...]:
    """Entries of zeros: Pulsar never expires a row, so this takes it back."""
    return tuple(GroupUsage(name, _NOTHING, _NOTHING) for name in groups)


def _keys_of(group: str) -> tuple[GroupKey, GroupKey]:
    return GroupKey(group, Kind.PUBLISH), GroupKey(group, Kind.DISPATCH)
