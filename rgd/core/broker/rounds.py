"""Ticks and rounds of this broker: closes time slots and windows, and picks rows for the peers.

Laws:

- Each window of each group is counted once, at the end of the round.
- The peers receive estimates (`rgd.core.demand.estimator`); the log receives the counts.
- A tick closes time slots and a round's end closes windows, both in slices of at most
  `RoundBounds.block_rows` rows, so that no request waits for all of them.
- An early report carries the rows that have jumped; their counts stay in the open windows.

This is bookkeeping between `rgd.core.demand` and `rgd.core.exchange`. `rgd.core.broker.broker`
decides when a round ends. In names, "slots" are slot ids.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import chain, compress, islice
from typing import Final, NamedTuple

import numpy as np

from rgd.core.broker.settings import BrokerSettings
from rgd.core.broker.sharing import Sharing
from rgd.core.buckets.decision import Level
from rgd.core.buckets.level import GroupKey, GroupState
from rgd.core.buckets.limiter import Limiter
from rgd.core.demand.counters import FREED, Counters
from rgd.core.demand.settings import DemandSettings
from rgd.core.demand.table import Closed, DemandTable, Measured
from rgd.core.exchange.columns import (
    NO_USAGE,
    REFUSED_BY,
    Codes,
    Flags,
    Ints,
    ShareColumns,
    UsageColumns,
    kind_code,
)
from rgd.core.exchange.group_index import NO_SLOT, GroupIndex
from rgd.core.exchange.precision import rounded
from rgd.core.exchange.suppression import Suppression, SuppressionSettings
from rgd.core.pairs import either
from rgd.core.shares.columns import NO_RATE
from rgd.core.units import Nanos

_NO_ROWS: Final = np.zeros(0, np.int64)


class _Block(NamedTuple):
    """Groups whose windows were closed, and the results."""

    states: Sequence[GroupState]
    slots: Ints
    kinds: Codes
    short: Flags
    closed: Closed


class Rounds:
    """Turns the counts of requests into the rows of reports and log records."""

    def __init__(
        self, settings: BrokerSettings, limiter: Limiter, sharing: Sharing, index: GroupIndex
    ) -> None:
        self._bounds = settings.bounds.rounds
        self._limiter = limiter
        self._news = limiter.news
        self._sharing = sharing
        self.index = index
        self._min_interval_ns = settings.min_interval_ns
        self.demand = DemandTable(DemandSettings(settings.round_ns, settings.min_interval_ns))
        self.suppression = Suppression(
            SuppressionSettings(settings.tolerance_ppm, settings.full_every_rounds),
            index,
            sharing.quotas,
            sharing.moves_share,
        )
        #: The rows whose windows are still to be closed in the round that ends.
        self._pending = _NO_ROWS
        #: Whether the round that ends has few groups, and ends in one call.
        self.is_small = True
        #: The block that is closed and not logged yet.
        self._block: _Block | None = None
        #: How many windows were closed in the round that ends.
        self._closed = 0
        #: The rows of the round that ends: for the log, and for the peers.
        self._shown: list[ShareColumns] = []
        self._picked: list[UsageColumns] = []
        #: The rows of the round for the peers and for the log, once they are joined.
        self._joined: tuple[UsageColumns, ShareColumns] | None = None
        #: Slot ids advertised early in the open round; the log marks them as sent.
        self._sent_early: set[int] = set()
        #: Groups advertised for the first time by the last early report; they are sent once more.
        self._follow_up: list[GroupState] = []
        #: When the last tick began, and how many counters it still has to collect.
        self._ticked_at = Nanos(-(1 << 62))
        self._ticking = 0
        #: Groups that ask for an early report, in order: their demand jumped (`tick`), or they refused
        #: work and no report has shown it (`call_out`). The report empties it.
        self.urgent: dict[GroupKey, None] = {}
        self.is_ending = False
        #: How many groups slices have worked on since the start.
        self.groups_worked = 0
        self.rows_suppressed = 0
        #: How many windows were closed and not logged, because of a fault.
        self.windows_lost = 0

    @property
    def follows_up(self) -> bool:
        """Whether another early report should follow the last one."""
        return bool(self._follow_up or self.urgent)

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
        if self._news.touched:
            return Nanos(self._ticked_at + self._min_interval_ns)
        return self.demand.silent_at

    def tick(self, now: Nanos) -> bool:
        """Close the time slots of a block of groups, and after the last one look for silent rows.

        Returns whether the demand of any row jumped or ended.
        """
        due = self.tick_at
        if due is None or now < due:
            return False
        if not self._ticking and self._news.touched:
            self._ticked_at = now
            self._ticking = len(self._news.touched)
        self._free_dropped()
        collected = self._news.collect(min(self._ticking, self._bounds.block_rows))
        self._ticking -= len(collected)
        block = [one for one in collected if one.row != FREED]
        self.groups_worked += len(block)
        jumped = self.demand.tick(block) if block else []
        if not self._ticking:
            jumped += self.demand.fall_silent(now, self._bounds.block_rows)
        self._call_out(jumped)
        return bool(jumped)

    @property
    def has_unreported(self) -> bool:
        """Whether work was refused that no report has shown."""
        return bool(self._news.unreported)

    def collect_unreported(self) -> None:
        """Have the next early report show the groups that refused work which no report has shown."""
        self._call_out(self._news.unreported)
        self._news.unreported.clear()

    def _call_out(self, counters: Iterable[Counters]) -> None:
        self.urgent.update((state_of(one).key, None) for one in counters)

    def _free_dropped(self) -> None:
        """Free the rows of groups that no longer exist, but for a block that is still to be logged."""
        while self._news.dropped and self._block is None:
            self.demand.free(self._news.dropped.pop())

    def early(self, now: Nanos) -> UsageColumns:
        """Pick rows that have jumped and are worth an early report, at most a slice.

        The counts stay in their windows.
        """
        keys = list(islice(self.urgent, self._bounds.slice_groups))
        for key in keys:
            del self.urgent[key]
        self._free_dropped()
        called = [state for key in keys if (state := self._limiter.state(key)) is not None]
        states = list(dict.fromkeys([*self._follow_up, *called]))
        slots = self._slots_of([state.counters for state in states])
        has_slot = [slot != NO_SLOT for slot in slots.tolist()]
        states, slots = list(compress(states, has_slot)), slots[has_slot]
        if not states:
            return NO_USAGE
        is_new = ~self.suppression.is_advertised(slots)
        self._follow_up = [state for state, new in zip(states, is_new.tolist(), strict=True) if new]
        short = self._sharing.is_short(slots)
        counters = self._counters(states)
        measured = self.demand.measure(counters, now)
        rows = self.suppression.steadied(slots, _rows(states, _kinds(states), measured))
        picked = self.suppression.pick(slots, rows, anyway=False)
        self._sent_early.update(slots[picked].tolist())
        self._advertise(states, slots, short, measured)
        return rows.take(picked)

    def begin(self, now: Nanos) -> None:
        """Begin the end of a round."""
        self.is_ending = True
        self._follow_up = []
        self.suppression.next_round()
        self._joined, self._closed = None, 0
        self._free_dropped()
        touched = [one for one in self._news.touched if one.row != FREED]
        self._pending = self.demand.begin(touched, now)
        self._shown, self._picked = [], []
        self.is_small = len(self._pending) <= self._bounds.slice_groups

    def step(self, now: Nanos) -> bool:
        """End the round for a slice of the groups; whether this was the last slice."""
        self._step(now)
        while self.is_small and self.is_ending:
            # A round of few groups ends in one call.
            self._step(now)
        return not self.is_ending

    def recover(self) -> None:
        """Give up the round that is ending after a fault, and derive again what is advertised; open windows stay open."""
        if self.is_ending or self._joined is not None:
            self.windows_lost += self._closed
        self._pending, self._block = _NO_ROWS, None
        self._joined = None
        self.is_ending = False
        self.suppression.rehash()
        self.demand.recover()

    def _step(self, now: Nanos) -> None:
        """Close the windows of a block, or pick its rows and log it."""
        if self._block is not None:
            self.groups_worked += len(self._block.states)
            self._log(self._block)
            self._block = None
        elif len(self._pending):
            self._close(now)
        elif self._joined is not None:
            self.is_ending = False
        else:
            # Joining 100,000 rows and reporting them are a slice each.
            self._joined = self._join()

    def finish(self) -> tuple[UsageColumns, ShareColumns]:
        """The rows of the ended round for the peers and for the log; the writers sort them."""
        joined, self._joined = self._joined, None
        assert joined is not None, "no round has ended"
        self._sent_early.clear()
        return joined

    def _join(self) -> tuple[UsageColumns, ShareColumns]:
        picked, shown = UsageColumns.join(self._picked), ShareColumns.join(self._shown)
        # What was advertised of deleted groups is taken back; of some of these, rows were picked before.
        advertised = self.suppression.advertised_slots()
        gone = self.suppression.forget(advertised[~self._sharing.is_in_use(advertised)])
        if len(gone):
            picked = UsageColumns.join([_without(picked, gone), gone])
        self._picked, self._shown = [], []
        self.rows_suppressed += int(np.count_nonzero(~shown.sent))
        return picked, shown

    def forget(self, slots: Ints) -> None:
        """Reset slot ids that are freed."""
        self._sent_early.difference_update(slots.tolist())

    def _close(self, now: Nanos) -> None:
        """Close the windows of a block of groups."""
        self._free_dropped()
        rows, self._pending = np.split(self._pending, [self._bounds.block_rows])
        of_rows = [self.demand.counters[row] for row in rows.tolist()]
        counters = [one for one in of_rows if one is not None]
        self.groups_worked += len(counters)
        slots = self._slots_of(counters)
        has_slot = slots != NO_SLOT
        if not has_slot.all():
            counters = [counters[at] for at in np.flatnonzero(has_slot).tolist()]
            slots = slots[has_slot]
        self._closed += len(counters)
        short = self._sharing.is_short(slots)
        closed = self.demand.close(counters, self.suppression.is_advertised(slots), now)
        if closed is None:
            return
        kept = closed.kept
        states = [state_of(counters[at]) for at in kept.tolist()]
        kinds = _kinds(states)
        self._block = _Block(states, slots[kept], kinds, short[kept], closed)

    def _log(self, block: _Block) -> None:
        """Pick the rows that are worth a report, note what is advertised, and log the block."""
        rows = _rows(block.states, block.kinds, block.closed.measured)
        rows = self.suppression.steadied(block.slots, rows)
        picked = self.suppression.pick(block.slots, rows)
        self._picked.append(rows.take(picked))
        self._advertise(block.states, block.slots, block.short, block.closed.measured)
        # One by one, because the set may have 100,000, and a block some hundreds.
        is_early = map(self._sent_early.__contains__, block.slots.tolist())
        sent = np.fromiter(is_early, np.bool_, len(block.slots))
        sent[picked] = True
        self._shown.append(self._show(block, rows, sent))

    def _show(self, block: _Block, rows: UsageColumns, sent: Flags) -> ShareColumns:
        """The log rows of a block: the counts, and the shares and quotas in force."""
        closed, slots = block.closed, block.slots
        return ShareColumns(
            usage=replace(rows, admitted=closed.admitted, wanted=closed.wanted),
            share=self._sharing.in_force(slots),
            quota=self._sharing.quotas(slots),
            policies=self._sharing.policies(slots),
            refused=closed.refused,
            sent=sent,
            admitted_total=closed.admitted_total,
            wanted_total=closed.wanted_total,
            refused_by=_refused_by(block.states, closed.refused),
        )

    def _advertise(
        self, states: Sequence[GroupState], slots: Ints, short: Flags, measured: Measured
    ) -> None:
        """Give the demand table what is advertised, so that it detects the next jump."""
        advertised = self.suppression.advertised_demand(slots)
        limited = self._sharing.quotas(slots) != NO_RATE
        counters = [state.counters for state in states]
        self.demand.advertise(counters, advertised, measured.estimates, limited, short)
        is_advertised = self.suppression.is_advertised(slots).tolist()
        for state, known in zip(states, is_advertised, strict=True):
            state.reported = known

    def _counters(self, states: Iterable[GroupState]) -> list[Counters]:
        """The counters of some groups; each gets a row in the table."""
        row_of = self.demand.row_of
        counters = [state.counters for state in states]
        for one in counters:
            row_of(one)
        return counters

    def _slots_of(self, counters: Sequence[Counters]) -> Ints:
        """[counters] slot ids, `NO_SLOT` for none; a group keeps its own until it is dropped."""
        for one in counters:
            if one.slot == NO_SLOT and one.row != FREED:
                one.slot = self._sharing.slot_of(state_of(one).key)
        return _column([one.slot for one in counters])


def state_of(counters: Counters) -> GroupState:
    """The group that the counters belong to."""
    state = counters.state
    assert isinstance(state, GroupState), "counters are a group's"
    return state


def _kinds(states: Iterable[GroupState]) -> Codes:
    return np.array([kind_code(state.key.kind) for state in states], np.uint8)


def _column(numbers: Sequence[int]) -> Ints:
    return np.array(numbers, np.int64)


def _rows(states: Sequence[GroupState], kinds: Codes, measured: Measured) -> UsageColumns:
    """The rows of some groups as a report would send them: rates in the precision of reports."""
    return UsageColumns(
        groups=tuple(state.key.group for state in states),
        kinds=kinds,
        topics=measured.topics,
        admitted=rounded(measured.admitted),
        wanted=rounded(measured.estimates.wanted),
    )


def _refused_by(states: Sequence[GroupState], refused: Ints) -> Ints:
    """[states, REFUSED_BY, 2] work that each level refused since the last log record, or empty.

    Only groups with refused work are read, because the sums of each take a microsecond.

    Args:
        states: the groups.
        refused: [states, 2] what was refused of each and is its demand; what backlogs refused is none.
    """
    is_asked = np.logical_or(either(refused != 0), [state.is_unlogged for state in states])
    asked = np.flatnonzero(is_asked)
    if not len(asked):
        return np.zeros((0, len(REFUSED_BY), 2), np.int64)
    levels = np.zeros((len(states), len(REFUSED_BY), 2), np.int64)
    taken = chain.from_iterable([states[place].take_refused() for place in asked.tolist()])
    # Numpy takes twice as long to read lists.
    numbers = np.fromiter(taken, np.int64, len(asked) * 2 * len(Level))
    levels[asked, : len(Level)] = numbers.reshape(-1, 2, len(Level)).swapaxes(1, 2)
    return levels


def _without(rows: UsageColumns, gone: UsageColumns) -> UsageColumns:
    """The rows of all groups but some."""
    keys = set(zip(gone.groups, gone.kinds.tolist(), strict=True))
    rest = enumerate(zip(rows.groups, rows.kinds.tolist(), strict=True))
    kept = [at for at, key in rest if key not in keys]
    return rows.take(np.array(kept, np.int64))
