"""The compiled levels that apply to one name, in order, sorted by their use on the fast path.

Law: a chain is made from exactly one policy snapshot; a new snapshot drops all chains at once.

The order is broker, resource groups (topic's, namespace's, tenant's: each
distinct group once), topic, subscription. If a group's share is
divided over topics (`rgd.core.buckets.split`), the topic's part follows the
group.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

from rgd.core.backlog.quota import Blocked
from rgd.core.buckets.bucket import NEVER
from rgd.core.buckets.decision import Decision
from rgd.core.buckets.level import GroupState, LevelState
from rgd.core.buckets.soft import SoftState
from rgd.core.buckets.split import TopicPart
from rgd.core.buckets.unsettled import RECENT_NS, Unsettled
from rgd.core.units import COUNT_MAX, Dimension, Nanos, Pair


class BlockedTopic(NamedTuple):
    """A topic to which publishing is held or refused, and the groups that count the refusals."""

    topic: str
    why: Blocked
    groups: tuple[GroupState, ...]


#: A group, messages and bytes counted as refused for it, and the attempt.
Unmet = tuple[GroupState, int, int, int]


#: Shared by all chains, because there may be many.
_GRANTED: Final = Decision(granted=True, messages=0, bytes=0)
_REFUSED: Final = Decision(granted=False, messages=0, bytes=0)


class Chain:
    """Every level of one name."""

    __slots__ = (
        "blocked",
        "bytes",
        "counters",
        "deciding",
        "granted",
        "granted_at",
        "groups",
        "is_plain",
        "levels",
        "messages",
        "most_bytes",
        "most_messages",
        "only",
        "parts",
        "refused",
        "refused_by",
        "refused_ms",
        "refused_of",
        "shadows",
        "softs",
        "throttled_name",
        "unmet",
        "unsettled",
    )

    def __init__(
        self,
        levels: tuple[LevelState, ...],
        groups: tuple[GroupState, ...],
        *,
        throttled_name: tuple[str, str] | None = None,
        blocked: "BlockedTopic | None" = None,
        unsettled: Unsettled | None = None,
    ) -> None:
        #: If the topic's backlog blocks publishing; such a chain has no levels.
        self.blocked = blocked
        self.levels = levels
        self.groups = groups
        #: `shadows` only count what they would refuse; `deciding` are the levels that may refuse.
        self.shadows = tuple(level for level in levels if level.shadow)
        self.deciding = levels
        if self.shadows:
            self.deciding = tuple(level for level in levels if not level.shadow)
        #: Those of the shadows that are soft limits.
        self.softs = tuple(level for level in self.shadows if isinstance(level, SoftState))
        #: The topic's parts of groups whose shares are divided over topics.
        self.parts = tuple(level for level in levels if isinstance(level, TopicPart))
        #: What may be given back (`rgd.core.buckets.settle`); None: its grants are not counted.
        self.unsettled = unsettled
        #: What the last partial grant refused, as it was counted as demand: group, units, attempt.
        self.unmet: Sequence[Unmet] = ()
        #: Whether no level is a shadow, and nothing but groups counts the grants.
        self.is_plain = not self.shadows and not self.parts and unsettled is None
        #: The counters that a grant adds to.
        self.counters = tuple(group.counters for group in groups)
        #: The largest request; -1 if nothing limits the name, so that `decide` handles it
        #: separately.
        none = COUNT_MAX if levels else -1
        self.most_messages = min((level.most_messages for level in self.deciding), default=none)
        self.most_bytes = min((level.most_bytes for level in self.deciding), default=none)
        #: The topic and subscription whose throttled dispatch is counted; None: not counted.
        self.throttled_name = throttled_name
        #: The group, if it is the only level and nothing else counts its refusals.
        is_only = len(levels) == 1 and self.deciding == groups and throttled_name is None
        self.only = groups[0] if is_only else None
        #: The last refusal of a whole request, its wait in ms (-1: do not reuse it), level and
        #: dimension.
        self.refused = _REFUSED
        self.refused_ms = -1
        self.refused_by: LevelState | None = None
        self.refused_of = Dimension.MESSAGES
        #: The last grant, its time and its amounts: callers usually ask for the same again. `~messages` where no
        #: answer was made of it: what is below 0 is never asked for.
        self.granted, self.granted_at = _GRANTED, NEVER
        self.messages = self.bytes = 0

    def begin_settling(self, now: Nanos) -> Unsettled:
        """Count the grants of this name from now on; its last one counts if it was lately."""
        self.is_plain = False
        is_recent = now < self.granted_at + RECENT_NS
        granted = Pair(max(self.messages, ~self.messages), self.bytes) if is_recent else Pair()
        self.unsettled = unsettled = Unsettled(granted, now)
        return unsettled
