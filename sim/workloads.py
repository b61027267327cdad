"""The shapes of demand: who wants how much, when, in parts of the mean share.

A workload makes a schedule for each load and says when shares have to be fair again (steps). It is a
pure function of the ground, dice included. `1.0` is a broker's even part of the quota, so demand of
more than 1.0 on average is overload.
"""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from sim.scenario import Demand, Ground
from sim.schedule import Schedule

Floats = NDArray[np.float64]
Workload = Callable[[Ground], Demand]

#: Pieces that a wave is cut into, for each round.
_WAVE_PIECES = 4
#: Least demand that is drawn: of much less, a round's messages are too few to tell 2 % by.
_LEAST = 0.1
#: What the growing half of `growth` wants at each step: below its part of 1.0 all of it is due, above
#: it the rest is refused. Each growth begins after a fall, at which refusals end.
_GROWTH = (1.5, 0.1, 0.2, 0.8, 0.1, 1.0, 0.4, 0.8)
#: Exponent of the heavy tail: finite mean, infinite variance.
_TAIL = 1.3


def pieces(
    ground: Ground,
    moments_ns: Sequence[int],
    levels: Floats,
    *,
    byte_levels: Floats | None = None,
    meant: Floats | None = None,
) -> list[list[Schedule]]:
    """Schedules out of levels by (piece, group, place), each from its moment on.

    Args:
        ground: what a level of 1.0 is.
        moments_ns: when each piece begins; the first is 0.
        levels: messages, in mean shares.
        byte_levels: bytes; without them, requests have none.
        meant: what `levels` are noise around.
    """
    messages = levels * ground.mean_messages
    size = np.zeros_like(messages) if byte_levels is None else byte_levels * ground.mean_bytes
    made = []
    for group in range(ground.groups):
        row = []
        for place in range(ground.daemons):
            one = (messages[:, group, place], size[:, group, place])
            aim = None
            if meant is not None:
                aim = (meant[:, group, place] * ground.mean_messages, one[1])
            row.append(Schedule(moments_ns, one[0], one[1], meant=aim))
        made.append(row)
    return made


def stepped(count: int, level_of: Callable[[Ground, int], Floats]) -> Workload:
    """Levels that hold from step to step: `level_of(ground, 0)` before the first."""

    def make(ground: Ground) -> Demand:
        steps = ground.steps(count)
        levels = np.stack(
            [
                np.broadcast_to(level_of(ground, place), (ground.groups, ground.daemons))
                for place in range(count + 1)
            ]
        )
        return Demand(pieces(ground, [0, *steps], levels), tuple(steps))

    return make


def steady(level: float, *, spread: float = 0.0) -> Workload:
    """The same all the time; some want more than others by up to `spread`."""

    def make(ground: Ground) -> Demand:
        shape = (1, ground.groups, ground.daemons)
        levels = level * (1 + spread * np.linspace(-1, 1, ground.daemons))
        return Demand(pieces(ground, [0], np.broadcast_to(levels, shape).copy()))

    return make


def newcomer(ground: Ground, step: int) -> Floats:
    """The others want half as much again as there is; one is idle, wants too, is idle, wants."""
    levels = np.full(ground.daemons, 1.5 * ground.daemons / max(1, ground.daemons - 1))
    levels[step // 2 % ground.daemons] = 1.5 if step % 2 else 0.0
    return levels


def spare(ground: Ground, step: int) -> Floats:
    """There is enough for all; one after another wants six times as much as the rest."""
    levels = np.full(ground.daemons, 0.5)
    if step:
        levels[(step - 1) % ground.daemons] = min(3.0, 0.5 + 0.45 * ground.daemons)
    return levels


def swap(ground: Ground, step: int) -> Floats:
    """One half wants 3.0 and the other 0.1, and then the other way round."""
    is_high = (np.arange(ground.daemons) % 2 == 0) == (step % 2 == 0)
    return np.where(is_high, 3.0, 0.1)


def growth(ground: Ground, step: int) -> Floats:
    """One half wants twice its part; the other one falls, grows twofold, fourfold, and again."""
    levels = np.full(ground.daemons, 2.0)
    levels[::2] = _GROWTH[step % len(_GROWTH)]
    return levels


def heavy_tail(ground: Ground, _step: int) -> Floats:
    """A few want almost everything; shuffled at each step."""
    levels = _tail_of(ground)
    return ground.dice.permuted(np.broadcast_to(levels, (ground.groups, ground.daemons)), axis=1)


def on_off(ground: Ground, _step: int) -> Floats:
    """Each wants twice its part, or nothing, by a coin thrown at each step."""
    is_on = ground.dice.random((ground.groups, ground.daemons)) < 0.5
    return np.where(is_on, 2.0, 0.0)


def flash_crowd(ground: Ground, step: int) -> Floats:
    """Everybody wants half, and for a while a third of them ten times as much."""
    levels = np.full(ground.daemons, 0.5)
    if step % 2:
        levels[: max(1, ground.daemons // 3)] = 5.0
    return levels


def noise(mean: float, deviation: float) -> Workload:
    """Each round another normal demand, independent of everything; no steps."""

    def make(ground: Ground) -> Demand:
        shape = (ground.rounds, ground.groups, ground.daemons)
        factors = 1 + deviation * ground.dice.standard_normal(shape)
        moments = (np.arange(ground.rounds) * ground.round_ns).tolist()
        levels = mean * np.maximum(factors, 0.0)
        return Demand(pieces(ground, moments, levels, meant=np.full(shape, mean)))

    return make


def diurnal(*, mean: float, swing: float, period_rounds: int) -> Workload:
    """Waves, each broker a little later than the one before, as the sun goes round."""

    def make(ground: Ground) -> Demand:
        count = ground.rounds * _WAVE_PIECES
        moments = (np.arange(count) * ground.round_ns // _WAVE_PIECES).tolist()
        turns = np.arange(count)[:, None] / (_WAVE_PIECES * period_rounds)
        phases = np.arange(ground.daemons) / ground.daemons
        wave = mean * (1 + swing * np.sin(2 * np.pi * (turns - phases)))
        levels = np.repeat(wave[:, None, :], ground.groups, axis=1)
        return Demand(pieces(ground, moments, levels))

    return make


def two_dimensions(count: int) -> Workload:
    """Messages and bytes in other proportions for each broker, group and step; more than there is."""

    def make(ground: Ground) -> Demand:
        steps = ground.steps(count)
        shape = (count + 1, ground.groups, ground.daemons)
        levels = ground.dice.uniform(_LEAST, 3.0, (2, *shape))
        # At least one dimension is overloaded, or nothing would be cut.
        fuller = levels.mean(axis=-1, keepdims=True).max(axis=0)
        levels *= np.maximum(1.0, 1.1 / fuller)
        made = pieces(ground, [0, *steps], levels[0], byte_levels=levels[1])
        return Demand(made, tuple(steps))

    return make


def shifting(count: int, *, part: float) -> Workload:
    """At each step a part of the brokers draw again what they want, up to 2.4."""

    def make(ground: Ground) -> Demand:
        steps = ground.steps(count)
        shape = (ground.groups, ground.daemons)
        levels = np.empty((count + 1, *shape))
        levels[0] = ground.dice.uniform(_LEAST, 2.4, shape)
        for step in range(1, count + 1):
            is_moved = ground.dice.random(shape) < part
            drawn = ground.dice.uniform(_LEAST, 2.4, shape)
            levels[step] = np.where(is_moved, drawn, levels[step - 1])
        return Demand(pieces(ground, [0, *steps], levels), tuple(steps))

    return make


def _tail_of(ground: Ground) -> Floats:
    """Quantiles of a Pareto distribution, so that every run has the same tail, with a mean of 1.5."""
    ranks = (np.arange(ground.daemons) + 0.5) / ground.daemons
    levels = (1 - ranks) ** (-1 / _TAIL)
    scaled: Floats = levels * 1.5 / levels.mean()
    return scaled
