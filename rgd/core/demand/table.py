"""The demand of every group in use on this broker: a table with one row for each (group, kind).

Three operations work on a block of rows at a time:

- `tick` reads the touched counters and closes a slot of each (`rgd.core.demand.slots`);
- `measure` computes the present rates, for an early report;
- `close` ends the window at a round's end, and returns what was counted in it and the rates.

The estimator (`rgd.core.demand.estimator`) turns the rates into the demand that is sent to the
peers. `advertise` stores what was sent, so that a slot that differs much from it triggers a report.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Final

import numpy as np

from rgd.core.demand import slots as slots_
from rgd.core.demand.counters import FREED, NO_ROW, Counters
from rgd.core.demand.credit import learn_credit
from rgd.core.demand.estimator import Estimates, History, Seen, end_round, report_early
from rgd.core.demand.marks import (
    ADMITTED,
    ALL_REFUSED,
    AT,
    REFUSED,
    REQUESTS,
    UNSAID,
    Flags,
    Floats,
    Ints,
    arrived,
    counted,
    elapsed,
    per_second,
    read,
    whole,
)
from rgd.core.demand.settings import DemandSettings
from rgd.core.demand.slots import Slots
from rgd.core.pairs import either
from rgd.core.runs import Places, capacity_for, run_of
from rgd.core.units import COUNT_MAX, NS_PER_MS, RATE_MAX, Nanos, Pair

_ROW: Final = attrgetter("row")

#: Initial number of rows of the table.
_ROWS: Final = 64


@dataclass(frozen=True, slots=True)
class Measured:
    """Measurements of some rows; the first axis is the row, amounts are [rows, 2]."""

    #: Admitted, Milli per second, over the time that demand is estimated from.
    admitted: Ints
    seen: Seen
    estimates: Estimates
    #: [rows] number of active topics in the open window.
    topics: Ints


@dataclass(frozen=True, slots=True)
class Closed:
    """The results of an ended window, for the rows to report."""

    #: [rows] their indexes among the rows that were to be closed.
    kept: Ints
    measured: Measured
    #: [rows, 2] counted in the window, Milli per second; `wanted` includes held-back demand.
    admitted: Ints
    wanted: Ints
    #: [rows, 2] refused in the window, whole units, retries too.
    refused: Ints
    #: [rows, 2] whole units since the start.
    admitted_total: Ints
    wanted_total: Ints


class DemandTable:
    """The demand of one broker's groups; counters get a row when they are first read."""

    def __init__(self, settings: DemandSettings) -> None:
        self._settings = settings
        self._slots = Slots.empty(_ROWS)
        self._history = History.empty(_ROWS)
        #: When the last round began to end: the windows of rows that rest are as old.
        self._began = Nanos(0)
        #: By row; None if the row is free.
        self.counters: list[Counters | None] = []
        self._free: list[int] = []
        #: When the first row counts as silent, unless it is asked before; as of `fall_silent`.
        self.silent_at: Nanos | None = None
        #: Held-back demand of the previous window, by row.
        self._held_before: dict[int, dict[str | None, Pair]] = {}

    def row_of(self, counters: Counters) -> int:
        """The row of some counters, assigned if they have none."""
        if counters.row < 0:
            row = self._free.pop() if self._free else len(self.counters)
            if row == len(self.counters):
                self.counters.append(None)
                if row == len(self._slots.rests):
                    self._slots.grow(capacity_for(row + 1))
                    self._history.grow(capacity_for(row + 1))
            self._slots.window[row, AT] = counters.touched_at
            self.counters[row] = counters
            counters.row = row
        return counters.row

    def free(self, counters: Counters) -> None:
        """Free the row of a dropped group's counters, which get none again."""
        row, counters.row = counters.row, FREED
        counters.slot = NO_ROW
        if row < 0:
            return
        self.counters[row] = None
        self._free.append(row)
        self._slots.reset(np.array([row]))
        self._history.reset(np.array([row]))
        self._held_before.pop(row, None)

    def wanted_total(self, counters: Counters) -> Pair:
        """Demand since the start, without the open window, in whole units."""
        if counters.row < 0:
            return Pair()
        return Pair(*self._slots.wanted_total[counters.row].tolist())

    def begin(self, touched: Sequence[Counters], now: Nanos) -> Ints:
        """Begin the end of a round; returns the rows whose windows are to be closed.

        A row rests while its window was closed without a request, the peers have no row of it, and
        nothing touched its counters since: closing it again would change nothing.

        Args:
            touched: the counters that requests added to since the last tick.
            now: the current time.
        """
        before, self._began = self._began, now
        self._wake(np.array([self.row_of(one) for one in touched], np.int64), before)
        return np.flatnonzero(~self._slots.rests[: len(self.counters)])

    def recover(self) -> None:
        """Read all counters again and let no row rest, because a fault may have cut a tick short.

        Also called when groups may have been deleted: all rows are to be closed then.
        """
        self._wake(np.arange(len(self.counters)), self._began)
        self._slots.is_read[:] = False

    def tick(self, touched: Sequence[Counters]) -> list[Counters]:
        """Close a slot of each as of its last request; returns those whose demand has jumped."""
        for one in touched:
            if one.row < 0:
                self.row_of(one)
        touched = sorted(touched, key=_ROW)
        self._net(touched)
        marks, rows = read(touched), _rows_of(touched)
        slots_.watch(self._slots, rows, marks, self._settings)
        self._slots.mark[rows] = marks
        self._slots.is_read[rows] = True
        self._start(rows, marks)
        # A slot that is too short to give a rate continues.
        lasts = marks[:, AT] - self._slots.end[rows, AT]
        due = np.flatnonzero(2 * lasts >= self._settings.min_interval_ns)
        if not len(due):
            return []
        run = run_of(rows[due])
        of = self._slots.rows(run)
        jumped = slots_.close(of, marks[due], self._settings)
        self._slots.put(run, of)
        return [touched[at] for at in due[jumped].tolist()]

    def fall_silent(self, now: Nanos, rows_max: int) -> list[Counters]:
        """Find the rows that have fallen silent, looking at no more than `rows_max`; the rest stay due.

        Callers that wait as long as they were told have not, nor those that say what they hold back.
        """
        of, silent = self._slots, list[Counters]()
        due = np.flatnonzero((of.silent_at > 0) & (of.silent_at <= now))[:rows_max]
        quiet_ns = slots_.quiet_ns(of, due, self._settings).tolist()
        of.silent_at[due] = 0
        for row, quiet in zip(due.tolist(), quiet_ns, strict=True):
            one = self.counters[row]
            if one is None or one.is_touched or one.held or row in self._held_before:
                continue
            wait_ns = min(one.wait_ms * NS_PER_MS, self._settings.round_ns)
            silent_at = one.at + wait_ns + quiet
            if silent_at > now:
                of.silent_at[row] = silent_at
            else:
                silent.append(one)
        slots_.fall_silent(of, _rows_of(silent))
        waiting = of.silent_at[of.silent_at > 0]
        self.silent_at = Nanos(int(waiting.min())) if len(waiting) else None
        return silent

    def measure(self, counters: Sequence[Counters], now: int) -> Measured:
        """The present rates, for an early report; windows stay open.

        Args:
            counters: the groups' counters, all of which have a row.
            now: time of the measurement.
        """
        self._net(counters)
        rows = _rows_of(counters)
        self._start(rows, self._read(counters, rows))
        run = run_of(rows)
        of = self._slots.rows(run)
        held = _totals([self._held_before.get(one.row, {}) | one.held for one in counters])
        measured = self._measure(counters, run, of, held, now, is_round=False)
        self._slots.put(run, of)
        return measured

    def close(self, counters: Sequence[Counters], is_advertised: Flags, now: int) -> Closed | None:
        """End the window of some rows and open the next; None if there is nothing to report.

        Args:
            counters: the groups' counters, all of which have a row.
            is_advertised: [rows] whether the peers have a row, and must learn that it is idle.
            now: end of the window.
        """
        self._net(counters)
        rows = _rows_of(counters)
        marks = self._read(counters, rows)
        is_asked = marks[:, REQUESTS] != self._slots.window[rows, REQUESTS]
        self._rest(counters, rows, ~is_asked, now)
        kept = np.flatnonzero(is_asked | is_advertised)
        self._slots.rests[rows] = ~is_asked & ~is_advertised
        if not len(kept):
            return None
        if len(kept) < len(counters):
            counters = [counters[at] for at in kept.tolist()]
        rows, marks, is_asked = rows[kept], marks[kept], is_asked[kept]
        self._start(rows[is_asked], marks[is_asked])
        run = run_of(rows)
        of = self._slots.rows(run)
        slots_.close_half(of, of.is_half_step | of.hungry, self._settings)
        held = _totals([one.held for one in counters])
        ended = _as_of(marks, now)
        window_ns = elapsed(of.window, ended)
        wanted = (_offered(counters, of, of.window, ended, window_ns) + held) * is_asked[:, None]
        measured = self._measure(counters, run, of, held, now, is_round=True)
        # Changed last, so that an earlier exception leaves the windows open.
        of.wanted_total += np.minimum(whole(wanted), COUNT_MAX - of.wanted_total)
        wanted_total = of.wanted_total.copy()
        admitted = per_second(counted(of.window, marks, ADMITTED), window_ns)
        unsaid = per_second(counted(of.window, marks, UNSAID), window_ns)
        refused = whole(counted(of.window, marks, REFUSED))
        learn_credit(of, admitted, unsaid)
        is_idle = measured.seen.requests == 0
        slots_.open_window(of, ended, is_idle)
        self._slots.put(run, of)
        self._open(counters, is_idle.tolist())
        return Closed(
            kept,
            measured,
            whole(admitted),
            whole(per_second(wanted, window_ns)),
            refused,
            admitted_total=whole(marks[:, ADMITTED]),
            wanted_total=wanted_total,
        )

    def advertise(
        self,
        counters: Sequence[Counters],
        advertised: Ints,
        estimates: Estimates,
        limited: Flags,
        short: Flags,
    ) -> None:
        """Store what was sent to the peers, so that a slot far from it triggers a report.

        Args:
            counters: the groups' counters.
            advertised: [rows, 2] advertised demand, Milli per second; 0 for none.
            estimates: the thresholds by which a rate must differ.
            limited: [rows, 2] whether there is a quota; without one no jump is reported.
            short: [rows] whether the group as a whole is short, so that a decrease is reported too.
        """
        rows, of = _rows_of(counters), self._slots
        of.advertised[rows] = advertised
        of.threshold[rows] = np.where(limited, estimates.threshold, COUNT_MAX)
        of.half_threshold[rows] = np.where(limited, estimates.half_threshold, COUNT_MAX)
        of.hungry[rows] = short

    def _net(self, counters: Sequence[Counters]) -> None:
        """Leave out what was given back, as far as it was granted in the open window."""
        for one in [one for one in counters if one.has_unnetted]:
            one.net(*self._slots.window[one.row, ADMITTED].tolist())
            self._slots.is_read[one.row] = False
            [now] = read([one])
            inside = self._slots.inside_window()
            # Slots that ended before it was given back, and windows before it was retracted.
            for marks in inside:
                admitted = marks[one.row, ADMITTED]
                np.minimum(admitted, now[ADMITTED], out=admitted)
            for marks in (self._slots.window, *inside):
                refused = marks[one.row, ALL_REFUSED]
                np.minimum(refused, now[ALL_REFUSED], out=refused)

    def _start(self, rows: Ints, marks: Floats) -> None:
        """Begin the flow of rows that were idle and now have requests."""
        is_new = ~self._slots.flows[rows]
        is_new &= marks[:, REQUESTS] != self._slots.window[rows, REQUESTS]
        if is_new.any():
            self._wake(rows[is_new], self._began)
            slots_.start(self._slots, rows[is_new], marks[is_new])
        is_back = self._slots.is_silent[rows]
        is_back &= marks[:, REQUESTS] != self._slots.end[rows, REQUESTS]
        if is_back.any():
            slots_.resume(self._slots, rows[is_back], marks[is_back])

    def _wake(self, rows: Ints, began: Nanos) -> None:
        """Give rows that rest the window that closing them in each round would have opened.

        Args:
            rows: of them only those that rest are woken.
            began: when the last of these rounds began to end.
        """
        rows = rows[self._slots.rests[rows]]
        begun = np.maximum(self._slots.window[rows, AT], began)
        self._slots.window[rows, AT] = begun
        self._slots.rests[rows] = False

    def _read(self, counters: Sequence[Counters], rows: Ints) -> Floats:
        """[rows, FIELDS] present readings: those of the last tick where nothing happened since."""
        touched = np.array([one.is_touched for one in counters], np.bool_)
        stale = np.flatnonzero(touched | ~self._slots.is_read[rows])
        if len(stale):
            at = rows[stale]
            self._slots.mark[at] = read([counters[place] for place in stale.tolist()])
            self._slots.is_read[at] = True
        return self._slots.mark.take(rows, 0)

    def _rest(self, counters: Sequence[Counters], rows: Ints, is_idle: Flags, now: int) -> None:
        """Open the next window of rows without requests; their next request begins a new flow."""
        idle = rows[is_idle]
        if len(idle):
            of = self._slots.rows(idle)
            slots_.open_window(of, _as_of(of.window, now), np.ones(len(idle), np.bool_))
            self._slots.put(idle, of)
            self._open(
                [counters[at] for at in np.flatnonzero(is_idle).tolist()], [True] * len(idle)
            )

    def _open(self, counters: Sequence[Counters], is_idle: Sequence[bool]) -> None:
        """Open the next window of what counters keep by topic."""
        held_before = self._held_before
        for one, idle in zip(counters, is_idle, strict=True):
            one.topics.clear()
            if one.held:
                held_before[one.row], one.held = one.held, {}
            elif held_before:
                held_before.pop(one.row, None)
            if one.unsaid is not None:
                if idle:
                    one.unsaid = None
                else:
                    one.unsaid.open()

    def _measure(
        self,
        counters: Sequence[Counters],
        run: Places,
        of: Slots,
        held: Floats,
        now: int,
        *,
        is_round: bool,
    ) -> Measured:
        """Measure the rates of some rows up to `now`, and estimate their demand."""
        marks = _as_of(of.mark, now)
        span = slots_.span(of, marks, of.mark[:, AT], self._settings, is_round=is_round)
        sounds = span.sounds[:, None]
        offered = _offered(counters, of, span.begin, span.end, span.elapsed_ns)
        offered = per_second(offered, span.elapsed_ns) * sounds
        seen = Seen(
            offered=offered,
            requests=span.requests,
            elapsed_ns=span.elapsed_ns,
            held=per_second(held, np.full(len(held), float(self._settings.round_ns))),
            slot_noise=np.where(sounds, slots_.sigma(of), np.nan),
            of_noise=slots_.rate_of_noise(of, span.begin, offered) * sounds,
        )
        history = self._history.rows(run)
        estimates = (end_round if is_round else report_early)(history, seen, self._settings)
        self._history.put(run, history)
        wanted = np.where(of.is_silent[:, None], 0, estimates.wanted)
        estimates = replace(estimates, wanted=wanted)
        admitted = per_second(counted(span.begin, span.end, ADMITTED), span.elapsed_ns)
        topics = np.array([len(one.topics) for one in counters], np.int64)
        return Measured(whole(admitted * sounds), seen, estimates, topics)


def _rows_of(counters: Sequence[Counters]) -> Ints:
    return np.array([one.row for one in counters], np.int64)


def _as_of(marks: Floats, now: int) -> Floats:
    marks = marks.copy()
    marks[:, AT] = now
    return marks


def _offered(
    counters: Sequence[Counters], of: Slots, begin: Floats, end: Floats, elapsed_ns: Floats
) -> Floats:
    """[rows, 2] whole units of new work between two marks; unsaid refusals as far as they count."""
    offered = arrived(begin, end)
    unsaid = counted(begin, end, UNSAID)
    for at in np.flatnonzero(either(unsaid != 0)).tolist():
        bound = counters[at].unsaid
        if bound is None:
            # They followed the last slot of a flow that has been idle since; it has no rate.
            continue
        most = bound.most(of.advertised[at].tolist(), int(elapsed_ns[at]), Nanos(int(end[at, AT])))
        # Integers beyond 2^63 would make a column of objects.
        most_units = np.array(most, np.float64)
        offered[at] += np.floor(np.minimum(unsaid[at] * (1 - of.doubt[at]), most_units))
    return offered


def _totals(held: Sequence[dict[str | None, Pair]]) -> Floats:
    """[rows, 2] the sums of what callers hold back."""
    totals = np.zeros((len(held), 2))
    for at, pairs in [(at, pairs) for at, pairs in enumerate(held) if pairs]:
        totals[at] = [min(sum(amounts), RATE_MAX) for amounts in zip(*pairs.values(), strict=True)]
    return totals
