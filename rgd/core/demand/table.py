"""The demand of every group in use on this broker: a table with one row for each (group, kind).

What was counted comes in pages (`rgd.core.counts`). Rows are numbered by slot ids; a group has one from its first page on.
Three operations work on a block of rows at a time:

- `tick` takes the touched rows and closes a slot of each (`rgd.core.demand.slots`);
- `measure` computes the present rates, for an early report;
- `close` ends the window at a round's end, and returns what was counted in it and the rates.

The estimator (`rgd.core.demand.estimator`) turns the rates into the demand that is sent to the
peers. `advertise` stores what was sent, so that a slot that differs much from it triggers a report.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from rgd.core.counts.page import BESIDES, Page, Pages
from rgd.core.demand import slots as slots_
from rgd.core.demand.bound import most_unsaid
from rgd.core.demand.columns import PAIR, Columns, column
from rgd.core.demand.credit import learn_credit
from rgd.core.demand.estimator import Estimates, History, Seen, end_round, report_early
from rgd.core.demand.marks import (
    ADMITTED,
    ALL_REFUSED,
    AT,
    HELD,
    HELD_LATELY,
    LARGEST_SLICE,
    REFUSED,
    REQUESTS,
    RETURNED,
    SINCE,
    SLICES,
    UNSAID,
    Flags,
    Floats,
    Ints,
    arrived,
    came_back,
    counted,
    elapsed,
    per_second,
    readings_of,
    whole,
)
from rgd.core.demand.settings import DemandSettings
from rgd.core.demand.slots import Slots
from rgd.core.pairs import either
from rgd.core.units import COUNT_MAX, NS_PER_MS, Nanos

#: Initial number of rows of the table.
_ROWS: Final = 64

_NO_SLOTS: Final = np.zeros(0, np.int64)


@dataclass(frozen=True, slots=True)
class Measured:
    """Measurements of some rows; the first axis is the row, amounts are [rows, 2]."""

    #: Admitted, Milli per second, over the time that demand is estimated from.
    admitted: Ints
    seen: Seen
    estimates: Estimates
    #: [rows] number of active topics in the open window.
    topics: Ints


@dataclass(slots=True)
class Told(Columns):
    """What pages have besides marks, by row."""

    #: Whether there was a page of the row; all others are zeros.
    is_there: Flags = column(dtype=np.bool_)
    topics: Floats = column()
    wait_ms: Floats = column()
    besides: Floats = column(BESIDES - 1)
    #: The part of what was given back that marks leave out. A unit is given back after its grant, perhaps after a
    #: round with that grant was reported. Then a later grant is left out instead, so that no mark is below an
    #: earlier one.
    netted: Floats = column(PAIR)


@dataclass(frozen=True, slots=True)
class Closed:
    """The results of an ended window, for the rows to report."""

    #: [rows] their slot ids.
    slots: Ints
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
    """The demand of one broker's groups, by slot id.

    Args:
        settings: the exchange's intervals.
        news: gives the pages.
    """

    def __init__(self, settings: DemandSettings, news: Pages) -> None:
        self._settings = settings
        self._news = news
        self._slots = Slots.empty(_ROWS)
        self._history = History.empty(_ROWS)
        self._told = Told.empty(_ROWS)
        #: When the first row counts as silent, unless it is asked before; as of `fall_silent`.
        self.silent_at: Nanos | None = None

    def resume(self, page: Page, wanted: Sequence[Sequence[int]], now: Nanos) -> Ints:
        """Take over rows that another table had: nothing of what is in their page is counted here; returns their slot ids.

        Args:
            page: their readings.
            wanted: [rows, 2] their demand since the start, in whole units.
            now: the current time.
        """
        rows, marks = self._take(page)
        self._slots.wanted_total[rows] = np.array(wanted, np.int64).reshape(-1, 2)
        returned = self._told.besides[rows, RETURNED]
        self._told.netted[rows] += returned
        marks[:, ADMITTED] -= returned
        marks[:, [AT, SINCE]] = now
        self._slots.mark[rows] = self._slots.window[rows] = marks
        slots_.start(self._slots, rows, marks)
        self._open(rows, np.zeros(len(rows), np.bool_))
        return rows

    def free(self, slots: Ints) -> None:
        """Free the rows of groups that no longer exist."""
        self._make_room(slots)
        for columns in (self._slots, self._history, self._told):
            columns.reset(slots)

    def begin(self, in_use: Ints) -> Ints:
        """Begin the end of a round; returns the slot ids of all rows, whose windows are to be closed.

        Args:
            in_use: the slot ids of groups in use, of which some have no row before they are in a page.
        """
        self._make_room(in_use)
        self._read(in_use[~self._told.is_there[in_use]])
        return np.flatnonzero(self._told.is_there)

    def tick(self, page: Page) -> Ints:
        """Close a slot of the touched rows as of their last request; returns the slot ids of those whose demand has jumped."""
        rows, marks = self._take(page)
        order = rows.argsort()
        rows, marks = rows[order], marks[order]
        self._net(rows, marks)
        slots_.watch(self._slots, rows, marks, self._settings)
        self._slots.mark[rows] = marks
        self._start(rows, marks)
        # A slot that is too short to give a rate continues.
        lasts = marks[:, AT] - self._slots.end[rows, AT]
        due = np.flatnonzero(2 * lasts >= self._settings.min_interval_ns)
        if not len(due):
            return _NO_SLOTS
        of = self._slots.rows(rows[due])
        jumped = slots_.close(of, marks[due], self._settings)
        self._slots.put(rows[due], of)
        return rows.take(due.compress(jumped))

    def fall_silent(self, now: Nanos, rows_max: int) -> Ints:
        """Find the rows that have fallen silent, looking at no more than `rows_max`; the rest stay due.

        Callers that wait as long as they were told have not, nor those that say what they hold back.

        Returns:
            Their slot ids.
        """
        of = self._slots
        due = np.flatnonzero((of.silent_at > 0) & (of.silent_at <= now))[:rows_max]
        of.silent_at[due] = 0
        rows, marks = self._take(self._news.changed(due.tolist()))
        is_touched = marks[:, AT] != of.mark[rows, AT]
        of.mark[rows[~is_touched]] = marks[~is_touched]
        holds = either(self._told.besides[due, HELD_LATELY] > 0)
        due = due[~holds & ~np.isin(due, rows[is_touched])]
        wait_ns = np.minimum(self._told.wait_ms[due] * NS_PER_MS, self._settings.round_ns)
        silent_at = of.mark[due, AT] + wait_ns + slots_.quiet_ns(of, due, self._settings)
        is_silent = silent_at <= now
        of.silent_at[due] = np.where(is_silent, 0, silent_at)
        slots_.fall_silent(of, due[is_silent])
        waiting = of.silent_at[of.silent_at > 0]
        self.silent_at = Nanos(int(waiting.min())) if len(waiting) else None
        return due.compress(is_silent)

    def measure(self, slots: Ints, now: int) -> Measured:
        """The present rates, for an early report; windows stay open.

        Args:
            slots: the groups' slot ids, all of which have a row.
            now: time of the measurement.
        """
        rows, marks = self._read(slots)
        self._start(rows, marks)
        of = self._slots.rows(rows)
        held = self._told.besides[rows, HELD_LATELY]
        measured = self._measure(rows, of, held, now, is_round=False)
        self._slots.put(rows, of)
        return measured

    def close(self, slots: Ints, is_advertised: Flags, now: int) -> Closed | None:
        """End the window of some rows and open the next; None if there is nothing to report.

        Args:
            slots: the groups' slot ids; those without a row are left out.
            is_advertised: [slots] whether the peers have a row, and must learn that it is idle.
            now: end of the window.
        """
        rows, marks = self._read(slots)
        is_advertised = is_advertised[self._told.is_there[slots]]
        is_asked = marks[:, REQUESTS] != self._slots.window[rows, REQUESTS]
        self._rest(rows[~is_asked], now)
        kept = is_asked | is_advertised
        rows, marks, is_asked = rows[kept], marks[kept], is_asked[kept]
        if not len(rows):
            return None
        self._start(rows[is_asked], marks[is_asked])
        of = self._slots.rows(rows)
        slots_.close_half(of, of.is_half_step | of.hungry, self._settings)
        held = self._told.besides[rows, HELD]
        ended = _as_of(marks, now)
        window_ns = elapsed(of.window, ended)
        wanted = self._offered(rows, of, of.window, ended, window_ns) + held
        wanted *= is_asked[:, None]
        measured = self._measure(rows, of, held, now, is_round=True)
        # Changed last, so that an earlier exception leaves the windows open.
        of.wanted_total += np.minimum(whole(wanted), COUNT_MAX - of.wanted_total)
        wanted_total = of.wanted_total.copy()
        admitted = per_second(counted(of.window, marks, ADMITTED), window_ns)
        unsaid = per_second(counted(of.window, marks, UNSAID), window_ns)
        refused = whole(counted(of.window, marks, REFUSED))
        learn_credit(of, admitted, unsaid)
        is_idle = measured.seen.requests == 0
        slots_.open_window(of, ended, is_idle)
        self._slots.put(rows, of)
        self._open(rows, is_idle)
        return Closed(
            rows,
            measured,
            whole(admitted),
            whole(per_second(wanted, window_ns)),
            refused,
            admitted_total=whole(marks[:, ADMITTED]),
            wanted_total=wanted_total,
        )

    def advertise(
        self, slots: Ints, advertised: Ints, estimates: Estimates, limited: Flags, short: Flags
    ) -> None:
        """Store what was sent to the peers, so that a slot far from it triggers a report.

        Args:
            slots: the groups' slot ids, all of which have a row.
            advertised: [slots, 2] advertised demand, Milli per second; 0 for none.
            estimates: the thresholds by which a rate must differ.
            limited: [slots, 2] whether there is a quota; without one no jump is reported.
            short: [slots] whether the group as a whole is short, so that a decrease is reported too.
        """
        of = self._slots
        of.advertised[slots] = advertised
        of.threshold[slots] = np.where(limited, estimates.threshold, COUNT_MAX)
        of.half_threshold[slots] = np.where(limited, estimates.half_threshold, COUNT_MAX)
        of.hungry[slots] = short

    def _make_room(self, slots: Ints) -> None:
        """Have a place for these rows."""
        count = int(slots.max(initial=-1)) + 1
        if count > len(self._told.is_there):
            kept = np.flatnonzero(self._told.is_there)
            for columns in (self._slots, self._history, self._told):
                columns.grow(count, kept)

    def _take(self, page: Page) -> tuple[Ints, Floats]:
        """Take a page in, but for its marks: its rows, and [rows, FIELDS] the marks."""
        read, told, of = readings_of(page), self._told, self._slots
        rows, marks = read.slots, read.marks
        self._make_room(rows)
        is_fresh = ~told.is_there[rows]
        told.is_there[rows] = True
        # The window begins with the first request.
        of.window[rows[is_fresh], AT] = marks[is_fresh, SINCE]
        told.topics[rows], told.wait_ms[rows] = read.topics, read.wait_ms
        told.besides[rows[read.places]] = read.besides
        marks[:, ADMITTED] -= told.netted[rows]
        # Work that was refused may have been settled since, before the window began, too.
        fell = (marks[:, ALL_REFUSED] < of.mark[rows, ALL_REFUSED]).any(axis=1)
        if fell.any():
            for one in (of.window, *of.inside_window()):
                _lower(one, rows[fell], marks[fell], ALL_REFUSED)
        return rows, marks

    def _net(self, rows: Ints, marks: Floats) -> None:
        """Leave out of marks what was given back, as far as it was granted in the open window."""
        told, of = self._told, self._slots
        back = told.besides.take(rows, 0)[:, RETURNED] - told.netted.take(rows, 0)
        due = np.flatnonzero(either(back > 0))
        if not len(due):
            return
        rows, back = rows[due], back[due]
        room = marks[due, ADMITTED] - of.window[rows, ADMITTED]
        back = np.maximum(0, np.minimum(room, back))
        told.netted[rows] += back
        marks[due, ADMITTED] -= back
        # Slots that ended before it was given back.
        for one in of.inside_window():
            _lower(one, rows, marks[due], ADMITTED)

    def _start(self, rows: Ints, marks: Floats) -> None:
        """Begin the flow of rows that were idle and now have requests."""
        is_new = ~self._slots.flows[rows]
        is_new &= marks[:, REQUESTS] != self._slots.window[rows, REQUESTS]
        if is_new.any():
            slots_.start(self._slots, rows[is_new], marks[is_new])
        is_back = self._slots.is_silent[rows]
        is_back &= marks[:, REQUESTS] != self._slots.end[rows, REQUESTS]
        if is_back.any():
            slots_.resume(self._slots, rows[is_back], marks[is_back])

    def _read(self, slots: Ints) -> tuple[Ints, Floats]:
        """Ask for what changed of some rows: those that there are, and [rows, FIELDS] their marks."""
        rows, marks = self._take(self._news.changed(slots.tolist()))
        self._slots.mark[rows] = marks
        self._make_room(slots)
        rows = slots[self._told.is_there[slots]]
        marks = self._slots.mark.take(rows, 0)
        self._net(rows, marks)
        self._slots.mark[rows] = marks
        return rows, marks

    def _rest(self, rows: Ints, now: int) -> None:
        """Open the next window of rows without requests; their next request begins a new flow."""
        if len(rows):
            is_idle = np.ones(len(rows), np.bool_)
            of = self._slots.rows(rows)
            slots_.open_window(of, _as_of(of.window, now), is_idle)
            self._slots.put(rows, of)
            self._open(rows, is_idle)

    def _open(self, rows: Ints, is_idle: Flags) -> None:
        """Open the next window of what rows have besides marks, here and in the gate."""
        self._told.topics[rows] = 0
        besides = self._told.besides.take(rows, 0)
        if besides.any():
            besides[:, HELD_LATELY] = besides[:, HELD]
            besides[:, HELD] = besides[:, LARGEST_SLICE] = 0
            besides[is_idle, SLICES] = 0
            self._told.besides[rows] = besides
        wanted = self._slots.wanted_total[rows].T.tolist()
        self._news.open_windows(zip(rows.tolist(), is_idle.tolist(), *wanted, strict=True))

    def _offered(
        self, rows: Ints, of: Slots, begin: Floats, end: Floats, elapsed_ns: Floats
    ) -> Floats:
        """[rows, 2] whole units of new work between two marks; unsaid refusals as far as they count."""
        offered = arrived(begin, end)
        unsaid = counted(begin, end, UNSAID)
        if unsaid.any():
            slices = self._told.besides[rows, SLICES]
            most = most_unsaid(slices, of.advertised, elapsed_ns, end[:, AT])
            # Those that followed the last slot of a flow that has been idle since have no rate.
            offered += np.floor(np.minimum(unsaid * (1 - of.doubt), most))
        return offered

    def _measure(
        self,
        rows: Ints,
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
        offered = self._offered(rows, of, span.begin, span.end, span.elapsed_ns)
        offered = per_second(offered, span.elapsed_ns) * sounds
        admitted = per_second(counted(span.begin, span.end, ADMITTED), span.elapsed_ns) * sounds
        retried = per_second(came_back(span.begin, span.end), span.elapsed_ns) * sounds
        seen = Seen(
            offered=offered,
            requests=span.requests,
            elapsed_ns=span.elapsed_ns,
            held=per_second(held, np.full(len(held), float(self._settings.round_ns))),
            admitted=admitted,
            retried=retried,
            slot_noise=np.where(sounds, slots_.sigma(of), np.nan),
            of_noise=slots_.rate_of_noise(of, span.begin, offered) * sounds,
        )
        history = self._history.rows(rows)
        estimates = (end_round if is_round else report_early)(history, seen, self._settings)
        self._history.put(rows, history)
        estimates.wanted[of.is_silent] = 0
        topics = self._told.topics[rows].astype(np.int64)
        return Measured(whole(admitted), seen, estimates, topics)


def _as_of(marks: Floats, now: int) -> Floats:
    marks = marks.copy()
    marks[:, AT] = now
    return marks


def _lower(marks: Floats, rows: Ints, to: Floats, fields: slice) -> None:
    """Have no field of some marks exceed another mark's."""
    marks[rows, fields] = np.minimum(marks[rows, fields], to[:, fields])
