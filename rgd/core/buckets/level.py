"""One step of the chain: a pair of buckets, and what it would cut from a request.

A level knows nothing of the other levels; `rgd.core.buckets.limiter` walks
them in the order broker, resource group, topic, subscription (design 2).
`GroupState` is the level of a resource group, with the group's demand.
"""

from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import NamedTuple

from rgd.core.buckets.bucket import PICO, TokenBucket
from rgd.core.buckets.cuts import RecentCuts
from rgd.core.buckets.decision import Level, TooLarge
from rgd.core.buckets.twin import TWINS_MAX, Twin, WatchedBucket
from rgd.core.demand.counters import Counters, Touched
from rgd.core.policies.model import UNLIMITED, Rate, Rates
from rgd.core.units import (
    COUNT_MAX,
    MILLI,
    NS_PER_MS,
    WAIT_MS_MAX,
    Dimension,
    Kind,
    Nanos,
    Pair,
)


@dataclass(frozen=True, slots=True)
class BucketSettings:
    """What all buckets of a daemon have in common."""

    #: Depth of a bucket: this long of its present rate.
    burst_ns: int
    #: Largest request, in milliseconds of the whole quota.
    request_max_ms: int
    #: What a refused caller is told to wait where the rate is 0: one round.
    round_ms: int
    #: Least time between two reports, and least length of a meter's slot.
    min_interval_ms: int = 100


class LevelState:
    """The buckets of one level in one kind, and the rates it was given."""

    __slots__ = (
        "_most_bytes",
        "_most_messages",
        "_settings",
        "_twins",
        "burst_ns",
        "bytes",
        "cuts",
        "group",
        "level",
        "messages",
        "quota",
        "shadow",
        "shadow_refused",
        "share",
    )

    def __init__(self, level: Level, settings: BucketSettings, group: str | None = None) -> None:
        self.level = level
        self.group = group
        #: Count what would be refused, refuse nothing.
        self.shadow = False
        self.shadow_refused = Pair()
        #: What it cut in the last minute, for all names that it governs; None: it never cut.
        self.cuts: RecentCuts | None = None
        #: The whole limit (cluster-wide for a group), and the part that flows here.
        self.quota = self.share = UNLIMITED
        #: Depth of the buckets, in time at their rate; in force with the next `set_rates`.
        self.burst_ns = settings.burst_ns
        self.messages: TokenBucket | None = None
        self.bytes: TokenBucket | None = None
        self._most_messages = self._most_bytes = COUNT_MAX
        self._settings = settings
        #: By group: what messages and bytes would be left if it had refused nothing.
        self._twins: dict[str, _Twins] = {}

    def set_rates(self, quota: Rates, share: Rates, now: Nanos) -> None:
        """Let `share` of `quota` flow from now on; debt stays, a new bucket starts full."""
        self.messages = self._bucket(self.messages, share.messages, now)
        self.bytes = self._bucket(self.bytes, share.bytes, now)
        self._most_messages = self._most(quota.messages)
        self._most_bytes = self._most(quota.bytes)
        # Last, so that rates which were set by half are set again.
        self.quota = quota
        self.share = share

    def too_large(self, cost: Pair) -> TooLarge | None:
        """Whether a whole request is more than `shares.request_max_s` of the whole limit."""
        messages, size = cost
        if messages > self._most_messages:
            return TooLarge(self.level, self.group, Dimension.MESSAGES, self._most_messages)
        if size > self._most_bytes:
            return TooLarge(self.level, self.group, Dimension.BYTES, self._most_bytes)
        return None

    def admits(self, cost: Pair, now: Nanos) -> bool:
        """Whether the whole cost would be granted now in both dimensions."""
        messages, size = cost
        if self.messages and messages and not self.messages.admits(messages * PICO, now):
            return False
        return not (self.bytes and size and not self.bytes.admits(size * PICO, now))

    def available(self, dimension: Dimension, now: Nanos) -> int:
        """Whole units that a part may take in one dimension."""
        bucket = self.messages if dimension is Dimension.MESSAGES else self.bytes
        return COUNT_MAX if bucket is None else bucket.available(now)

    def take(self, cost: Pair) -> None:
        """Charge what was granted."""
        messages, size = cost
        if self.messages:
            self.messages.take(messages * PICO)
        if self.bytes:
            self.bytes.take(size * PICO)

    def wait(self, cost: Pair, now: Nanos) -> tuple[int, Dimension]:
        """When the cost would be granted (ms, rounded up), and the dimension that takes longest."""
        messages = self._wait_ms(self.messages, cost.messages, now) if self.messages else 0
        size = self._wait_ms(self.bytes, cost.bytes, now) if self.bytes else 0
        return (messages, Dimension.MESSAGES) if messages >= size else (size, Dimension.BYTES)

    def remaining(self, dimension: Dimension, now: Nanos) -> int:
        """Whole units in the bucket, 0 while in debt."""
        bucket = self.messages if dimension is Dimension.MESSAGES else self.bytes
        tokens = 0 if bucket is None else bucket.tokens(now)
        return tokens // PICO if tokens > 0 else 0

    def pause(self, since: Nanos, until: Nanos) -> None:
        """Let nothing flow between two moments."""
        for bucket in (self.messages, self.bytes):
            if bucket is not None:
                bucket.pause(since, until)

    def is_full(self, now: Nanos) -> bool:
        """Whether one that is made anew would grant no more."""
        return all(bucket is None or bucket.is_full(now) for bucket in (self.messages, self.bytes))

    def flows_faster(self, live_brokers: int) -> bool:
        """Whether a twin of this level, which has at least an even part, flows faster than it."""
        if self.group is None:
            return False
        share, quota = self.share, self.quota
        messages, size = share.messages, share.bytes
        return (messages is not None and messages < (quota.messages or 0) // live_brokers) or (
            size is not None and size < (quota.bytes or 0) // live_brokers
        )

    def would_grant(self, group: str, live_brokers: int, now: Nanos) -> Pair:
        """Whole units this level would grant now, had another level, `group`, refused nothing."""
        twins = self._twins.get(group)
        if twins is None:
            if len(self._twins) >= TWINS_MAX:
                self._twins.clear()
            twins = self._twins[group] = _Twins()
        if self.messages:
            self.messages = WatchedBucket.of(self.messages, self.burst_ns, now)
        if self.bytes:
            self.bytes = WatchedBucket.of(self.bytes, self.burst_ns, now)
        twins.messages = _twin_of(self.messages, twins.messages, now)
        twins.bytes = _twin_of(self.bytes, twins.bytes, now)
        return Pair(
            self._of_twin(twins.messages, Dimension.MESSAGES, live_brokers, now),
            self._of_twin(twins.bytes, Dimension.BYTES, live_brokers, now),
        )

    def forgo(self, group: str, cost: Pair) -> None:
        """Note that `group` refused what this level said a moment ago it would grant."""
        twins = self._twins[group]
        if twins.messages:
            twins.messages.take(cost.messages)
        if twins.bytes:
            twins.bytes.take(cost.bytes)

    def count_shadow(self, cost: Pair) -> None:
        """Count what a shadow level would have refused."""
        messages, size = self.shadow_refused
        self.shadow_refused = Pair(messages + cost.messages, size + cost.bytes)

    def begin_cuts(self) -> RecentCuts:
        """Begin to count what is not granted because this level, the most stringent, is short."""
        self.cuts = cuts = RecentCuts()
        return cuts

    def _of_twin(
        self, twin: Twin | None, dimension: Dimension, live_brokers: int, now: Nanos
    ) -> int:
        if twin is None:
            return COUNT_MAX
        rate = self.share.of(dimension) or 0
        if self.group is not None:
            rate = max(rate, (self.quota.of(dimension) or 0) // live_brokers)
        return twin.available(rate, self.burst_ns, now)

    def _bucket(self, bucket: TokenBucket | None, rate: Rate, now: Nanos) -> TokenBucket | None:
        if rate is None:
            return None
        if bucket is None:
            return TokenBucket(rate, self.burst_ns, now)
        bucket.set_rate(rate, self.burst_ns, now)
        return bucket

    def _most(self, quota: Rate) -> int:
        # A quota of 0 never grants: that is a refusal, not a request of the wrong size.
        most = (quota or 0) * self._settings.request_max_ms // (MILLI * 1000)
        return min(max(1, most), COUNT_MAX) if quota else COUNT_MAX

    def _wait_ms(self, bucket: TokenBucket, units: int, now: Nanos) -> int:
        if units == 0:
            return 0
        wait_ns = bucket.wait_ns(units * PICO, now)
        if wait_ns is None:
            return self._settings.round_ms
        # A debt that was made at a high rate may take ages at a low one.
        wait_ms = -(-wait_ns // NS_PER_MS)
        return wait_ms if wait_ms < WAIT_MS_MAX else WAIT_MS_MAX  # noqa: FURB136 -- min() takes thrice as long


class _Twins:
    """A level's twins for one group."""

    __slots__ = ("bytes", "messages")

    def __init__(self) -> None:
        self.messages: Twin | None = None
        self.bytes: Twin | None = None


def _twin_of(bucket: TokenBucket | None, twin: Twin | None, now: Nanos) -> Twin | None:
    """The twin that there is, or a new one where the bucket is new."""
    if not isinstance(bucket, WatchedBucket):
        return None
    return twin if twin is not None and twin.is_of(bucket) else Twin(bucket, now)


class GroupKey(NamedTuple):
    """A group in one kind: what a quota, a share and a row of the usage map belong to."""

    group: str
    kind: Kind


class GroupState(LevelState):
    """The level of one resource group in one kind, and what its callers wanted."""

    __slots__ = ("_refused", "counters", "epoch", "key", "reported")

    def __init__(
        self, key: GroupKey, settings: BucketSettings, now: Nanos, touched: Touched | None = None
    ) -> None:
        super().__init__(Level.RESOURCE_GROUP, settings, key.group)
        self.key = key
        #: The change of groups that it has heard of (`rgd.core.buckets.levels`).
        self.epoch = 0
        #: What requests add to.
        self.counters = Counters(now, Touched() if touched is None else touched, self)
        #: Whether the peers know that this broker wants something of the group.
        self.reported = False
        #: [messages, bytes] refused since the start, by the level that cut.
        self._refused: defaultdict[Level, list[int]] = defaultdict(lambda: [0, 0])

    @property
    def refused(self) -> Counter[tuple[Level, Dimension]]:
        """Refused since the start, whole units, by the level that cut and the dimension counted."""
        counted: Counter[tuple[Level, Dimension]] = Counter()
        for level, (messages, size) in self._refused.items():
            counted[level, Dimension.MESSAGES] = messages
            counted[level, Dimension.BYTES] = size
        return counted

    def count_refusal(self, level: Level, cost: Pair) -> None:
        """Count work of this group that some level cut."""
        counts, (messages, size) = self._refused[level], cost
        counts[0] += messages
        counts[1] += size
