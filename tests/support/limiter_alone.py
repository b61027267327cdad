"""A limiter with as much of a plane as one broker alone needs."""

from typing_extensions import override

from rgd.core.buckets.limiter import Limiter
from rgd.core.policies.model import UNLIMITED, Group, Rates
from rgd.core.policies.snapshot import Changes, PolicySnapshot
from rgd.core.units import Kind, Nanos


def whole(group: Group, kind: Kind, _now: Nanos) -> Rates:
    """The share of a broker that is alone."""
    return group.rates(kind)


class LimiterAlone(Limiter):
    """Has the shares of all groups as soon as policies or depth change; `share_of` says what they are."""

    @override
    def set_policies(
        self, snapshot: PolicySnapshot, now: Nanos, changes: Changes | None = None
    ) -> None:
        super().set_policies(snapshot, now, changes)
        self.follow(now)

    def follow(self, now: Nanos) -> None:
        for key in [*self._groups]:
            group = self.snapshot.groups.get(key.group)
            share = UNLIMITED if group is None else self._share_of(group, key.kind, now)
            self.set_share(key, share, now)
