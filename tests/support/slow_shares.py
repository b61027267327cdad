"""Max-min as its laws say it, one group at a time, in Python's exact numbers: what tests compare with.

`water_fill` is the one dimension, to the `Milli`, remainders included. `fill_together` lets all rows
rise from event to event (a row has all it wants, or a dimension is spent) in fractions.
Nothing here is shared with `rgd.core.shares`.
"""

from collections.abc import Mapping, Sequence
from fractions import Fraction

PPM = 1_000_000

#: A broker's place: what it wants in messages and bytes, and its weight.
Wants = Mapping[int, tuple[tuple[int, int], int]]


def even(total: int, count: int) -> list[int]:
    """Split evenly; the first ones get what is left."""
    part, more = divmod(total, count)
    return [part + (place < more) for place in range(count)]


def floors(quota: int, brokers: int, floor_ppm: int) -> list[int]:
    """Each broker's floor."""
    return even(quota * floor_ppm // PPM, brokers)


def water_fill(
    quota: int, wants: Mapping[int, tuple[int, int]], brokers: int, floor_ppm: int
) -> list[int]:
    """Every broker's share in one dimension; `wants`: place -> (wanted, weight)."""
    shares = floors(quota, brokers, floor_ppm)
    left = quota - sum(shares)
    above = {
        place: (wanted - shares[place], weight)
        for place, (wanted, weight) in wants.items()
        if wanted > shares[place]
    }
    while above:
        weights = sum(weight for _, weight in above.values())
        full = {
            place: want
            for place, (want, weight) in above.items()
            if want * weights <= left * weight
        }
        if not full:
            for place, part in _by_weight(left, {at: above[at][1] for at in sorted(above)}).items():
                shares[place] += part
            return shares
        for place, want in full.items():
            shares[place] += want
            left -= want
            del above[place]
    return [share + part for share, part in zip(shares, even(left, brokers), strict=True)]


def _by_weight(total: int, weights: dict[int, int]) -> dict[int, int]:
    whole = sum(weights.values())
    parts = {place: total * weight // whole for place, weight in weights.items()}
    by_remainder = sorted(weights, key=lambda place: (-(total * weights[place] % whole), place))
    for place in by_remainder[: total - sum(parts.values())]:
        parts[place] += 1
    return parts


def fill_together(
    quota: tuple[int, int], wants: Wants, brokers: int, floor_ppm: int
) -> list[tuple[Fraction, Fraction]]:
    """Every broker's share in both dimensions, not rounded; a quota of -1 has shares of 0."""
    whole = [max(limit, 0) for limit in quota]
    least = [floors(limit, brokers, floor_ppm) for limit in whole]
    left = [Fraction(limit - sum(floor)) for limit, floor in zip(whole, least, strict=True)]
    above = {
        place: tuple(max(0, want[k] - least[k][place]) if quota[k] >= 0 else 0 for k in (0, 1))
        for place, (want, _) in wants.items()
    }
    #: How much of each dimension a row takes while the level rises by one.
    pull = {
        place: _pull(want, whole, wants[place][1]) for place, want in above.items() if any(want)
    }
    taken = {place: [Fraction(0), Fraction(0)] for place in range(brokers)}
    rising = set(pull)
    while rising := _still_rising(rising, above, taken, left):
        step = _step(rising, above, taken, left, pull)
        for place in rising:
            for k in (0, 1):
                taken[place][k] += pull[place][k] * step
                left[k] -= pull[place][k] * step
    return [
        (
            least[0][place] + taken[place][0] + left[0] / brokers,
            least[1][place] + taken[place][1] + left[1] / brokers,
        )
        for place in range(brokers)
    ]


Amounts = Mapping[int, Sequence[int | Fraction]]


def _pull(want: Sequence[int], whole: Sequence[int], weight: int) -> list[Fraction]:
    dominant = max(Fraction(want[k], max(whole[k], 1)) for k in (0, 1))
    return [amount * weight / dominant for amount in want]


def _still_rising(
    rising: set[int], above: Amounts, taken: Amounts, left: Sequence[Fraction]
) -> set[int]:
    return {
        place
        for place in rising
        if list(taken[place]) != list(above[place])
        and all(left[k] > 0 or above[place][k] == 0 for k in (0, 1))
    }


def _step(
    rising: set[int],
    above: Amounts,
    taken: Amounts,
    left: Sequence[Fraction],
    pull: Mapping[int, list[Fraction]],
) -> Fraction:
    """How far the level rises to the next event."""
    steps = [
        (above[place][k] - taken[place][k]) / pull[place][k]
        for place in rising
        for k in (0, 1)
        if pull[place][k]
    ]
    for k in (0, 1):
        pulled = sum(pull[place][k] for place in rising)
        if pulled:
            steps.append(left[k] / pulled)
    return min(Fraction(step) for step in steps)
