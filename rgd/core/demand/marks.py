"""All counters of one meter at a moment, and the arithmetic between two of them.

A rate is what was counted between two marks by the time between them; so whatever
the windows and segments of a meter are (`rgd.core.demand.meter`), nothing is
counted twice or lost. Counts are whole units, rates Milli per second.
"""

from collections.abc import Iterable
from typing import Final, NamedTuple

from rgd.core.units import COUNT_MAX, MILLI, NS_PER_S, RATE_MAX, Nanos, Pair

#: Times a count and by a time in ns: a rate in Milli per second.
SCALE: Final = MILLI * NS_PER_S

#: Half the time of `Pair(...)`, which calls it from a function of its own; a meter makes ten a round.
_new_pair: Final = tuple.__new__


class Mark(NamedTuple):
    """All counters at a moment."""

    at: Nanos
    #: All requests, and those of them that said they are retries.
    requests: int
    retries: int
    #: (messages, bytes): granted; new work, refused too; refused work of which nobody said that.
    admitted: tuple[int, int]
    new: tuple[int, int]
    unsaid: tuple[int, int]
    refusals: int


def total(pairs: Iterable[Pair]) -> Pair:
    """The sum of some pairs."""
    messages = size = 0
    for pair in pairs:
        messages += pair.messages
        size += pair.bytes
    return Pair(messages, size)


def plus(left: tuple[int, int], right: tuple[int, int]) -> Pair:
    """The sum of two pairs."""
    return _new_pair(Pair, (left[0] + right[0], left[1] + right[1]))


def less(left: tuple[int, int], right: tuple[int, int]) -> tuple[int, int]:
    """What was counted between two marks."""
    # A plain tuple: this is most of what a meter's round costs.
    return left[0] - right[0], left[1] - right[1]


def rate(count: tuple[int, int], period_ns: int) -> Pair:
    """Milli per second of a count of whole units."""
    messages, size = count[0] * SCALE // period_ns, count[1] * SCALE // period_ns
    if messages > RATE_MAX or size > RATE_MAX:
        messages, size = min(messages, RATE_MAX), min(size, RATE_MAX)
    return _new_pair(Pair, (messages, size))


def bounded(count: tuple[int, int]) -> Pair:
    """A count as the wire and columns can have it."""
    if count[0] > COUNT_MAX or count[1] > COUNT_MAX:
        count = min(count[0], COUNT_MAX), min(count[1], COUNT_MAX)
    return _new_pair(Pair, count)
