"""Decides requests: finds a name's compiled chain of levels and takes all or nothing.

Laws: all levels apply and the most stringent wins. Nothing is taken
from any bucket unless the whole request is granted, or the part of it if the
caller accepts a part. Each distinct group of topic, namespace and tenant is
charged once. A shadow group counts what it would refuse and refuses nothing.
If an exception is raised, nothing stays taken from a level that decides, because its caller gets no answer.

This is the fast path: plain calls, no events. `rgd.core.broker.sharing` computes a group's share
and puts it in force here. `refusal` handles refusals and parts.
"""

from collections.abc import Collection
from typing import Any, Final

from rgd.core.backlog.quota import Blocked
from rgd.core.buckets.blocked import BlockedTopics
from rgd.core.buckets.bucket import NEVER, PICO
from rgd.core.buckets.chain import BlockedTopic, Chain
from rgd.core.buckets.charge import charge
from rgd.core.buckets.decision import (
    NOTHING,
    Answer,
    Decision,
    Level,
    Name,
    PoliciesUnknown,
    Request,
    Together,
    ungoverned,
)
from rgd.core.buckets.headroom import Headroom, nearest
from rgd.core.buckets.level import BucketSettings, LevelState
from rgd.core.buckets.levels import Levels, LimitKey, ShareOf
from rgd.core.buckets.refusal import Asked, grant_part, refuse, refuse_alone
from rgd.core.buckets.settle import settle
from rgd.core.buckets.soft import marked_over
from rgd.core.buckets.together import grant_together
from rgd.core.buckets.unsettled import Unsettled
from rgd.core.counts.page import Ungoverned
from rgd.core.errors import UnknownGroup
from rgd.core.policies.model import OnUnknown, TopicSplit
from rgd.core.policies.snapshot import Changes, PolicySnapshot, replaced_parts
from rgd.core.units import Kind, Nanos, Pair

#: Parts of former policies that are let go together: a thousand entries where there are 100,000.
FORMER_PARTS: Final = 10

#: Retry time advertised to a caller that is refused because no policies are known.
UNKNOWN_RETRY_MS: Final = 1000


class Limiter(Levels):
    """The buckets of one broker, the chains of levels by name, and the decisions made with them."""

    def __init__(
        self,
        settings: BucketSettings,
        share_of: ShareOf,
        *,
        topic_split: TopicSplit = TopicSplit.SHARED,
    ) -> None:
        super().__init__(settings, share_of, topic_split)
        self._chains: dict[Name, Chain] = {}
        #: Topics whose backlogs block publishing.
        self.blocked = BlockedTopics()
        #: Dropped chains still to be freed, and the parts of the policies before: those of 100,000 namespaces take 9 ms.
        self._dropped: list[dict[Any, Any]] = []
        self._former: list[dict[Any, Any]] = []
        #: Names resolved so far; to resolve a name costs some twenty times as much as another
        #: request.
        self.resolved_total = 0
        #: Requests for names that no limit applies to.
        self.ungoverned_total = 0
        #: The answer to requests while no policies are known; None if policies are known.
        self.unknown: OnUnknown | None = None
        #: Requests granted, and refused, because no policies were known.
        self.unknown_granted_total = 0
        self.unknown_refused_total = 0
        self._drained = Ungoverned(0, 0, 0)

    def acquire(self, request: Request, now: Nanos) -> Answer:
        """Decide one request; see `decide`."""
        return self.decide(*request, now)

    def decide(  # noqa: C901, PLR0912, PLR0913, PLR0917 -- each call or object more is a tenth of its time
        self,
        kind: Kind,
        messages: int,
        size: int,
        group: str | None,
        namespace: str | None,
        topic: str | None,
        subscription: str | None,
        partial: bool,  # noqa: FBT001 -- as above
        attempt: int,
        held: Pair,
        now: Nanos,
    ) -> Answer:
        """Decide one request, given by the fields of `Request`.

        Raises:
            UnknownGroup: `group` names no group.
        """
        if self.unknown is not None:
            return self._decide_unknown(messages, size)
        chain = self._chains.get((kind, group, namespace, topic, subscription))
        if chain is None or chain.parts:
            name = (kind, group, namespace, topic, subscription)
            chain = self.chain_of(name, now, attempt, held)
        if held is not NOTHING:
            _hold(chain, held, topic)
        if partial or messages > chain.most_messages or size > chain.most_bytes:
            asked = Asked(messages, size, topic, attempt)
            return self._decide_apart(chain, asked, now, is_partial=partial)
        messages_cost, bytes_cost = messages * PICO, size * PICO
        refusing: tuple[LevelState, ...] = ()
        for level in chain.deciding:
            if not level.admits(messages_cost, bytes_cost, now):
                if (only := chain.only) is not None:
                    return refuse_alone(self, chain, only, messages, size, topic, attempt, now)
                refusing += (level,)
        if refusing:
            return refuse(self, chain, refusing, messages, size, topic, attempt, now)
        if chain.is_plain and attempt <= 1:  # `charge`, inlined.
            for counters in chain.counters:
                counters.at = now
                counters.requests += 1
                counters.messages += messages
                counters.bytes += size
                if not counters.is_touched or topic not in counters.topics:
                    counters.note(topic)
            for level in chain.deciding:
                level.messages_tokens -= messages_cost
                level.bytes_tokens -= bytes_cost
                level.short_until = NEVER
        else:
            charge(chain, messages, size, topic, attempt, now)
            if chain.softs:
                return self._marked_over(chain, messages, size, now)
        chain.granted_at = now
        if messages != chain.messages or size != chain.bytes:
            chain.granted = Decision(granted=True, messages=messages, bytes=size)
            chain.messages, chain.bytes = messages, size
        return chain.granted

    def grant_together(self, asked: Collection[Together], now: Nanos) -> bool:
        """Grant all of these requests, or change nothing; if False, decide each by itself."""
        return self.unknown is None and grant_together(self._chains, asked, now)

    def block(self, topic: str, blocked: Blocked | None) -> None:
        """Hold or refuse publishing to a topic (full name), or end that (None)."""
        for name in self.blocked.put(topic, blocked):
            self._chains.pop(name, None)

    def unblock(self, count: int) -> bool:
        """End the blocks of `count` topics; whether any are left."""
        for topic in self.blocked.latest(count):
            self.block(topic, None)
        return len(self.blocked) > 0

    def settle(self, name: Name, unused: Pair, now: Nanos) -> Pair:
        """Give back what a name did not use of its grants, or charge what it used beyond them.

        Args:
            name: as it was asked for.
            unused: whole units; below 0 what was used beyond the grants.
            now: the current time.

        Returns:
            What was given back; below 0 what was charged. Nothing if no limit applies; nothing goes back
            if the name was not asked for since the policies came into force.

        Raises:
            UnknownGroup: the name is of a group that does not exist.
        """
        group = name[1]
        if group is not None and group not in self.snapshot.groups:
            raise UnknownGroup(group)
        chain = self._chains.get(name)
        if min(unused) < 0 and self.unknown is None:
            # What was used is charged under the policies in force, whichever its grant was made under.
            chain = self.chain_of(name, now)
        elif chain is None or not all(part.ask(1, NOTHING, now) for part in chain.parts):
            return NOTHING
        return settle(chain, name[3], unused, now) if chain.levels else NOTHING

    def set_policies(
        self, snapshot: PolicySnapshot, now: Nanos, changes: Changes | None = None
    ) -> None:
        """As in `Levels`."""
        self._former += replaced_parts(self.snapshot, snapshot)
        super().set_policies(snapshot, now, changes)

    @property
    def is_behind(self) -> bool:
        """Whether `work` has something to do."""
        return super().is_behind or bool(self._dropped or self._former)

    def work(self, now: Nanos) -> None:
        """Do a slice of the work left by a change or a round's end, well under 2 ms of one core."""
        if super().is_behind:
            super().work(now)
        else:
            self._free(self._bounds.slice_chains)

    def names_asked(self) -> list[Name]:
        """Names requested since the policies came into force, at most `BucketBounds.chains_max`.

        A rarely requested name may be missing.
        """
        # Only a copy: with that many names, more work here would delay requests.
        return [*self._chains]

    def nearest(self, name: Name, now: Nanos) -> Headroom | None:
        """The limit nearest to refusing a name that was just granted; None if none applies."""
        chain = self._chains.get(name)
        return None if chain is None else nearest(chain, now)

    def ungoverned(self) -> Ungoverned:
        """Counts of requests decided without a limit since the start."""
        return Ungoverned(
            self.ungoverned_total, self.unknown_granted_total, self.unknown_refused_total
        )

    def drain_ungoverned(self) -> Ungoverned:
        """The same since the last call."""
        now = self.ungoverned()
        before, self._drained = self._drained, now
        return Ungoverned(*(count - counted for count, counted in zip(now, before, strict=True)))

    # Internals.

    def _decide_apart(self, chain: Chain, asked: Asked, now: Nanos, *, is_partial: bool) -> Answer:
        """Decide a request that is blocked, ungoverned, partial or too large."""
        if chain.blocked is not None:
            return self.blocked.refuse(chain.blocked, asked, now)
        if not chain.levels:
            self.ungoverned_total += 1
            return ungoverned(asked.messages, asked.bytes)
        if is_partial:
            part = grant_part(self, chain, asked, now)
            if part.granted:
                chain.granted_at, chain.messages, chain.bytes = now, ~part.messages, part.bytes
            return part
        too_large = (level.too_large(asked.messages, asked.bytes) for level in chain.deciding)
        return next(filter(None, too_large))

    def _marked_over(self, chain: Chain, messages: int, size: int, now: Nanos) -> Decision:
        """The answer to a whole grant of a name with soft limits."""
        chain.granted_at, chain.messages, chain.bytes = now, messages, size
        chain.granted = Decision(granted=True, messages=messages, bytes=size)
        return marked_over(chain.granted, chain.softs)

    def _decide_unknown(self, messages: int, size: int) -> Answer:
        """Answer while no policies are known."""
        if self.unknown is OnUnknown.DENY:
            self.unknown_refused_total += 1
            return PoliciesUnknown(UNKNOWN_RETRY_MS)
        self.unknown_granted_total += 1
        self.ungoverned_total += 1
        return ungoverned(messages, size)

    def chain_of(self, name: Name, now: Nanos, attempt: int = 1, held: Pair = NOTHING) -> Chain:
        """The levels of a name about to be requested; registers the request with its topics' parts.

        Raises:
            UnknownGroup: there is no such group.
        """
        chain = self._chains.get(name)
        if chain is not None and all(part.ask(attempt, held, now) for part in chain.parts):
            return chain
        # The name is new, or one of its parts went idle.
        self.resolved_total += 1
        if len(self._chains) >= self._bounds.chains_max:
            self._drop_chains()
        self._free(self._bounds.chains_per_new)
        self.look_at_limits(self._bounds.limits_per_new, now)
        chain = self._chains[name] = self._compiled(name, attempt, held, now)
        self.blocked.note(name)
        return chain

    def _compiled(self, name: Name, attempt: int, held: Pair, now: Nanos) -> Chain:
        kind, group_name, namespace, topic, subscription = name
        if group_name is None:
            groups = self.snapshot.groups_of(namespace, topic)
        elif group_name in self.snapshot.groups:
            groups = (self.snapshot.groups[group_name],)
        else:
            raise UnknownGroup(group_name)
        states = tuple(self.group(group, kind, now) for group in groups)
        if kind is Kind.PUBLISH and topic is not None and (why := self.blocked.get(topic)):
            return Chain((), (), blocked=BlockedTopic(topic, why, states))
        levels: list[LevelState | None] = [self.limit_of(LimitKey(kind, Level.BROKER), now)]
        for state in states:
            if (split := self.split_of(state.key)) is not None:
                part = split.part(topic, now)
                part.ask(attempt, held, now)
                # A shadow's part counts what either of them would refuse.
                levels += (part,) if state.shadow else (state, part)
            else:
                levels.append(state)
            levels.append(state.soft)
        if topic is not None:
            levels.append(self.limit_of(LimitKey(kind, Level.TOPIC, topic), now))
            if subscription is not None:
                key = LimitKey(kind, Level.SUBSCRIPTION, topic, subscription)
                levels.append(self.limit_of(key, now))
        throttled_name = unsettled = None
        if kind is Kind.DISPATCH:
            unsettled = Unsettled(NOTHING, now)
            if topic is not None and subscription is not None:
                throttled_name = topic, subscription
                self.throttled.note_read(topic, subscription)
        present = tuple(level for level in levels if level is not None)
        return Chain(present, states, throttled_name=throttled_name, unsettled=unsettled)

    def _drop_chains(self) -> None:
        if self._chains:
            self._dropped.append(self._chains)
        self._chains = {}
        if names := self.blocked.forget_names():
            self._dropped.append(names)
        super()._drop_chains()

    def _free(self, count: int) -> None:
        while count and self._dropped:
            self._dropped[-1].popitem()
            count -= 1
            if not self._dropped[-1]:
                self._dropped.pop()
        if count:
            del self._former[-FORMER_PARTS:]


def _hold(chain: Chain, held: Pair, topic: str | None) -> None:
    """Count what a caller holds back."""
    if held != NOTHING:
        for group in chain.groups:
            group.counters.hold(held, topic)
