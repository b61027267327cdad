"""Every bucket of one broker: the groups' and the limits', up to date with the policies in force.

Law: a level returned from here follows the newest snapshot. Until it was updated it accrued no more
than was allowed: tokens and debt stay, and there is no free burst.

A group follows new policies when its share under them comes (`set_share`). If a request comes first, the group has
its old share meanwhile, lowered as its quota was. A limit follows when it is next used, as of the time of the change.
A level that missed several changes accrues nothing since it was last used, because it is not known what each gave.
Full limit buckets that no chain uses are evicted if there are many, because a new bucket is the same.

`rgd.core.buckets.chain` says which levels apply to a name.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Final, NamedTuple

from rgd.core.buckets.decision import Level
from rgd.core.buckets.level import BucketSettings, GroupState, LevelState
from rgd.core.buckets.soft import SoftState
from rgd.core.buckets.split import SplitShare, TopicPart
from rgd.core.buckets.throttled import ThrottledTable
from rgd.core.counts.counters import NO_SLOT
from rgd.core.counts.news import News
from rgd.core.policies.model import (
    UNLIMITED,
    Group,
    GroupKey,
    Limits,
    OnIsolation,
    Rate,
    Rates,
    TopicSplit,
    lower,
)
from rgd.core.policies.precedence import subscription_limit, topic_limit
from rgd.core.policies.snapshot import EMPTY_SNAPSHOT, Changes, PolicySnapshot, changes_between
from rgd.core.units import Kind, Nanos

#: A share below 1 / `LOW_PARTS` of an even one is low: mostly that of a broker whose demand is not known yet, which has
#: its floor (1/100 unless `shares.floor_fraction` says more).
LOW_PARTS: Final = 20

#: The slot id of a group that is asked for the first time, and its share in force from now on.
ShareOf = Callable[[Group, Kind, Nanos], tuple[int, Rates]]


class LimitKey(NamedTuple):
    """The key of a limit that applies to this broker alone."""

    kind: Kind
    level: Level
    topic: str = ""
    subscription: str = ""


class LimitState(LevelState):
    """The level of one limit."""

    __slots__ = ("generation", "key", "used_in")

    def __init__(self, key: LimitKey, settings: BucketSettings) -> None:
        super().__init__(key.level, settings)
        self.key = key
        #: The last change of limits that was applied, and the generation of chains that refer to
        #: it.
        self.generation = self.used_in = 0


class _Change:
    """The last change of one sort of levels; a level has the number of the last one that it applied."""

    __slots__ = ("at", "generation")

    def __init__(self) -> None:
        self.generation = 0
        self.at = Nanos(0)

    def happen(self, now: Nanos) -> None:
        """Record a change that all levels must apply."""
        self.generation += 1
        self.at = now


class Levels:
    """The levels by their keys."""

    def __init__(
        self, settings: BucketSettings, share_of: ShareOf, topic_split: TopicSplit
    ) -> None:
        self._settings = settings
        self._bounds = settings.bounds
        self._share_of = share_of
        #: The mode of groups whose policy does not set one.
        self._topic_split = topic_split
        self._snapshot = EMPTY_SNAPSHOT
        self._groups: dict[GroupKey, GroupState] = {}
        #: Those that have a slot id.
        self._by_slot: dict[int, GroupState] = {}
        self._limits: dict[LimitKey, LimitState] = {}
        #: Each limit once, in processing order.
        self._limit_order: deque[LimitState] = deque()
        self._group_change, self._limit_change = _Change(), _Change()
        #: Number of times all chains were dropped.
        self._generation = 0
        self._splits: dict[GroupKey, SplitShare] = {}
        #: The topics' parts that are still to be weighed after a round; None: there are none.
        self._unweighed: Iterator[TopicPart] | None = None
        #: The depth of groups' buckets; those of a group change with its next share.
        self.group_burst_ns = settings.burst_ns
        #: Brokers that share the quotas, including this one.
        self.live_brokers = 1
        #: What groups have in place of shares, because no plane has told any for long; None: their shares.
        self.isolation: OnIsolation | None = None
        #: What the plane collects.
        self.news = News(self._by_slot)
        #: What throttled the dispatch of each subscription.
        self.throttled = ThrottledTable(settings.bounds)

    # Queries.

    @property
    def snapshot(self) -> PolicySnapshot:
        """The policies in force."""
        return self._snapshot

    @property
    def is_behind(self) -> bool:
        """Whether `work` has something to do."""
        return self._unweighed is not None

    def states(self) -> Iterator[GroupState]:
        """Every (group, kind) of the snapshot in force that was requested since it exists."""
        groups = self._snapshot.groups
        # A copy: a caller that iterates in slices sees each state once, whatever is added
        # meanwhile.
        states = list(self._groups.values())
        return (state for state in states if state.key.group in groups)

    def state(self, key: GroupKey) -> GroupState | None:
        """The level of a group in a kind, if it was requested."""
        return self._groups.get(key) if key.group in self._snapshot.groups else None

    def split_of(self, key: GroupKey) -> SplitShare | None:
        """The division of a group's share over topics; None if it is not divided."""
        return self._splits.get(key)

    def group(self, group: Group, kind: Kind, now: Nanos) -> GroupState:
        """The level of a group of the snapshot in force, up to date."""
        key = GroupKey(group.name, kind)
        state = self._groups.get(key)
        if state is None:
            state = GroupState(key, self._settings, now, self.news)
            state.generation = self._group_change.generation
            slot, share = self._share_of(group, kind, now)
            self._refresh(state, group, share, now)
            # Stored last: a state without rates would limit nothing.
            self._groups[key] = state
            self._put(state, slot)
        else:
            self._catch_up(state, group, now)
        return state

    def some_groups(self, begin: int, count: int, now: Nanos) -> list[GroupState]:
        """`count` of the groups that were requested, from `begin` on in the order of their first requests, up to date."""
        found = [*islice(self._groups.values(), begin, begin + count)]
        for state in found:
            if (group := self._snapshot.groups.get(state.key.group)) is not None:
                self._catch_up(state, group, now)
        return found

    def alone(self, quota: Rates) -> Rates:
        """The share of a group of which no plane has told one."""
        if self.isolation is OnIsolation.OPEN:
            # A blocked group stays blocked.
            return quota if quota == Rates(0, 0) else UNLIMITED
        brokers = self.live_brokers
        return Rates(_part(quota.messages, brokers), _part(quota.bytes, brokers))

    def limit_of(self, key: LimitKey, now: Nanos) -> LevelState | None:
        """The level of a limit, up to date; None if nothing is limited."""
        level = self._limits.get(key)
        if level is None:
            rates = _limit_of(self._snapshot.limits, key)
            if rates.is_unlimited:
                return None
            level = LimitState(key, self._settings)
            level.generation = self._limit_change.generation
            level.set_rates(rates, rates, now)
            self._limits[key] = level
            self._limit_order.append(level)
        elif not self._refresh_limit(level):
            return None
        level.used_in = self._generation
        return level

    def limit(self, key: LimitKey) -> LevelState | None:
        """The level of a limit, up to date, if it exists; creates nothing."""
        level = self._limits.get(key)
        return level if level is not None and self._refresh_limit(level) else None

    def limits(self) -> list[LevelState]:
        """The levels of the limits that were requested: of this broker, of topics, of subscriptions."""
        return [*self._limits.values()]

    # Changes.

    def set_policies(
        self, snapshot: PolicySnapshot, now: Nanos, changes: Changes | None = None
    ) -> None:
        """Put a policy snapshot in force; buckets that stay keep their tokens and debt.

        `changes` are those since the snapshot in force; without them, both are compared.
        """
        self._drop_chains()
        changes = changes or changes_between(self._snapshot, snapshot)
        self._snapshot = snapshot
        change = self._group_change
        if changes.groups is None:
            change.happen(now)
        else:
            for key in [GroupKey(name, kind) for name in changes.groups for kind in Kind]:
                if key.group not in snapshot.groups:
                    self._drop(key)
                elif (state := self._groups.get(key)) is not None:
                    # It is behind from now on.
                    state.generation -= 1
                    change.at = now
        if changes.limits:
            self._limit_change.happen(now)

    def set_share(self, slot: int, share: Rates, now: Nanos) -> None:
        """Put a share of a group in force, with the policy and the depth in force, if the group is in use."""
        state = self._by_slot.get(slot)
        if state is not None:
            self._follow(state, share, now)

    def give_slot(self, key: GroupKey, slot: int, share: Rates, now: Nanos) -> None:
        """The same for a group without a slot id, which has this one from now on."""
        state = self._groups.get(key)
        if state is not None:
            self._put(state, slot)
            self._follow(state, share, now)

    def know(self, key: GroupKey, slot: int) -> GroupState | None:
        """Know a group by another plane's slot id; its share stays. None if there is no such group."""
        state = self._groups.get(key)
        if state is not None:
            self._put(state, slot)
        return state

    def forget_some_slots(self, count: int) -> bool:
        """Take their slot ids from `count` groups, because the plane that gave them has gone; whether any has one left."""
        for _ in range(min(count, len(self._by_slot))):
            state = self._by_slot.popitem()[1]
            state.counters.slot, state.reported = NO_SLOT, False
        return bool(self._by_slot)

    def isolate(self, rule: OnIsolation, now: Nanos) -> None:
        """Put in force what a rule gives in place of shares; each group follows when it is next used."""
        self.isolation = rule
        if rule is not OnIsolation.HOLD:
            self._drop_chains()
            self._group_change.happen(now)

    def drop(self, keys: Iterable[GroupKey]) -> None:
        """Forget groups that no longer exist."""
        for key in keys:
            self._drop(key)

    def end_round(self, now: Nanos) -> None:
        """Begin to weigh the topics of divided shares.

        If the topics of an earlier round are still being weighed, this round is weighed with the
        next.
        """
        if self._unweighed is None:
            self._unweighed = _parts_of([*self._splits.values()])
        Levels.work(self, now)

    def work(self, now: Nanos) -> None:
        """Weigh a slice of the topics that are still to be weighed."""
        count = self._bounds.slice_levels
        for part in islice(self._unweighed or (), count):
            part.close_round(now)
            count -= 1
        if count:
            self._unweighed = None

    def look_at_limits(self, count: int, now: Nanos) -> None:
        """Look at `count` limits in turn, and evict unused ones."""
        for _ in range(min(count, len(self._limit_order))):
            level = self._limit_order.popleft()
            if not self._refresh_limit(level):
                continue
            is_spare = (
                level.used_in != self._generation and len(self._limits) > self._bounds.limits_kept
            )
            if is_spare and (len(self._limits) >= self._bounds.limits_max or level.is_full(now)):
                del self._limits[level.key]
            else:
                self._limit_order.append(level)

    # Internals.

    def _drop_chains(self) -> None:
        """Drop all chains, so that none uses an outdated level."""
        self._generation += 1

    def _put(self, state: GroupState, slot: int) -> None:
        """Know a group by its slot id, if it has one."""
        state.counters.slot = slot
        if slot != NO_SLOT:
            self._by_slot[slot] = state
            # A group that got its slot id late may have been touched long before. It may be there twice then.
            if state.counters.is_touched:
                self.news.touched.append(state.counters)
            if state.reported:
                self.news.call_out(slot)

    def _catch_up(self, state: GroupState, group: Group, now: Nanos) -> None:
        """Apply what changed since a group was last used, until the plane tells its share."""
        if state.generation != self._group_change.generation:
            quota = group.rates(state.key.kind)
            is_alone = self.isolation in (OnIsolation.EQUAL, OnIsolation.OPEN)
            share = self.alone(quota) if is_alone else self._lowered(state, quota)
            self._refresh(state, group, share, now)

    def _drop(self, key: GroupKey) -> None:
        state = self._groups.pop(key, None)
        if state is None:
            return
        self._splits.pop(key, None)
        slot, state.counters.slot = state.counters.slot, NO_SLOT
        if slot != NO_SLOT:
            del self._by_slot[slot]
            self.news.dropped.append(slot)

    def _follow(self, state: GroupState, share: Rates, now: Nanos) -> None:
        """Put a share of a group in force, with the policy and the depth in force."""
        if state.generation == self._group_change.generation and (
            state.burst_ns == self.group_burst_ns
        ):
            if state.share != share:
                self._set_rates(state, state.quota, share, now)
        elif (group := self._snapshot.groups.get(state.key.group)) is None:
            self._drop(state.key)
        else:
            self._refresh(state, group, share, now)

    def _refresh(self, state: GroupState, group: Group, share: Rates, now: Nanos) -> None:
        """Apply the policy, the depth and a share to a group."""
        quota, change = group.rates(state.key.kind), self._group_change
        state.shadow = group.shadow
        self._soften(state, group)
        if state.generation < change.generation - 1:
            state.skip(change.at)
        if state.generation != change.generation and change.at < now:
            # A higher share may have risen only just now, so the lower one applies until now.
            self._set_rates(state, quota, lower(state.share, share), change.at)
        state.burst_ns = self.group_burst_ns
        self._set_rates(state, quota, share, now)
        self._split(state, group, now)
        # Assigned last, so that a failed call is repeated.
        state.generation = change.generation

    def _lowered(self, state: GroupState, quota: Rates) -> Rates:
        """The share of a group whose quota changed, until the new one comes: lowered as the quota was.

        All brokers do this alike, so their shares stay within the new quota.
        """
        was, share, brokers = state.quota, state.share, self.live_brokers
        return Rates(
            _lowered(share.messages, was.messages, quota.messages, brokers),
            _lowered(share.bytes, was.bytes, quota.bytes, brokers),
        )

    def _soften(self, state: GroupState, group: Group) -> None:
        """Give a group the soft limit of its policy, or none; its rates follow."""
        if group.soft_ppm is None:
            state.soft = None
        elif not isinstance(state.soft, SoftState) or state.soft.ppm != group.soft_ppm:
            state.soft = SoftState(self._settings, group.name, group.soft_ppm)

    def _set_rates(self, state: GroupState, quota: Rates, share: Rates, now: Nanos) -> None:
        state.set_rates(quota, share, now)
        parts = LOW_PARTS * self.live_brokers
        state.low = Rates(_part(quota.messages, parts), _part(quota.bytes, parts))
        if isinstance(state.soft, SoftState):
            state.soft.follow(share, state.burst_ns, now)
        if (split := self._splits.get(state.key)) is not None:
            split.redivide(now)

    def _split(self, state: GroupState, group: Group, now: Nanos) -> None:
        """Divide a group's share over topics, or stop dividing it, as its policy says."""
        mode, split = group.topic_split or self._topic_split, self._splits.get(state.key)
        if mode is TopicSplit.SHARED:
            self._splits.pop(state.key, None)
        elif split is None:
            self._splits[state.key] = SplitShare(state, mode, self._settings, now)
        elif split.mode is not mode:
            split.mode = mode
            split.redivide(now)

    def _refresh_limit(self, level: LimitState) -> bool:
        """Apply the rates in force to a limit; False if it no longer exists."""
        if self._limits.get(level.key) is not level:
            # A request removed it first, or the limit was set again and has a new level.
            return False
        change = self._limit_change
        if level.generation == change.generation:
            return True
        rates = _limit_of(self._snapshot.limits, level.key)
        if rates.is_unlimited:
            del self._limits[level.key]
            return False
        if rates != level.quota:
            if level.generation < change.generation - 1:
                level.skip(change.at)
            level.set_rates(rates, rates, change.at)
        level.generation = change.generation
        return True


def _parts_of(splits: list[SplitShare]) -> Iterator[TopicPart]:
    """The topics' parts of shares whose round ends."""
    for split in splits:
        split.round += 1
        yield from split.parts()


def _part(quota: Rate, brokers: int) -> Rate:
    return None if quota is None else quota // brokers


def _lowered(share: Rate, was: Rate, quota: Rate, brokers: int) -> Rate:
    """A share of the quota `was` under another one."""
    if quota is None or (share is None and was is not None and quota):
        # The second: an isolated broker that limits nothing (`exchange.on_isolation`).
        return share
    if share is None or was is None:
        return quota // brokers
    return share * quota // was if quota < was else share


def _limit_of(limits: Limits, key: LimitKey) -> Rates:
    if key.level is Level.BROKER:
        return limits.broker.of(key.kind) or UNLIMITED
    if key.level is Level.TOPIC:
        found = topic_limit(limits, key.topic, key.kind)
    else:
        found = subscription_limit(limits, key.topic, key.subscription, key.kind)
    return UNLIMITED if found is None else found.value
