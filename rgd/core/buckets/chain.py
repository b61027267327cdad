"""The compiled levels that apply to one name, in order, sorted by their use on the fast path.

Law: a chain is made from exactly one policy snapshot; a new snapshot drops all chains at once.

The order is broker, resource groups (topic's, namespace's, tenant's: each
distinct group once), topic, subscription (design 2). If a group's share is
divided over topics (`rgd.core.buckets.split`), the topic's part replaces the
group.
"""

from typing import Final

from rgd.core.buckets.decision import Decision
from rgd.core.buckets.level import GroupState, LevelState
from rgd.core.buckets.split import TopicPart
from rgd.core.units import COUNT_MAX, Dimension

#: Shared by all chains, because there may be many.
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
        #: `shadows` only count what they would refuse; `deciding` are the levels that may refuse.
        self.shadows = tuple(level for level in levels if level.shadow)
        self.deciding = levels
        if self.shadows:
            self.deciding = tuple(level for level in levels if not level.shadow)
        #: The levels that replace a group whose share is divided over topics.
        self.parts = tuple(level for level in levels if isinstance(level, TopicPart))
        #: Whether no level is a shadow or a topic's part, so each one decides and is charged alone.
        self.is_plain = not self.shadows and not self.parts
        #: The counters that a grant adds to.
        self.counters = tuple(group.counters for group in groups)
        #: The largest request; -1 if nothing limits the name, so that `decide` handles it
        #: separately.
        none = COUNT_MAX if levels else -1
        self.most_messages = min((level.most_messages for level in self.deciding), default=none)
        self.most_bytes = min((level.most_bytes for level in self.deciding), default=none)
        #: The group, if it is the only level.
        self.only = groups[0] if len(levels) == 1 and self.deciding == groups else None
        #: The last refusal of a whole request, its wait in ms (-1: do not reuse it), level and
        #: dimension.
        self.refused = _REFUSED
        self.refused_ms = -1
        self.refused_by: LevelState | None = None
        self.refused_of = Dimension.MESSAGES
        #: The last whole grant and its amounts: callers usually ask for the same amount again.
        self.granted = _GRANTED
        self.messages = self.bytes = 0
