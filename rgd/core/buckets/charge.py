"""Charges a grant to the levels of a chain and counts it for its groups; undoes a charge, or a part."""

from rgd.core.buckets.bucket import NEVER, PICO
from rgd.core.buckets.chain import Chain
from rgd.core.units import Nanos, Pair


def charge(  # noqa: PLR0913, PLR0917 -- on the fast path an object around them costs a tenth of a grant
    chain: Chain,
    messages: int,
    size: int,
    topic: str | None,
    attempt: int,
    now: Nanos,
    *,
    settles: bool = True,
    requests: int = 1,
) -> None:
    """Charge every deciding level and count the grant for every group; each level must admit it.

    Unless `settles`, the name cannot give it back by settling: a lease gives back its own way.
    `requests` is 0 for a charge after the fact, whose request was counted with its grant.
    """
    for level in chain.shadows:
        level.charge_shadow(messages, size, now)
    for part in chain.parts:
        part.count(messages, size)
    for counters in chain.counters:
        counters.admit(messages, size, attempt, topic, now, requests)
    if settles and chain.unsettled is not None:
        chain.unsettled.add(messages, size, now)
    # Last, so that a request that raises takes nothing.
    messages_cost, bytes_cost = messages * PICO, size * PICO
    for level in chain.deciding:
        level.messages_tokens -= messages_cost
        level.bytes_tokens -= bytes_cost
        level.short_until = NEVER


def give_back(chain: Chain, messages: int, size: int) -> None:
    """Undo a charge because its caller gets no answer.

    It leaves shadow levels alone: they refuse nothing, and whether they were charged is unknown.
    """
    for level in chain.deciding:
        level.take(-messages, -size)


def put_back(chain: Chain, unused: Pair, now: Nanos) -> None:
    """Put back units that a caller was granted and did not use.

    Shadow levels get nothing back, because it is unknown whether they were charged.
    """
    for level in chain.deciding:
        level.give(*unused, now)
    for counters in chain.counters:
        counters.give_back(*unused)
