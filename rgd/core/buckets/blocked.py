"""Topics whose backlogs block publishing: which they are, and what their callers are answered.

Laws: a block costs other topics nothing, because it is part of the topic's compiled chain: the
chain has no levels, so every request for it leaves the fast path. A blocked request takes nothing
from any bucket, and is demand of no group: a larger share would not let it pass. It is counted as
refused by the level `backlog`, here and for the usage log.
"""

from collections import Counter, defaultdict
from collections.abc import ItemsView, Iterator
from itertools import islice
from typing import Final

from rgd.core.backlog.model import QuotaType
from rgd.core.backlog.quota import Blocked
from rgd.core.buckets.chain import BlockedTopic
from rgd.core.buckets.decision import Level, Name, OverBacklog
from rgd.core.buckets.recent_refusals import RecentRefusals
from rgd.core.buckets.refusal import Asked
from rgd.core.buckets.throttled import OTHER
from rgd.core.policies.model import BacklogAction
from rgd.core.policies.names import namespace_of_topic
from rgd.core.units import NS_PER_MS, Dimension, Kind, Nanos

#: Most topics whose blocked requests are counted each by itself.
COUNTED_MAX: Final = 10_000

#: Shortest wait in the answer to a blocked caller, if the next check is late.
RETRY_MIN_MS: Final = 100

_BACKLOG: Final = tuple(Level).index(Level.BACKLOG)


class BlockedTopics:
    """The blocked topics of one broker."""

    def __init__(self) -> None:
        self._blocked: dict[str, Blocked] = {}
        #: Names of chains for publishing to a topic, besides the one that its callers usually use.
        self._names: dict[str, dict[Name, None]] = {}
        #: What was refused of each lately.
        self._recent: dict[str, RecentRefusals] = {}
        #: Blocked requests since the start, by limit and whether the caller was asked to hold.
        self.requests: Counter[tuple[QuotaType, bool]] = Counter()
        #: The same of each topic, by limit and its policy; of at most `COUNTED_MAX`, the further ones under `OTHER`.
        self.requests_of: dict[str, Counter[tuple[QuotaType, BacklogAction]]] = defaultdict(Counter)

    def __len__(self) -> int:
        return len(self._blocked)

    def get(self, topic: str | None) -> Blocked | None:
        """Why publishing to a topic is blocked; None if it is not."""
        return None if topic is None else self._blocked.get(topic)

    def items(self) -> ItemsView[str, Blocked]:
        """Every blocked topic, and why."""
        return self._blocked.items()

    def latest(self, count: int) -> list[str]:
        """`count` blocked topics."""
        return [*islice(reversed(self._blocked), count)]

    def recent(self, topic: str | None) -> RecentRefusals | None:
        """What was refused of a blocked topic in the last minute, if anything."""
        return None if topic is None else self._recent.get(topic)

    def put(self, topic: str, blocked: Blocked | None) -> Iterator[Name]:
        """Block a topic, or end that; returns the names of the chains that are now wrong."""
        if blocked is None:
            self._blocked.pop(topic, None)
            self._recent.pop(topic, None)
        else:
            self._blocked[topic] = blocked
        yield Kind.PUBLISH, None, namespace_of_topic(topic), topic, None
        yield from self._names.pop(topic, ())

    def note(self, name: Name) -> None:
        """Remember the name of a chain that is compiled, maybe again, unless it is the one that `put` knows."""
        kind, group, _, topic, subscription = name
        if kind is Kind.PUBLISH and topic is not None and (group or subscription):
            self._names.setdefault(topic, {})[name] = None

    def forget_names(self) -> dict[str, dict[Name, None]]:
        """Forget all names, because all chains are dropped; returns them, to be freed in slices."""
        names, self._names = self._names, {}
        return names

    def refuse(self, blocked: BlockedTopic, asked: Asked, now: Nanos) -> OverBacklog:
        """Answer a request for a blocked topic."""
        topic, why, groups = blocked
        is_held = now < why.held_until
        self.requests[why.quota_type, is_held] += 1
        is_counted = topic in self.requests_of or len(self.requests_of) < COUNTED_MAX
        self.requests_of[topic if is_counted else OTHER][why.quota_type, why.action] += 1
        recent = self._recent.get(topic)
        if recent is None:
            recent = self._recent[topic] = RecentRefusals()
        dimension = Dimension.BYTES if why.quota_type is QuotaType.SIZE else Dimension.MESSAGES
        recent.count(asked.messages, asked.bytes, dimension, asked.attempt, now)
        for group in groups:
            group.refused_messages[_BACKLOG] += asked.messages
            group.refused_bytes[_BACKLOG] += asked.bytes
            group.counters.news.backlogged.add(group.counters.slot)
        return OverBacklog(why.quota_type, is_held, retry_after_ms(why, now))


def retry_after_ms(why: Blocked, now: Nanos) -> int:
    """Milliseconds until the next check, rounded up; before it a block does not end."""
    return max(RETRY_MIN_MS, -(-(why.checked_at - now) // NS_PER_MS))
