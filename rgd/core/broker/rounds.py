"""What a round of this broker says: rows out of the meters, picked for the peers.

Laws: each window of each group is counted once, at the end of the round; the
peers are told estimates (`rgd.core.demand.estimator`), the log what was counted.
A round of many groups ends in slices: windows are closed `SLICE_GROUPS` at a time,
and `BATCH_GROUPS` reckoned with at a time, so that no request waits for all of
them; an early report tells what has jumped and counts nothing.

Pure bookkeeping between `rgd.core.demand` and `rgd.core.exchange`; when a round
ends is `rgd.core.broker.broker`'s business.
"""

from collections import deque
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

import numpy as np

from rgd.core.broker.settings import BrokerSettings
from rgd.core.broker.sharing import Sharing
from rgd.core.buckets.level import GroupKey, GroupState
from rgd.core.buckets.limiter import Limiter
from rgd.core.demand.counters import Counters
from rgd.core.demand.estimator import Estimates, Estimator, EstimatorSettings
from rgd.core.demand.expected import expectations
from rgd.core.demand.inputs import seen_of
from rgd.core.demand.measured import Demand, Measured
from rgd.core.exchange.columns import (
    KINDS,
    NO_USAGE,
    Flags,
    Ints,
    ShareColumns,
    UsageColumns,
    kind_code,
    pairs,
    policy_code,
    rates,
)
from rgd.core.exchange.group_index import NO_PLACE, GroupIndex
from rgd.core.exchange.suppression import Suppression, SuppressionSettings
from rgd.core.shares.columns import NO_RATE
from rgd.core.units import COUNT_MAX, Nanos, Pair

#: Groups whose windows are closed in one go, and those that are then estimated in one go, and told
#: and logged in another: each under 2 ms of one core. Closing is work for each group, and estimating
#: mostly for each go.
SLICE_GROUPS: Final = 64
BATCH_GROUPS: Final = 192

#: How often one round goes on after something raised in it; then it is given up.
FAULTS_A_ROUND: Final = 1

#: By how many groups the next round begins elsewhere after a fault, so that those which were lost with
#: the group at fault are not the same ones in each round.
FAULT_SHIFT: Final = 61


class _Drained(NamedTuple):
    """A group whose window was closed."""

    place: int
    state: GroupState
    demand: Demand


class _Reckoned(NamedTuple):
    """What came out for a batch of groups."""

    states: Sequence[GroupState]
    demands: Sequence[Demand]
    places: Ints
    estimates: Estimates
    short: Flags
    rows: UsageColumns
    #: Places in `rows` of what the peers are told.
    picked: Ints


class Rounds:
    """Turns what the meters counted into reports and log records."""

    def __init__(
        self, settings: BrokerSettings, limiter: Limiter, sharing: Sharing, index: GroupIndex
    ) -> None:
        self._limiter = limiter
        self._sharing = sharing
        self._index = index
        self._min_interval_ns = settings.min_interval_ns
        self._estimator = Estimator(EstimatorSettings(settings.round_ns, settings.min_interval_ns))
        self._suppression = Suppression(
            SuppressionSettings(settings.tolerance_ppm, settings.full_every_rounds),
            index,
            sharing.quotas,
            sharing.moves_share,
        )
        #: What is left to do of the round that ends, and what was done of it.
        self._pending: deque[GroupState] = deque()
        self._is_small = True
        self._drained: list[_Drained] = []
        self._reckoned: _Reckoned | None = None
        self._closed: list[Ints] = []
        self._book = sharing.book
        self._shown: list[ShareColumns] = []
        self._picked: list[UsageColumns] = []
        #: Places told early in the open round: the log says so.
        self._told_early: set[int] = set()
        #: Groups told early for the first time: their first moments are said once more.
        self._follow_up: list[GroupState] = []
        #: When slots were closed last, and the counters whose slots are still to be closed since.
        self._ticked_at = Nanos(-(1 << 62))
        self._ticking: deque[Counters] = deque()
        self.is_ending = False
        self.rows_suppressed = 0
        #: Windows whose counts neither peers nor log were told, because something raised.
        self.windows_lost = 0
        self._faults = self._faults_in_round = 0

    @property
    def told_hash(self) -> int:
        """The hash of what the peers were told and was not taken back."""
        return self._suppression.told_hash

    @property
    def follows_up(self) -> bool:
        """Whether another early report should follow the last one."""
        return bool(self._follow_up or self._limiter.urgent)

    def told(self) -> UsageColumns:
        """What the peers were told and was not taken back."""
        return self._suppression.told()

    def told_places(self) -> Ints:
        """The slots of `told`."""
        return self._suppression.told_places()

    def told_at(self, places: Ints) -> UsageColumns:
        """What the peers were told of some of these."""
        return self._suppression.told_at(places)

    def told_wanted(self, keys: Sequence[GroupKey]) -> list[tuple[int, int]]:
        """[keys] the demand of each group that the peers know of, Milli per second."""
        places = np.array([self._sharing.slot_of(key) for key in keys], np.int64)
        wanted = self._suppression.told_wanted(places)
        wanted[places == NO_PLACE] = 0
        return [(messages, size) for messages, size in wanted.tolist()]

    @property
    def tick_at(self) -> Nanos | None:
        """When slots are to be closed next; None while nothing was asked since."""
        if self._ticking:
            return self._ticked_at
        if self._limiter.touched:
            return Nanos(self._ticked_at + self._min_interval_ns)
        return None

    def tick(self, now: Nanos) -> bool:
        """Close slots of what was asked, a slice of them; whether any has jumped and is urgent."""
        due, has_jumped = self.tick_at, False
        if due is None or now < due:
            return False
        if not self._ticking:
            self._ticked_at = now
            self._ticking.extend(self._limiter.touched)
            self._limiter.touched.clear()
        for _ in range(min(SLICE_GROUPS, len(self._ticking))):
            counters = self._ticking.popleft()
            counters.is_touched = False
            state = counters.state
            assert isinstance(state, GroupState), "counters are a group's"
            if state.meter.close_slot():
                self._limiter.urgent[state.key] = None
                has_jumped = True
        return has_jumped

    def early(self, now: Nanos) -> UsageColumns:
        """What has jumped and is worth telling at once, a slice of it; counts stay in their windows."""
        keys = list(self._limiter.urgent)[:SLICE_GROUPS]
        for key in keys:
            del self._limiter.urgent[key]
        called = [
            state
            for key in keys
            if (state := self._limiter.state(key)) is not None
            and self._sharing.slot_of(key) != NO_PLACE
        ]
        followed = [one for one in self._follow_up if self._sharing.slot_of(one.key) != NO_PLACE]
        states = list(dict.fromkeys([*followed, *called]))
        if not states:
            return NO_USAGE
        places = self._places(states)
        is_new = ~self._suppression.is_told(places)
        self._follow_up = [state for state, new in zip(states, is_new.tolist(), strict=True) if new]
        measured = [state.meter.measure(now) for state in states]
        short = self._sharing.is_short(places)
        estimates = self._estimate(places, measured, short, is_round=False)
        admitted = pairs([one.admitted for one in measured])
        rows = self._rows(states, admitted, estimates, totals=_totals(states), topics=None)
        picked = self._suppression.pick(places, rows, anyway=False)
        self._told_early.update(places[picked].tolist())
        self._tell(states, places, estimates, short)
        return rows.take(picked)

    def begin(self) -> None:
        """Begin to end a round."""
        self.is_ending = True
        self._follow_up = []
        self._suppression.next_round()
        self._book = self._sharing.book
        self._faults_in_round = 0
        self._pending = deque(self._limiter.states())
        self._pending.rotate(-self._faults * FAULT_SHIFT)
        self._is_small = len(self._pending) <= SLICE_GROUPS

    def step(self, now: Nanos) -> None:
        """End the round for a slice of the groups; `is_ending` is False after the last."""
        self._step(now)
        while self._is_small and self.is_ending:
            # Few groups are done with in one go.
            self._step(now)

    def skip(self) -> None:
        """Go on with a round in which something raised, without what was at hand then.

        What was picked and shown before is told; windows that are open stay open. After more than
        `FAULTS_A_ROUND` the rest is left to the next round.
        """
        at_hand = len(self._drained) + (len(self._reckoned.states) if self._reckoned else 0)
        self.windows_lost += at_hand
        self._drained, self._reckoned = [], None
        self._faults += 1
        self._faults_in_round += 1
        if not self._pending or self._faults_in_round > FAULTS_A_ROUND:
            self._pending.clear()
            self._closed = []
            self.is_ending = False

    def recover(self) -> None:
        """Make what is kept of what was told agree with itself again, after a fault."""
        self._suppression.rehash()

    def _step(self, now: Nanos) -> None:
        """Close some windows, or reckon with those that were closed, or tell and log what came out."""
        if self._reckoned is not None:
            self._conclude(self._reckoned)
            self._reckoned = None
        elif self._pending and len(self._drained) < BATCH_GROUPS:
            self._close(now)
        elif self._drained:
            self._reckoned = self._reckon(self._drained)
            self._drained = []
        else:
            self._take_back_the_gone()
            self.is_ending = False

    def finish(self) -> tuple[UsageColumns, ShareColumns]:
        """What the round that ended tells the peers, and the log; who writes it puts it in order."""
        picked, shown = UsageColumns.join(self._picked), ShareColumns.join(self._shown)
        self._picked, self._shown = [], []
        self._told_early.clear()
        self.rows_suppressed += int(np.count_nonzero(~shown.sent))
        return picked, shown

    def is_unused(self, begin: int, end: int) -> Flags:
        """[slots] from `begin` to before `end`: whether the peers know nothing of it from us."""
        return ~self._suppression.is_told(np.arange(begin, end))

    def forget(self, places: Ints) -> None:
        """Make slots fresh: they are given to other groups next."""
        self._estimator.forget(places)
        self._told_early.difference_update(places.tolist())

    def _close(self, now: Nanos) -> None:
        """Close the windows of some groups."""
        count = min(SLICE_GROUPS, len(self._pending))
        states = [self._pending.popleft() for _ in range(count)]
        placed = [(self._sharing.slot_of(state.key), state) for state in states]
        placed = [one for one in placed if one[0] != NO_PLACE]
        closed = _column([place for place, _ in placed])
        self._closed.append(closed)
        is_told = self._suppression.is_told(closed).tolist()
        # One by one, so that those which were closed before one raises are known to be.
        for (place, state), told in zip(placed, is_told, strict=True):
            demand = state.meter.drain(now)
            # Of a group that nothing was asked of the peers hear once that it is idle.
            if demand is not None or told:
                self._drained.append(_Drained(place, state, demand or _idle(state)))

    def _reckon(self, drained: Sequence[_Drained]) -> _Reckoned:
        """Estimate what is wanted of the groups that were closed, and pick what is worth telling."""
        places = _column([one.place for one in drained])
        demands = [one.demand for one in drained]
        measured = [demand.measured for demand in demands]
        short = self._sharing.is_short(places)
        estimates = self._estimate(places, measured, short, is_round=True)
        states = [one.state for one in drained]
        totals = [(demand.admitted_total, demand.wanted_total) for demand in demands]
        topics = [demand.topics for demand in demands]
        admitted = pairs([one.admitted for one in measured])
        rows = self._rows(states, admitted, estimates, totals=totals, topics=topics)
        picked = self._suppression.pick(places, rows)
        self._picked.append(rows.take(picked))
        return _Reckoned(states, demands, places, estimates, short, rows, picked)

    def _conclude(self, reckoned: _Reckoned) -> None:
        """Let the meters know what the peers are told, and log it."""
        places = reckoned.places
        self._tell(reckoned.states, places, reckoned.estimates, reckoned.short)
        early = self._told_early
        sent = np.array([place in early for place in places.tolist()], np.bool_)
        sent[reckoned.picked] = True
        self._shown.append(self._show(reckoned.states, reckoned.demands, reckoned.rows, sent))

    def _estimate(
        self, places: Ints, measured: Sequence[Measured], short: Flags, *, is_round: bool
    ) -> Estimates:
        return self._estimator.update(places, seen_of(measured, short), is_round=is_round)

    def _rows(
        self,
        states: Sequence[GroupState],
        admitted: Ints,
        estimates: Estimates,
        *,
        totals: Sequence[tuple[Pair, Pair]],
        topics: Sequence[int] | None,
    ) -> UsageColumns:
        """What to tell the peers of some groups."""
        return UsageColumns(
            groups=tuple(state.key.group for state in states),
            kinds=np.array([kind_code(state.key.kind) for state in states], np.uint8),
            topics=np.array(topics or [state.meter.topics for state in states], np.int64),
            admitted=admitted,
            wanted=estimates.wanted,
            admitted_total=pairs([admitted for admitted, _ in totals]),
            wanted_total=pairs([wanted for _, wanted in totals]),
        )

    def _show(
        self,
        states: Sequence[GroupState],
        demands: Sequence[Demand],
        rows: UsageColumns,
        sent: Flags,
    ) -> ShareColumns:
        """What to log of some groups: what was counted, and what was allowed."""
        counted = UsageColumns(
            groups=rows.groups,
            kinds=rows.kinds,
            topics=rows.topics,
            admitted=pairs([demand.admitted for demand in demands]),
            wanted=pairs([demand.wanted for demand in demands]),
            admitted_total=rows.admitted_total,
            wanted_total=rows.wanted_total,
        )
        policies = [policy_code(self._sharing.policy(state.key)) for state in states]
        return ShareColumns(
            usage=counted,
            share=rates([(state.share.messages, state.share.bytes) for state in states]),
            quota=rates([(state.quota.messages, state.quota.bytes) for state in states]),
            policies=np.array(policies, np.uint8),
            refused=pairs([demand.refused for demand in demands]),
            sent=sent,
        )

    def _tell(
        self, states: Sequence[GroupState], places: Ints, estimates: Estimates, short: Flags
    ) -> None:
        """Let the meters know what the peers believe, so that they notice a jump."""
        # Where nothing is limited no jump matters.
        is_limited = self._sharing.quotas(places) != NO_RATE
        expected = expectations(
            self._suppression.told_wanted(places),
            np.where(is_limited, estimates.threshold, COUNT_MAX),
            np.where(is_limited, estimates.half_threshold, COUNT_MAX),
            short,
            self._min_interval_ns,
        )
        is_told = self._suppression.is_told(places).tolist()
        for state, one, known in zip(states, expected, is_told, strict=True):
            state.meter.expect(one)
            state.reported = known

    def _places(self, states: Iterable[GroupState]) -> Ints:
        return _column([self._sharing.slot_of(state.key) for state in states])

    def _take_back_the_gone(self) -> None:
        """Tell as idle what was told of groups that are deleted."""
        keys = self._index.keys
        told = self._suppression.told_places()
        if self._sharing.book is self._book:
            # Only what was not closed can be gone.
            is_closed = np.zeros(len(self._index), np.bool_)
            for closed in self._closed:
                is_closed[closed] = True
            told = told[~is_closed[told]]
        self._closed = []
        gone = [place for place in told.tolist() if self._limiter.state(keys[place]) is None]
        if gone:
            places = np.array(gone, np.int64)
            names = {keys[place] for place in gone}
            self._picked = [_without(rows, names) for rows in self._picked]
            self._picked.append(self._suppression.forget(places))
            self._estimator.forget(places)


def _column(numbers: Sequence[int]) -> Ints:
    return np.array(numbers, np.int64)


def _totals(states: Iterable[GroupState]) -> list[tuple[Pair, Pair]]:
    return [state.meter.totals() for state in states]


def _without(rows: UsageColumns, keys: set[GroupKey]) -> UsageColumns:
    """The rows of other groups: what was picked of one that went meanwhile is not told."""
    kinds = rows.kinds.tolist()
    kept = [
        place
        for place, (group, kind) in enumerate(zip(rows.groups, kinds, strict=True))
        if GroupKey(group, KINDS[kind]) not in keys
    ]
    return rows if len(kept) == len(rows) else rows.take(np.array(kept, np.int64))


def _idle(state: GroupState) -> Demand:
    admitted_total, wanted_total = state.meter.totals()
    return Demand(0, Pair(), Pair(), Pair(), admitted_total, wanted_total, Measured())
