"""The three adjustments that PIP-82 describes, over admitted rates (seeds/003).

`residual`: below the quota each broker adds the whole residual to its own
usage ("they might each split up the remaining portion, each adding the
remaining 10 units"); above it each is reduced by its fraction of the excess.
`proportional`: by historic usage; quota x own / sum, which Pulsar ships too.
`steal`: "the broker with the lowest quota will steal part of the quota of the
most dominant broker": it raises its own limit by half the gap; the second lowest steals from the second most
dominant. The dominant one reduces its limit once the thief's usage has grown, by what is then over the quota.

Law: a live broker's share is at least its floor, taken from the others in
proportion to what they have above theirs. Without any usage the quota is split
evenly. These policies use admitted rates, not demand, so they converge slowly or never;
they are included for comparison (docs/decisions/0003). Each dimension is shared by itself, as in
PIP-82, and many groups at once.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

import numpy as np

from rgd.core.policies.model import SharePolicyName
from rgd.core.shares.apportion import SHORT_MAX, Whole, by_weight, even, floors
from rgd.core.shares.columns import NO_RATE
from rgd.core.shares.columns_sums import Ints

#: `steal` treats a group whose usage is this near to its quota as saturated: what is measured is never exactly the quota.
NEAR_PERCENT: Final = 1


def share_by_usage(policy: SharePolicyName, quota: Ints, used: Ints, floor_ppm: int) -> Ints:
    """[groups, brokers, dimensions] the shares under a policy over admitted rates, `NO_RATE` for unlimited.

    Args:
        policy: one of `USAGE_POLICIES`.
        quota: [groups, dimensions] Milli per second, 0 to 9e18, `NO_RATE` for unlimited.
        used: [groups, live brokers in the order of names, dimensions] what each admitted, >= 0.
        floor_ppm: the floors' part of the quota in millionths (`shares.floor_fraction`).
    """
    shares = np.full(used.shape, NO_RATE)
    for of in range(used.shape[2]):
        at = (quota[:, of] != NO_RATE).nonzero()[0]
        shares[at, :, of] = _of_dimension(policy, quota[at, of], used[at, :, of], floor_ppm)
    return shares


def _of_dimension(policy: SharePolicyName, quota: Ints, used: Ints, floor_ppm: int) -> Ints:
    """[groups, brokers] the shares of [groups] quotas that are limited."""
    brokers = used.shape[1]
    most = max(quota.max(initial=0) * float(brokers), used.max(initial=0) * float(brokers))
    if most > SHORT_MAX:
        quota, used = quota.astype(object), used.astype(object)
    least = even(floors(quota, floor_ppm), brokers)
    shares = _lifted(USAGE_POLICIES[policy](quota, used), least)
    is_idle = used.sum(axis=1) == 0
    return np.where(is_idle[:, None], even(quota, brokers), shares).astype(np.int64)


def _residual(quota: Whole, used: Whole) -> Whole:
    """Own usage plus the whole residual; over the quota, own usage less its part of the excess."""
    left = (quota - used.sum(axis=1))[:, None]
    # A broker without usage is not in the map, so it gets its floor without the residual.
    return np.where(left < 0, by_weight(quota, used), np.where(used > 0, used + left, 0))


def _steal(quota: Whole, used: Whole) -> Whole:
    """At saturation the k-th lowest raises its limit by half its gap to the k-th highest, which gives up what is over.

    A saturated broker uses what it may, so its usage stands for its limit. The limits may sum to more than the
    quota, because whether a thief has more demand shows only in its next usage: that is the PIP's "in the short term,
    this will lead to passing the set quota". While the usages exceed the quota nobody raises its limit. Of an
    excess that is larger than the gaps, each gives up its part. Below saturation as `proportional`.
    """
    excess = used.sum(axis=1) - quota
    near = quota * NEAR_PERCENT // 100
    is_over = (excess > near)[:, None]
    # At the quota everybody keeps its usage, and its part of what is left or too much.
    shares = np.where(is_over, used, by_weight(quota, used))
    # `used` is in the order of names, and sorting is stable, so ties are in the order of names.
    order = np.argsort(np.where(used > 0, used, np.inf), axis=1, kind="stable")
    users = (used > 0).sum(axis=1)[:, None]
    place = np.arange(used.shape[1])
    partner = np.maximum(users - 1 - place, 0)
    ranked = np.take_along_axis(shares, order, axis=1)
    gaps = np.where(place < users // 2, np.take_along_axis(ranked, partner, axis=1) - ranked, 0)
    raised = np.where((excess < -near)[:, None], 0, gaps // 2)
    given_up = np.where(is_over[:, 0], np.minimum(excess, gaps.sum(axis=1)), 0)
    cuts = np.take_along_axis(by_weight(given_up, gaps), partner, axis=1)
    ranked = np.where(is_over, ranked - np.where(place < users, cuts, 0), ranked + raised)
    np.put_along_axis(shares, order, ranked, axis=1)
    return shares - by_weight(np.where(is_over[:, 0], excess - given_up, 0), shares)


def _lifted(shares: Whole, least: Whole) -> Whole:
    """Raise each share to its floor, reducing the others in proportion to what is above theirs."""
    missing = np.maximum(least - shares, 0).sum(axis=1)
    cuts = by_weight(missing, np.maximum(shares - least, 0))
    return np.maximum(shares, least) - cuts


#: The policies over admitted rates: from [groups] quotas and [groups, brokers] usage to shares without floors.
#: `proportional` is quota x own usage / sum of usage.
USAGE_POLICIES: Final[Mapping[SharePolicyName, Callable[[Whole, Whole], Whole]]] = MappingProxyType(
    {
        SharePolicyName.RESIDUAL: _residual,
        SharePolicyName.PROPORTIONAL: by_weight,
        SharePolicyName.STEAL: _steal,
    }
)
