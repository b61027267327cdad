"""Answers requests that are refused or granted in part, and counts their demand for the groups.

Laws (docs/decisions/0012): a refusal is demand for a group as far as all other levels would have granted it. A
retry is no new demand, and counts as refused only for the group that refused it. The answer names
the limit that makes the caller wait longest.

A refusal is on the fast path too, because most callers get one under overload. Amounts are
therefore passed as separate arguments, and the common chain of one level has its own function with
few calls.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

from rgd.core.buckets.chain import Chain, Unmet
from rgd.core.buckets.charge import charge, give_back
from rgd.core.buckets.decision import Decision
from rgd.core.buckets.level import GroupState, LevelState, rounded_ms
from rgd.core.buckets.levels import Levels
from rgd.core.buckets.soft import marked_over
from rgd.core.buckets.throttled import lowered, lowering
from rgd.core.units import MILLI, Dimension, Nanos, Pair

_MESSAGES: Final = Dimension.MESSAGES
_BYTES: Final = Dimension.BYTES
_NONE: Final = (0, 0)
#: Takes half the time of the classes' own `__new__`.
_new_decision: Final = tuple.__new__
_new_pair: Final = tuple.__new__


class Asked(NamedTuple):
    """A request of a caller that accepts a part."""

    messages: int
    bytes: int
    topic: str | None
    attempt: int


class _Amounts(NamedTuple):
    """Requested amounts, and the part of them that was granted."""

    messages: int
    bytes: int
    granted_messages: int = 0
    granted_bytes: int = 0
    partial: bool = False


def refuse(  # noqa: C901, PLR0912, PLR0913, PLR0917 -- see above
    levels: Levels,
    chain: Chain,
    refusing: Sequence[LevelState],
    messages: int,
    size: int,
    topic: str | None,
    attempt: int,
    now: Nanos,
) -> Decision:
    """Refuse a whole request that the levels in `refusing` do not admit."""
    wait_ms, level, dimension = -1, refusing[0], _MESSAGES
    for one in refusing:
        if now < one.short_until:
            one_ms, of = rounded_ms(one.short_until - now), one.short_of
        else:
            one_ms, of = one.wait(messages, size, now)
        if one_ms > wait_ms:
            wait_ms, level, dimension = one_ms, one, of
    (level.refusals or level.begin_refusals()).count(messages, size, dimension, attempt, now)
    order, name = level.order, level.group
    for group in chain.groups:
        if group.group != name:
            group.refused_messages[order] += messages
            group.refused_bytes[order] += size
    if attempt > 1 or len(chain.levels) == 1:
        # A retry is no new demand; it counts as refused only for the groups that refused it.
        names = [one.group for one in refusing]
        for group in chain.groups:
            if group.group in names:
                _count(levels, chain, group, messages, size, topic, attempt, wait_ms, now)
    elif groups := _may_want(chain, refusing, levels.live_brokers):
        unmet = _Amounts(messages, size)
        for group in groups:
            more = _unmet_by(chain, group, unmet, levels.live_brokers, now)
            if more != _NONE:
                _count(levels, chain, group, *more, topic, attempt, wait_ms, now)
    if chain.throttled_name is not None:
        mask = lowering(refusing, messages, size, now)
        levels.throttled.count(chain.throttled_name, mask, messages, size, wait_ms, now)
    units = messages if dimension is _MESSAGES else size
    return _refused(chain, level, dimension, units, wait_ms, now)


def refuse_alone(  # noqa: PLR0913, PLR0917 -- see above
    levels: Levels,
    chain: Chain,
    group: GroupState,
    messages: int,
    size: int,
    topic: str | None,
    attempt: int,
    now: Nanos,
) -> Decision:
    """`refuse` for a chain whose only level is a group: all that it refuses is demand for it."""
    if now < group.short_until:
        wait_ms, dimension = rounded_ms(group.short_until - now), group.short_of
    else:
        wait_ms, dimension = group.wait(messages, size, now)
    refusals = group.refusals or group.begin_refusals()
    if now >= refusals.ends_at:
        refusals.open(now)
    counts = refusals.by_messages if dimension is _MESSAGES else refusals.by_bytes
    counts.requests += 1
    counts.messages += messages
    counts.bytes += size
    counters = group.counters
    if attempt == 1 and counters.is_touched and topic in counters.topics:
        counters.at, counters.wait_ms = now, wait_ms
        counters.requests += 1
        counters.refusals += 1
        counters.refused_messages += messages
        counters.refused_bytes += size
        counters.refused_new_messages += messages
        counters.refused_new_bytes += size
    else:
        if attempt > 1:
            counts.retries += 1
        counters.refuse(Pair(messages, size), attempt, topic, wait_ms, now)
    if not group.reported:
        _call_out(levels, group)
    units = messages if dimension is _MESSAGES else size
    if units == 1 and chain.refused_ms == wait_ms and chain.refused_of is dimension:
        return chain.refused
    return _refused(chain, group, dimension, units, wait_ms, now)


class Part(NamedTuple):
    """A part of a request, and what lowered it."""

    messages: int
    bytes: int
    #: The last level that lowered it, and its dimension; None if nothing did.
    limiting: LevelState | None = None
    dimension: Dimension = _MESSAGES
    #: The events of all levels that lowered it (`rgd.core.buckets.throttled`).
    mask: int = 0


def lower_part(chain: Chain, part: Part, now: Nanos, *, halves: bool = False) -> Part:
    """Lower a part to what every level has, or to half of it (of one unit, that unit)."""
    messages, size, limiting, dimension, mask = part
    for level in chain.deciding:
        has_messages, has_bytes = level.available(now)
        if halves:
            has_messages = min(has_messages, max(1, has_messages // 2))
            has_bytes = min(has_bytes, max(1, has_bytes // 2))
        if has_messages < messages:
            messages, limiting, dimension = has_messages, level, _MESSAGES
            mask |= lowered(level, messages=True, size=False)
        if has_bytes < size:
            size, limiting, dimension = has_bytes, level, _BYTES
            mask |= lowered(level, messages=False, size=True)
    return Part(messages, size, limiting, dimension, mask)


def grant_part(levels: Levels, chain: Chain, asked: Asked, now: Nanos) -> Decision:
    """Grant as much as every level has to a caller that accepts a part."""
    chain.unmet = ()
    part = lower_part(chain, Part(asked.messages, asked.bytes), now)
    if part.limiting is None:
        charge(chain, part.messages, part.bytes, asked.topic, asked.attempt, now)
        decision = Decision(granted=True, messages=part.messages, bytes=part.bytes)
        return marked_over(decision, chain.softs)
    # Such a caller can retry as soon as there is one unit of what it needs.
    least = asked._replace(messages=min(1, asked.messages), bytes=min(1, asked.bytes))
    if part.messages < least.messages or part.bytes < least.bytes:
        part = part._replace(messages=0, bytes=0)
    decision, chain.unmet = _grant_lowered(
        levels, chain, part, Pair(asked.messages, asked.bytes), least, now, settles=True
    )
    return decision


def grant_lease(  # noqa: PLR0917 -- as `refuse`
    levels: Levels, chain: Chain, part: Part, wanted: Pair, asked: Asked, now: Nanos
) -> Decision:
    """Grant a part that `rgd.core.leases` chose, and count what is lacking as demand.

    Args:
        levels: all levels.
        chain: the levels of the name; they have the part.
        part: what is granted; none of it if one of its amounts is 0 and needed.
        wanted: whole units of work that came since the lease asked last; what exceeds the part is
            demand.
        asked: the least that would be of use, with topic and attempt.
        now: the current time.
    """
    messages, size = part.messages, part.bytes
    if part.limiting is not None:
        whole = Pair(max(messages, wanted.messages), max(size, wanted.bytes))
        return _grant_lowered(levels, chain, part, whole, asked, now, settles=False)[0]
    decision = Decision(granted=True, messages=messages, bytes=size)
    if not messages and not size:
        return decision
    charge(chain, messages, size, asked.topic, asked.attempt, now, settles=False)
    return marked_over(decision, chain.softs)


def _grant_lowered(  # noqa: PLR0913, PLR0917 -- as `refuse`
    levels: Levels,
    chain: Chain,
    part: Part,
    whole: Pair,
    least: Asked,
    now: Nanos,
    *,
    settles: bool,
) -> tuple[Decision, Sequence[Unmet]]:
    """Grant a part that a level lowered, perhaps to nothing, and count the rest of `whole`.

    `least` is what the answer's wait is for; `settles` is `charge`'s.

    Returns:
        The answer, and the rest as it was counted by group.
    """
    messages, size = part.messages, part.bytes
    if messages or size:
        charge(chain, messages, size, least.topic, least.attempt, now, settles=settles)
    try:
        waits = [(one, *one.wait(least.messages, least.bytes, now)) for one in chain.deciding]
        longest, wait_ms, waits_for = max(waits, key=lambda wait: wait[1])
        if not messages and not size:
            part = Part(0, 0, longest, waits_for, part.mask)
        asked = _Amounts(*whole, messages, size, partial=True)
        unmet = _count_part(levels, chain, part, asked, least, wait_ms, now)
        return _lowered(chain, part, wait_ms, now), unmet
    except Exception:
        give_back(chain, messages, size)
        raise


def _count_part(  # noqa: PLR0913, PLR0917 -- as `refuse`
    levels: Levels,
    chain: Chain,
    part: Part,
    unmet: _Amounts,
    asked: Asked,
    wait_ms: int,
    now: Nanos,
) -> Sequence[Unmet]:
    """Count what a caller that accepts a part did not get; returns it as counted by group."""
    _, _, topic, attempt = asked
    level = part.limiting
    messages, size = unmet.messages - unmet.granted_messages, unmet.bytes - unmet.granted_bytes
    if level is None or not (messages or size):
        return ()
    (level.refusals or level.begin_refusals()).count(messages, size, part.dimension, attempt, now)
    counted: list[Unmet] = []
    for group in chain.groups:
        if group.group != level.group:
            group.refused_messages[level.order] += messages
            group.refused_bytes[level.order] += size
        more = messages, size
        if attempt > 1:
            if group.group != level.group:
                continue
        elif len(chain.levels) > 1:
            more = _unmet_by(chain, group, unmet, levels.live_brokers, now)
        if more != _NONE:
            _count(levels, chain, group, *more, topic, attempt, wait_ms, now)
            counted.append((group, *more, attempt))
    if chain.throttled_name is not None:
        levels.throttled.count(chain.throttled_name, part.mask, messages, size, wait_ms, now)
    return counted


def _lowered(chain: Chain, part: Part, wait_ms: int, now: Nanos) -> Decision:
    """The answer to a request that a level lowered, perhaps to nothing."""
    messages, size, level, dimension, _ = part
    assert level is not None, "nothing lowered the part"
    decision = _decision(level, dimension, messages, size, wait_ms, now)
    return marked_over(decision, chain.softs) if messages or size else decision


def _count(  # noqa: PLR0913, PLR0917 -- as `refuse`
    levels: Levels,
    chain: Chain,
    group: GroupState,
    messages: int,
    size: int,
    topic: str | None,
    attempt: int,
    wait_ms: int,
    now: Nanos,
) -> None:
    """Count refused work as demand for a group."""
    group.counters.refuse(_new_pair(Pair, (messages, size)), attempt, topic, wait_ms, now)
    for part in chain.parts:
        if part.group == group.group:
            part.refuse(messages, size)
    if not group.reported:
        _call_out(levels, group)


def _call_out(levels: Levels, group: GroupState) -> None:
    """Ask for an early report of a group whose demand no peer knows."""
    # Once is enough, because the report that follows contains it.
    group.reported = True
    levels.news.call_out(group.counters.slot)


def _may_want(
    chain: Chain, refusing: Sequence[LevelState], live_brokers: int
) -> Sequence[GroupState]:
    """The groups for which a refusal may be demand: no other level certainly blocks the request."""
    blocker: str | None = None
    for level in refusing:
        # A counterfactual bucket that is not faster than the real one never has more tokens.
        if not level.flows_faster(live_brokers):
            # A group and a topic's part of it are one.
            if level.group is None or blocker not in {None, level.group}:
                return ()
            blocker = level.group
    if blocker is None:
        return chain.groups
    return [group for group in chain.groups if group.group == blocker]


def _unmet_by(
    chain: Chain, group: GroupState, asked: _Amounts, live_brokers: int, now: Nanos
) -> tuple[int, int]:
    """What all levels but the group would have granted beyond the actual grant, as a flow."""
    name = group.key.group
    granted_messages, granted_bytes = asked.granted_messages, asked.granted_bytes
    # A topic's part of the group's share has the group's name, and is not another level.
    others = [level for level in chain.deciding if level.group != name]
    messages, size = asked.messages, asked.bytes
    for level in others:
        # The actual grant is already charged to the counterfactual buckets as to the real ones.
        more_messages, more_bytes = level.would_grant(name, live_brokers, now)
        messages = min(messages, granted_messages + more_messages)
        size = min(size, granted_bytes + more_bytes)
        if not asked.partial and (messages < asked.messages or size < asked.bytes):
            return _NONE
    messages, size = messages - granted_messages, size - granted_bytes
    if messages or size:
        for level in others:
            level.forgo(name, messages, size)
    return messages, size


def _refused(  # noqa: PLR0917 -- as `refuse`
    chain: Chain, level: LevelState, dimension: Dimension, units: int, wait_ms: int, now: Nanos
) -> Decision:
    """The answer to a refused request; reuses the last answer if it is the same."""
    if (
        chain.refused_ms == wait_ms
        and units == 1
        and chain.refused_of is dimension
        and chain.refused_by is level
    ):
        return chain.refused
    chain.refused = _decision(level, dimension, 0, 0, wait_ms, now)
    # A refused single unit means that 0 units remain; for larger requests the remainder may change.
    chain.refused_ms = wait_ms if units == 1 else -1
    chain.refused_of, chain.refused_by = dimension, level
    return chain.refused


def _decision(  # noqa: PLR0917 -- as `refuse`
    level: LevelState, dimension: Dimension, messages: int, size: int, wait_ms: int, now: Nanos
) -> Decision:
    """The answer of a level that reduced or refused a request."""
    quota = level.quota.of(dimension)
    fields = (
        bool(messages or size),
        messages,
        size,
        True,
        level.level,
        level.group,
        dimension,
        wait_ms or 1,
        quota // MILLI if quota else 0,
        level.remaining(dimension, now),
        False,
    )
    return _new_decision(Decision, fields)
