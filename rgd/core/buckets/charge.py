"""What a grant takes from the levels of a chain and counts for its groups, and how it is undone."""

from rgd.core.buckets.bucket import PICO
from rgd.core.buckets.chain import Chain
from rgd.core.buckets.level import GroupState
from rgd.core.buckets.levels import Levels
from rgd.core.units import Nanos, Pair


def charge(  # noqa: PLR0917, PLR0913 -- on the fast path an object around them costs a tenth of a grant
    levels: Levels,
    chain: Chain,
    messages: int,
    size: int,
    topic: str | None,
    attempt: int,
    now: Nanos,
) -> None:
    """Charge every level, each of which admits it, and count it for every group."""
    messages_cost, bytes_cost = messages * PICO, size * PICO
    for level in chain.deciding:
        level.messages_tokens -= messages_cost
        level.bytes_tokens -= bytes_cost
    try:
        for level in chain.shadows:
            level.charge_shadow(messages, size, now)
        for part in chain.parts:
            if not part.shadow:
                part.charge_group(messages, size)
        for group in chain.groups:
            if group.meter.admit(Pair(messages, size), attempt=attempt, topic=topic, now=now):
                call_out(levels, group)
    except Exception:
        give_back(chain, messages, size)
        raise


def give_back(chain: Chain, messages: int, size: int) -> None:
    """Undo a charge whose caller gets no answer.

    A shadow level refuses nothing, and whether it was charged is not known.
    """
    for level in chain.deciding:
        level.take(-messages, -size)


def call_out(levels: Levels, group: GroupState) -> None:
    """Ask for an early report of a group."""
    levels.urgent[group.key] = None
    levels.on_unreported()
