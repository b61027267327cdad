"""A limiter with as much of a plane as one broker alone needs."""

from collections.abc import Callable

from typing_extensions import override

from rgd.core.buckets.level import BucketSettings
from rgd.core.buckets.levels import ShareOf
from rgd.core.buckets.limiter import Limiter
from rgd.core.policies.model import UNLIMITED, Group, GroupKey, Rates, TopicSplit
from rgd.core.policies.snapshot import Changes, PolicySnapshot
from rgd.core.units import Kind, Nanos


def whole(group: Group, kind: Kind, _now: Nanos) -> Rates:
    """The share of a broker that is alone."""
    return group.rates(kind)


ShareAlone = Callable[[Group, Kind, Nanos], Rates]


def numbered(share_of: ShareAlone) -> ShareOf:
    """First shares with slot ids, in the order in which groups are asked for."""
    slots: dict[GroupKey, int] = {}

    def first(group: Group, kind: Kind, now: Nanos) -> tuple[int, Rates]:
        slot = slots.setdefault(GroupKey(group.name, kind), len(slots))
        return slot, share_of(group, kind, now)

    return first


class LimiterAlone(Limiter):
    """Has the shares of all groups as soon as policies or depth change; `share_of` says what they are."""

    def __init__(
        self,
        settings: BucketSettings,
        share_of: ShareAlone,
        *,
        topic_split: TopicSplit = TopicSplit.SHARED,
    ) -> None:
        super().__init__(settings, numbered(share_of), topic_split=topic_split)
        self._share = share_of

    @override
    def set_policies(
        self, snapshot: PolicySnapshot, now: Nanos, changes: Changes | None = None
    ) -> None:
        super().set_policies(snapshot, now, changes)
        self.follow(now)

    def follow(self, now: Nanos) -> None:
        for key in [*self._groups]:
            group = self.snapshot.groups.get(key.group)
            share = UNLIMITED if group is None else self._share(group, key.kind, now)
            self.set_share(self._groups[key].counters.slot, share, now)
