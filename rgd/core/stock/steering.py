"""The rules that lead stock brokers to their max-min part; all are pure functions.

A stock broker's limit is `quota * own / sum of all reports`, and it admits `w` times its limit,
`w = 1 + 1 / period`, because its buckets are full again after each calculation. So where stock
brokers together report `own`, and rgd reports `own * (w * quota / part - 1)`, they admit `part`.

Three laws follow from what the formula cannot express:

- Only the sum over the stock brokers of a group is steered: all have the same ratio of limit to
  usage. In the share policy each therefore counts with the mean of their usage.
- Nothing is reported while they are idle: a stock broker without usage gets a limit of 1 as soon as
  anybody reports some, and one message is then minutes of debt.
- They report no demand. What they may have is therefore computed as if they were hungry, and they
  are led there whatever rgd uses. What rgd leaves to them is what they use; and all that they may
  have once they use nearly that (`HUNGRY_PART`), because then they are limited by it.
"""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from rgd.core.shares.columns_sums import FLOAT_EXACT_MAX, Floats, whole_sums
from rgd.core.units import MILLI, NS_PER_S, Milli

Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]

#: Largest usage of a stock broker in Milli per second; the sum over 1,000 of them fits an int64.
#: It stands for usage that is not known yet, too, because such a broker counts as hungry.
USAGE_MAX: Final = 1 << 52

#: Stock brokers that use this part of what they may have count as hungry.
HUNGRY_PART: Final = 0.9

#: A blocked group's stock brokers are reported so many times their own usage, so that their limits
#: fall to the least that Pulsar knows.
BLOCKED_TIMES: Final = 1_000_000


def rate_of(count: int, period_ns: int) -> Milli:
    """Milli per second of a count of one stock period."""
    return min(count * MILLI * NS_PER_S // period_ns, USAGE_MAX)


def evened(group: Ints, wanted: Ints, is_stock: Flags, groups: int) -> Ints:
    """The demand of some rows, with the mean of their group for each stock row.

    Args:
        group: [rows] index of the group, ascending.
        wanted: [rows, 2] Milli per second.
        is_stock: [rows] whether the row is a stock broker's.
        groups: number of groups.

    Returns:
        [rows, 2] a copy; a mean is rounded up, so usage never becomes 0.
    """
    evened = wanted.copy()
    stock = np.flatnonzero(is_stock)
    of = group[stock]
    count = np.bincount(of, minlength=groups)
    for k in range(2):
        sums = whole_sums(of, wanted[stock, k], groups)
        means = (sums + count - 1) // np.maximum(count, 1)
        evened[stock, k] = means[of]
    return evened


def hungry(group: Ints, wanted: Ints, is_stock: Flags, quota: Ints) -> Ints:
    """The demand of some rows, with stock rows that want the whole quota in their own mix.

    Args:
        group: [rows] index of the group.
        wanted: [rows, 2] Milli per second, already `evened`.
        is_stock: [rows] whether the row is a stock broker's.
        quota: [groups, 2] Milli per second, negative for unlimited.
    """
    hungry = wanted.copy()
    stock = np.flatnonzero(is_stock)
    usage, limit = wanted[stock], quota[group[stock]]
    binds = (limit >= 0) & (usage > 0)
    times = np.where(binds, limit / np.maximum(usage, 1), np.inf).min(axis=1)
    times[np.isinf(times)] = 1.0
    wants = np.floor(usage * times[:, None])
    # Rounding must not make a limited dimension exceed the quota by a unit.
    wants = np.where(binds, np.minimum(wants, limit), np.minimum(wants, USAGE_MAX))
    hungry[stock] = wants.astype(np.int64)
    return hungry


def is_hungry(group: Ints, used: Ints, parts: Ints, groups: int) -> Flags:
    """[groups] whether the stock brokers of a group are limited by what they may have.

    Args:
        group: [stock rows] index of the group, ascending.
        used: [stock rows, 2] Milli per second.
        parts: [stock rows, 2] what they may have, Milli per second.
        groups: number of groups.
    """
    flags = np.zeros(groups, np.bool_)
    for k in range(2):
        part = np.bincount(group, np.maximum(parts[:, k], 0), groups)
        flags |= (part > 0) & (np.bincount(group, used[:, k], groups) >= HUNGRY_PART * part)
    return flags


def foreign_usage(own: Floats, quota: Ints, part: Ints, period_ns: int) -> Floats:
    """What rgd as a whole reports in a stock period, so that stock brokers admit `part`.

    Args:
        own: what the stock brokers report of the period, together.
        quota: of the whole cluster, Milli per second; negative for unlimited.
        part: of `quota`, what the stock brokers may admit together.
        period_ns: length of the stock period.

    Returns:
        Whole units, never negative; 0 where they are idle. All arrays have one shape.
    """
    filled = (period_ns + NS_PER_S) / period_ns
    is_blocked = (quota == 0) | (part <= 0)
    times = np.where(is_blocked, BLOCKED_TIMES, filled * quota / np.maximum(part, 1) - 1)
    # Rounded to the nearest: the usage of a nearly idle broker is a few units in a period.
    reported = np.clip(np.rint(own * times), 0, FLOAT_EXACT_MAX)
    return np.where(quota < 0, 0.0, reported)


def split(total: Floats, weights: Ints, at: int) -> Ints:
    """One daemon's parts of totals, in proportion to `weights`; the parts sum to the totals.

    Args:
        total: [...] whole units, at most `FLOAT_EXACT_MAX`.
        weights: [daemons, ...] in the order of their names; evenly where all are 0.
        at: this daemon's index.
    """
    ends = np.cumsum(np.where(weights.any(axis=0), weights, 1), axis=0, dtype=np.float64)
    # The last one's end is the sum itself, so its quotient is 1 and its end the total.
    before = np.floor(total * (ends[at - 1] / ends[-1])) if at else np.zeros_like(total)
    parts: Ints = (np.floor(total * (ends[at] / ends[-1])) - before).astype(np.int64)
    return parts
