"""Shares one group by a policy's name, in the order of the brokers' names.

`allocate` is for rows that are objects: `rgd shares`, the demo's verdict, the Spark
report and tests. Max-min is computed by `columns`, which the daemon and the simulator call for many
groups at once, so each rule has one implementation.
"""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Final

import numpy as np

from rgd.core.policies.model import Rate, Rates, SharePolicyName
from rgd.core.shares.columns import NO_RATE, Rows, share_out
from rgd.core.shares.model import Row
from rgd.core.shares.pip82 import proportional, residual, steal
from rgd.core.units import COUNT_MAX, Milli

#: From quota, admitted rates in the order of names, and the floor in ppm, to one share for each.
UsagePolicy = Callable[[Milli, Sequence[Milli], int], list[Milli]]

#: The policies over admitted rates, which share each dimension by itself.
USAGE_POLICIES: Final[Mapping[SharePolicyName, UsagePolicy]] = MappingProxyType(
    {
        SharePolicyName.RESIDUAL: residual,
        SharePolicyName.PROPORTIONAL: proportional,
        SharePolicyName.STEAL: steal,
    }
)


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
    in_order = [rows[place] for place in order]
    if policy is SharePolicyName.MAX_MIN:
        shares = _max_min(quota, in_order, floor_ppm)
    else:
        share = USAGE_POLICIES[policy]
        shares = [
            Rates(messages, size)
            for messages, size in zip(
                _by_usage(share, quota.messages, [row.admitted[0] for row in in_order], floor_ppm),
                _by_usage(share, quota.bytes, [row.admitted[1] for row in in_order], floor_ppm),
                strict=True,
            )
        ]
    answer = list(shares)
    for place, rates in zip(order, shares, strict=True):
        answer[place] = rates
    return tuple(answer)


def _max_min(quota: Rates, rows: Sequence[Row], floor_ppm: int) -> list[Rates]:
    """Share both dimensions in one decision."""
    columns = Rows(
        group=np.zeros(len(rows), np.int64),
        broker_index=np.arange(len(rows)),
        wanted=np.array([[min(want, COUNT_MAX) for want in row.wanted] for row in rows], np.int64),
        weight=np.array([row.weight for row in rows], np.int64),
    )
    limits = [NO_RATE if rate is None else rate for rate in (quota.messages, quota.bytes)]
    shares = share_out(
        columns, np.array([limits], np.int64), brokers=len(rows), floor_ppm=floor_ppm
    )
    return [Rates(_rate(messages), _rate(size)) for messages, size in shares.of_rows.tolist()]


def _by_usage(
    share: UsagePolicy, quota: Rate, used: Sequence[Milli], floor_ppm: int
) -> Sequence[Rate]:
    return [None] * len(used) if quota is None else share(quota, used, floor_ppm)


def _rate(milli: int) -> Rate:
    return None if milli == NO_RATE else milli
