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
PIP-82.
"""

from collections.abc import Sequence
from typing import Final

from rgd.core.shares.apportion import by_weight, even, floors
from rgd.core.units import Milli

#: `steal` treats a group whose usage is this near to its quota as saturated: what is measured is never exactly the quota.
NEAR_PERCENT: Final = 1


def residual(quota: Milli, used: Sequence[Milli], floor_ppm: int) -> list[Milli]:
    """Own usage plus the whole residual; over the quota, own usage less its part of the excess."""
    total = sum(used)
    if total == 0:
        return even(quota, len(used))
    if total > quota:
        return _lifted(by_weight(quota, used), floors(quota, len(used), floor_ppm))
    # A broker without usage is not in the map, so it gets its floor without the residual.
    shares = [own + quota - total if own else 0 for own in used]
    return _lifted(shares, floors(quota, len(used), floor_ppm))


def proportional(quota: Milli, used: Sequence[Milli], floor_ppm: int) -> list[Milli]:
    """Quota x own usage / sum of usage."""
    if sum(used) == 0:
        return even(quota, len(used))
    return _lifted(by_weight(quota, used), floors(quota, len(used), floor_ppm))


def steal(quota: Milli, used: Sequence[Milli], floor_ppm: int) -> list[Milli]:
    """At saturation the k-th lowest raises its limit by half its gap to the k-th highest, which gives up what is over.

    A saturated broker uses what it may, so its usage stands for its limit. The limits may sum to more than the
    quota, because whether a thief has more demand shows only in its next usage: that is the PIP's "in the short term,
    this will lead to passing the set quota". While the usages exceed the quota nobody raises its limit. Of an
    excess that is larger than the gaps, each gives up its part. Below saturation as `proportional`.
    """
    excess = sum(used) - quota
    near = quota * NEAR_PERCENT // 100
    if excess < -near:
        return proportional(quota, used, floor_ppm)
    if quota == 0:
        return [0] * len(used)
    # At the quota everybody keeps its usage, and its part of what is left or too much.
    shares = by_weight(quota, used) if excess <= near else list(used)
    # `used` is in the order of names, and sorting is stable, so ties are in the order of names.
    ranked = sorted((place for place, own in enumerate(used) if own), key=used.__getitem__)
    pairs = list(zip(ranked[: len(ranked) // 2], reversed(ranked), strict=False))
    gaps = [shares[high] - shares[low] for low, high in pairs]
    if excess <= near:
        for (low, _), gap in zip(pairs, gaps, strict=True):
            shares[low] += gap // 2
    else:
        given_up = min(excess, sum(gaps))
        cuts = by_weight(given_up, gaps) if given_up else [0] * len(gaps)
        for (_, high), cut in zip(pairs, cuts, strict=True):
            shares[high] -= cut
        for place, cut in enumerate(by_weight(excess - given_up, shares)):
            shares[place] -= cut
    return _lifted(shares, floors(quota, len(used), floor_ppm))


def _lifted(shares: list[Milli], least: Sequence[Milli]) -> list[Milli]:
    """Raise each share to its floor, reducing the others in proportion to what is above theirs."""
    missing = sum(max(0, floor - share) for share, floor in zip(shares, least, strict=True))
    if missing == 0:
        return shares
    above = [max(0, share - floor) for share, floor in zip(shares, least, strict=True)]
    cuts = by_weight(missing, above)
    return [max(share, floor) - cut for share, floor, cut in zip(shares, least, cuts, strict=True)]
