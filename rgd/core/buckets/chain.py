"""Resolves a name to its chain of levels, and keeps the levels' buckets.

Law: a chain is made from exactly one policy book; a new book throws all chains
away at once but keeps the buckets of what stays, with their tokens and debt.

The order is broker, resource groups (topic's, namespace's, tenant's: each
distinct group once), topic, subscription (design 2).
"""

from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from rgd.core.buckets.decision import Level, Request
from rgd.core.buckets.level import BucketSettings, GroupKey, GroupState, LevelState
from rgd.core.errors import UnknownGroup
from rgd.core.policies.book import EMPTY_BOOK, PolicyBook
from rgd.core.policies.model import NO_LIMIT, Group, Rates
from rgd.core.units import Kind, Nanos

#: Most resolved names and most limit buckets kept; each table starts afresh when it is full.
CHAINS_MAX: Final = 200_000

#: This broker's share of a group in a kind.
ShareOf = Callable[[Group, Kind], Rates]


class Chain(NamedTuple):
    """What applies to one name: every level in order, and its groups once more."""

    levels: tuple[LevelState, ...]
    groups: tuple[GroupState, ...]


class _ChainKey(NamedTuple):
    kind: Kind
    group: str | None
    namespace: str | None
    topic: str | None
    subscription: str | None


class _LimitKey(NamedTuple):
    kind: Kind
    level: Level
    topic: str = ""
    subscription: str = ""


class Chains:
    """Every level of one broker, by name."""

    def __init__(self, settings: BucketSettings, share_of: ShareOf) -> None:
        self._settings = settings
        self._share_of = share_of
        self._book = EMPTY_BOOK
        self._chains: dict[tuple[Kind, str | None, str | None, str | None, str | None], Chain] = {}
        self._limits: dict[_LimitKey, LevelState] = {}
        self.groups: dict[GroupKey, GroupState] = {}
        self._group_burst_ns = settings.burst_ns

    def of(self, request: Request, now: Nanos) -> Chain:
        """The chain of a request's name.

        Raises:
            UnknownGroup: `request.group` names no group.
        """
        # A plain tuple finds what was kept under a named one, and is made faster.
        chain = self._chains.get(
            (request.kind, request.group, request.namespace, request.topic, request.subscription)
        )
        return self._keep(request, now) if chain is None else chain

    def set_book(self, book: PolicyBook, now: Nanos) -> None:
        """Put a policy book in force."""
        self._book = book
        self._chains.clear()
        for key in [key for key in self.groups if key.group not in book.groups]:
            del self.groups[key]
        for key, state in self.groups.items():
            self._refresh(state, book.groups[key.group], now)
        for limit_key, level in list(self._limits.items()):
            rates = self._limit_of(limit_key)
            if rates.is_unlimited:
                del self._limits[limit_key]
            else:
                level.set_rates(rates, rates, now)

    def set_group_burst(self, burst_ns: int, now: Nanos) -> None:
        """Change the depth of every group's buckets, those to come too."""
        self._group_burst_ns = burst_ns
        for state in self.groups.values():
            state.burst_ns = burst_ns
            state.set_rates(state.quota, state.share, now)

    def states(self) -> Iterator[GroupState]:
        """Every (group, kind) that was asked for since it exists."""
        return iter(self.groups.values())

    def _keep(self, request: Request, now: Nanos) -> Chain:
        key = _ChainKey(
            request.kind, request.group, request.namespace, request.topic, request.subscription
        )
        chain = self._resolve(key, now)
        if len(self._chains) >= CHAINS_MAX:
            self._chains.clear()
        self._chains[key] = chain
        return chain

    def _resolve(self, key: _ChainKey, now: Nanos) -> Chain:
        if key.group is None:
            groups = self._book.groups_of(key.namespace, key.topic)
        elif key.group in self._book.groups:
            groups = (self._book.groups[key.group],)
        else:
            raise UnknownGroup(key.group)
        states = tuple(self._group(group, key.kind, now) for group in groups)
        levels: list[LevelState | None] = [self._limit(_LimitKey(key.kind, Level.BROKER), now)]
        levels += states
        if key.topic is not None:
            levels.append(self._limit(_LimitKey(key.kind, Level.TOPIC, key.topic), now))
            if key.subscription is not None:
                name = _LimitKey(key.kind, Level.SUBSCRIPTION, key.topic, key.subscription)
                levels.append(self._limit(name, now))
        return Chain(tuple(level for level in levels if level is not None), states)

    def _group(self, group: Group, kind: Kind, now: Nanos) -> GroupState:
        key = GroupKey(group.name, kind)
        state = self.groups.get(key)
        if state is None:
            state = self.groups[key] = GroupState(key, self._settings, now)
            state.burst_ns = self._group_burst_ns
            self._refresh(state, group, now)
        return state

    def _refresh(self, state: GroupState, group: Group, now: Nanos) -> None:
        state.shadow = group.shadow
        state.set_rates(group.rates(state.key.kind), self._share_of(group, state.key.kind), now)

    def _limit(self, key: _LimitKey, now: Nanos) -> LevelState | None:
        level = self._limits.get(key)
        if level is None:
            rates = self._limit_of(key)
            if rates.is_unlimited:
                return None
            level = LevelState(key.level, self._settings)
            level.set_rates(rates, rates, now)
            self._limits[key] = level
        return level

    def _limit_of(self, key: _LimitKey) -> Rates:
        limits = self._book.limits
        if key.level is Level.BROKER:
            return limits.broker.of(key.kind)
        if key.level is Level.TOPIC:
            return limits.topics.get(key.topic, NO_LIMIT).of(key.kind)
        return limits.subscriptions.get((key.topic, key.subscription), NO_LIMIT).of(key.kind)
