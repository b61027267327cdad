"""PIP-82's three policies for one group in plain Python: what the columns of `rgd.core.shares.pip82` must equal."""

from collections.abc import Sequence

from rgd.core.shares.model import PPM
from rgd.core.shares.pip82 import NEAR_PERCENT
from rgd.core.units import Milli


def even(total: Milli, count: int) -> list[Milli]:
    """Split `total` evenly over `count` rows."""
    part, left = divmod(total, count)
    return [part + (place < left) for place in range(count)]


def by_weight(total: Milli, weights: Sequence[int]) -> list[Milli]:
    """Split `total` in proportion to weights, at least one of which is positive.

    The largest remainders are rounded up, so every part is off by less than one unit.
    """
    whole = sum(weights)
    parts = [total * weight // whole for weight in weights]
    left = total - sum(parts)
    if left:
        by_remainder = sorted(
            range(len(weights)), key=lambda place: -(total * weights[place] % whole)
        )
        for place in by_remainder[:left]:
            parts[place] += 1
    return parts


def floors(quota: Milli, count: int, floor_ppm: int) -> list[Milli]:
    """Each live broker's floor: `floor_fraction` of the quota, split evenly (law 1)."""
    return even(quota * floor_ppm // PPM, count)


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
