"""Resolves a name to its chain of levels, and keeps the levels' buckets.

Law: a chain is made from exactly one policy book; a new book throws all chains
away at once but keeps the buckets of what stays, with their tokens and debt.

The order is broker, resource groups (topic's, namespace's, tenant's: each
distinct group once), topic, subscription (design 2). Where a group's share is
divided over topics (`rgd.core.buckets.split`), the topic's part stands in the
group's place. Such chains are kept apart: `shared` ones take the same short
road as if there were no others.
"""

from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from rgd.core.buckets.decision import Level, Request
from rgd.core.buckets.level import BucketSettings, GroupKey, GroupState, LevelState
from rgd.core.buckets.split import SplitShare, TopicPart, owes
from rgd.core.errors import UnknownGroup
from rgd.core.policies.book import EMPTY_BOOK, PolicyBook
from rgd.core.policies.model import NO_LIMIT, Group, Rates, TopicSplit
from rgd.core.units import Kind, Nanos

#: Most resolved names and most limit buckets kept; each table starts afresh when it is full.
CHAINS_MAX: Final = 200_000

#: This broker's share of a group in a kind.
ShareOf = Callable[[Group, Kind], Rates]


class Chain(NamedTuple):
    """What applies to one name: every level in order, and its groups once more."""

    levels: tuple[LevelState, ...]
    groups: tuple[GroupState, ...]
    #: The levels that stand for a group whose share is divided over topics.
    parts: tuple[TopicPart, ...] = ()


class _ChainKey(NamedTuple):
    kind: Kind
    group: str | None
    namespace: str | None
    topic: str | None
    subscription: str | None


#: A plain tuple finds what was kept under a named one, and is made faster.
_PlainKey = tuple[Kind, str | None, str | None, str | None, str | None]


class _LimitKey(NamedTuple):
    kind: Kind
    level: Level
    topic: str = ""
    subscription: str = ""


class Chains:
    """Every level of one broker, by name."""

    def __init__(
        self,
        settings: BucketSettings,
        share_of: ShareOf,
        topic_split: TopicSplit = TopicSplit.SHARED,
    ) -> None:
        self._settings = settings
        self._share_of = share_of
        #: How groups that say nothing divide their share.
        self._topic_split = topic_split
        self._book = EMPTY_BOOK
        #: Those without parts, and those with.
        self._chains: dict[_PlainKey, Chain] = {}
        self._split_chains: dict[_PlainKey, Chain] = {}
        self._splits: dict[GroupKey, SplitShare] = {}
        #: Groups that are to be divided as soon as they owe nothing.
        self._unsplit: set[GroupKey] = set()
        self._limits: dict[_LimitKey, LevelState] = {}
        self.groups: dict[GroupKey, GroupState] = {}
        self._group_burst_ns = settings.burst_ns

    def of(self, request: Request, now: Nanos) -> Chain:
        """The chain of a request's name.

        Raises:
            UnknownGroup: `request.group` names no group.
        """
        chain = self._chains.get(
            (request.kind, request.group, request.namespace, request.topic, request.subscription)
        )
        return self._of_parts(request, now) if chain is None else chain

    def set_book(self, book: PolicyBook, now: Nanos) -> None:
        """Put a policy book in force."""
        self._book = book
        self._forget_chains()
        for key in [key for key in self.groups if key.group not in book.groups]:
            del self.groups[key]
            self._splits.pop(key, None)
            self._unsplit.discard(key)
        for key, state in self.groups.items():
            self._refresh(state, book.groups[key.group], now)
        for limit_key, level in list(self._limits.items()):
            rates = self._limit_of(limit_key)
            if rates.is_unlimited:
                del self._limits[limit_key]
            else:
                level.set_rates(rates, rates, now)

    def set_share(self, key: GroupKey, share: Rates, now: Nanos) -> None:
        """Change this broker's share of a group, if it is in use."""
        state = self.groups.get(key)
        if state is not None and state.share != share:
            self._set_rates(state, state.quota, share, now)

    def end_round(self, now: Nanos) -> None:
        """Weigh the topics of divided shares anew; divide those that were in debt and are not."""
        for split in self._splits.values():
            split.end_round(now)
        ready = [key for key in self._unsplit if not owes(self.groups[key], now)]
        if ready:
            self._forget_chains()
        for key in ready:
            self._split(self.groups[key], self._book.groups[key.group], now)

    def split_of(self, key: GroupKey) -> SplitShare | None:
        """How a group's share is divided over topics, if it is."""
        return self._splits.get(key)

    def set_group_burst(self, burst_ns: int, now: Nanos) -> None:
        """Change the depth of every group's buckets, those to come too."""
        self._group_burst_ns = burst_ns
        self._forget_chains()
        for key, state in self.groups.items():
            if (split := self._splits.get(key)) is not None:
                # A part that is behind would miss a burst that comes and goes.
                split.parts(now)
            state.burst_ns = burst_ns
            self._set_rates(state, state.quota, state.share, now)
            self._split(state, self._book.groups[state.key.group], now)

    def states(self) -> Iterator[GroupState]:
        """Every (group, kind) that was asked for since it exists."""
        return iter(self.groups.values())

    def _of_parts(self, request: Request, now: Nanos) -> Chain:
        """The chain of a name that has parts, or is new; its parts know that they are asked."""
        chain = self._split_chains.get(
            (request.kind, request.group, request.namespace, request.topic, request.subscription)
        )
        if chain is None or not _ask(chain, request, now):
            chain = self._keep(request, now)
            _ask(chain, request, now)
        return chain

    def _keep(self, request: Request, now: Nanos) -> Chain:
        key = _ChainKey(
            request.kind, request.group, request.namespace, request.topic, request.subscription
        )
        chain = self._resolve(key, now)
        if len(self._chains) + len(self._split_chains) >= CHAINS_MAX:
            self._forget_chains()
        if chain.parts:
            self._split_chains[key] = chain
        else:
            self._chains[key] = chain
        return chain

    def _forget_chains(self) -> None:
        self._chains.clear()
        self._split_chains.clear()

    def _resolve(self, key: _ChainKey, now: Nanos) -> Chain:
        if key.group is None:
            groups = self._book.groups_of(key.namespace, key.topic)
        elif key.group in self._book.groups:
            groups = (self._book.groups[key.group],)
        else:
            raise UnknownGroup(key.group)
        states = tuple(self._group(group, key.kind, now) for group in groups)
        levels: list[LevelState | None] = [self._limit(_LimitKey(key.kind, Level.BROKER), now)]
        steps = [self._step(state, key.topic, now) for state in states]
        levels += steps
        if key.topic is not None:
            levels.append(self._limit(_LimitKey(key.kind, Level.TOPIC, key.topic), now))
            if key.subscription is not None:
                name = _LimitKey(key.kind, Level.SUBSCRIPTION, key.topic, key.subscription)
                levels.append(self._limit(name, now))
        return Chain(
            tuple(level for level in levels if level is not None),
            states,
            tuple(step for step in steps if isinstance(step, TopicPart)),
        )

    def _step(self, state: GroupState, topic: str | None, now: Nanos) -> LevelState:
        """What stands for a group in a topic's chain."""
        split = self._splits.get(state.key)
        return state if split is None else split.part(topic, now)

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
        share = self._share_of(group, state.key.kind)
        self._set_rates(state, group.rates(state.key.kind), share, now)
        self._split(state, group, now)

    def _set_rates(self, state: GroupState, quota: Rates, share: Rates, now: Nanos) -> None:
        state.set_rates(quota, share, now)
        if (split := self._splits.get(state.key)) is not None:
            split.redivide(now)

    def _split(self, state: GroupState, group: Group, now: Nanos) -> None:
        """Divide a group's share over topics, or no more, as its policy says."""
        mode, split = group.topic_split or self._topic_split, self._splits.get(state.key)
        self._unsplit.discard(state.key)
        if mode is TopicSplit.SHARED or self._group_burst_ns == 0:
            # Without depth it grants one request on debt (a daemon that knows nobody): not each topic.
            # Its own buckets were charged with everything all along.
            self._splits.pop(state.key, None)
        elif split is not None:
            split.set_mode(mode, now)
        elif owes(state, now):
            # A debt that nobody had to pay would be granted twice.
            self._unsplit.add(state.key)
        else:
            self._splits[state.key] = SplitShare(state, mode, self._settings, now)

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


def _ask(chain: Chain, request: Request, now: Nanos) -> bool:
    """Tell a chain's parts that they are asked; False where one went idle and is to be made anew."""
    return all(part.ask(request, now) for part in chain.parts)
