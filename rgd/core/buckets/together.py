"""Grants many requests at once: their amounts are summed by name and charged once.

Law: either every request is granted, and the remaining tokens are exactly those after deciding them
one by one, in any order; or nothing changes.
"""

from collections.abc import Collection, Mapping

from rgd.core.buckets.bucket import NEVER, PICO
from rgd.core.buckets.chain import Chain
from rgd.core.buckets.charge import give_back
from rgd.core.buckets.decision import Name, Together
from rgd.core.units import Nanos

_Sums = list[tuple[Chain, Together]]


def grant_together(chains: Mapping[Name, Chain], asked: Collection[Together], now: Nanos) -> bool:
    """Grant all or nothing; if False, the caller must decide each request by itself."""
    charged: _Sums = []
    for one in asked:
        chain = chains.get(one.name)
        if chain is None or not _charge(chain, one, now):
            _undo(charged)
            return False
        charged.append((chain, one))
    try:
        _count(charged, now)
    except Exception:
        _undo(charged)
        raise
    return True


def _charge(chain: Chain, asked: Together, now: Nanos) -> bool:
    messages, size = asked.messages, asked.bytes
    if not chain.is_plain or messages > chain.most_messages or size > chain.most_bytes:
        return False
    messages_cost, bytes_cost = messages * PICO, size * PICO
    for level in chain.deciding:
        if now > level.at:
            level.refill(now)
        # No debt is allowed here: when requests are granted one by one, only the last may leave
        # debt.
        if messages and level.messages_rate is not None and level.messages_tokens < messages_cost:
            return False
        if size and level.bytes_rate is not None and level.bytes_tokens < bytes_cost:
            return False
    for level in chain.deciding:
        level.messages_tokens -= messages_cost
        level.bytes_tokens -= bytes_cost
        level.short_until = NEVER
    return True


def _count(charged: _Sums, now: Nanos) -> None:
    for chain, asked in charged:
        messages, size, topic = asked.messages, asked.bytes, asked.name[3]
        for counters in chain.counters:
            counters.admit(messages, size, 1, topic, now, asked.count)
        chain.granted_at, chain.messages, chain.bytes = now, ~messages, size


def _undo(charged: _Sums) -> None:
    for chain, asked in charged:
        give_back(chain, asked.messages, asked.bytes)
