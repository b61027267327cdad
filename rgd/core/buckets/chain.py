"""Resolves a name to its chain of levels.

Law: a chain is made from exactly one policy book; a new book throws all chains away at once.

The order is broker, resource groups (topic's, namespace's, tenant's: each
distinct group once), topic, subscription (design 2). Where a group's share is
divided over topics (`rgd.core.buckets.split`), the topic's part stands in the
group's place. Such chains are kept apart: `shared` ones take the same short
road as if there were no others.

The levels themselves are kept by `rgd.core.buckets.levels`.
"""

from collections.abc import Iterator
from typing import Final, NamedTuple

from rgd.core.buckets.decision import Level, Request
from rgd.core.buckets.level import BucketSettings, GroupKey, GroupState, LevelState
from rgd.core.buckets.levels import Levels, LimitKey, ShareOf
from rgd.core.buckets.split import SplitShare, TopicPart
from rgd.core.errors import UnknownGroup
from rgd.core.policies.book import PolicyBook
from rgd.core.policies.model import Rates, TopicSplit
from rgd.core.units import Kind, Nanos

#: Most resolved names kept; the table starts afresh when it is full.
CHAINS_MAX: Final = 200_000

#: Thrown away chains that are let go in one go, and for each new one: all at once would take long.
SLICE_CHAINS: Final = 1_000
CHAINS_PER_NEW: Final = 4
#: Limits that are looked at for each new chain, more than it can have: so their table stays in bounds.
LIMITS_PER_NEW: Final = 4


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


#: Kind, group, namespace, topic, subscription. A plain tuple finds what was kept under a named one,
#: and is made faster.
NameAsked = tuple[Kind, str | None, str | None, str | None, str | None]


class Chains:
    """Every chain of one broker, by name."""

    def __init__(
        self,
        settings: BucketSettings,
        share_of: ShareOf,
        topic_split: TopicSplit = TopicSplit.SHARED,
    ) -> None:
        self._levels = Levels(settings, share_of, topic_split)
        #: The counters of groups that requests added to since the last tick.
        self.touched = self._levels.touched
        #: Those without parts, and those with.
        self._chains: dict[NameAsked, Chain] = {}
        self._split_chains: dict[NameAsked, Chain] = {}
        #: Those that were thrown away and are still to be let go.
        self._gone: list[dict[NameAsked, Chain]] = []
        #: Chains made so far, each for the first request of a name: some twenty times the work of another.
        self.resolved_total = 0

    def of(self, request: Request, now: Nanos) -> Chain:
        """The chain of a request's name.

        Raises:
            UnknownGroup: `request.group` names no group.
        """
        chain = self._chains.get(
            (request.kind, request.group, request.namespace, request.topic, request.subscription)
        )
        return self._of_parts(request, now) if chain is None else chain

    @property
    def book(self) -> PolicyBook:
        """The policies in force."""
        return self._levels.book

    def set_book(self, book: PolicyBook, now: Nanos, *, is_whole: bool = False) -> None:
        """Put a policy book in force for every name at once; levels follow (`work`)."""
        self._forget()
        self._levels.set_book(book, now, is_whole=is_whole)

    def set_share(self, key: GroupKey, share: Rates, now: Nanos) -> None:
        """Change this broker's share of a group, if it is in use."""
        self._levels.set_share(key, share, now)

    def end_round(self, now: Nanos) -> None:
        """Begin to weigh the topics of divided shares anew (`work`)."""
        if self._levels.end_round(now):
            self._forget()

    def split_of(self, key: GroupKey) -> SplitShare | None:
        """How a group's share is divided over topics, if it is."""
        return self._levels.split_of(key)

    def set_group_burst(self, burst_ns: int, now: Nanos) -> None:
        """Change the depth of every group's buckets, those to come too."""
        self._forget()
        self._levels.set_group_burst(burst_ns, now)

    def states(self) -> Iterator[GroupState]:
        """Every (group, kind) that was asked for since it exists."""
        return self._levels.states()

    def state(self, key: GroupKey) -> GroupState | None:
        """One (group, kind), if it was ever asked for."""
        return self._levels.state(key)

    def names_asked(self) -> list[NameAsked]:
        """What was asked for since the book came into force: at most `CHAINS_MAX`; who asks rarely may
        be missing.
        """
        # Copies only: with as many names as there may be, more would hold up requests.
        return [*self._chains, *self._split_chains]

    def limit(
        self, level: Level, kind: Kind, topic: str = "", subscription: str = ""
    ) -> LevelState | None:
        """The buckets of a limit, if it was asked for; makes nothing."""
        return self._levels.known_limit(LimitKey(kind, level, topic, subscription))

    @property
    def is_behind(self) -> bool:
        """Whether `work` has something to do."""
        return self._levels.is_behind or bool(self._gone)

    def work(self, now: Nanos) -> None:
        """Do a slice of what a change left to do; nothing that a request has to wait for."""
        if self._levels.is_behind:
            self._levels.work(now)
        else:
            self._let_go(SLICE_CHAINS)

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
        self.resolved_total += 1
        key = _ChainKey(
            request.kind, request.group, request.namespace, request.topic, request.subscription
        )
        if len(self._chains) + len(self._split_chains) >= CHAINS_MAX:
            self._forget()
        self._let_go(CHAINS_PER_NEW)
        self._levels.look_at_limits(LIMITS_PER_NEW, now)
        chain = self._resolve(key, now)
        if chain.parts:
            self._split_chains[key] = chain
        else:
            self._chains[key] = chain
        return chain

    def _forget(self) -> None:
        """Throw all chains away."""
        self._gone += [table for table in (self._chains, self._split_chains) if table]
        self._chains, self._split_chains = {}, {}
        self._levels.forget_chains()

    def _let_go(self, count: int) -> None:
        while count and self._gone:
            self._gone[-1].popitem()
            count -= 1
            if not self._gone[-1]:
                self._gone.pop()

    def _resolve(self, key: _ChainKey, now: Nanos) -> Chain:
        book, levels_of = self._levels.book, self._levels
        if key.group is None:
            groups = book.groups_of(key.namespace, key.topic)
        elif key.group in book.groups:
            groups = (book.groups[key.group],)
        else:
            raise UnknownGroup(key.group)
        states = tuple(levels_of.group(group, key.kind, now) for group in groups)
        levels: list[LevelState | None] = [levels_of.limit(LimitKey(key.kind, Level.BROKER), now)]
        steps = [self._step(state, key.topic, now) for state in states]
        levels += steps
        if key.topic is not None:
            levels.append(levels_of.limit(LimitKey(key.kind, Level.TOPIC, key.topic), now))
            if key.subscription is not None:
                name = LimitKey(key.kind, Level.SUBSCRIPTION, key.topic, key.subscription)
                levels.append(levels_of.limit(name, now))
        return Chain(
            tuple(level for level in levels if level is not None),
            states,
            tuple(step for step in steps if isinstance(step, TopicPart)),
        )

    def _step(self, state: GroupState, topic: str | None, now: Nanos) -> LevelState:
        """What stands for a group in a topic's chain."""
        split = self._levels.split_of(state.key)
        return state if split is None else split.part(topic, now)


def _ask(chain: Chain, request: Request, now: Nanos) -> bool:
    """Tell a chain's parts that they are asked; False where one went idle and is to be made anew."""
    return all(part.ask(request, now) for part in chain.parts)
