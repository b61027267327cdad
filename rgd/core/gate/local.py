"""The gate itself: the buckets and the leases, behind the calls of `rgd.core.gate.port`.

In the plane's process a group that is asked for the first time gets its slot id and share at once, by `first_share`.
A gate that cannot call the plane grants an equal part of the quota meanwhile, notes the group (`asked`), and gets both with
`give_slot`. What is counted of the group until then is not lost: its first page has it.

The gate outlives planes. When one has gone, `forget_slots` takes back what was its own; policies, rates, buckets, counters
and leases stay. The next one asks for `groups_in_use` and gives them slot ids (`resume`). Topics that backlogs blocked are
unblocked, because the next plane cannot know which they were; its first checks block them again. Rates that nobody confirms
hold for `exchange.isolation_hold_rounds`; then `isolate` is called.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Concatenate, Final, ParamSpec, TypeVar

from rgd.core.backlog.quota import Blocked
from rgd.core.bounds import BOUNDS, Bounds
from rgd.core.buckets.level import BucketSettings
from rgd.core.buckets.levels import ShareOf
from rgd.core.buckets.limiter import Limiter
from rgd.core.counts.counters import NO_SLOT
from rgd.core.counts.news import News
from rgd.core.counts.page import Page, Ungoverned, pack
from rgd.core.leases.leases import Leases
from rgd.core.policies.model import Group, GroupKey, OnIsolation, OnUnknown, Rates, TopicSplit
from rgd.core.policies.snapshot import Changes, PolicySnapshot
from rgd.core.units import NS_PER_MS, Kind, Nanos

#: How many slot ids, and blocked topics, one call of `forget_slots` takes back.
FORGOTTEN_A_CALL: Final = 5_000

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
        #: Whether a plane that is there has told shares.
        self.is_led = False
        #: By number and layout of a shard: the last sequence that the plane is known to have used.
        self.sequences: Mapping[tuple[int, int], int] = {}

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

    def set_shares(self, shares: Iterable[tuple[int, Rates]], now: Nanos) -> None:
        """Put shares of groups in force."""
        for slot, share in shares:
            self.limiter.set_share(slot, share, now)

    def give_slot(self, key: GroupKey, slot: int, share: Rates, now: Nanos) -> None:
        """Put a share of a group without a slot id in force; it has that slot id from now on."""
        self.limiter.give_slot(key, slot, share, now)

    def resume(self, groups: Iterable[tuple[GroupKey, int]]) -> Page:
        """Give slot ids to groups that keep their share; returns the readings of those that there are."""
        states = [self.limiter.resume(key, slot) for key, slot in groups]
        # What was touched when no plane was there has poked nobody.
        self.news.on_news()
        return pack([state.counters for state in states if state is not None])

    def note_sequences(self, sequences: Mapping[tuple[int, int], int]) -> None:
        """Keep the sequences that the plane has used, for the next plane."""
        self.sequences = sequences

    def drop(self, key: GroupKey) -> None:
        """Forget a group that no longer exists."""
        self.limiter.drop(key)

    def set_depth(self, burst_ns: int) -> None:
        """The depth of groups' buckets."""
        self.limiter.group_burst_ns = burst_ns
        self.limiter.isolation, self.is_led = None, True

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

    # Between two planes.

    def forget_slots(self) -> bool:
        """Forget what the plane that has gone gave; call it again if something is left."""
        self.is_led = False
        self.asked.clear()
        self.news.clear()
        has_slots = self.limiter.forget_slots(FORGOTTEN_A_CALL)
        return self.limiter.unblock(FORGOTTEN_A_CALL) or has_slots

    def isolate(self, on_isolation: OnIsolation, now: Nanos) -> None:
        """Do without shares, because no plane has told any for `exchange.isolation_hold_rounds`; the next that are told end it."""
        self.limiter.isolate(on_isolation, now)

    def groups_in_use(self, begin: int, count: int, now: Nanos) -> list[tuple[GroupKey, Rates]]:
        """`count` groups from `begin` on and their shares in force; all are to be asked for before any is given a slot id or dropped."""
        if not begin:
            # They are among those in use.
            self.asked.clear()
        found = self.limiter.some_groups(begin, count, now)
        return [(state.key, state.share) for state in found]

    def _noted(self, group: Group, kind: Kind, _now: Nanos) -> tuple[int, Rates]:
        """No slot id and an equal part, for a group that the plane is yet to hear of."""
        self.asked.append(GroupKey(group.name, kind))
        self.news.on_news()
        return NO_SLOT, self.limiter.alone(group.rates(kind))
