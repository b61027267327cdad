"""The fairness of windows: every formula of docs/report.md, over arrays of windows.

a(b) is broker b's admitted work in a window, w(b) its demand, A and W are their sums, Q is the quota:

    part(b)      b's max-min part: the least of w(b), s(b) with s the shares that the core's own `max-min`
                 gives for all quotas and demands at once, by the brokers' weights and without floors,
                 and w(b) times the fraction of its demand that the other dimension leaves b
    ratio(b)     a(b) / part(b), of brokers that have records of (nearly) the whole window, and a part
                 of at least one whole unit in it
    utilisation  A / min(Q, W), where Q is limited
    overshoot    A / the largest quota logged in the window or the one before
    unmet        W - A
    unused       max(0, min(Q, W) - A): quota that was free while there was demand
    jain         (sum ratio)^2 / (n * sum ratio^2), Jain, Chiu & Hawe 1984, of parts, not of rates
    lowest       the lowest ratio: one starved broker of a hundred costs Jain's index one percent only

Law: brokers' parts sum to min(Q, W), to a thousandth of a unit each, in every judged dimension; where the other
dimension limits a broker too, to a thousandth of a unit of that one.
A dimension without a quota is not judged. Neither is one whose use the other dimension limits, because
the other dimension causes the refusals then.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from rgd.analysis.row_columns import DIMENSIONS, Floats
from rgd.analysis.windows import Flags, GroupWindows, Rates
from rgd.core.exchange.columns import Ints
from rgd.core.shares.columns import NO_RATE, Rows, share_out
from rgd.core.shares.model import WEIGHT_ONE
from rgd.core.units import MILLI, QUOTA_MAX

#: A broker whose part of a window is less than this many whole units cannot be judged in it.
JUDGED_UNITS_MIN: Final = 1.0


#: A broker whose records cover less than this fraction cannot be judged either: it started or stopped, or they are missing.
JUDGED_COVER_MIN: Final = 0.9

#: A dimension of which max-min would use less than this fraction is not the limiting one.
USED_MIN: Final = 0.999


@dataclass(frozen=True, slots=True)
class Fairness:
    """One dimension of a group's windows, judged; W windows, B brokers, NaN for unknown values."""

    #: (W,); whether this dimension's quota is judged in the window.
    is_due: Flags
    #: (W, B); units per second.
    part: Floats
    #: (W, B)
    ratio: Floats
    #: (W,)
    utilisation: Floats
    overshoot: Floats
    #: (W,); units per second.
    unmet: Floats
    unused: Floats
    #: (W,)
    jain: Floats
    lowest: Floats


def fairness_of(windows: GroupWindows, dimension: str, parts: Floats) -> Fairness:
    """Judge one dimension by what `parts_of` gives for its group."""
    rates = windows.rates[dimension]
    part = parts[:, :, DIMENSIONS.index(dimension)]
    is_due = _is_due(rates, part)
    seconds = windows.seconds[:, None]
    is_judged = (
        is_due[:, None]
        & (part * seconds >= JUDGED_UNITS_MIN)
        & (windows.covered >= JUDGED_COVER_MIN * seconds)
    )
    ratio = np.where(is_judged, rates.admitted / np.where(is_judged, part, 1.0), np.nan)
    admitted, wanted = rates.admitted.sum(axis=1), rates.wanted.sum(axis=1)
    owed = np.minimum(np.nan_to_num(rates.quota, nan=np.inf), wanted)
    return Fairness(
        is_due=is_due,
        part=part,
        ratio=ratio,
        utilisation=_divided(admitted, np.where(is_due, owed, np.nan)),
        overshoot=_divided(admitted, np.where(np.isnan(rates.quota), np.nan, rates.quota_max)),
        unmet=np.maximum(0.0, wanted - admitted),
        unused=np.where(is_due, np.maximum(0.0, owed - admitted), 0.0),
        jain=jain_index(ratio),
        lowest=lowest_ratio(ratio),
    )


def _is_due(rates: Rates, part: Floats) -> Flags:
    """Whether max-min would use the whole quota of this dimension, or serve all demand; (W,)."""
    served = np.minimum(rates.quota, rates.wanted.sum(axis=1))
    rounding = part.shape[1] / MILLI
    # An unlimited quota is NaN, so every comparison is false.
    return np.asarray(part.sum(axis=1) >= USED_MIN * served - rounding)


def parts_of(groups: Sequence[GroupWindows]) -> list[Floats]:
    """Each broker's max-min part of each window of some groups, units per second; (W, B, 2) each.

    Groups with equally many brokers are shared out together.
    """
    parts = [np.empty(0)] * len(groups)
    sizes: dict[int, list[int]] = defaultdict(list)
    for place, windows in enumerate(groups):
        sizes[len(windows.brokers)].append(place)
    for places in sizes.values():
        some = [groups[place] for place in places]
        rates = [[one.rates[dimension] for dimension in DIMENSIONS] for one in some]
        together = max_min_parts(
            np.concatenate([np.stack([one.quota for one in both], axis=-1) for both in rates]),
            np.concatenate([np.stack([one.wanted for one in both], axis=-1) for both in rates]),
            np.concatenate([one.weight for one in some]),
        )
        ends = np.cumsum([len(one.start_ms) for one in some])
        for place, part in zip(places, np.split(together, ends[:-1]), strict=True):
            parts[place] = part
    return parts


def max_min_parts(quota: Floats, wanted: Floats, weight: Ints | None = None) -> Floats:
    """Each broker's max-min part of each window; (W, B, 2).

    Where the quotas exceed all demand, max-min gives each broker its demand.

    Args:
        quota: (W, 2), units per second, messages and bytes; NaN: unlimited.
        wanted: (W, B, 2), units per second.
        weight: (W, B), thousandths; None: all the same.
    """
    parts = wanted.copy()
    limit = np.nan_to_num(quota, nan=np.inf)
    short = np.flatnonzero((wanted.sum(axis=1) > limit).any(axis=1))
    if len(short) == 0:
        return parts
    brokers = wanted.shape[1]
    rows = Rows(
        group=np.repeat(np.arange(len(short)), brokers),
        broker_index=np.tile(np.arange(brokers), len(short)),
        wanted=_milli(wanted[short]).reshape(-1, len(DIMENSIONS)),
        weight=np.full(len(short) * brokers, WEIGHT_ONE)
        if weight is None
        else weight[short].reshape(-1),
    )
    quotas = np.where(np.isnan(quota[short]), NO_RATE, _milli(limit[short]))
    shares = share_out(rows, quotas, brokers=brokers, floor_ppm=0).of_rows
    given = np.where(shares == NO_RATE, np.inf, shares / MILLI).reshape(wanted[short].shape)
    parts[short] = _together(wanted[short], given)
    return parts


def _together(wanted: Floats, given: Floats) -> Floats:
    """The usable part of the shares: the same fraction of the demand in both dimensions."""
    is_wanted = wanted > 0
    served = np.minimum(1.0, np.where(is_wanted, given / np.where(is_wanted, wanted, 1.0), 1.0))
    is_limited = np.isfinite(given)
    # Swap the dimensions, because the served part of one limits the other.
    used = np.minimum(np.minimum(wanted, given), wanted * served[..., ::-1])
    return np.where(is_limited, used, wanted)


def _milli(units: Floats) -> Ints:
    """Fixed point, at most the largest quota."""
    milli: Ints = np.rint(np.minimum(units, QUOTA_MAX) * MILLI).astype(np.int64)
    return milli


def jain_index(ratio: Floats) -> Floats:
    """Jain's index of each window over the brokers that have a ratio; (W,)."""
    count = np.isfinite(ratio).sum(axis=1)
    total = np.nansum(ratio, axis=1)
    squares = np.nansum(ratio**2, axis=1)
    # If all brokers got nothing, the window is fair.
    index = np.where(squares > 0, total**2 / np.maximum(count * squares, 1e-300), 1.0)
    return np.where(count > 0, index, np.nan)


def lowest_ratio(ratio: Floats) -> Floats:
    """The lowest ratio of each window; (W,)."""
    lowest: Floats = np.where(np.isnan(ratio), np.inf, ratio).min(axis=1)
    return np.where(np.isfinite(lowest), lowest, np.nan)


def _divided(amount: Floats, by: Floats) -> Floats:
    """A quotient, NaN where the divisor is 0."""
    is_possible = np.nan_to_num(by) > 0
    return np.where(is_possible, amount / np.where(is_possible, by, 1.0), np.nan)
