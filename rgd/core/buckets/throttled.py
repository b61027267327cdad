"""Which levels throttled the dispatch of each subscription: the counters of PIP-406.

Laws: levels count in the order of the decision. A level counts an event of a dimension when it
lowers what the earlier levels left of it, also after one of them left nothing. So an unlimited
level never counts, and a shadow group neither. The groups of a request are one level: they count at
most one event. A request that is refused whole counts as if its caller accepted a part, at the
levels that refuse it.

Only throttled requests come here; a grant costs nothing. A subscription has counters from its first
throttled request until `IDLE_NS` after its last one. Beyond `BucketBounds.throttled_max` of them,
further ones are counted together.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

from rgd.core.bounds import BOUNDS, BucketBounds
from rgd.core.buckets.bucket import NEVER
from rgd.core.buckets.decision import Level
from rgd.core.buckets.level import LevelState
from rgd.core.policies.names import partitioned_topic_of
from rgd.core.units import NS_PER_MS, NS_PER_S, Dimension, Nanos

#: A subscription without a throttled request for so long is forgotten.
IDLE_NS: Final = 3600 * NS_PER_S

#: Subscriptions that are checked for idleness for each new one.
_CHECKED_PER_NEW: Final = 4

#: The name of all subscriptions beyond the most; no topic has this full name.
OTHER: Final = "other"

#: The levels that throttle dispatch; a backlog only blocks publishing.
DISPATCH_LEVELS: Final = (Level.BROKER, Level.RESOURCE_GROUP, Level.TOPIC, Level.SUBSCRIPTION)
#: Bits of a mask of events: one for each level in its order, those of bytes after those of messages.
_BYTES_BIT: Final = len(DISPATCH_LEVELS)


class Throttled(NamedTuple):
    """The counters of one subscription, since its first throttled request."""

    topic: str
    subscription: str
    #: Events by level, in the order of levels.
    messages_events: tuple[int, ...]
    bytes_events: tuple[int, ...]
    #: Units that were requested and not granted.
    messages: int
    bytes: int
    #: Time for which answers asked the caller to wait, overlaps once.
    throttled_ns: int

    @classmethod
    def nothing(cls, topic: str, subscription: str) -> "Throttled":
        """Of a subscription that was not throttled."""
        none = (0,) * len(DISPATCH_LEVELS)
        return cls(topic, subscription, none, none, 0, 0, 0)

    def events(self, level: Level, dimension: Dimension) -> int:
        """How often a level lowered a request in a dimension."""
        of = self.messages_events if dimension is Dimension.MESSAGES else self.bytes_events
        return of[DISPATCH_LEVELS.index(level)]


class _Counts:
    """Mutable counters for `Throttled`."""

    __slots__ = ("at", "bytes", "closed_ns", "events", "messages", "since", "until")

    def __init__(self) -> None:
        #: Time of the last throttled request.
        self.at = NEVER
        self.events = [0] * (2 * len(DISPATCH_LEVELS))
        self.messages = self.bytes = 0
        #: The wait in the last answer, and the time of all waits before it.
        self.since = self.until = NEVER
        self.closed_ns = 0

    def throttled_ns(self, now: Nanos) -> int:
        return self.closed_ns + max(0, min(now, self.until) - self.since)


class ThrottledTable:
    """The counters of every subscription that was throttled lately."""

    def __init__(self, bounds: BucketBounds = BOUNDS.buckets) -> None:
        self._bounds = bounds
        #: By topic and subscription, in the order in which they are checked.
        self._counts: dict[tuple[str, str], _Counts] = {}
        self._other = _Counts()
        #: Topics and subscriptions that were read, at most as many as there may be counters; those read longest ago go.
        self.read: dict[tuple[str, str], None] = {}

    def note_read(self, topic: str, subscription: str) -> None:
        """Note that a subscription is read, throttled or not."""
        self.read.pop((topic, subscription), None)
        if len(self.read) >= self._bounds.throttled_max:
            self.read.pop(next(iter(self.read)))
        self.read[topic, subscription] = None

    def __len__(self) -> int:
        return len(self._counts)

    @property
    def most(self) -> int:
        """Most subscriptions with counters."""
        return self._bounds.throttled_max

    def count(  # noqa: PLR0917 -- once for each throttled request
        self, name: tuple[str, str], mask: int, messages: int, size: int, wait_ms: int, now: Nanos
    ) -> None:
        """Count a throttled request.

        Args:
            name: the full topic and the subscription.
            mask: the events, as `lowered` and `lowering` give them.
            messages: what was requested and not granted.
            size: the same in bytes.
            wait_ms: the wait in its answer.
            now: the current time.
        """
        counts = self._counts.get(name)
        if counts is None or _is_idle(counts, now):
            counts = self._new(name, now)
        counts.at = now
        counts.messages += messages
        counts.bytes += size
        events, at = counts.events, 0
        while mask:
            events[at] += mask & 1
            mask >>= 1
            at += 1
        counts.closed_ns = counts.throttled_ns(now)
        counts.since, counts.until = now, Nanos(now + wait_ms * NS_PER_MS)

    def of(self, topic: str, subscription: str, now: Nanos) -> Throttled | None:
        """The counters of one subscription; None if it was not throttled lately."""
        counts = self._counts.get((topic, subscription))
        if counts is None or _is_idle(counts, now):
            return None
        return _shown(topic, subscription, counts, now)

    def partitions_of(self, topic: str, now: Nanos) -> list[str]:
        """The partitions of a partitioned topic with subscriptions that were throttled lately."""
        found = {
            name: None
            for (name, _), counts in self._counts.items()
            if name.startswith(topic)
            and partitioned_topic_of(name) == topic
            and not _is_idle(counts, now)
        }
        return [*found]

    def other(self, now: Nanos) -> Throttled | None:
        """The counters of all subscriptions beyond the maximum; None while there are none."""
        return None if self._other.at == NEVER else _shown(OTHER, OTHER, self._other, now)

    def has_others(self, now: Nanos) -> bool:
        """Whether subscriptions beyond the maximum were throttled lately, so that one without counters may have been."""
        return not _is_idle(self._other, now)

    def names(self, topic: str | None = None) -> list[tuple[str, str]]:
        """The topic and name of every subscription with counters, or of a topic's, for a caller that reads slices."""
        return [name for name in self._counts if topic in {None, name[0]}]

    def _new(self, name: tuple[str, str], now: Nanos) -> _Counts:
        # One that is shown as forgotten begins at 0 again.
        self._counts.pop(name, None)
        for _ in range(min(_CHECKED_PER_NEW, len(self._counts))):
            checked = next(iter(self._counts))
            counts = self._counts.pop(checked)
            if not _is_idle(counts, now):
                self._counts[checked] = counts
        if len(self._counts) >= self._bounds.throttled_max:
            return self._other
        counts = self._counts[name] = _Counts()
        return counts


def lowered(level: LevelState, *, messages: bool, size: bool) -> int:
    """The mask of a level that lowers some dimensions of a request."""
    return messages << level.order | size << level.order + _BYTES_BIT


def lowering(refusing: Sequence[LevelState], messages: int, size: int, now: Nanos) -> int:
    """The mask of a request that was refused whole by these levels, in their order."""
    mask = 0
    for level in refusing:
        has_messages, has_bytes = level.available(now)
        # A full bucket admits a request above its depth, so it does not lower it.
        grants_messages, grants_bytes = level.grants_any()
        lowers_messages = has_messages < messages and not grants_messages
        lowers_bytes = has_bytes < size and not grants_bytes
        if lowers_messages:
            messages = has_messages
        if lowers_bytes:
            size = has_bytes
        mask |= lowered(level, messages=lowers_messages, size=lowers_bytes)
    return mask


def _is_idle(counts: _Counts, now: Nanos) -> bool:
    return now - max(counts.at, counts.until) > IDLE_NS


def _shown(topic: str, subscription: str, counts: _Counts, now: Nanos) -> Throttled:
    return Throttled(
        topic,
        subscription,
        tuple(counts.events[:_BYTES_BIT]),
        tuple(counts.events[_BYTES_BIT:]),
        counts.messages,
        counts.bytes,
        counts.throttled_ns(now),
    )
