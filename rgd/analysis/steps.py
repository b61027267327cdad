"""Steps in what is fair, and how many rounds it took to get there.

The log shows no events, only rates, so a step is found where the level of the max-min parts changes:
the medians of `LEVEL_WINDOWS` windows before and after differ, summed over the brokers, by more than
`STEP_MIN` of the larger level and by more than `NOISE_TIMES` what they usually differ by from one window
to the next around there. A change of the quota, of the demand and of the brokers all show in the parts.

A step is at the first window that is wholly after it. From there the windows are counted until the
first in which every broker admitted its part to within `FAIR_WITHIN` (or one unit): 0 is "at once",
None is "not before the next step, or the end". So a count can be one round short of what a clock
beside the load would have said. Windows longer than a round cannot be counted in rounds.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from rgd.analysis.fairness import Fairness
from rgd.analysis.row_columns import Floats
from rgd.analysis.windows import Flags, GroupWindows, Rates
from rgd.core.exchange.columns import Ints

LEVEL_WINDOWS: Final = 3
STEP_MIN: Final = 0.1
NOISE_TIMES: Final = 4.0
NOISE_WINDOWS: Final = 7

#: A change of fewer units than this in a window is no step, whatever the rates say.
STEP_UNITS_MIN: Final = 10.0

#: The new level holds from the first window that is nearer to it than this part of the step, or noise.
ARRIVED_WITHIN: Final = 0.1

#: A broker admitted its part if it is off by at most this fraction of it; the demo uses the same.
FAIR_WITHIN: Final = 0.1


@dataclass(frozen=True, slots=True)
class Step:
    """One change of what is fair."""

    #: Of the first window that is wholly after it, ms since 1970.
    at_ms: int
    #: `quota`, `policy`, `weight` or `demand`; `membership` comes of `note_membership`.
    cause: str
    #: Windows until everybody had its part; None: not before the next step or the end.
    windows: int | None
    #: The quota (None: unlimited) or all demand, units per second, or the policy, before and after it; None for a weight.
    before: float | str | None = None
    after: float | str | None = None


def find_steps(windows: GroupWindows, rates: Rates, fairness: Fairness) -> list[Step]:
    """The steps of one dimension, in order."""
    if not fairness.is_due.any():
        return []
    part = _Signal.of(fairness.part)
    edges = _edges(part, windows.seconds)
    if not edges:
        return []
    wanted = _Signal.of(rates.wanted)
    is_fair = _is_fair(rates, fairness, windows.seconds)
    ends = [begin for begin, _ in edges[1:]] + [len(windows.start_ms)]
    steps = []
    for (begin, end), until in zip(edges, ends, strict=True):
        # A window across the step may have the new parts already, but still the old demand.
        place = max(_arrival(signal, begin, end) for signal in (part, wanted))
        if not fairness.is_due[place:until].any():
            continue
        fair = np.flatnonzero(is_fair[place:until])
        cause, old, new = _cause(windows, rates, wanted, begin, end)
        count = int(fair[0]) if len(fair) else None
        steps.append(Step(int(windows.start_ms[place]), cause, count, old, new))
    return steps


def note_membership(
    finding: Mapping[str, Any], changes: Iterable[tuple[str, int, bool]], near_ms: float
) -> None:
    """Name `membership` as the cause of steps in the demand near which a broker of the group joined or left.

    Args:
        finding: of one group, kind and dimension; its steps are changed.
        changes: which broker joined (True) or left when, ms since 1970.
        near_ms: how near is near: a step is at the first window that is wholly after it.
    """
    names = {one["broker"] for one in finding["brokers"]}
    for step in finding["steps"]:
        near = [
            (broker, is_join)
            for broker, at_ms, is_join in changes
            if broker in names and abs(step["at_ms"] - at_ms) <= near_ms
        ]
        if step["cause"] == "demand" and near:
            step["cause"] = "membership"
            for key, is_join in (("joined", True), ("left", False)):
                step[key] = sorted({broker for broker, joins in near if joins == is_join})


@dataclass(frozen=True, slots=True)
class _Signal:
    """How rates go on; W windows, B brokers."""

    #: (W, B)
    values: Floats
    #: (W - LEVEL_WINDOWS + 1, B); the level from each window on.
    levels: Floats
    #: (W - 1 + 2 * NOISE_WINDOWS,); by how much the values change from a window to the next, NaN around them.
    differences: Floats

    @classmethod
    def of(cls, values: Floats) -> "_Signal":
        edge = np.full(NOISE_WINDOWS, np.nan)
        differences = np.abs(np.diff(values, axis=0)).sum(axis=1)
        return cls(values, _levels(values), np.concatenate([edge, differences, edge]))

    def noise(self, places: Ints) -> Floats:
        """What the values usually differ by from one window to the next, around each of some windows.

        The median of `NOISE_WINDOWS` differences, so that the step itself does not count; of those before
        and those after, the larger, because a group that is short of quota has no noise.
        """
        spans = np.lib.stride_tricks.sliding_window_view(self.differences, NOISE_WINDOWS)
        # The first and the last span have no numbers, and no window needs them on both sides.
        both = np.stack([spans[places], spans[places + NOISE_WINDOWS]])
        is_none = np.isnan(both).all(axis=2)
        both[is_none] = 0.0
        return np.asarray(np.nanmedian(both, axis=2).max(axis=0))


def _edges(part: _Signal, seconds: Floats) -> list[tuple[int, int]]:
    """Stretches (first, last window) in which the level of the parts changes."""
    places = np.arange(LEVEL_WINDOWS, len(part.levels))
    if not len(places):
        return []
    before, after = part.levels[places - LEVEL_WINDOWS], part.levels[places]
    change = np.abs(after - before).sum(axis=1)
    level = np.maximum(before.sum(axis=1), after.sum(axis=1))
    is_step = (change > STEP_MIN * level) & (change * seconds[places] >= STEP_UNITS_MIN)
    places, change = places[is_step], change[is_step]
    places = places[change > NOISE_TIMES * part.noise(places)]
    return runs_of(places, places)


def runs_of(places: Ints, at: Ints, interval: int = 1) -> list[tuple[int, int]]:
    """The first and the last of the places that follow each other, as `at` grows by the interval."""
    runs = np.split(places, np.flatnonzero(np.diff(at) != interval) + 1)
    return [(int(run[0]), int(run[-1])) for run in runs if len(run)]


def _levels(part: Floats) -> Floats:
    """The median of each window and the two after it, `LEVEL_WINDOWS` in all."""
    if len(part) < LEVEL_WINDOWS:
        return part[:0]
    first, second, third = part[:-2], part[1:-1], part[2:]
    low, high = np.minimum(first, second), np.maximum(first, second)
    return np.maximum(low, np.minimum(high, third))


def _arrival(signal: _Signal, begin: int, end: int) -> int:
    """The first window of a stretch at the level that comes after it; the last if none is."""
    old, new = signal.levels[begin - LEVEL_WINDOWS], signal.levels[end]
    size = float(np.abs(new - old).sum())
    near = np.maximum(
        ARRIVED_WITHIN * size + 1, NOISE_TIMES / 2 * signal.noise(np.arange(begin, end + 1))
    )
    away = np.abs(signal.values[begin : end + 1] - new).sum(axis=1)
    arrived = np.flatnonzero(away <= near)
    return begin + int(arrived[0]) if len(arrived) else end


def _is_fair(rates: Rates, fairness: Fairness, seconds: Floats) -> Flags:
    """Whether this quota is judged and every broker admitted its part; (W,)."""
    slack = np.maximum(FAIR_WITHIN * fairness.part, 1.0 / seconds[:, None])
    return (
        np.asarray((np.abs(rates.admitted - fairness.part) <= slack).all(axis=1)) & fairness.is_due
    )


def _cause(
    windows: GroupWindows, rates: Rates, wanted: _Signal, begin: int, end: int
) -> tuple[str, float | str | None, float | str | None]:
    """What differs in the log between before and after the step, and its values; the demand if nothing does.

    The logged integers are compared, because a mean of equal rates is not exactly that rate.
    """
    before = max(0, begin - LEVEL_WINDOWS)
    after = min(len(rates.quota) - 1, end + LEVEL_WINDOWS - 1)
    has_both = (windows.covered[before] > 0) & (windows.covered[after] > 0)
    changed = rates.quota_logged[before] != rates.quota_logged[after]
    if (changed & has_both).any():
        old, new = (
            None if np.isnan(quota) else float(quota) for quota in rates.quota[[before, after]]
        )
        return "quota", old, new
    if windows.policy[before] != windows.policy[after]:
        return "policy", windows.policy[before], windows.policy[after]
    if ((windows.weight[before] != windows.weight[after]) & has_both).any():
        return "weight", None, None
    old, new = (
        round(float(level.sum()), 3) for level in wanted.levels[[begin - LEVEL_WINDOWS, end]]
    )
    return "demand", old, new
