"""Estimates demand from offered work: steps at once, noise smoothed.

Law: a steady demand is estimated exactly, a step of it at once, and noise changes
the estimate little, with the same parameters. No fixed percentage separates a step
from noise. Significance is measured by the noise of the row's own history, or
by counting statistics (Poisson) while there is none.

The noise is a Huberised mean of absolute second differences of a row's rates. A
single step gives two large second differences in succession, and a drift none, but
noise gives one every time. A change of more than `STEP_SIGMAS` is a step and is
believed. A smaller one updates an average (EWMA) and a two-sided CUSUM (Page,
Biometrika 41, 1954), which detects small changes that last. The first moments of a
step teach no noise, and the next measurement replaces their estimate.

All state is columns of shape [rows, dimensions], changed in place, so that the
simulator's vectorised model calls `end_round` on arrays of its own.
`rgd.core.demand.table` counts the requests.
"""

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from rgd.core.demand.columns import PAIR, Columns, column
from rgd.core.demand.marks import SCALE, Flags, Floats, Ints, whole
from rgd.core.demand.settings import DemandSettings

#: A change of more than this many standard deviations is a step. With 4, shares change a fifth more
#: under noise, and no step is detected sooner.
STEP_SIGMAS: Final = 5.0

#: Part of an insignificant change that is believed: the estimate keeps 23 % of the noise.
GAIN: Final = 0.1

#: Page's reference value and decision limit, in standard deviations.
CUSUM_SLACK: Final = 0.5
CUSUM_LIMIT: Final = 8.0

#: Least noise of a row, as a part of its rate, so that rounding does not count as a step. Times
#: `STEP_SIGMAS` it stays below half a percent, the allowed error of a steady demand.
NOISE_LEAST: Final = 0.001

#: Mean of |a - 2b + c| of three normal deviates, in their standard deviations.
_BEND_OF_SIGMA: Final = 1.954

#: Bounds on a difference of rates that updates a noise: this many times the known noise (so that
#: one step changes it little), or this many times the least of the last three (so that noise
#: updates it at once).
NOISE_CLIP: Final = 4.0
NOISE_CLIP_LEAST: Final = 3.0

#: Least weight of the newest difference in a noise.
NOISE_GAIN: Final = 1 / 16

#: The noise has ended if three bends, in standard deviations, are below this part of it, or this part
#: of the rate: what a step taught would otherwise hide the next small one for long.
NOISE_QUIET: Final = 0.25
RATE_QUIET: Final = 0.01

#: Rounds after which the noise of a row's own history is used: two bends.
HISTORY_ROUNDS: Final = 4

#: Rounds after which a single step does not change the noise.
_WATCHED_ROUNDS: Final = 8

#: From this many random requests per slot on, their number alone varies by two.
_ROUNDED_REQUESTS: Final = 4

#: Retries let demand exceed what is admitted by at most this part of it.
RETRIED_PART: Final = 0.25

_AGE_MAX: Final = 255

Singles = NDArray[np.float32]
AnyFloats = Floats | Singles
Bytes = NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class Seen:
    """Measurements of some rows' slots; the first axis is the row.

    Rates are Milli per second, [rows, dimensions].
    """

    #: Offered new work, since its last change or since the last full round.
    offered: Floats
    #: Requests that `offered` is computed from, [rows]; 0 where there were none.
    requests: Floats
    #: Time that `offered` covers, [rows].
    elapsed_ns: Floats
    #: Work that callers hold back, as a rate.
    held: Floats
    #: Standard deviation of the rate of a slot of `min_interval_ns`; NaN where it is unknown, and
    #: then requests are assumed to arrive at random.
    slot_noise: Floats
    #: The rate that updates the noise: the rate before a step, where `offered` covers only the slot
    #: of the step and that is the shorter part; None for `offered` everywhere.
    of_noise: Floats | None = None
    #: Rates of admitted work, and of work that came back as a retry.
    admitted: Floats | float = 0.0
    retried: Floats | float = 0.0


@dataclass(frozen=True, slots=True)
class Estimates:
    """Estimated demand, Milli per second, [rows, dimensions]."""

    wanted: Ints
    #: A change of one slot's rate by more than this triggers an early report.
    threshold: Ints
    #: The same for the rate of half a round.
    half_threshold: Ints


@dataclass(slots=True)
class History(Columns):
    """What is known of each row and dimension: 40 bytes; rates are Milli per second."""

    level: Floats = column(PAIR)
    #: The rates of the last two rounds, and the last two second differences.
    last: Singles = column(PAIR, np.float32)
    before: Singles = column(PAIR, np.float32)
    bend: Singles = column(PAIR, np.float32)
    bend_before: Singles = column(PAIR, np.float32)
    #: Standard deviation of a round's rate.
    noise: Singles = column(PAIR, np.float32)
    #: CUSUM above and below the level, in standard deviations, and the number of rounds of each.
    above: Singles = column(PAIR, np.float32)
    below: Singles = column(PAIR, np.float32)
    above_rounds: Bytes = column(PAIR, np.uint8)
    below_rounds: Bytes = column(PAIR, np.uint8)
    #: Full rounds since the row was idle, and since its last step.
    age: Bytes = column(PAIR, np.uint8)
    since: Bytes = column(PAIR, np.uint8)

    def begin(self, is_step: Flags) -> None:
        """Begin again where a step was believed: no round since, and no small change."""
        for one in (self.since, self.above, self.below, self.above_rounds, self.below_rounds):
            one[is_step] = 0


def end_round(columns: History, seen: Seen, settings: DemandSettings) -> Estimates:
    """Update every row from a full round; changes the columns in place."""
    offered = seen.offered
    _learn_noise(columns, offered if seen.of_noise is None else seen.of_noise)
    change = offered - columns.level
    sigma = _sigma(columns, seen, settings)
    is_step = np.abs(change) > STEP_SIGMAS * sigma
    is_step |= columns.age == 0
    deviation = np.divide(change, sigma, out=np.zeros_like(change), where=sigma > 0)
    drift = _follow(columns.above, columns.above_rounds, deviation)
    drift -= _follow(columns.below, columns.below_rounds, -deviation)
    # After a step, the level is the mean of the rounds since; an early report saw only its start.
    gain = np.maximum(1 / (columns.since + 1.0), GAIN)
    moved = np.where(drift != 0, drift * sigma, gain * change)
    columns.level += np.where(is_step, change, moved)
    np.maximum(columns.level, 0, out=columns.level)
    columns.age += columns.age < _AGE_MAX
    columns.begin(is_step)
    # A measurement of less than half a round does not count as a round after the step.
    counts = (2 * seen.elapsed_ns > settings.round_ns)[:, None]
    columns.since += counts & (columns.since < _AGE_MAX)
    if (is_idle := offered == 0).any():
        columns.reset(is_idle)
    return _estimates(columns, seen, settings)


def report_early(columns: History, seen: Seen, settings: DemandSettings) -> Estimates:
    """Accept changes within a round that exceed the noise; changes the columns in place."""
    change = seen.offered - columns.level
    sigma = _sigma(columns, seen, settings)
    # Units are whole, so a difference of one in a part of a round is no step.
    unit = (SCALE / np.maximum(seen.elapsed_ns, 1))[:, None]
    is_step = (np.abs(change) > np.maximum(STEP_SIGMAS * sigma, unit)) | (columns.age == 0)
    # The estimate of a step's first moments is replaced by the latest measurement.
    is_step |= columns.since == 0
    is_step &= seen.offered > 0
    columns.level[is_step] = seen.offered[is_step]
    columns.begin(is_step)
    return _estimates(columns, seen, settings)


def _learn_noise(columns: History, offered: Floats) -> None:
    """Update the noise of each row from the newest rate, and store the rate."""
    age, noise = columns.age, columns.noise
    bend = np.abs(offered - 2.0 * columns.last + columns.before)
    bend *= (age >= 2) / _BEND_OF_SIGMA
    most = np.maximum(np.maximum(columns.bend, columns.bend_before), bend)
    known = np.maximum(noise, NOISE_LEAST * offered)
    # In a row with a long history a larger bend is a step, unless all three bends are large.
    is_step = (age >= _WATCHED_ROUNDS) & (bend > NOISE_CLIP * known)
    clip = np.where(is_step, 1.0, NOISE_CLIP) * known
    teach(noise, (bend, columns.bend, columns.bend_before), clip, age - 1.0)
    has_ended = most < np.maximum(NOISE_QUIET * noise, RATE_QUIET * offered)
    np.minimum(noise, most, out=noise, where=has_ended & (age >= HISTORY_ROUNDS))
    columns.bend_before[...] = columns.bend
    columns.bend[...] = bend
    columns.before[...] = columns.last
    columns.last[...] = offered


def teach(
    noise: AnyFloats, newest: tuple[AnyFloats, ...], clip: Floats, count: NDArray[Any]
) -> None:
    """Update a noise from a difference of rates: a Huberised mean of absolute differences.

    Args:
        noise: changed in place, where there were differences before.
        newest: the newest difference, and the two before it.
        clip: a larger difference counts as this much, unless all three are large.
        count: the number of differences.
    """
    difference, last, before = newest
    least = np.minimum(np.minimum(difference, last), before)
    taught = np.minimum(difference, np.maximum(clip, NOISE_CLIP_LEAST * least))
    gain = np.maximum(1.0 / np.maximum(count, 1.0), NOISE_GAIN) * (count >= 1)
    noise += gain * (taught - noise)


def _sigma(columns: History, seen: Seen, settings: DemandSettings) -> Floats:
    """Standard deviation of (the measured rate - the level) without a change of demand."""
    level, offered = columns.level, seen.offered
    least = NOISE_LEAST * np.maximum(level, offered)
    slots = np.maximum(seen.elapsed_ns / settings.min_interval_ns, 1.0)[:, None]
    by_slots = seen.slot_noise / _calm(seen, slots, settings)
    # Both rates are counts of requests that arrived at random, of the measured size.
    by_count = np.sqrt(offered * (offered + level) / np.maximum(seen.requests, 1)[:, None])
    by_slots = np.where(np.isnan(by_slots), by_count, by_slots)
    by_history = np.where(columns.age >= HISTORY_ROUNDS, columns.noise, 0)
    # With a history, its noise already includes the variation of the counts.
    by_slots[(columns.age >= HISTORY_ROUNDS) & np.isnan(seen.slot_noise)] = 0
    sigma: Floats = np.maximum(np.maximum(by_history, by_slots), least)
    return sigma


def _calm(seen: Seen, slots: Floats | np.float64, settings: DemandSettings) -> Floats:
    """The factor by which the mean of `slots` slots has less noise than one slot."""
    # Divided first, because the product of two whole numbers might not fit an int64.
    in_slot = seen.requests * (settings.min_interval_ns / np.maximum(seen.elapsed_ns, 1))
    # Units are whole. A deviation of at most one unit, of many requests, is a rounding error, which
    # does not accumulate over slots.
    unit = SCALE / settings.min_interval_ns
    is_rounded = (seen.slot_noise <= unit) & (in_slot >= _ROUNDED_REQUESTS)[:, None]
    calm: Floats = np.where(is_rounded, slots, np.sqrt(slots))
    return calm


def _follow(total: Singles, rounds: Bytes, deviation: Floats) -> Floats:
    """Update one side of the CUSUM; on an alarm, the level's change in deviations, else 0."""
    np.maximum(total + deviation - CUSUM_SLACK, 0, out=total, casting="same_kind")
    runs = total > 0
    rounds += rounds < _AGE_MAX
    rounds *= runs
    is_alarm = total > CUSUM_LIMIT
    moved: Floats = np.where(is_alarm, CUSUM_SLACK + total / np.maximum(rounds, 1), 0.0)
    total[is_alarm] = 0
    rounds[is_alarm] = 0
    return moved


def _estimates(columns: History, seen: Seen, settings: DemandSettings) -> Estimates:
    level = columns.level
    # A slot without a request continues until the next request.
    in_slot = seen.requests * (settings.min_interval_ns / np.maximum(seen.elapsed_ns, 1))
    by_count = level / np.sqrt(np.maximum(in_slot, 1))[:, None]
    by_slots = np.where(np.isnan(seen.slot_noise), by_count, seen.slot_noise)
    by_history = np.where(columns.age >= HISTORY_ROUNDS, columns.noise, 0)
    by_history = np.maximum(by_history, NOISE_LEAST * level)
    slots = np.float64(max(settings.round_ns / settings.min_interval_ns / 2, 1))
    by_half = by_slots / _calm(seen, slots, settings)
    # Workers that ask for more only after a grant bring as much new work as is admitted. Where work comes back as retries,
    # demand therefore grows from round to round, so that a share that was low once does not stay low.
    grown = np.minimum(level + seen.retried, (1 + RETRIED_PART) * seen.admitted)
    return Estimates(
        wanted=whole(np.maximum(level + seen.held, grown)),
        threshold=whole(STEP_SIGMAS * np.maximum(by_history, by_slots)),
        half_threshold=whole(STEP_SIGMAS * np.maximum(by_history, by_half)),
    )
