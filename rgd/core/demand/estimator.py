"""Estimates what is wanted from what was offered: steps at once, noise smoothed.

Law: a steady demand is estimated exactly, a step of it at once, and noise moves
the estimate little, with the same parameters. No fixed percentage tells a step
from noise: significance is measured, by the noise of the row's own history, or
by counting statistics (Poisson) while there is none.

The noise is a Huberised mean of absolute second differences of a row's rates:
a lone step bends the line two times running, and a drift not at all, but noise
bends it every time. A change of more than `STEP_SIGMAS` is a step and believed;
a smaller one moves an average (EWMA) and a two-sided CUSUM (Page, Biometrika 41,
1954), which finds small changes that last. A step's first moments teach no noise,
and give way to whatever is seen next.

All is columns of shape [rows, dimensions] and changed in place, so that the
simulator's vectorised model calls `end_round` on arrays of its own. Counting
requests is `rgd.core.demand.table`'s business.
"""

from dataclasses import dataclass
from typing import Final, Self

import numpy as np
from numpy.typing import NDArray

from rgd.core.demand.columns import Columns
from rgd.core.demand.marks import SCALE, Flags, Floats, Ints, whole
from rgd.core.demand.settings import DemandSettings
from rgd.core.runs import run_of

#: A change of more than so many standard deviations is a step. With 4 the movement of shares under noise
#: is a fifth larger, and no step is found sooner.
STEP_SIGMAS: Final = 5.0

#: Part of an insignificant change that is believed: the estimate keeps 23 % of the noise.
GAIN: Final = 0.1

#: Page's reference value and decision limit, in standard deviations.
CUSUM_SLACK: Final = 0.5
CUSUM_LIMIT: Final = 8.0

#: No row is taken for steadier than this part of its rate, so that rounding is no step. Times
#: `STEP_SIGMAS` it stays below the half percent that a steady demand may be misjudged by.
NOISE_LEAST: Final = 0.001

#: Mean of |a - 2b + c| of three normal deviates, in their standard deviations.
_BEND_OF_SIGMA: Final = 1.954

#: How much of a bend teaches noise: at most so many times what is known already (so that one step
#: teaches little), or so many times the least of the last three (so that noise teaches at once).
NOISE_CLIP: Final = 4.0
NOISE_CLIP_LEAST: Final = 3.0

#: Least weight of the newest bend in the noise.
NOISE_GAIN: Final = 1 / 16

#: Three bends below this part of the noise show that it has ended.
NOISE_QUIET: Final = 0.25

#: Rounds after which the noise of a row's own history is believed: two bends.
HISTORY_ROUNDS: Final = 4

#: Rounds after which one step teaches nothing.
_WATCHED_ROUNDS: Final = 8

#: Of so many random requests in a slot, their number alone differs by two.
_ROUNDED_REQUESTS: Final = 4

_AGE_MAX: Final = 255


@dataclass(frozen=True, slots=True)
class Seen:
    """What the slots of some rows showed; the first axis is the row.

    Rates are Milli per second, [rows, dimensions].
    """

    #: New work that was offered, since its last change or since the last full round.
    offered: Floats
    #: Requests that `offered` was counted over, [rows]; 0 where nothing was asked.
    requests: Floats
    #: Time that `offered` was counted over, [rows].
    elapsed_ns: Floats
    #: What callers hold back, as a rate.
    held: Floats
    #: Standard deviation of the rate of a slot of `min_interval_ns`; NaN where it is unknown and
    #: requests are taken to come at random.
    slot_noise: Floats
    #: What noise is learnt from: the rate before a step, where `offered` shows but the slot in which
    #: it fell; None for `offered` everywhere.
    settled: Floats | None = None


@dataclass(frozen=True, slots=True)
class Estimates:
    """What is wanted, Milli per second, [rows, dimensions]."""

    wanted: Ints
    #: A change of one slot's rate by more than this is worth an early report.
    threshold: Ints
    #: The same of half a round's rate.
    half_threshold: Ints


@dataclass(slots=True)
class History(Columns):
    """What is remembered of each row and dimension: 40 bytes; rates are Milli per second."""

    level: Floats
    #: The rates of the last two rounds, and how the line through three bent the last two times.
    last: NDArray[np.float32]
    before: NDArray[np.float32]
    bend: NDArray[np.float32]
    bend_before: NDArray[np.float32]
    #: Standard deviation of a round's rate.
    noise: NDArray[np.float32]
    #: CUSUM of what is above and below the level, in deviations, and for how many rounds.
    above: NDArray[np.float32]
    below: NDArray[np.float32]
    above_rounds: NDArray[np.uint8]
    below_rounds: NDArray[np.uint8]
    #: Full rounds since the row was idle, and since its last step.
    age: NDArray[np.uint8]
    since: NDArray[np.uint8]

    @classmethod
    def empty(cls, rows: int, dimensions: int = 2) -> Self:
        """Columns of rows that were never asked for."""
        shape = (rows, dimensions)
        types = (np.float64, *[np.float32] * 7, *[np.uint8] * 4)
        return cls(*(np.zeros(shape, dtype) for dtype in types))


class Estimator:
    """The estimates of one broker, by place: the slot that a (group, kind) was given."""

    def __init__(self, settings: DemandSettings) -> None:
        self._settings = settings
        self._columns = History.empty(0)

    def update(self, places: Ints, seen: Seen, *, is_round: bool) -> Estimates:
        """Take in what the slots of some distinct rows showed.

        Args:
            places: int64 [n], each place at most once; unheard-of ones are fresh.
            seen: what they showed.
            is_round: at the end of a full round; else for an early report, which believes a step
                and learns nothing of the noise.
        """
        self._reach(int(places.max(initial=-1)) + 1)
        run = run_of(places)
        rows = self._columns.rows(run)
        estimates = (end_round if is_round else report_early)(rows, seen, self._settings)
        if not isinstance(run, slice):
            self._columns.put(places, rows)
        return estimates

    def forget(self, places: Ints) -> None:
        """Make places fresh: their groups went, or the places were given to others."""
        known = places[places < len(self._columns.level)]
        self._columns.reset(known)

    def _reach(self, count: int) -> None:
        missing = count - len(self._columns.level)
        if missing > 0:
            # Doubled, so that groups which come one by one are not copied each time.
            self._columns.extend(max(missing, len(self._columns.level)))


def end_round(columns: History, seen: Seen, settings: DemandSettings) -> Estimates:
    """Take in a full round of every row; changes the columns in place."""
    offered = seen.offered
    _learn_noise(columns, offered if seen.settled is None else seen.settled)
    change = offered - columns.level
    sigma = _sigma(columns, seen, settings)
    is_step = np.abs(change) > STEP_SIGMAS * sigma
    is_step |= columns.age == 0
    deviation = np.divide(change, sigma, out=np.zeros_like(change), where=sigma > 0)
    drift = _follow(columns.above, columns.above_rounds, deviation)
    drift -= _follow(columns.below, columns.below_rounds, -deviation)
    # After a step the mean of the rounds since, of which an early report saw only the first moments.
    gain = np.maximum(1 / (columns.since + 1.0), GAIN)
    moved = np.where(drift != 0, drift * sigma, gain * change)
    columns.level += np.where(is_step, change, moved)
    np.maximum(columns.level, 0, out=columns.level)
    columns.age += columns.age < _AGE_MAX
    columns.since[is_step] = 0
    # The first moments after a step are no round of it.
    counts = (2 * seen.elapsed_ns > settings.round_ns)[:, None]
    columns.since += counts & (columns.since < _AGE_MAX)
    for fresh in (columns.above, columns.below, columns.above_rounds, columns.below_rounds):
        fresh[is_step] = 0
    _forget_idle(columns, offered == 0)
    return _estimates(columns, seen, settings)


def report_early(columns: History, seen: Seen, settings: DemandSettings) -> Estimates:
    """Believe what changed by more than noise within a round; changes the columns in place."""
    change = seen.offered - columns.level
    sigma = _sigma(columns, seen, settings)
    # Units are whole: in a part of a round one more or less is no step.
    unit = (SCALE / np.maximum(seen.elapsed_ns, 1))[:, None]
    is_step = (np.abs(change) > np.maximum(STEP_SIGMAS * sigma, unit)) | (columns.age == 0)
    # What the first moments after a step showed is replaced by what was seen since.
    is_step |= columns.since == 0
    is_step &= seen.offered > 0
    columns.level[is_step] = seen.offered[is_step]
    columns.since[is_step] = 0
    for fresh in (columns.above, columns.below, columns.above_rounds, columns.below_rounds):
        fresh[is_step] = 0
    return _estimates(columns, seen, settings)


def _learn_noise(columns: History, offered: Floats) -> None:
    """Take the newest rate into the noise of each row, and remember it."""
    age, noise = columns.age, columns.noise
    bend = np.abs(offered - 2.0 * columns.last + columns.before)
    bend *= (age >= 2) / _BEND_OF_SIGMA
    least = np.minimum(np.minimum(columns.bend, columns.bend_before), bend)
    most = np.maximum(np.maximum(columns.bend, columns.bend_before), bend)
    known = np.maximum(noise, NOISE_LEAST * offered)
    # Of a row that was watched for long a bend beyond that is a step, unless all of the three are.
    is_step = (age >= _WATCHED_ROUNDS) & (bend > NOISE_CLIP * known)
    clip = np.where(is_step, 1.0, NOISE_CLIP) * known
    taught = np.minimum(bend, np.maximum(clip, NOISE_CLIP_LEAST * least))
    gain = np.maximum(1.0 / np.maximum(age - 1.0, 1.0), NOISE_GAIN) * (age >= 2)
    noise += gain * (taught - noise)
    np.copyto(noise, most, where=(age >= HISTORY_ROUNDS) & (most < NOISE_QUIET * noise))
    columns.bend_before[...] = columns.bend
    columns.bend[...] = bend
    columns.before[...] = columns.last
    columns.last[...] = offered


def _sigma(columns: History, seen: Seen, settings: DemandSettings) -> Floats:
    """Standard deviation of (the rate that was seen - the level), where nothing else changed."""
    level, offered = columns.level, seen.offered
    least = NOISE_LEAST * np.maximum(level, offered)
    slots = np.maximum(seen.elapsed_ns / settings.min_interval_ns, 1.0)[:, None]
    by_slots = seen.slot_noise / _calm(seen, slots, settings)
    # Both are counts of requests that came at random, of the size that was seen.
    by_count = np.sqrt(offered * (offered + level) / np.maximum(seen.requests, 1)[:, None])
    by_slots = np.where(np.isnan(by_slots), by_count, by_slots)
    by_history = np.where(columns.age >= HISTORY_ROUNDS, columns.noise, 0)
    # Of a row with a history, the chance of the counting is a part.
    by_slots[(columns.age >= HISTORY_ROUNDS) & np.isnan(seen.slot_noise)] = 0
    sigma: Floats = np.maximum(np.maximum(by_history, by_slots), least)
    return sigma


def _calm(seen: Seen, slots: Floats | np.float64, settings: DemandSettings) -> Floats:
    """By how much the noise of so many slots together is less than that of one."""
    # The quotient first: the product of two whole numbers might not fit an int64.
    in_slot = seen.requests * (settings.min_interval_ns / np.maximum(seen.elapsed_ns, 1))
    # Units are whole: what differs by less than one of them, of many requests, is rounded, and that
    # does not add up.
    unit = SCALE / settings.min_interval_ns
    is_rounded = (seen.slot_noise <= unit) & (in_slot >= _ROUNDED_REQUESTS)[:, None]
    calm: Floats = np.where(is_rounded, slots, np.sqrt(slots))
    return calm


def _follow(total: NDArray[np.float32], rounds: NDArray[np.uint8], deviation: Floats) -> Floats:
    """One side of the CUSUM; returns by how many deviations the level moves on an alarm, else 0."""
    np.maximum(total + deviation - CUSUM_SLACK, 0, out=total, casting="same_kind")
    runs = total > 0
    rounds += rounds < _AGE_MAX
    rounds *= runs
    is_alarm = total > CUSUM_LIMIT
    moved: Floats = np.where(is_alarm, CUSUM_SLACK + total / np.maximum(rounds, 1), 0.0)
    total[is_alarm] = 0
    rounds[is_alarm] = 0
    return moved


def _forget_idle(columns: History, is_idle: Flags) -> None:
    if is_idle.any():
        columns.reset(is_idle)


def _estimates(columns: History, seen: Seen, settings: DemandSettings) -> Estimates:
    level = columns.level
    # A slot without a request lasts until there is one.
    in_slot = seen.requests * (settings.min_interval_ns / np.maximum(seen.elapsed_ns, 1))
    by_count = level / np.sqrt(np.maximum(in_slot, 1))[:, None]
    by_slots = np.where(np.isnan(seen.slot_noise), by_count, seen.slot_noise)
    by_history = np.where(columns.age >= HISTORY_ROUNDS, columns.noise, 0)
    by_history = np.maximum(by_history, NOISE_LEAST * level)
    slots = np.float64(max(settings.round_ns / settings.min_interval_ns / 2, 1))
    by_half = by_slots / _calm(seen, slots, settings)
    return Estimates(
        wanted=whole(level + seen.held),
        threshold=whole(STEP_SIGMAS * np.maximum(by_history, by_slots)),
        half_threshold=whole(STEP_SIGMAS * np.maximum(by_history, by_half)),
    )
