"""Slots: how a group's rate changes within a round, for many groups at once.

A slot lasts from one tick's reading to the next, each as of the last request, so evenly spaced
callers are measured exactly regardless of when ticks occur. A slot that differs from the previous
ones by more than noise and one whole unit begins a new *segment*. A rate is that of the newest
segment, so a step within a round is not diluted. The slot that contains the step belongs to neither
segment; it counts until the next one closes. Steps that are too small for a slot are detected in
half a round, if the group is short.

`rgd.core.demand.estimator` defines the noise, and `learn` here measures how slots differ.
"""

from dataclasses import dataclass
from typing import Final, Self

import numpy as np

from rgd.core.demand.columns import Columns
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

#: An advertised rate of the slot of a step is corrected if it is off by more than 1 /
#: `CORRECTED_PART` of it; and half a round that is off by less is no step.
CORRECTED_PART: Final = 100

#: Where nothing was advertised, a slot that differs by more than this part begins a new segment.
FRESH_PART: Final = 0.5

#: Bounds on a difference of slots that updates the noise: this many times the known noise, or this
#: many times the least of the last three. A step makes two of them large, noise makes all large.
CLIP: Final = 4.0
CLIP_LEAST: Final = 3.0

#: Least weight of the newest difference, and the number of differences from which the noise is
#: known.
GAIN: Final = 1 / 16
DIFFERENCES_MIN: Final = 3

#: Least noise, as a part of the rate.
NOISE_LEAST: Final = 0.001

#: Mean absolute difference of two normal deviates, in their standard deviations.
_DIFFERENCE_OF_SIGMA: Final = 1.128


@dataclass(slots=True)
class Slots(Columns):
    """State of each group's slots; marks are [rows, FIELDS], rates [rows, 2] Milli per second."""

    #: The last reading of the counters; whether it holds, unless they are touched; whether the row
    #: rests (`DemandTable.begin`); demand since the start without the open window, in whole units.
    mark: Floats
    is_read: Flags
    rests: Flags
    wanted_total: Ints
    #: Marks: begin of the open window, begin of the newest segment, the mark with which the next
    #: slot is compared, end of the newest slot, begin of the open half of a round.
    window: Floats
    begin: Floats
    base: Floats
    end: Floats
    half: Floats
    #: Time of the first request of the flow, and the usual time between two requests.
    first_at: Floats
    gap_ns: Floats
    #: Whether there were requests since the group was idle; whether this window has the first ones.
    flows: Flags
    is_first: Flags
    #: Whether the segment is only the slot of a step; whether that was advertised.
    is_mixed: Flags
    was_told_mixed: Flags
    #: Whether the previous half of a round contains a step.
    is_half_step: Flags
    #: Whether a slot of the open window refused nothing.
    was_clear: Flags
    #: The noise of slots: the newest rate, the mean difference, the last two, and their number.
    rate: Floats
    noise: Floats
    latest: Floats
    previous: Floats
    differences: Ints
    #: The part of unsaid refusals (refused work without an attempt) that is not believed
    #: (`rgd.core.demand.credit`).
    doubt: Floats
    #: Rates of admitted work and of unsaid refusals in the last round that had any; 0 once learnt
    #: from.
    last_admitted: Floats
    last_unsaid: Floats
    #: What was advertised; by how much a slot or half a round must differ to be reported; whether
    #: the group as a whole is short, so that a decrease is reported too.
    told: Floats
    threshold: Floats
    half_threshold: Floats
    hungry: Flags

    @classmethod
    def empty(cls, rows: int) -> Self:
        """Zeroed columns for new rows."""
        mark, pair = (rows, FIELDS), (rows, 2)
        ints, flags, floats = np.int64, np.bool_, np.float64
        shapes = [
            (mark, floats),
            *[((rows,), flags)] * 2,
            (pair, ints),
            *[(mark, floats)] * 5,
            *[((rows,), floats)] * 2,
            *[((rows,), flags)] * 6,
            *[(pair, floats)] * 4,
            ((rows,), ints),
            *[(pair, floats)] * 6,
            ((rows,), flags),
        ]
        return cls(*(np.zeros(shape, dtype) for shape, dtype in shapes))

    def inside_window(self) -> tuple[Floats, ...]:
        """The marks that lie in the open window."""
        return self.begin, self.base, self.end, self.half


@dataclass(frozen=True, slots=True)
class Span:
    """The marks between which rates are computed, [rows]."""

    begin: Floats
    end: Floats
    elapsed_ns: Floats
    #: Whether there is nothing to measure: idle, or a steady flow that has stopped.
    is_silent: Flags


def rates(of: Slots, begin: Floats, end: Floats) -> Floats:
    """[rows, 2] offered work between two marks; unsaid work as far as it is believed."""
    offered = arrived(begin, end) + counted(begin, end, UNSAID) * (1 - of.doubt)
    return per_second(offered, elapsed(begin, end))


def start(of: Slots, mark: Floats) -> None:
    """Begin the flow of rows that were idle."""
    for column in (of.begin, of.base, of.half, of.end):
        column[...] = mark
    of.first_at[...] = mark[:, SINCE]
    of.flows[...] = of.is_first[...] = True


def close(of: Slots, mark: Floats, settings: DemandSettings) -> Flags:
    """End a slot of each row, all of which flow; returns whether demand jumped."""
    end = of.end.copy()
    slot = rates(of, end, mark)
    learn(of, slot)
    told_mixed, was_mixed = of.was_told_mixed.copy(), of.is_mixed.copy()
    is_change = ~was_mixed & (end[:, AT] > of.base[:, AT]) & _is_change(of, slot, end, mark)
    _assign(of.begin, end, was_mixed | is_change)
    # The slot that contains a step belongs to neither side of it.
    of.base[...] = np.where(was_mixed[:, None], end, of.base)
    _assign(of.base, of.begin, ~was_mixed & ~is_change)
    of.is_mixed[...] = is_change
    of.was_told_mixed &= ~was_mixed
    of.is_first &= ~is_change
    refuses = mark[:, REFUSALS] > end[:, REFUSALS]
    of.was_clear |= ~refuses
    of.end[...] = mark
    jumped = close_half(of, 2 * (mark[:, AT] - of.half[:, AT]) >= settings.round_ns, settings)
    jumped |= told_mixed & _is_told_wrong(of, slot)
    jumped |= _is_jump(of, slot, refuses, settings)
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
    far = np.maximum(np.maximum(far, unit), of.told / CORRECTED_PART)
    off = np.abs(rates(of, half, mark) - of.told)
    # A slot detects larger steps.
    shows = (of.told > 0) & (off > far) & (off <= _far(of, settings))
    is_step = where & either(shows)
    _assign(of.begin, half, is_step)
    _assign(of.base, half, is_step)
    of.is_half_step |= is_step & ~was_step
    return is_step


def learn(of: Slots, slot: Floats) -> None:
    """Update each row's noise with the newest slot: a Huberised mean of absolute differences."""
    is_known = (of.differences > 0)[:, None]
    difference = np.abs(slot - of.rate) * is_known
    least = np.minimum(np.minimum(difference, of.latest), of.previous)
    known = np.maximum(of.noise, NOISE_LEAST * slot)
    taught = np.minimum(difference, np.maximum(CLIP * known, CLIP_LEAST * least))
    gain = np.maximum(1.0 / np.maximum(of.differences, 1), GAIN)[:, None] * is_known
    of.noise += gain * (taught - of.noise)
    of.previous[...] = of.latest
    of.latest[...] = difference
    of.rate[...] = slot
    of.differences += 1


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
    is_silent = ~of.flows
    if is_round:
        least_ns = np.maximum(settings.round_ns // 2, GAPS_QUIET * of.gap_ns)
        has_stopped = quiet_ns - settings.min_interval_ns >= least_ns
        is_silent |= ~is_fresh & _is_steady(of) & has_stopped
    is_quiet = quiet_ns > settings.min_interval_ns + GAPS_QUIET * gap_ns
    end = np.where((is_short | is_quiet)[:, None], now, of.end)
    begin = of.begin
    since = np.where(is_fresh, of.first_at, begin[:, AT])
    begin = np.where(is_fresh[:, None], of.window, begin)
    if is_round:
        # A single granted request gives no rate, so it counts as one in a round.
        is_single = is_fresh & (now[:, REQUESTS] - begin[:, REQUESTS] == 1)
        is_single &= now[:, REFUSALS] == begin[:, REFUSALS]
        since = np.where(is_single, np.minimum(since, now[:, AT] - settings.round_ns), since)
    elapsed_ns = np.maximum(end[:, AT] - since, np.where(is_short, settings.min_interval_ns, 1))
    return Span(begin, end, elapsed_ns, is_silent)


def requests(of: Span) -> Floats:
    """[rows] requests of a span without those marked as retries."""
    said: Floats = of.end[:, REQUESTS] - of.begin[:, REQUESTS]
    return said - (of.end[:, RETRIES] - of.begin[:, RETRIES])


def open_window(of: Slots, now: Floats, is_idle: Flags) -> None:
    """Begin the next window of each row; idle rows reset their flow."""
    of.window[...] = now
    of.was_clear[...] = False
    # Slots after a step's slot are not compared with it.
    of.base[...] = np.where(of.is_mixed[:, None], of.end, of.begin)
    for column in (of.begin, of.half):
        column[...] = of.end
    of.is_mixed[...] = of.is_first[...] = False
    of.flows &= ~is_idle
    of.was_told_mixed &= ~is_idle
    of.is_half_step &= ~is_idle
    of.differences[is_idle] = 0
    for noise in (of.noise, of.latest, of.previous):
        noise[is_idle] = 0


def settled(of: Slots, begin: Floats, offered: Floats) -> Floats:
    """[rows, 2] the rate that updates the noise: before a step, if only its slot is known."""
    is_mixed = of.is_mixed & of.flows & (begin[:, AT] == of.begin[:, AT])
    of.was_told_mixed |= is_mixed
    if not is_mixed.any():
        return offered
    return np.where(is_mixed[:, None], rates(of, of.base, of.begin), offered)


def _is_change(of: Slots, slot: Floats, end: Floats, mark: Floats) -> Flags:
    """Whether the slot that ended differs from the previous ones by more than noise."""
    before = rates(of, of.base, end)
    # Units are whole, so one more or less in either is no difference.
    unit = (SCALE / elapsed(end, mark) + SCALE / elapsed(of.base, end))[:, None]
    with np.errstate(divide="ignore"):
        part = np.where(of.told > 0, of.threshold / np.maximum(of.told, 1), FRESH_PART)
    far = np.maximum(unit, part * np.maximum(slot, before))
    is_change: Flags = either(np.abs(slot - before) > far)
    return is_change


def _is_told_wrong(of: Slots, slot: Floats) -> Flags:
    """Whether the first slot after a step's slot shows that the advertised rate was wrong."""
    is_off = np.abs(slot - of.told) * CORRECTED_PART > of.told
    is_wrong: Flags = either(is_off & (of.told > 0))
    return is_wrong


def _is_jump(of: Slots, slot: Floats, refuses: Flags, settings: DemandSettings) -> Flags:
    far = _far(of, settings)
    rises: Flags = either(slot > of.told + far)
    falls: Flags = either(slot < of.told - far)
    return refuses & rises | ~refuses & of.hungry & falls


def _is_steady(of: Slots) -> Flags:
    """Whether a slot without a request would be a change from what was advertised."""
    is_advertised = of.told > 0
    is_above: Flags = ~either(is_advertised & (of.threshold >= of.told))
    is_steady: Flags = either(is_advertised) & is_above
    return is_steady


def _far(of: Slots, settings: DemandSettings) -> Floats:
    # One unit more or less in a slot is no jump.
    unit = SCALE // settings.min_interval_ns
    return np.maximum(of.threshold, unit)


def _assign(column: Floats, values: Floats, where: Flags) -> None:
    if where.any():
        column[where] = values[where]
