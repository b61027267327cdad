"""Decides requests: walks a name's chain of levels and takes all or nothing.

Laws (design 2): all levels apply and the most stringent wins; nothing is taken
from any bucket unless the whole request is granted, or the part of it where
the caller accepts a part; each distinct group of topic, namespace and tenant
is charged once; a shadow group counts what it would refuse and refuses nothing.

This is the short road: plain calls, no events. Which share a group has is
decided elsewhere (`rgd.core.broker.sharing`) and set here.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from rgd.core.buckets.chain import Chain, Chains, ShareOf
from rgd.core.buckets.decision import Answer, Decision, Request, ungoverned
from rgd.core.buckets.level import BucketSettings, GroupKey, GroupState, LevelState
from rgd.core.policies.book import PolicyBook
from rgd.core.policies.model import Rates
from rgd.core.units import MILLI, Dimension, Nanos, Pair

_NOTHING: Final = Pair()


class Limiter:
    """Every bucket of one broker, and the decisions made with them."""

    def __init__(self, settings: BucketSettings, share_of: ShareOf) -> None:
        self._chains = Chains(settings, share_of)
        #: Called when work is refused of a group that the peers know nothing of.
        self.on_unreported: Callable[[], None] = _nobody_listens
        #: Requests for names that no limit applies to.
        self.ungoverned_total = 0

    def acquire(self, request: Request, now: Nanos) -> Answer:
        """Decide one request.

        Raises:
            UnknownGroup: `request.group` names no group.
        """
        chain = self._chains.of(request, now)
        if not chain.levels:
            self.ungoverned_total += 1
            return ungoverned(request)
        if request.held != _NOTHING:
            for group in chain.groups:
                group.meter.hold(request.held, request.topic)
        if request.partial:
            return _acquire_part(self, request, chain, now)
        return _acquire_whole(self, request, chain, now)

    def set_book(self, book: PolicyBook, now: Nanos) -> None:
        """Put a policy book in force; buckets of what stays keep their tokens and debt."""
        self._chains.set_book(book, now)

    def set_share(self, key: GroupKey, share: Rates, now: Nanos) -> None:
        """Change this broker's share of a group, if it is in use."""
        state = self._chains.groups.get(key)
        if state is not None and state.share != share:
            state.set_rates(state.quota, share, now)

    def set_group_burst(self, burst_ns: int, now: Nanos) -> None:
        """Change the depth of every group's buckets; 0 grants one request at a time, on debt."""
        self._chains.set_group_burst(burst_ns, now)

    def states(self) -> Iterator[GroupState]:
        """Every (group, kind) that was asked for since it exists."""
        return self._chains.states()

    def state(self, key: GroupKey) -> GroupState | None:
        """One (group, kind), if it was ever asked for."""
        return self._chains.groups.get(key)


def _acquire_whole(limiter: Limiter, request: Request, chain: Chain, now: Nanos) -> Answer:
    cost = Pair(request.messages, request.bytes)
    refusing: list[LevelState] = []
    for level in chain.levels:
        if level.shadow:
            continue
        if too_large := level.too_large(cost):
            return too_large
        if not level.admits(cost, now):
            refusing.append(level)
    if not refusing:
        _charge(request, chain, cost, now)
        return Decision(granted=True, messages=cost.messages, bytes=cost.bytes)
    # Who admits makes nobody wait.
    longest, wait_ms, dimension = _longest_wait(refusing, cost, now)
    # Refused by a limit of this broker alone: more share of a group would not have helped.
    by_groups = None not in [level.group for level in refusing]
    for group in chain.groups:
        group.count_refusal(longest.level, cost)
        if by_groups and group in refusing:
            _count_unmet(limiter, group, request, cost, now)
    return _cut(longest, dimension, _NOTHING, wait_ms, now)


def _acquire_part(limiter: Limiter, request: Request, chain: Chain, now: Nanos) -> Answer:
    asked = Pair(request.messages, request.bytes)
    granted, cutter = _largest_part(chain, asked, now)
    if cutter is None:
        _charge(request, chain, granted, now)
        return Decision(granted=True, messages=granted.messages, bytes=granted.bytes)
    level, dimension = cutter
    # A caller that takes parts can come back as soon as there is one unit of what it needs.
    needed = Pair(min(1, asked.messages), min(1, asked.bytes))
    if granted.messages < needed.messages or granted.bytes < needed.bytes:
        granted = _NOTHING
        level, wait_ms, dimension = _longest_wait(chain.levels, needed, now)
    else:
        _charge(request, chain, granted, now)
        _, wait_ms, _ = _longest_wait(chain.levels, needed, now)
    unmet = Pair(asked.messages - granted.messages, asked.bytes - granted.bytes)
    for group in chain.groups:
        group.count_refusal(level.level, unmet)
        if level.group is not None:
            _count_unmet(limiter, group, request, unmet, now)
    return _cut(level, dimension, granted, wait_ms, now)


def _largest_part(
    chain: Chain, asked: Pair, now: Nanos
) -> tuple[Pair, tuple[LevelState, Dimension] | None]:
    """What every level would grant, and the last level that lowered it."""
    left = asked
    cutter: tuple[LevelState, Dimension] | None = None
    for level in chain.levels:
        if level.shadow:
            continue
        if (messages := level.available(Dimension.MESSAGES, now)) < left.messages:
            left, cutter = Pair(messages, left.bytes), (level, Dimension.MESSAGES)
        if (size := level.available(Dimension.BYTES, now)) < left.bytes:
            left, cutter = Pair(left.messages, size), (level, Dimension.BYTES)
    return left, cutter


def _longest_wait(
    levels: Sequence[LevelState], cost: Pair, now: Nanos
) -> tuple[LevelState, int, Dimension]:
    """The first level that makes a caller wait longest, with how long (ms) and what for."""
    longest: tuple[LevelState, int, Dimension] | None = None
    longest_ms = -1
    for level in levels:
        if level.shadow:
            continue
        wait_ms, dimension = level.wait(cost, now)
        if wait_ms > longest_ms:
            longest, longest_ms = (level, wait_ms, dimension), wait_ms
    assert longest is not None, "a level that is no shadow has refused"
    return longest


def _charge(request: Request, chain: Chain, cost: Pair, now: Nanos) -> None:
    for level in chain.levels:
        if level.shadow and not level.admits(cost, now):
            level.count_shadow(cost)
        else:
            level.take(cost)
    for group in chain.groups:
        group.meter.admit(cost, attempt=request.attempt, topic=request.topic, now=now)


def _count_unmet(
    limiter: Limiter, group: GroupState, request: Request, unmet: Pair, now: Nanos
) -> None:
    group.meter.refuse(unmet, attempt=request.attempt, topic=request.topic, now=now)
    if not group.reported:
        # Once is enough: the report that follows says it.
        group.reported = True
        limiter.on_unreported()


def _cut(
    level: LevelState, dimension: Dimension, granted: Pair, wait_ms: int, now: Nanos
) -> Decision:
    return Decision(
        granted=granted != _NOTHING,
        messages=granted.messages,
        bytes=granted.bytes,
        limited_by=level.level,
        group=level.group,
        dimension=dimension,
        retry_after_ms=wait_ms or 1,
        quota=_whole(level.quota, dimension),
        remaining=level.remaining(dimension, now),
    )


def _whole(rates: Rates, dimension: Dimension) -> int:
    return (rates.of(dimension) or 0) // MILLI


def _nobody_listens() -> None:
    """The default of `Limiter.on_unreported`."""
