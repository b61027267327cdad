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
    """All counters at a moment, side by side: a meter makes one for each slot, and reads four."""

    at: Nanos
    #: All requests, those of them that said they are retries, and those that were refused.
    requests: int
    retries: int
    refusals: int
    #: Granted.
    messages: int
    bytes: int
    #: New work, refused too.
    new_messages: int
    new_bytes: int
    #: Refused work of which nobody said whether it was new.
    unsaid_messages: int
    unsaid_bytes: int


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


def newly(begin: Mark, end: Mark) -> tuple[int, int]:
    """(messages, bytes) of new work between two marks: what was admitted, or arrived if that is more."""
    messages, size = end.messages - begin.messages, end.bytes - begin.bytes
    new_messages = end.new_messages - begin.new_messages
    new_size = end.new_bytes - begin.new_bytes
    # Without calls: this is most of what a meter's slot and round cost.
    return (
        new_messages if new_messages > messages else messages,  # noqa: FURB136
        new_size if new_size > size else size,  # noqa: FURB136
    )


def unsaid_between(begin: Mark, end: Mark) -> tuple[int, int]:
    """(messages, bytes) of refused work of which nobody said whether it was new."""
    return end.unsaid_messages - begin.unsaid_messages, end.unsaid_bytes - begin.unsaid_bytes


def rate(count: tuple[int, int], period_ns: int) -> Pair:
    """Milli per second of a count of whole units."""
    messages, size = count[0] * SCALE // period_ns, count[1] * SCALE // period_ns
    if messages > RATE_MAX or size > RATE_MAX:
        messages, size = min(messages, RATE_MAX), min(size, RATE_MAX)
    return _new_pair(Pair, (messages, size))


def whole_rate(rates: tuple[float, float]) -> Pair:
    """Rates as whole Milli per second, bounded as `rate` bounds them."""
    messages, size = rates
    return _new_pair(Pair, (round(min(messages, RATE_MAX)), round(min(size, RATE_MAX))))


def bounded(count: tuple[int, int]) -> Pair:
    """A count as the wire and columns can have it."""
    if count[0] > COUNT_MAX or count[1] > COUNT_MAX:
        count = min(count[0], COUNT_MAX), min(count[1], COUNT_MAX)
    return _new_pair(Pair, count)
