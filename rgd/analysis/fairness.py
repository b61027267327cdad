"""How fair a window was: every formula of docs/report.md, over arrays of windows.

With a(b) and w(b) what broker b admitted and wanted in a window, A and W their sums, Q the quota:

    part(b)      b's max-min part: w(b) where W <= Q or Q is unlimited, else min(w(b), s(b)) with s the
                 shares that the core's own `max-min` gives for Q and all w, without floors
    ratio(b)     a(b) / part(b), of brokers that have records of (nearly) the whole window, and a part
                 of at least one whole unit in it
    utilisation  A / min(Q, W), where Q is limited
    overshoot    A / the largest quota logged in the window or the one before
    unmet        W - A
    unused       max(0, min(Q, W) - A): what the quota had room for and nobody was given
    jain         (sum ratio)^2 / (n * sum ratio^2), Jain, Chiu & Hawe 1984, of parts, not of rates
    lowest       the least ratio: one starved broker of a hundred costs Jain's index one percent only

Law: brokers' parts sum to min(Q, W), to a thousandth of a unit. Each dimension is judged by itself:
without a quota not at all, and not where it has room for all while the other dimension has not.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np

from rgd.analysis.pieces import Floats
from rgd.analysis.windows import Flags, GroupWindows
from rgd.core.policies.model import SharePolicyName
from rgd.core.shares.model import Row
from rgd.core.shares.registry import allocate
from rgd.core.units import to_milli, to_units

#: A broker whose part of a window is less than this many whole units cannot be judged in it.
JUDGED_UNITS_MIN: Final = 1.0


#: Nor can one whose records cover less than this part of it: it came or went, or they are missing.
JUDGED_COVER_MIN: Final = 0.9


@dataclass(frozen=True, slots=True)
class Judged:
    """One dimension of a group's windows, judged; W windows, B brokers, NaN where nothing can be said."""

    #: (W,); whether this dimension's quota is what to judge by in the window.
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


def judge(windows: GroupWindows, dimension: str) -> Judged:
    """Judge one dimension."""
    rates = windows.rates[dimension]
    part = max_min_parts(windows.brokers, rates.quota, rates.wanted)
    is_due = ~np.isnan(rates.quota) & ~_is_held_by_another(windows, dimension)
    seconds = windows.seconds[:, None]
    is_judged = (
        is_due[:, None]
        & (part * seconds >= JUDGED_UNITS_MIN)
        & (windows.covered >= JUDGED_COVER_MIN * seconds)
    )
    ratio = np.where(is_judged, rates.admitted / np.where(is_judged, part, 1.0), np.nan)
    admitted, wanted = rates.admitted.sum(axis=1), rates.wanted.sum(axis=1)
    owed = np.minimum(np.nan_to_num(rates.quota, nan=np.inf), wanted)
    return Judged(
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


def _is_held_by_another(windows: GroupWindows, dimension: str) -> Flags:
    """Whether this dimension has room for all in a window, and another has not; (W,).

    What is refused then is refused for the other's sake and says nothing about this one.
    """
    is_short = {
        of: rates.wanted.sum(axis=1) > np.nan_to_num(rates.quota, nan=np.inf)
        for of, rates in windows.rates.items()
    }
    others = [short for of, short in is_short.items() if of != dimension]
    return np.asarray(np.any(others, axis=0) & ~is_short[dimension])


def max_min_parts(brokers: tuple[str, ...], quota: Floats, wanted: Floats) -> Floats:
    """Each broker's max-min part of each window, units per second; (W, B).

    Where the quota has room for all that is wanted, max-min gives everybody just that.
    """
    parts = wanted.copy()
    for window in np.flatnonzero(wanted.sum(axis=1) > np.nan_to_num(quota, nan=np.inf)):
        rows = [
            Row(broker, wanted=to_milli(want))
            for broker, want in zip(brokers, wanted[window].tolist(), strict=True)
        ]
        shares = allocate(
            SharePolicyName.MAX_MIN, to_milli(float(quota[window])), rows, floor_ppm=0
        )
        parts[window] = np.minimum(wanted[window], [to_units(share) for share in shares])
    return parts


def jain_index(ratio: Floats) -> Floats:
    """Jain's index of each window over the brokers that have a ratio; (W,)."""
    count = np.isfinite(ratio).sum(axis=1)
    total = np.nansum(ratio, axis=1)
    squares = np.nansum(ratio**2, axis=1)
    # Where everybody got nothing, nobody got more than another.
    index = np.where(squares > 0, total**2 / np.maximum(count * squares, 1e-300), 1.0)
    return np.where(count > 0, index, np.nan)


def lowest_ratio(ratio: Floats) -> Floats:
    """The least ratio of each window; (W,)."""
    lowest: Floats = np.where(np.isnan(ratio), np.inf, ratio).min(axis=1)
    return np.where(np.isfinite(lowest), lowest, np.nan)


def _divided(amount: Floats, by: Floats) -> Floats:
    """A quotient, NaN where there is nothing to divide by."""
    is_possible = np.nan_to_num(by) > 0
    return np.where(is_possible, amount / np.where(is_possible, by, 1.0), np.nan)
