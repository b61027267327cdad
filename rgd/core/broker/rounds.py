"""Ticks and rounds of this broker: closes time slots and windows, and picks rows for the peers.

Laws:

- Each window of each group is counted once, at the end of the round.
- The peers receive estimates (`rgd.core.demand.estimator`); the log receives the counts.
- A tick closes time slots and a round's end closes windows, both in pieces of at most
  `RoundBounds.piece_rows` rows, so that no peer's decrease waits for all of them.
- An early report carries the rows that have jumped; their counts stay in the open windows.

This is bookkeeping between `rgd.core.demand` and `rgd.core.exchange`. `rgd.core.broker.broker`
decides when a round ends. In names, "slots" are slot ids.
"""

from collections.abc import Sequence
from dataclasses import replace
from itertools import islice
from typing import Final

import numpy as np

from rgd.core.broker.settings import BrokerSettings
from rgd.core.broker.sharing import Sharing
from rgd.core.counts.page import Page
from rgd.core.demand.settings import DemandSettings
from rgd.core.demand.table import Closed, DemandTable, Measured
from rgd.core.exchange.columns import (
    NO_SHARES,
    NO_USAGE,
    REFUSED_BY,
    Flags,
    Ints,
    ShareColumns,
    UsageColumns,
)
from rgd.core.exchange.group_index import NO_SLOT, GroupIndex
from rgd.core.exchange.precision import rounded
from rgd.core.exchange.suppression import Suppression
from rgd.core.gate.port import News
from rgd.core.pairs import either
from rgd.core.policies.model import GroupKey
from rgd.core.shares.columns import NO_RATE
from rgd.core.units import Nanos

_NO_SLOTS: Final = np.zeros(0, np.int64)


class Rounds:
    """Turns the counts of requests into the rows of reports and log records."""

    def __init__(
        self, settings: BrokerSettings, news: News, sharing: Sharing, index: GroupIndex
    ) -> None:
        self._bounds = settings.bounds.rounds
        self._news = news
        self._sharing = sharing
        self.index = index
        self._min_interval_ns = settings.min_interval_ns
        self.demand = DemandTable(DemandSettings(settings.round_ns, settings.min_interval_ns), news)
        self.suppression = Suppression(
            index,
            sharing.quotas,
            sharing.moves_share,
            tolerance_ppm=settings.tolerance_ppm,
            full_every=settings.full_every_rounds,
        )
        #: The slot ids of rows whose windows are still to be closed in the round that ends.
        self._pending = _NO_SLOTS
        #: The rows of the round that ends for the log, piece by piece.
        self._shown = [NO_SHARES]
        #: [slots] whether the peers get the row of the round that ends.
        self._is_picked = np.zeros(0, np.bool_)
        #: [slots] whether a row was advertised early in the open round; the log marks it as sent.
        self._is_early = np.zeros(0, np.bool_)
        #: Slot ids advertised for the first time by the last early report; they are sent once more.
        self._follow_up = _NO_SLOTS
        #: When the last tick began, and how many counters it still has to collect.
        self._ticked_at = Nanos(-(1 << 62))
        self._ticking = 0
        #: Slot ids of groups that ask for an early report, in order: their demand jumped (`tick`), or they
        #: refused work and no report has shown it. The report empties it.
        self.urgent: dict[int, None] = {}
        #: [slots, messages or bytes, levels] work refused by each level that the log has, by slot id.
        self._logged = np.zeros((0, 2, len(REFUSED_BY)), np.int64)
        index.keep(self, {"_logged": 0, "_is_early": 0, "_is_picked": 0})
        self.is_ending = False
        #: Whether peers may have rows of another plane that this one has yet to measure. It reports none early and no full
        #: state until its first round has ended, so that the peers keep what they have.
        self.is_resuming = False
        self.rows_suppressed = 0

    @property
    def follows_up(self) -> bool:
        """Whether another early report should follow the last one."""
        return bool(len(self._follow_up) or self.urgent)

    def advertised_demand(self, keys: Sequence[GroupKey]) -> list[tuple[int, int]]:
        """[keys] the advertised demand of each group, (messages, bytes) in Milli per second."""
        slots = np.array([self._sharing.slot_of(key) for key in keys], np.int64)
        wanted = self.suppression.advertised_demand(slots)
        wanted[slots == NO_SLOT] = 0
        return [(messages, size) for messages, size in wanted.tolist()]

    @property
    def tick_at(self) -> Nanos | None:
        """When time slots are to be closed, or a row falls silent; None while neither may happen."""
        if self._ticking:
            return self._ticked_at
        if self._news.has_touched:
            return Nanos(self._ticked_at + self._min_interval_ns)
        return self.demand.silent_at

    def tick(self, now: Nanos) -> bool:
        """Close the time slots of a piece, and after the last one look for silent rows.

        Returns whether the demand of any row jumped or ended.
        """
        due = self.tick_at
        if due is None or now < due:
            return False
        if not self._ticking and self._news.has_touched:
            self._ticked_at = now
            self._ticking = self._news.touched_count()
        self.free_dropped()
        count = min(self._ticking, self._bounds.piece_rows)
        self._ticking -= count
        jumped = self.demand.tick(self._news.collect(count)).tolist() if count else []
        if not self._ticking:
            jumped += self.demand.fall_silent(now, self._bounds.piece_rows).tolist()
        self.urgent.update(dict.fromkeys(jumped))
        return bool(jumped)

    def resume(self, page: Page, wanted: Sequence[Sequence[int]], now: Nanos) -> None:
        """Begin with these readings of groups that another plane had, and their demand since the start."""
        slots = self.demand.resume(page, wanted, now)
        self._logged[slots] = self._refused(slots)

    @property
    def has_unreported(self) -> bool:
        """Whether work was refused that no report has shown."""
        return bool(self._news.unreported)

    def collect_unreported(self) -> None:
        """Have the next early report show the groups that refused work which no report has shown."""
        self.urgent.update(dict.fromkeys(self._news.unreported))
        self._news.unreported.clear()

    def free_dropped(self) -> None:
        """Free the rows of groups that no longer exist."""
        if self._news.dropped:
            # Once each: one may have been deleted, made and deleted again.
            slots = np.unique(np.array(self._news.dropped, np.int64))
            self._news.dropped.clear()
            self.demand.free(slots)
            self._logged[slots] = 0
            self._follow_up = self._follow_up[~np.isin(self._follow_up, slots)]
            for slot in slots.tolist():
                self.urgent.pop(slot, None)

    def early(self, now: Nanos) -> UsageColumns:
        """Pick rows that have jumped and are worth an early report, at most `early_groups`.

        The counts stay in their windows.
        """
        # First, because a group that is deleted and made again has no row until somebody asks.
        self.free_dropped()
        called = list(islice(self.urgent, self._bounds.early_groups))
        for slot in called:
            del self.urgent[slot]
        slots = np.array([*dict.fromkeys([*self._follow_up.tolist(), *called])], np.int64)
        slots = slots[self._sharing.exist(slots)]
        if not len(slots):
            self._follow_up = _NO_SLOTS
            return NO_USAGE
        self._follow_up = slots[~self.suppression.is_advertised(slots)]
        short = self._sharing.is_short(slots)
        measured = self.demand.measure(slots, now)
        rows = self.suppression.steadied(slots, self._rows(slots, measured))
        picked = self.suppression.pick(slots, rows, anyway=False)
        self._is_early[slots[picked]] = True
        self._advertise(slots, short, measured)
        return rows.take(picked)

    def begin(self) -> None:
        """Begin the end of a round."""
        self.is_ending = True
        self._follow_up = _NO_SLOTS
        self.suppression.next_round()
        self.free_dropped()
        self._pending = self.demand.begin(self._sharing.slots_in_use)

    def step(self, now: Nanos) -> bool:
        """End the round for a piece of the groups; whether this was the last one."""
        slots, self._pending = np.split(self._pending, [self._bounds.piece_rows])
        self._close(slots, now)
        self.is_ending = len(self._pending) > 0
        return not self.is_ending

    def finish(self) -> tuple[UsageColumns, ShareColumns]:
        """The rows of the ended round for the peers and for the log; the writers sort them."""
        # What was advertised of deleted groups is taken back; of some of these, rows were picked before.
        advertised = self.suppression.advertised_slots()
        gone = advertised[~self._sharing.is_in_use(advertised)]
        self.suppression.forget(gone)
        self._is_picked[gone] = True
        rows = self.suppression.advertised_at(np.flatnonzero(self._is_picked))
        shown, self._shown = ShareColumns.join(self._shown), [NO_SHARES]
        self._is_early[:] = self._is_picked[:] = False
        self.rows_suppressed += int(np.count_nonzero(~shown.sent))
        return rows, shown

    def _close(self, slots: Ints, now: Nanos) -> None:
        """Close the windows of some groups, pick the rows that are worth a report, and log all."""
        self.free_dropped()
        slots = slots[self._sharing.is_in_use(slots)]
        is_advertised = self.suppression.is_advertised(slots)
        closed = self.demand.close(slots, is_advertised, now)
        if closed is None:
            return
        slots, measured = closed.slots, closed.measured
        short = self._sharing.is_short(slots)
        rows = self.suppression.steadied(slots, self._rows(slots, measured))
        picked = self.suppression.pick(slots, rows)
        self._is_picked[slots[picked]] = True
        self._advertise(slots, short, measured)
        sent = self._is_early[slots]
        sent[picked] = True
        self._shown.append(self._show(closed, rows, sent))

    def _show(self, closed: Closed, rows: UsageColumns, sent: Flags) -> ShareColumns:
        """The log rows of closed windows: the counts, and the shares and quotas in force."""
        slots = closed.slots
        return ShareColumns(
            usage=replace(rows, admitted=closed.admitted, wanted=closed.wanted),
            share=self._sharing.in_force(slots),
            quota=self._sharing.quotas(slots),
            policies=self._sharing.policies.codes(slots),
            refused=closed.refused,
            sent=sent,
            admitted_total=closed.admitted_total,
            wanted_total=closed.wanted_total,
            refused_by=self._refused_by(slots, closed.refused),
        )

    def _advertise(self, slots: Ints, short: Flags, measured: Measured) -> None:
        """Give the demand table what is advertised, so that it detects the next jump."""
        advertised = self.suppression.advertised_demand(slots)
        limited = self._sharing.quotas(slots) != NO_RATE
        self.demand.advertise(slots, advertised, measured.estimates, limited, short)
        are_known = self.suppression.is_advertised(slots).tolist()
        self._news.report(zip(slots.tolist(), are_known, strict=True))

    def _rows(self, slots: Ints, measured: Measured) -> UsageColumns:
        """The rows of some groups as a report would send them: rates in the precision of reports."""
        return UsageColumns(
            groups=self.index.names(slots),
            kinds=self.index.kinds[slots],
            topics=measured.topics,
            admitted=rounded(measured.admitted),
            wanted=rounded(measured.estimates.wanted),
        )

    def _refused_by(self, slots: Ints, refused: Ints) -> Ints:
        """[slots, REFUSED_BY, 2] work that each level refused since the last log record, or empty.

        Only groups with refused work are asked for it, because the sums of each take a microsecond.

        Args:
            slots: the groups.
            refused: [slots, 2] what was refused of each and is its demand; what backlogs refused is none.
        """
        backlogged = [slot in self._news.backlogged for slot in slots.tolist()]
        asked = np.flatnonzero(either(refused != 0) | np.array(backlogged, np.bool_))
        if not len(asked):
            return np.zeros((0, len(REFUSED_BY), 2), np.int64)
        levels = np.zeros((len(slots), 2, len(REFUSED_BY)), np.int64)
        slots = slots[asked]
        totals = self._refused(slots)
        self._news.backlogged.difference_update(slots.tolist())
        levels[asked], self._logged[slots] = totals - self._logged[slots], totals
        return levels.swapaxes(1, 2)

    def _refused(self, slots: Ints) -> Ints:
        """[slots, messages or bytes, levels] work refused by each level since the gate's start."""
        totals = np.frombuffer(self._news.refused(slots.tolist()), np.int64)
        return totals.reshape(-1, *self._logged.shape[1:])
