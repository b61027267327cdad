"""Shares one group by a policy's name, in the order of the brokers' names.

`allocate` is for rows that are objects: `rgd shares`, the demo's verdict and tests. The rules are those of
`columns` and `pip82`, which are called for many groups at once elsewhere, so each has one implementation.
"""

from collections.abc import Sequence

import numpy as np

from rgd.core.policies.model import Rate, Rates, SharePolicyName
from rgd.core.shares.columns import NO_RATE, Rows, share_out
from rgd.core.shares.columns_sums import Ints
from rgd.core.shares.model import Row
from rgd.core.shares.pip82 import share_by_usage
from rgd.core.units import COUNT_MAX, Pair


def allocate(
    policy: SharePolicyName, quota: Rates, rows: Sequence[Row], *, floor_ppm: int
) -> tuple[Rates, ...]:
    """Share a quota over the live brokers.

    Args:
        policy: which rule.
        quota: Milli per second; None is unlimited, and then so is every share.
        rows: one for each live broker, names distinct, in any order.
        floor_ppm: the floors' part of the quota in millionths (`shares.floor_fraction`).

    Returns:
        Milli per second, in the order of `rows`. Under all policies but
        `residual` and `steal` up to the quota they sum to the quota exactly in each limited dimension.
    """
    if not rows:
        return ()
    order = sorted(range(len(rows)), key=lambda place: rows[place].broker)
    limits = np.array([[NO_RATE if rate is None else rate for rate in quota]])
    if policy is SharePolicyName.MAX_MIN:
        columns = Rows(
            group=np.zeros(len(rows), np.int64),
            broker_index=np.arange(len(rows)),
            wanted=_column([rows[place].wanted for place in order]),
            weight=np.array([rows[place].weight for place in order], np.int64),
        )
        shares = share_out(columns, limits, brokers=len(rows), floor_ppm=floor_ppm).of_rows
    else:
        used = _column([rows[place].admitted for place in order])
        shares = share_by_usage(policy, limits, used[None], floor_ppm)[0]
    shares[order] = shares.copy()
    return tuple(Rates(_rate(messages), _rate(size)) for messages, size in shares.tolist())


def _column(pairs: Sequence[Pair]) -> Ints:
    return np.array([[min(one, COUNT_MAX) for one in pair] for pair in pairs], np.int64)


def _rate(milli: int) -> Rate:
    return None if milli == NO_RATE else milli
