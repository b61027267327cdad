"""Finds a share policy by name and asks it in the order all brokers agree on.

`allocate` is the one entry for the daemon, the simulator, `rgd shares` and the
Spark replay, so there is no second implementation of a rule.
"""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Final

from rgd.core.policies.model import SharePolicyName
from rgd.core.shares.maxmin import max_min
from rgd.core.shares.model import Row
from rgd.core.shares.pip82 import proportional, residual, steal
from rgd.core.units import Milli

#: From quota, rows in the order of names, and the floor in ppm, to a share a row.
SharePolicy = Callable[[Milli, Sequence[Row], int], list[Milli]]

POLICIES: Final[Mapping[SharePolicyName, SharePolicy]] = MappingProxyType(
    {
        SharePolicyName.MAX_MIN: max_min,
        SharePolicyName.RESIDUAL: residual,
        SharePolicyName.PROPORTIONAL: proportional,
        SharePolicyName.STEAL: steal,
    }
)


def allocate(
    policy: SharePolicyName, quota: Milli, rows: Sequence[Row], *, floor_ppm: int
) -> tuple[Milli, ...]:
    """Share a quota over the live brokers.

    Args:
        policy: which rule.
        quota: Milli per second, >= 0.
        rows: one for each live broker, names distinct, in any order.
        floor_ppm: the floors' part of the quota in millionths (`shares.floor_fraction`).

    Returns:
        Milli per second, in the order of `rows`. Under all policies but
        `residual` below the quota they sum to the quota exactly.
    """
    if not rows:
        return ()
    order = sorted(range(len(rows)), key=lambda place: rows[place].broker)
    shares = POLICIES[policy](quota, [rows[place] for place in order], floor_ppm)
    answer = [0] * len(rows)
    for place, share in zip(order, shares, strict=True):
        answer[place] = share
    return tuple(answer)
