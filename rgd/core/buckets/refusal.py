"""What is not, or not wholly, granted: the answer, and for which groups it counts as demand.

Laws (design 3): a refusal is demand for a group as far as all other levels would have granted it; a
retry is no new demand, and counts as refused only for the group that refused it. The limit that makes
the caller wait longest is named.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

from rgd.core.buckets.bucket import PICO
from rgd.core.buckets.chain import Chain
from rgd.core.buckets.charge import charge, give_back
from rgd.core.buckets.decision import Decision
from rgd.core.buckets.level import GroupState, LevelState
from rgd.core.buckets.levels import Levels
from rgd.core.units import MILLI, Dimension, Nanos, Pair

_MESSAGES: Final = Dimension.MESSAGES
_new_tuple: Final = tuple.__new__


class Asked(NamedTuple):
    """A request that is not granted whole, and the part of it that is."""

    messages: int
    bytes: int
    topic: str | None
    attempt: int
    partial: bool = False
    granted_messages: int = 0
    granted_bytes: int = 0


def refuse(
    levels: Levels, chain: Chain, refusing: Sequence[LevelState], asked: Asked, now: Nanos
) -> Decision:
    """Refuse a whole request, which some levels do not admit."""
    longest, wait_ms, dimension = _longest_wait(refusing, asked.messages, asked.bytes, now)
    _count(levels, chain, longest, refusing, asked, (wait_ms, dimension), now)
    return _decision(longest, dimension, asked, wait_ms, now)


def grant_part(levels: Levels, chain: Chain, asked: Asked, now: Nanos) -> Decision:
    """Grant as much as every level has, to a caller who accepts a part."""
    messages, size, cutter, dimension = _largest_part(chain, asked, now)
    if cutter is None:
        charge(chain, messages, size, asked.topic, asked.attempt, now)
        return Decision(granted=True, messages=messages, bytes=size)
    # A caller that takes parts can come back as soon as there is one unit of what it needs.
    needs_messages, needs_bytes = min(1, asked.messages), min(1, asked.bytes)
    if messages < needs_messages or size < needs_bytes:
        messages = size = 0
        cutter, wait_ms, dimension = _longest_wait(chain.deciding, needs_messages, needs_bytes, now)
    else:
        charge(chain, messages, size, asked.topic, asked.attempt, now)
        _, wait_ms, _ = _longest_wait(chain.deciding, needs_messages, needs_bytes, now)
    asked = asked._replace(partial=True, granted_messages=messages, granted_bytes=size)
    try:
        _count(levels, chain, cutter, (cutter,), asked, (wait_ms, dimension), now)
        return _decision(cutter, dimension, asked, wait_ms, now)
    except Exception:
        give_back(chain, messages, size)
        raise


def _largest_part(
    chain: Chain, asked: Asked, now: Nanos
) -> tuple[int, int, LevelState | None, Dimension]:
    """What every level would grant, and the last level that lowered it, with the dimension."""
    messages, size = asked.messages, asked.bytes
    cutter, dimension = None, _MESSAGES
    for level in chain.deciding:
        has_messages, has_bytes = level.available(now)
        if has_messages < messages:
            messages, cutter, dimension = has_messages, level, _MESSAGES
        if has_bytes < size:
            size, cutter, dimension = has_bytes, level, Dimension.BYTES
    return messages, size, cutter, dimension


def _longest_wait(
    levels: Sequence[LevelState], messages: int, size: int, now: Nanos
) -> tuple[LevelState, int, Dimension]:
    """The first level that makes a caller wait longest, with how long (ms) and what for."""
    longest = levels[0]
    wait_ms, dimension = longest.wait(messages, size, now)
    for level in levels:
        if level is not longest:
            other_ms, other = level.wait(messages, size, now)
            if other_ms > wait_ms:
                longest, wait_ms, dimension = level, other_ms, other
    return longest, wait_ms, dimension


def _count(  # noqa: PLR0913, PLR0917 -- on the fast path an object around them costs a tenth of a refusal
    levels: Levels,
    chain: Chain,
    longest: LevelState,
    refusing: Sequence[LevelState],
    asked: Asked,
    wait: tuple[int, Dimension],
    now: Nanos,
) -> None:
    """Count what is not granted: for the level that is named, and for each group what is demand."""
    wait_ms, dimension = wait
    messages = asked.messages - asked.granted_messages
    size = asked.bytes - asked.granted_bytes
    (longest.cuts or longest.begin_cuts()).count(messages, size, dimension, asked.attempt, now)
    order = longest.order
    for group in chain.groups:
        group.refused_messages[order] += messages
        group.refused_bytes[order] += size
    if len(chain.levels) == 1:
        counted = [(group, messages, size) for group in chain.groups]
    elif asked.attempt > 1:
        # A retry asks for nothing new; it counts as refused where it was.
        names = [level.group for level in refusing]
        counted = [(group, messages, size) for group in chain.groups if group.group in names]
    else:
        counted = _demand(levels, chain, refusing, asked, now)
    for group, messages, size in counted:
        unmet = _new_tuple(Pair, (messages, size))
        group.counters.refuse(unmet, asked.attempt, asked.topic, wait_ms, now)
        if not group.reported:
            # Once is enough: the report that follows says it.
            group.reported = True
            levels.urgent[group.key] = None
            levels.on_unreported()
        for part in chain.parts:
            if part.group == group.group:
                part.refuse(messages, size)


def _demand(
    levels: Levels, chain: Chain, refusing: Sequence[LevelState], asked: Asked, now: Nanos
) -> list[tuple[GroupState, int, int]]:
    """The groups for which a refusal is demand, and how much of it."""
    live = levels.live_brokers
    blocker: str | None = None
    if not asked.partial:
        for level in refusing:
            # A counterfactual bucket that flows no faster than the real one never has more than that.
            if not level.flows_faster(live):
                if level.group is None or blocker is not None:
                    return []
                blocker = level.group
    found = []
    for group in chain.groups:
        if blocker is None or group.group == blocker:
            messages, size = _unmet_by(chain, group, asked, live, now)
            if messages or size:
                found.append((group, messages, size))
    return found


def _unmet_by(
    chain: Chain, group: GroupState, asked: Asked, live: int, now: Nanos
) -> tuple[int, int]:
    """What all levels but the group would have granted beyond what was, as a flow."""
    name = group.key.group
    granted_messages, granted_bytes = asked.granted_messages, asked.granted_bytes
    # A topic's part of the group's share goes by the group's name, and is no other level.
    others = [level for level in chain.deciding if level.group != name]
    messages, size = asked.messages, asked.bytes
    for level in others:
        # What was granted is already charged, to the counterfactual buckets as to the real ones.
        more_messages, more_bytes = level.would_grant(name, live, now)
        messages = min(messages, granted_messages + more_messages)
        size = min(size, granted_bytes + more_bytes)
        if not asked.partial and (messages < asked.messages or size < asked.bytes):
            return 0, 0
    messages, size = messages - granted_messages, size - granted_bytes
    for level in others:
        level.forgo(name, messages, size)
    return messages, size


def _decision(
    level: LevelState, dimension: Dimension, asked: Asked, wait_ms: int, now: Nanos
) -> Decision:
    level.refill(now)
    if dimension is _MESSAGES:
        quota, tokens, rate = level.quota.messages, level.messages_tokens, level.messages_rate
    else:
        quota, tokens, rate = level.quota.bytes, level.bytes_tokens, level.bytes_rate
    messages, size = asked.granted_messages, asked.granted_bytes
    fields = (
        bool(messages or size),
        messages,
        size,
        True,
        level.level,
        level.group,
        dimension,
        wait_ms or 1,
        (quota or 0) // MILLI,
        tokens // PICO if tokens > 0 and rate is not None else 0,
    )
    # Half the time of `Decision(...)`.
    return _new_tuple(Decision, fields)
