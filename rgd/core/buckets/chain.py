"""What applies to one name, compiled: its levels in order, sorted by what the fast path does with them.

Law: a chain is made from exactly one policy snapshot; a new one drops all chains at once.

The order is broker, resource groups (topic's, namespace's, tenant's: each
distinct group once), topic, subscription (design 2). Where a group's share is
divided over topics (`rgd.core.buckets.split`), the topic's part stands in the
group's place.
"""

from typing import Final

from rgd.core.buckets.decision import Decision
from rgd.core.buckets.level import GroupState, LevelState
from rgd.core.buckets.split import TopicPart
from rgd.core.units import COUNT_MAX, Dimension

#: One for all: there may be many chains.
_GRANTED: Final = Decision(granted=True, messages=0, bytes=0)
_REFUSED: Final = Decision(granted=False, messages=0, bytes=0)


class Chain:
    """Every level of one name."""

    __slots__ = (
        "bytes",
        "counters",
        "deciding",
        "granted",
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
    )

    def __init__(self, levels: tuple[LevelState, ...], groups: tuple[GroupState, ...]) -> None:
        self.levels = levels
        self.groups = groups
        #: The levels that may refuse, and those that only count what they would.
        self.shadows = tuple(level for level in levels if level.shadow)
        self.deciding = levels
        if self.shadows:
            self.deciding = tuple(level for level in levels if not level.shadow)
        #: The levels that stand for a group whose share is divided over topics.
        self.parts = tuple(level for level in levels if isinstance(level, TopicPart))
        #: Whether every level decides and is charged alone: none is a shadow or a topic's part.
        self.is_plain = not self.shadows and not self.parts
        #: What a grant adds to.
        self.counters = tuple(group.counters for group in groups)
        #: The largest request; below 0 where nothing limits the name, so that it is looked at apart.
        none = COUNT_MAX if levels else -1
        self.most_messages = min((level.most_messages for level in self.deciding), default=none)
        self.most_bytes = min((level.most_bytes for level in self.deciding), default=none)
        #: The group that is the only level, where it is.
        self.only = groups[0] if len(levels) == 1 and self.deciding == groups else None
        #: The last refusal of a whole request, its wait (-1: not to be used again), and what it names.
        self.refused = _REFUSED
        self.refused_ms = -1
        self.refused_by: LevelState | None = None
        self.refused_of = Dimension.MESSAGES
        #: The last whole grant and what it granted: callers mostly ask for the same amount again.
        self.granted = _GRANTED
        self.messages = self.bytes = 0
