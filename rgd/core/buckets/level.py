"""One level of the chain: a pair of buckets, the limit they enforce, and what they refused.

A level does not know the other levels. `rgd.core.buckets.limiter` visits
them in the order broker, resource group, topic, subscription.
`GroupState` is the level of a resource group, with the group's demand.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from rgd.core.bounds import BOUNDS, BucketBounds
from rgd.core.buckets.bucket import NEVER, PICO, Buckets
from rgd.core.buckets.counterfactual import Counterfactual
from rgd.core.buckets.decision import Level, TooLarge
from rgd.core.buckets.recent_refusals import RecentRefusals
from rgd.core.counts.counters import Counters, Listener
from rgd.core.policies.model import UNLIMITED, GroupKey, Rate, Rates
from rgd.core.units import (
    COUNT_MAX,
    MILLI,
    NS_PER_MS,
    WAIT_MS_MAX,
    Dimension,
    Nanos,
    Pair,
)

_MESSAGES: Final = Dimension.MESSAGES
_BYTES: Final = Dimension.BYTES
_LEVELS: Final = tuple(Level)


@dataclass(frozen=True, slots=True)
class BucketSettings:
    """Settings that all buckets of a daemon share."""

    #: Depth of a bucket, in nanoseconds of its present rate.
    burst_ns: int
    #: Largest request, in milliseconds of the whole quota.
    request_max_ms: int
    #: Retry time advertised to a refused caller at rate 0; half of it is the most at a low share.
    round_ms: int
    bounds: BucketBounds = BOUNDS.buckets


class LevelState(Buckets):
    """The buckets of one level in one kind, and the rates in force for it."""

    __slots__ = (
        "_counterfactuals",
        "_counterfactuals_max",
        "_is_faster",
        "_live_brokers",
        "_request_max_ms",
        "_round_ms",
        "group",
        "level",
        "low",
        "most_bytes",
        "most_messages",
        "order",
        "quota",
        "refusals",
        "shadow",
        "shadow_refused",
    )

    def __init__(self, level: Level, settings: BucketSettings, group: str | None = None) -> None:
        super().__init__(settings.burst_ns, NEVER)
        self.level = level
        self.order = _LEVELS.index(level)
        self.group = group
        #: Count what would be refused, but refuse nothing.
        self.shadow = False
        self.shadow_refused = Pair()
        #: Refusals of the last minute, for all names of this level; None if it has never refused.
        self.refusals: RecentRefusals | None = None
        #: The whole limit (cluster-wide for a group); `share` is this broker's part of it.
        self.quota: Rates = UNLIMITED
        #: Below it, the advertised wait is at most half a round; 0: it is exact.
        self.low = Rates(0, 0)
        #: The largest request, in whole units.
        self.most_messages = self.most_bytes = COUNT_MAX
        self._request_max_ms = settings.request_max_ms
        self._round_ms = settings.round_ms
        #: Whether a counterfactual bucket has a higher rate than the real one, and the number of
        #: live brokers for which this was computed (0: not computed).
        self._is_faster, self._live_brokers = False, 0
        #: By group: the buckets as if that group had refused nothing.
        self._counterfactuals: dict[str, Counterfactual] = {}
        self._counterfactuals_max = settings.bounds.counterfactuals_max

    def set_rates(self, quota: Rates, share: Rates, now: Nanos) -> None:
        """Put `share` of `quota` in force; debt stays, a new bucket starts full."""
        self.flow(share, now)
        self._live_brokers = 0
        if quota is self.quota:
            return
        self.most_messages = self._most(quota.messages)
        self.most_bytes = self._most(quota.bytes)
        # Assigned last, so that a call that failed halfway is repeated in full.
        self.quota = quota

    def too_large(self, messages: int, size: int) -> TooLarge | None:
        """The error if a whole request exceeds `shares.request_max_s` of the whole limit."""
        if messages > self.most_messages:
            return TooLarge(self.level, self.group, Dimension.MESSAGES, self.most_messages)
        if size > self.most_bytes:
            return TooLarge(self.level, self.group, Dimension.BYTES, self.most_bytes)
        return None

    def wait(self, messages: int, size: int, now: Nanos) -> tuple[int, Dimension]:
        """Wait in ms until the cost would be granted, rounded up, and the limiting dimension."""
        messages_cost, bytes_cost = messages * PICO, size * PICO
        self.refill(now)
        for_messages = for_bytes = 0
        if messages and (rate := self.messages_rate) is not None:
            missing = min(messages_cost, self.messages_depth) - self.messages_tokens
            for_messages = self._wait_ns(missing, rate, self.low.messages)
        if size and (rate := self.bytes_rate) is not None:
            missing = min(bytes_cost, self.bytes_depth) - self.bytes_tokens
            for_bytes = self._wait_ns(missing, rate, self.low.bytes)
        if for_messages and for_bytes:
            waits = rounded_ms(for_messages), rounded_ms(for_bytes)
            return (waits[0], _MESSAGES) if waits[0] >= waits[1] else (waits[1], _BYTES)
        self.short_messages, self.short_bytes = messages_cost, bytes_cost
        self.short_of = _BYTES if for_bytes else _MESSAGES
        wait_ns = for_messages or for_bytes
        # At rate 0, and at a low one, the advertised wait is not when the tokens accrue.
        is_exact = (self.share.of(self.short_of) or 0) > (self.low.of(self.short_of) or 0)
        self.short_until = Nanos(now + wait_ns) if is_exact else NEVER
        return rounded_ms(wait_ns), self.short_of

    def give(self, messages: int, size: int, now: Nanos) -> None:
        """Put back units that were taken and not used, as far as the bucket has room."""
        self.refill(now)
        self.take(-messages, -size)
        # What is above the depth is spilled, as when the rates change.
        self.flow(self.share, now)

    def flows_faster(self, live_brokers: int) -> bool:
        """Whether a counterfactual bucket, which gets at least an even part, has a higher rate."""
        if self._live_brokers != live_brokers:
            messages, size = self.messages_rate, self.bytes_rate
            self._is_faster = (
                messages is not None
                and messages < self._even_part(self.quota.messages, live_brokers)
            ) or (size is not None and size < self._even_part(self.quota.bytes, live_brokers))
            self._live_brokers = live_brokers
        return self._is_faster

    def would_grant(self, group: str, live_brokers: int, now: Nanos) -> tuple[int, int]:
        """Whole units this level would grant now if the level of `group` had refused nothing."""
        self.refill(now)
        if self.spilled is None:
            self.spilled = [0, 0]
            self._counterfactuals.clear()
        one = self._counterfactuals.get(group)
        if one is None:
            if len(self._counterfactuals) >= self._counterfactuals_max:
                self._counterfactuals.clear()
            one = self._counterfactuals[group] = Counterfactual(self.spilled, now)
        messages = size = COUNT_MAX
        spilled, burst_ns = self.spilled, self.burst_ns
        if (flowing := self.messages_rate) is not None:
            rate = max(flowing, self._even_part(self.quota.messages, live_brokers))
            tokens = self.messages_tokens
            messages = one.available(0, rate, flowing, tokens, spilled[0], burst_ns, now)
        if (flowing := self.bytes_rate) is not None:
            rate = max(flowing, self._even_part(self.quota.bytes, live_brokers))
            size = one.available(1, rate, flowing, self.bytes_tokens, spilled[1], burst_ns, now)
        one.at = now
        return messages, size

    def forgo(self, group: str, messages: int, size: int) -> None:
        """Charge refused units to the counterfactual bucket of `group`; after `would_grant`."""
        self._counterfactuals[group].take(messages, size)

    def charge_shadow(self, messages: int, size: int, now: Nanos) -> None:
        """Charge a shadow level, or count what it would have refused."""
        if self.admits(messages * PICO, size * PICO, now):
            self.take(messages, size)
        else:
            self.count_shadow(messages, size)

    def count_shadow(self, messages: int, size: int) -> None:
        """Count what a shadow level would have refused."""
        before = self.shadow_refused
        self.shadow_refused = Pair(before.messages + messages, before.bytes + size)

    def begin_refusals(self) -> RecentRefusals:
        """Create the counter of refusals; this level must be the most stringent one."""
        self.refusals = refusals = RecentRefusals()
        return refusals

    def _wait_ns(self, missing: int, rate: int, low: Rate) -> int:
        """Time in ns until `missing` tokens accrue, if none are taken; one round where nothing may ever be granted.

        At most half a round at a low rate: if all callers wait for a whole round, the broker counts as idle, and its share
        stays low (docs/decisions/0162).
        """
        round_ns = self._round_ms * NS_PER_MS
        wait_ns = -(-missing // rate) if rate else round_ns
        return max(0, min(wait_ns, round_ns // 2) if rate < (low or 0) else wait_ns)

    def _even_part(self, quota: Rate, live_brokers: int) -> int:
        return 0 if self.group is None else (quota or 0) // live_brokers

    def _most(self, quota: Rate) -> int:
        # A quota of 0 never grants. This is a refusal, not a request that is too large.
        most = (quota or 0) * self._request_max_ms // (MILLI * 1000)
        return min(max(1, most), COUNT_MAX) if quota else COUNT_MAX


def rounded_ms(wait_ns: int) -> int:
    """A wait in ms for an answer, rounded up, at most `WAIT_MS_MAX`."""
    # A debt made at a high rate may take very long to clear at a low one.
    return min(-(-wait_ns // NS_PER_MS), WAIT_MS_MAX)


class GroupState(LevelState):
    """The level of one resource group in one kind, and the demand of its callers."""

    __slots__ = (
        "counters",
        "generation",
        "key",
        "refused_bytes",
        "refused_messages",
        "reported",
        "soft",
    )

    def __init__(self, key: GroupKey, settings: BucketSettings, now: Nanos, news: Listener) -> None:
        super().__init__(Level.RESOURCE_GROUP, settings, key.group)
        self.key = key
        #: The last change of groups that this level has applied (`rgd.core.buckets.levels`).
        self.generation = 0
        #: The counters that requests add to.
        topics_max = settings.bounds.window_topics_max
        self.counters = Counters(now, news, topics_max=topics_max)
        #: Its soft limit, a shadow level (`rgd.core.buckets.soft`); None: it has none.
        self.soft: LevelState | None = None
        #: Whether this broker has reported demand for the group to its peers.
        self.reported = False
        #: Whole units of this group refused by other levels since the start, indexed by their
        #: `order`; `refusals` counts what the group itself refused.
        self.refused_messages = [0] * len(_LEVELS)
        self.refused_bytes = [0] * len(_LEVELS)

    def refused_totals(self) -> list[int]:
        """Messages refused by each level since the start, then bytes, bounded to int64."""
        totals = self.refused_messages + self.refused_bytes
        if self.refusals is not None:
            messages, size = self.refusals.since_start()
            totals[self.order] += messages
            totals[self.order + len(_LEVELS)] += size
        return totals if max(totals) <= COUNT_MAX else [min(one, COUNT_MAX) for one in totals]

    def refused(self) -> Iterator[tuple[tuple[Level, Dimension], int]]:
        """Whole units refused since the start, by the level that refused and the dimension."""
        totals = self.refused_totals()
        for level, messages, size in zip(_LEVELS, totals, totals[len(_LEVELS) :], strict=False):
            if messages or size:
                yield (level, Dimension.MESSAGES), messages
                yield (level, Dimension.BYTES), size
