"""The limit of a name that is nearest to refusing: what a grant may say of it."""

from typing import NamedTuple

from rgd.core.buckets.bucket import PICO
from rgd.core.buckets.chain import Chain
from rgd.core.buckets.decision import Level
from rgd.core.units import MILLI, NS_PER_S, Dimension, Nanos


class Headroom(NamedTuple):
    """One dimension of a limit, and what is left of it at this broker."""

    #: The part of the bucket that is left; negative is debt.
    part: float
    level: Level
    group: str | None
    dimension: Dimension
    #: Whole units per second of the whole limit (cluster-wide for a group).
    quota: int
    #: Whole units in the bucket, 0 while in debt.
    remaining: int
    #: Seconds until the bucket is full if nothing is taken, rounded up.
    full_in_s: int


def nearest(chain: Chain, now: Nanos) -> Headroom | None:
    """The limit of which the smallest part of the bucket is left; the first of equals, None if nothing limits."""
    found = [
        Headroom(
            tokens / (rate * level.burst_ns),
            level.level,
            level.group,
            dimension,
            (level.quota.of(dimension) or rate) // MILLI,
            max(0, tokens) // PICO,
            -((tokens - rate * level.burst_ns) // (rate * NS_PER_S)),
        )
        for level in chain.deciding
        for dimension in Dimension
        if (rate := level.share.of(dimension))
        and level.burst_ns
        and (tokens := level.tokens(dimension, now)) is not None
    ]
    return min(found, key=lambda one: one.part, default=None)
