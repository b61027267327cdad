"""Slots: how a group's rate changes within a round, for many groups at once.

A slot lasts from one tick's reading to the next, each as of the last request, so evenly spaced
callers are measured exactly regardless of when ticks occur. A slot that differs from the previous
ones by more than noise and one whole unit begins a new *segment*. A rate is that of the newest
segment, so a step within a round is not diluted. The slot that contains the step belongs to neither
segment; it counts until the next one closes. Steps that are too small for a slot are detected in
half a round, if the group is short.

`rgd.core.demand.estimator` defines the noise; here the differences of slots teach it.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np

from rgd.core.demand.columns import PAIR, Columns, column
from rgd.core.demand.estimator import NOISE_CLIP, NOISE_LEAST, teach
from rgd.core.demand.marks import (
    AT,
    FIELDS,
    REFUSALS,
    REQUESTS,
    RETRIES,
    SCALE,
    SINCE,
    UNSAID,
    Flags,
    Floats,
    Ints,
    arrived,
    counted,
    elapsed,
    per_second,
)
from rgd.core.demand.settings import DemandSettings
from rgd.core.pairs import either

#: A silence of more than this many usual gaps, and a slot, counts as time without demand.
GAPS_QUIET: Final = 2

#: A flow is silent once it has no request for this many times its longest recent lull, and a slot; a
#: lull of `GAPS_LULL` usual gaps is to be expected.
LULLS_QUIET: Final = 3
GAPS_LULL: Final = 4

#: Part of the longest recent lull that is left after each tick: a third after 6.4 s.
LULL_KEPT: Final = 1 - 1 / 64

#: An advertised rate of the slot of a step is corrected if it is off by more than 1 /
#: `CORRECTED_PART` of it; and half a round that is off by less is no step.
CORRECTED_PART: Final = 100

#: Number of differences of slots from which their noise is known.
DIFFERENCES_MIN: Final = 3

#: Mean absolute difference of two normal deviates, in their standard deviations.
_DIFFERENCE_OF_SIGMA: Final = 1.128


@dataclass(slots=True)
class Slots(Columns):
    """State of each group's slots; marks are [rows, FIELDS], rates [rows, 2] Milli per second."""

    #: The last reading of the counters; demand since the start without the open window, in whole units.
    mark: Floats = column(FIELDS)
    wanted_total: Ints = column(PAIR, np.int64)
    #: Marks: begin of the open window, begin of the newest segment, the mark with which the next
    #: slot is compared, end of the newest slot, begin of the open half of a round.
    window: Floats = column(FIELDS)
    begin: Floats = column(FIELDS)
    base: Floats = column(FIELDS)
    end: Floats = column(FIELDS)
    half: Floats = column(FIELDS)
    #: Time of the first request of the flow, and the usual time between two requests.
    first_at: Floats = column()
    gap_ns: Floats = column()
    #: Whether there were requests since the group was idle; whether this window has the first ones.
    flows: Flags = column(dtype=np.bool_)
    is_first: Flags = column(dtype=np.bool_)
    #: Whether the flow is silent; when it counts as silent without another request (0: it cannot);
    #: the longest recent time without a request that was no end of the flow.
    is_silent: Flags = column(dtype=np.bool_)
    silent_at: Floats = column()
    lull_ns: Floats = column()
    #: Whether the segment is only the slot of a step; whether that was advertised.
    is_mixed: Flags = column(dtype=np.bool_)
    advertised_mixed: Flags = column(dtype=np.bool_)
    #: Whether the previous half of a round contains a step.
    is_half_step: Flags = column(dtype=np.bool_)
    #: The noise of slots: the newest rate, the mean difference, the last two, and their number.
    rate: Floats = column(PAIR)
    noise: Floats = column(PAIR)
    latest: Floats = column(PAIR)
    previous: Floats = column(PAIR)
    differences: Ints = column(dtype=np.int64)
    #: The part of unsaid refusals that is not believed (`rgd.core.demand.credit`).
    doubt: Floats = column(PAIR)
    #: Rates of admitted work and of unsaid refusals in the last round that had any; 0 once learnt
    #: from.
    last_admitted: Floats = column(PAIR)
    last_unsaid: Floats = column(PAIR)
    #: The advertised demand; by how much a slot or half a round must differ from it to be reported;
    #: whether the group as a whole is short, so that a decrease is reported too.
    advertised: Floats = column(PAIR)
    threshold: Floats = column(PAIR)
    half_threshold: Floats = column(PAIR)
    hungry: Flags = column(dtype=np.bool_)

    def inside_window(self) -> tuple[Floats, ...]:
        """The marks that lie in the open window."""
        return self.begin, self.base, self.end, self.half


@dataclass(frozen=True, slots=True)
class Span:
    """The marks between which rates are computed, [rows]."""

    begin: Floats
    end: Floats
    elapsed_ns: Floats
    #: Requests without those marked as retries.
    requests: Floats
    #: Whether there is something to measure: neither idle, nor a steady flow that has stopped.
    sounds: Flags


def start(of: Slots, rows: Ints, mark: Floats) -> None:
    """Begin the flow of rows that were idle."""
    for one in of.inside_window():
        one[rows] = mark
    of.first_at[rows] = mark[:, SINCE]
    of.flows[rows] = of.is_first[rows] = True


def watch(of: Slots, rows: Ints, mark: Floats, settings: DemandSettings) -> None:
    """Compute when rows count as silent if no request follows those of a tick.

    Only where the group is short, so that peers can use what is free.

    Args:
        of: all rows.
        rows: those that were touched; `of.mark` has their previous reading.
        mark: their present reading.
        settings: the exchange's intervals.
    """
    lull = mark[:, SINCE] - of.mark[rows, AT]
    lull = np.where(lull <= settings.round_ns, lull, 0)
    of.lull_ns[rows] = np.maximum(lull, of.lull_ns[rows] * LULL_KEPT)
    of.silent_at[rows] = 0
    watched = np.flatnonzero(of.hungry[rows] & either(of.advertised[rows] > 0))
    if len(watched):
        run = rows[watched]
        of.silent_at[run] = mark[watched, AT] + quiet_ns(of, run, settings)


def quiet_ns(of: Slots, rows: Ints, settings: DemandSettings) -> Floats:
    """[rows] how long rows are without a request before they count as silent, whole."""
    lull = np.maximum(of.lull_ns[rows], GAPS_LULL * of.gap_ns[rows])
    quiet: Floats = np.floor(settings.min_interval_ns + LULLS_QUIET * lull)
    return quiet


def fall_silent(of: Slots, rows: Ints) -> None:
    """End the flow of rows until their next request; the window stays open."""
    mark = of.mark[rows]
    for one in of.inside_window():
        one[rows] = mark
    of.is_silent[rows] = True
    for other in (of.silent_at, of.is_mixed, of.advertised_mixed, of.is_half_step):
        other[rows] = 0


def resume(of: Slots, rows: Ints, mark: Floats) -> None:
    """Go on with the flow of silent rows, as if nothing had been expected in between."""
    of.is_silent[rows] = False
    for one in of.inside_window():
        one[rows, AT] = mark[:, SINCE] - of.gap_ns[rows]


def close(of: Slots, mark: Floats, settings: DemandSettings) -> Flags:
    """End a slot of each row, all of which flow; returns whether demand jumped."""
    end = of.end.copy()
    slot = _rates(of, end, mark)
    _learn(of, slot)
    was_advertised, was_mixed = of.advertised_mixed.copy(), of.is_mixed.copy()
    is_change = ~was_mixed & (end[:, AT] > of.base[:, AT]) & _is_change(of, slot, end, mark)
    _assign(of.begin, end, was_mixed | is_change)
    # The slot that contains a step belongs to neither side of it.
    of.base[...] = np.where(was_mixed[:, None], end, of.base)
    _assign(of.base, of.begin, ~was_mixed & ~is_change)
    of.is_mixed[...] = is_change
    of.advertised_mixed &= ~was_mixed
    of.is_first &= ~is_change
    refuses = mark[:, REFUSALS] > end[:, REFUSALS]
    of.end[...] = mark
    jumped = close_half(of, 2 * (mark[:, AT] - of.half[:, AT]) >= settings.round_ns, settings)
    # The first slot after a step's slot shows whether the advertised rate was wrong.
    is_wrong = np.abs(slot - of.advertised) * CORRECTED_PART > of.advertised
    jumped |= was_advertised & either(is_wrong & (of.advertised > 0))
    far = _far(of, settings)
    rises, falls = either(slot > of.advertised + far), either(slot < of.advertised - far)
    jumped |= refuses & rises | ~refuses & of.hungry & falls
    return jumped


def close_half(of: Slots, where: Flags, settings: DemandSettings) -> Flags:
    """End half a window; returns whether a small step makes it begin a segment."""
    half, mark = of.half.copy(), of.end
    where = where & of.flows
    _assign(of.half, mark, where)
    was_step = of.is_half_step.copy()
    of.is_half_step &= ~where
    where = where & of.hungry & ~of.is_mixed & (mark[:, AT] > half[:, AT])
    # Otherwise a slot has detected a step since.
    where &= of.begin[:, AT] <= half[:, AT]
    if not where.any():
        return where
    unit = (SCALE / elapsed(half, mark) + SCALE / settings.round_ns)[:, None]
    # The advertised rate of the half that contains a step is corrected, as that of a slot is.
    far = np.where(was_step[:, None], 0.0, of.half_threshold)
    far = np.maximum(np.maximum(far, unit), of.advertised / CORRECTED_PART)
    off = np.abs(_rates(of, half, mark) - of.advertised)
    # A slot detects larger steps.
    shows = (of.advertised > 0) & (off > far) & (off <= _far(of, settings))
    is_step = where & either(shows)
    _assign(of.begin, half, is_step)
    _assign(of.base, half, is_step)
    of.is_half_step |= is_step & ~was_step
    return is_step


def sigma(of: Slots) -> Floats:
    """[rows, 2] standard deviation of a slot's rate; NaN while unknown."""
    is_known = (of.differences > DIFFERENCES_MIN)[:, None]
    return np.where(is_known, of.noise / _DIFFERENCE_OF_SIGMA, np.nan)


def span(
    of: Slots, now: Floats, last_at: Floats, settings: DemandSettings, *, is_round: bool
) -> Span:
    """The marks over which rates are computed.

    Args:
        of: the rows.
        now: the present counters, as of now.
        last_at: [rows] time of the last request.
        settings: the exchange's intervals.
        is_round: at the end of a full round, where a steady flow that is silent counts as stopped.
    """
    quiet_ns = now[:, AT] - last_at
    requests = of.end[:, REQUESTS] - of.begin[:, REQUESTS]
    gap_ns = (of.end[:, AT] - of.begin[:, AT]) / np.maximum(requests, 1)
    _assign(of.gap_ns, gap_ns, requests > 0)
    # Without one whole slot, use everything, including the first request of a new flow.
    is_short = of.begin[:, AT] == of.end[:, AT]
    is_fresh = is_short & of.is_first
    sounds = of.flows & ~of.is_silent
    if is_round:
        least_ns = np.maximum(settings.round_ns // 2, GAPS_QUIET * of.gap_ns)
        has_stopped = quiet_ns - settings.min_interval_ns >= least_ns
        sounds = sounds & (is_fresh | ~_is_steady(of) | ~has_stopped)
    is_quiet = quiet_ns > settings.min_interval_ns + GAPS_QUIET * gap_ns
    end = np.where((is_short | is_quiet)[:, None], now, of.end)
    since = np.where(is_fresh, of.first_at, of.begin[:, AT])
    begin = np.where(is_fresh[:, None], of.window, of.begin)
    if is_round:
        # A single granted request gives no rate, so it counts as one in a round.
        is_single = is_fresh & (now[:, REQUESTS] - begin[:, REQUESTS] == 1)
        is_single &= now[:, REFUSALS] == begin[:, REFUSALS]
        since = np.where(is_single, np.minimum(since, now[:, AT] - settings.round_ns), since)
    elapsed_ns = np.maximum(end[:, AT] - since, np.where(is_short, settings.min_interval_ns, 1))
    asked = end[:, REQUESTS] - begin[:, REQUESTS] - (end[:, RETRIES] - begin[:, RETRIES])
    return Span(begin, end, elapsed_ns, np.maximum(asked, 0) * sounds, sounds)


def rate_of_noise(of: Slots, begin: Floats, offered: Floats) -> Floats:
    """[rows, 2] the rate that updates the noise: before a step, if its slot alone is known and is shorter."""
    is_mixed = of.is_mixed & of.flows & (begin[:, AT] == of.begin[:, AT])
    of.advertised_mixed |= is_mixed
    is_mixed &= elapsed(of.base, of.begin) > elapsed(of.begin, of.end)
    if not is_mixed.any():
        return offered
    return np.where(is_mixed[:, None], _rates(of, of.base, of.begin), offered)


def open_window(of: Slots, now: Floats, is_idle: Flags) -> None:
    """Begin the next window of each row; idle rows reset their flow."""
    of.window[...] = now
    # Slots after a step's slot are not compared with it.
    of.base[...] = np.where(of.is_mixed[:, None], of.end, of.begin)
    of.begin[...] = of.half[...] = of.end
    of.is_mixed[...] = of.is_first[...] = False
    flags = of.flows, of.advertised_mixed, of.is_half_step, of.is_silent, of.silent_at
    for one in (*flags, of.differences, of.noise, of.latest, of.previous):
        one[is_idle] = 0


def _rates(of: Slots, begin: Floats, end: Floats) -> Floats:
    """[rows, 2] offered work between two marks; unsaid work as far as it is believed."""
    offered = arrived(begin, end) + counted(begin, end, UNSAID) * (1 - of.doubt)
    return per_second(offered, elapsed(begin, end))


def _learn(of: Slots, slot: Floats) -> None:
    """Update each row's noise with the newest slot."""
    count = of.differences[:, None]
    difference = np.abs(slot - of.rate) * (count > 0)
    clip = NOISE_CLIP * np.maximum(of.noise, NOISE_LEAST * slot)
    teach(of.noise, (difference, of.latest, of.previous), clip, count)
    of.previous[...] = of.latest
    of.latest[...] = difference
    of.rate[...] = slot
    of.differences += 1


def _is_change(of: Slots, slot: Floats, end: Floats, mark: Floats) -> Flags:
    """Whether the slot that ended differs from the previous ones by more than noise."""
    before = _rates(of, of.base, end)
    # Units are whole, so one more or less in either is no difference.
    unit = (SCALE / elapsed(end, mark) + SCALE / elapsed(of.base, end))[:, None]
    part = of.threshold / np.maximum(of.advertised, 1)
    far = np.maximum(unit, part * np.maximum(slot, before))
    # Before the first report there is nothing to correct.
    return either((of.advertised > 0) & (np.abs(slot - before) > far))


def _is_steady(of: Slots) -> Flags:
    """Whether a slot without a request would be a change from what was advertised."""
    is_advertised = of.advertised > 0
    return either(is_advertised) & ~either(is_advertised & (of.threshold >= of.advertised))


def _far(of: Slots, settings: DemandSettings) -> Floats:
    # One unit more or less in a slot is no jump.
    return np.maximum(of.threshold, SCALE // settings.min_interval_ns)


def _assign(to: Floats, values: Floats, where: Flags) -> None:
    if where.any():
        to[where] = values[where]
