"""A daemon of one broker, for the tests of the door: the real limiter and policy snapshot, no exchange.

It keeps the port's promises (`rgd.ports.daemon`) with a clock that only the test moves, so every
wait is exact. Three switches stand for what a real daemon meets: `read_only` (a file owns the
policies), `down` (the table cannot be written) and `broken` (a bug: raised by the next calls).
It says nothing about several brokers, rounds or persistence.
"""

import asyncio
from collections.abc import Collection, Sequence
from dataclasses import replace

from rgd.adapters.http.reply import Answering, Reply
from rgd.app.backlogs import Backlogs
from rgd.core.backlog.settings import BacklogSettings
from rgd.core.backlog.store import BacklogStore
from rgd.core.bounds import BOUNDS, Bounds
from rgd.core.broker.events import (
    BacklogCheckAsked,
    BacklogEvicted,
    BacklogsReported,
    BacklogsWithdrawn,
    Event,
)
from rgd.core.buckets.decision import Answer, Name, Request, Together
from rgd.core.buckets.headroom import Headroom
from rgd.core.buckets.level import BucketSettings
from rgd.core.buckets.throttled import Throttled
from rgd.core.errors import GroupInUse, PoliciesReadOnly, UnknownGroup
from rgd.core.leases.leases import Leases
from rgd.core.leases.model import LeaseAnswer, LeaseRequest, Renewal
from rgd.core.policies.model import (
    Attachments,
    Group,
    Limit,
    Limits,
    LocalLimit,
    Rate,
    Rates,
    rate_of,
)
from rgd.core.policies.records import GROUP, Change, PolicyRecords, Value, records_of
from rgd.core.policies.snapshot import PolicySnapshot
from rgd.core.shares.model import PPM
from rgd.core.units import NS_PER_MS, Kind, Nanos, Pair, to_units
from rgd.ports.answers import Health
from rgd.ports.exchange import ExchangeDown
from rgd.views.model import BrokerView, ExplainView, GroupView, KindView, RatesView, RowView
from tests.support.limiter_alone import LimiterAlone, whole

#: When a small daemon begins, ms since 1970.
UNIX_MS = 1_800_000_000_000

SETTINGS = BucketSettings(burst_ns=250 * NS_PER_MS, request_max_ms=10_000, round_ms=1000)


def rates(messages: float | None = None, size: float | None = None) -> Rates:
    """Rates as a person says them."""
    return Rates(rate_of(messages), rate_of(size))


def snapshot_of_acme() -> PolicySnapshot:
    """Groups of every sort, attached to namespaces of the tenant acme, and one topic's limit."""
    groups = (
        Group("gold", Limit(rates(1000, 5_000_000), rates(2000))),
        Group("trial", Limit(publish=rates(40))),
        Group("heavy", Limit(publish=rates(size=1000))),
        Group("stopped", blocked=True),
        Group("watched", Limit(publish=rates(40)), shadow=True),
        Group("idle"),
    )
    return PolicySnapshot(
        groups={group.name: group for group in groups},
        attach=Attachments(
            tenants={"initech": "gold"},
            namespaces={
                "acme/orders": "gold",
                "acme/trial": "trial",
                "acme/heavy": "heavy",
                "acme/stopped": "stopped",
                "acme/watched": "watched",
            },
        ),
        limits=Limits(topics={"persistent://acme/free/slow": LocalLimit(publish=rates(4))}),
    )


class SmallClock:
    """A small daemon's clock."""

    def __init__(self, daemon: "SmallDaemon") -> None:
        self._daemon = daemon

    def now(self) -> Nanos:
        return self._daemon.now

    def unix_ms(self) -> int:
        return UNIX_MS + self._daemon.now // NS_PER_MS


class SmallDaemon:
    """Implements `tests.support.whole_daemon.WholeDaemon` for one broker alone: its share is the quota."""

    def __init__(self, snapshot: PolicySnapshot | None = None, bounds: Bounds = BOUNDS) -> None:
        self.broker = "broker-1"
        self.cluster = "standalone"
        self.now = Nanos(1)
        self.read_only = False
        self.down = False
        self.broken: Exception | None = None
        self.asked: list[Request] = []
        #: Whether it grants many at once; else each question is asked, and stands in `asked`.
        self.grants_together = False
        #: Names of other brokers.
        self.peers: list[str] = []
        self.state = Health(ready=True)
        self.limiter = LimiterAlone(replace(SETTINGS, bounds=bounds.buckets), whole)
        self.leases = Leases(self.limiter, bounds.leases)
        self.lease_requests: list[LeaseRequest] = []
        self.store = BacklogStore(
            BacklogSettings(is_precise=True), self.limiter.block, bounds.backlog
        )
        self.backlogs = Backlogs(self.store, self._handle, SmallClock(self))
        self._records = PolicyRecords()
        for record in records_of(snapshot or snapshot_of_acme(), self.broker):
            self._records.put(record)
        self._snapshot = self._records.snapshot()
        self._put_in_force()

    def advance(self, milliseconds: int) -> None:
        """Let time pass."""
        self.now = Nanos(self.now + milliseconds * NS_PER_MS)

    def acquire(self, request: Request) -> Answer:
        if self.broken is not None:
            raise self.broken
        self.asked.append(request)
        return self.limiter.acquire(request, self.now)

    def acquire_together(self, asked: Collection[Together]) -> bool:
        return self.grants_together and self.limiter.grant_together(asked, self.now)

    def settle(self, name: Name, unused: Pair) -> Pair:
        return self.limiter.settle(name, unused, self.now)

    def open_lease(self, request: LeaseRequest) -> LeaseAnswer | Answer:
        self.lease_requests.append(request)
        return self.leases.open(request, f"lease-{len(self.lease_requests)}", self.now)

    def renew_lease(self, lease_id: str, renewal: Renewal) -> LeaseAnswer | Answer:
        return self.leases.renew(lease_id, renewal, self.now)

    def release_lease(self, lease_id: str, left: Pair) -> Pair:
        return self.leases.release(lease_id, left, self.now)

    def names_resolved(self) -> int:
        return self.limiter.resolved_total

    def snapshot(self) -> PolicySnapshot:
        return self._snapshot

    def group(self, name: str) -> GroupView:
        group = self._group(name)
        attached = self._snapshot.attached_to(name)
        return GroupView(
            group=name,
            blocked=group.blocked,
            shadow=group.shadow,
            soft=None if group.soft_ppm is None else group.soft_ppm / PPM,
            policy=group.policy or "max-min",
            topic_split=group.topic_split or "shared",
            state="live",
            publish=self._kind(group, Kind.PUBLISH),
            dispatch=self._kind(group, Kind.DISPATCH),
            tenants=tuple(attached.tenants),
            namespaces=tuple(attached.namespaces),
            topics=tuple(attached.topics),
        )

    def groups(self, names: Sequence[str]) -> list[GroupView]:
        return [self.group(name) for name in names if name in self._snapshot.groups]

    def broker_names(self) -> list[str]:
        return [*reversed(self.peers), self.broker]

    def brokers(self, among: Sequence[str]) -> tuple[BrokerView, ...]:
        rows = len(self._snapshot.groups)
        return tuple(
            BrokerView(
                name,
                "rgd",
                ("compact",),
                (),
                self=name == self.broker,
                since_s=1,
                age_s=0,
                sequence=7,
                rows=rows,
            )
            for name in among
        )

    def nearest(self, name: Name) -> Headroom | None:
        return self.limiter.nearest(name, self.now)

    def explain(self, name: Request) -> ExplainView:
        """Tells that nothing limits the name: tests/unit/cli/test_why.py has a whole daemon."""
        names = (name.kind, name.namespace or "", name.topic, name.subscription)
        return ExplainView(self.broker, *names, False, None, (), (), ())

    def throttled(self, topic: str) -> list[Throttled]:
        table = self.limiter.throttled
        return [one for name in table.names(topic) if (one := table.of(*name, self.now))]

    def throttled_partitions(self, topic: str) -> list[str]:
        return self.limiter.throttled.partitions_of(topic, self.now)

    def health(self) -> Health:
        return self.state

    async def change(self, key: str, change: Change) -> None:
        self._check_writable()
        value = change(self._records.value(key))
        self._records.put(self._records.next(key, value, self.broker))
        self._snapshot = self._records.snapshot()
        self._put_in_force()

    def value(self, key: str) -> Value:
        """What is known of a policy, as `change` is told it."""
        return self._records.value(key)

    async def delete_group(self, name: str) -> None:
        self._check_writable()
        self._group(name)
        attached = self._snapshot.attached_to(name)
        users = [*attached.tenants, *attached.namespaces, *attached.topics]
        if users:
            raise GroupInUse(name, users[0])
        await self.change(GROUP + name, lambda _known: None)

    async def attach(self, key: str, group: str | None) -> None:
        self._check_writable()
        if group is not None:
            self._group(group)
        await self.change(key, lambda _known: group)

    def _put_in_force(self) -> None:
        self.limiter.set_policies(self._snapshot, self.now)
        self.store.backlogs = self._snapshot.backlogs

    def _handle(self, event: Event) -> None:
        """Backlogs: what the core does with them, a check at once."""
        match event:
            case BacklogsReported(reports=reports):
                for report in reports:
                    self.store.report(report, event.now)
            case BacklogsWithdrawn(source=source, topics=topics):
                for topic in topics:
                    self.store.withdraw(topic, source)
            case BacklogEvicted(eviction=eviction):
                self.store.evicted_now(eviction)
            case BacklogCheckAsked():
                asyncio.get_running_loop().call_soon(self._check)
            case _:
                raise AssertionError(event)

    def _check(self) -> None:
        number = self.store.checks + 1
        self.store.ask()
        while self.store.checks < number:
            self.store.work(self.now)
        self.backlogs.checked(number)

    def _group(self, name: str) -> Group:
        if name not in self._snapshot.groups:
            raise UnknownGroup(name)
        return self._snapshot.groups[name]

    def _check_writable(self) -> None:
        if self.read_only:
            raise PoliciesReadOnly("policies.source is file: change groups.yaml")
        if self.down:
            raise ExchangeDown("the policies table cannot be written now")

    def _kind(self, group: Group, kind: Kind) -> KindView:
        view = _view(group.rates(kind))
        row = RowView(self.broker, RatesView(0, 0), RatesView(0, 0), 0, 0.5, view)
        return KindView(view, view, (row,))


def _view(told: Rates) -> RatesView:
    def units(rate: Rate) -> float | None:
        return None if rate is None else to_units(rate)

    return RatesView(units(told.messages), units(told.bytes))


async def reply_of(answering: Answering) -> Reply:
    """The reply of a hot call, once it is there."""
    return answering if isinstance(answering, Reply) else await answering
