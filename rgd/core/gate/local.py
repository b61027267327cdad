"""The gate itself: the buckets and the leases, behind the calls of `rgd.core.gate.port`.

In the plane's process a group that is asked for the first time gets its slot id and share at once, by `first_share`.
A gate that cannot call the plane grants an equal part of the quota meanwhile, notes the group (`asked`), and gets both with
`give_slot`. What is counted of the group until then is not lost: its first page has it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Concatenate, ParamSpec, TypeVar

from rgd.core.backlog.quota import Blocked
from rgd.core.bounds import BOUNDS, Bounds
from rgd.core.buckets.level import BucketSettings
from rgd.core.buckets.levels import ShareOf
from rgd.core.buckets.limiter import Limiter
from rgd.core.counts.counters import NO_SLOT
from rgd.core.counts.news import News
from rgd.core.counts.page import Ungoverned
from rgd.core.leases.leases import Leases
from rgd.core.policies.model import Group, GroupKey, OnUnknown, Rate, Rates, TopicSplit
from rgd.core.policies.snapshot import Changes, PolicySnapshot
from rgd.core.units import NS_PER_MS, Kind, Nanos

_Params = ParamSpec("_Params")
_Result = TypeVar("_Result")


@dataclass(frozen=True, slots=True)
class GateSettings:
    """What a gate needs of `rgd.core.broker.settings.BrokerSettings`."""

    burst_ns: int
    request_max_ms: int
    round_ns: int
    min_interval_ns: int
    topic_split: TopicSplit = TopicSplit.SHARED
    bounds: Bounds = BOUNDS


class LocalGate:
    """Answers requests; fulfils `rgd.core.gate.port.Gate`.

    Args:
        settings: of its buckets and leases.
        first_share: gives a group that is asked for the first time its slot id and share; without it, groups are noted.
    """

    def __init__(self, settings: GateSettings, first_share: ShareOf | None = None) -> None:
        buckets = BucketSettings(
            settings.burst_ns,
            settings.request_max_ms,
            settings.round_ns // NS_PER_MS,
            settings.min_interval_ns // NS_PER_MS,
            settings.bounds.buckets,
        )
        share_of = first_share or self._noted
        self.limiter = Limiter(buckets, share_of, topic_split=settings.topic_split)
        self.leases = Leases(self.limiter, settings.bounds.leases)
        #: Groups that were asked for the first time, and of which the plane does not know; it empties the list.
        self.asked: list[GroupKey] = []
        #: Of which pages are being looked at (`rgd.core.gate.looks.listed`).
        self.copy: Sequence[Any] = ()

    @property
    def news(self) -> News:
        """What was counted."""
        return self.limiter.news

    @property
    def snapshot(self) -> PolicySnapshot:
        """The policies in force."""
        return self.limiter.snapshot

    @property
    def is_behind(self) -> bool:
        """Whether `work` has something to do."""
        return self.limiter.is_behind

    def work(self, now: Nanos) -> None:
        """Do a slice of what a change or a round's end left to do."""
        self.limiter.work(now)

    def set_policies(
        self, snapshot: PolicySnapshot, now: Nanos, changes: Changes | None = None
    ) -> None:
        """Put policies in force."""
        self.limiter.set_policies(snapshot, now, changes)

    def set_unknown(self, unknown: OnUnknown | None) -> None:
        """How to answer while no policies are known; None: they are known."""
        self.limiter.unknown = unknown

    def set_share(self, slot: int, share: Rates, now: Nanos) -> None:
        """Put a share of a group in force."""
        self.limiter.set_share(slot, share, now)

    def give_slot(self, key: GroupKey, slot: int, share: Rates, now: Nanos) -> None:
        """Put a share of a group without a slot id in force; it has that slot id from now on."""
        self.limiter.give_slot(key, slot, share, now)

    def drop(self, key: GroupKey) -> None:
        """Forget a group that no longer exists."""
        self.limiter.drop(key)

    def set_depth(self, burst_ns: int) -> None:
        """The depth of groups' buckets."""
        self.limiter.group_burst_ns = burst_ns

    def set_brokers(self, count: int) -> None:
        """How many brokers share the quotas."""
        self.limiter.live_brokers = count

    def block(self, topic: str, blocked: Blocked | None) -> None:
        """Hold or refuse publishing to a topic, or end that."""
        self.limiter.block(topic, blocked)

    def end_round(self, now: Nanos) -> None:
        """A round ended."""
        self.limiter.end_round(now)
        self.leases.end_round(now)

    def drain_ungoverned(self) -> Ungoverned:
        """Counts of requests decided without a limit since the last call."""
        return self.limiter.drain_ungoverned()

    def ask(
        self,
        look: Callable[Concatenate["LocalGate", _Params], _Result],
        *args: _Params.args,
        **kwargs: _Params.kwargs,
    ) -> _Result:
        """What a look sees here."""
        return look(self, *args, **kwargs)

    def _noted(self, group: Group, kind: Kind, _now: Nanos) -> tuple[int, Rates]:
        """No slot id and an equal part, for a group that the plane is yet to hear of."""
        self.asked.append(GroupKey(group.name, kind))
        self.news.on_news()
        quota, brokers = group.rates(kind), self.limiter.live_brokers
        return NO_SLOT, Rates(_part(quota.messages, brokers), _part(quota.bytes, brokers))


def _part(quota: Rate, brokers: int) -> Rate:
    return None if quota is None else quota // brokers
