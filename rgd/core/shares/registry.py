"""Shares one group by a policy's name, in the order of the brokers' names.

`allocate` is for rows that are objects: `rgd shares`, the demo's verdict and tests. The rules are those of
`columns` and `pip82`, which are called for many groups at once elsewhere, so each has one implementation.
"""

from collections.abc import Sequence

import numpy as np

from rgd.core.policies.model import Rate, Rates, SharePolicyName
from rgd.core.shares.columns import NO_RATE, Rows, share_out
from rgd.core.shares.model import Row
from rgd.core.shares.pip82 import share_by_usage
from rgd.core.units import COUNT_MAX, Milli


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
        messages, size = (
            _by_usage(policy, rate, [row.admitted[of] for row in in_order], floor_ppm)
            for of, rate in enumerate((quota.messages, quota.bytes))
        )
        shares = [Rates(*both) for both in zip(messages, size, strict=True)]
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
    policy: SharePolicyName, quota: Rate, used: Sequence[Milli], floor_ppm: int
) -> Sequence[Rate]:
    if quota is None:
        return [None] * len(used)
    shares: list[int] = share_by_usage(
        policy, np.array([quota], np.int64), np.array([used], np.int64), floor_ppm
    )[0].tolist()
    return shares


def _rate(milli: int) -> Rate:
    return None if milli == NO_RATE else milli
