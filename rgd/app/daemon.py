"""The daemon: one broker's core, its doors, and the tasks that carry events in and effects out.

Laws: one task at a time touches the core (everything runs on one event loop and
no call into the core waits), so there are no locks; an effect is carried out in
order; nothing that waits (a send, a disk) is ever waited for by a request.

Its life has three phases, `startup`, `serve` and `shutdown`. If the exchange
cannot be reached it serves all the same and says that it is degraded.

Which parts it is made of is decided in `rgd.app.wiring`.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Final, assert_never

import structlog

from rgd.app.alarms import AlarmLog
from rgd.app.backlog_polling import BacklogPoller
from rgd.app.backlogs import Backlogs, nobody_listens
from rgd.app.clock import Clock
from rgd.app.containment import InternalErrors, contained
from rgd.app.health import health
from rgd.app.log_keeping import LogKeeper
from rgd.app.policies import admin
from rgd.app.policies.source import Policies
from rgd.app.shard_topics import ShardTopics
from rgd.app.stock_neighbours import StockNeighbours, StockParts
from rgd.app.traffic import Traffic
from rgd.core.backlog.model import Eviction
from rgd.core.broker.broker import Broker
from rgd.core.broker.effects import (
    Alarm,
    Append,
    BacklogChecked,
    Effect,
    Evict,
    Halt,
    Listen,
    Publish,
    Remember,
    SendStockReport,
)
from rgd.core.broker.events import (
    Event,
    GateIsolated,
    GroupsAsked,
    GroupsResumed,
    MessageReceived,
    PoliciesChanged,
    ShardOpened,
    Started,
    Stopping,
    Woken,
)
from rgd.core.buckets.decision import Request
from rgd.core.buckets.throttled import Throttled
from rgd.core.exchange.messages import Message, PoliciesInForce, Report, RoundRecord
from rgd.core.exchange.shards import WHOLE, Shard
from rgd.core.gate import looks
from rgd.core.gate.local import LocalGate
from rgd.core.policies.model import GroupKey, Rates
from rgd.core.policies.records import Change
from rgd.core.policies.snapshot import PolicySnapshot
from rgd.core.units import NS_PER_S
from rgd.ports.answers import Health
from rgd.ports.exchange import Exchange, ExchangeClosed, Received
from rgd.ports.usagelog import UsageLog
from rgd.views.explain import explain
from rgd.views.groups import group_view, group_views
from rgd.views.members import broker_views
from rgd.views.model import BrokerView, ExplainView, GroupView
from rgd.wire.dialect import CompactDialect

#: Groups that another plane gave slots, in one go.
GROUPS_SLICE: Final = 50

_log = structlog.get_logger("rgd.daemon")


@dataclass(frozen=True, slots=True)
class Parts:
    """What a daemon is made of."""

    clock: Clock
    exchange: Exchange
    #: Makes the exchange of a shard.
    shard_exchange: Callable[[Shard], Exchange]
    policies: Policies
    usage_log: UsageLog
    #: Stores the names of the live peers for the next start; never raises.
    remember: Callable[[tuple[str, ...]], None]
    #: Hears how long the end of a round took, in seconds.
    observe_round: Callable[[float], None]
    #: Hears how long a check of all backlogs took, in seconds.
    observe_backlog_check: Callable[[float], None] = nobody_listens
    #: Hears what a check says to evict, of all sources; never waits.
    evict: Callable[[tuple[Eviction, ...]], None] = nobody_listens
    #: Reads backlogs from a stock Pulsar; None: nobody does.
    poller: BacklogPoller | None = None
    #: The usage log's tier and readers; None: it has none.
    log_keeper: LogKeeper | None = None
    #: The stock brokers that share the quotas; None: there are none.
    stock: StockParts | None = None


class Agreeing:
    """One running broker, but for the answers of its gate."""

    def __init__(self, core: Broker, parts: Parts, cluster: str) -> None:
        self.core = core
        self.broker = core.settings.sender.broker
        self.cluster = cluster
        self.parts = parts
        self.now = parts.clock.now
        self.errors = InternalErrors(self.now, self._halt)
        self.traffic: Traffic[Message] = Traffic(
            parts.exchange,
            # A plane that took over numbers names anew, and its peers know those of the one before.
            CompactDialect(first_generation=core.identity.sequence + 1),
            self.errors,
            outdated_s=self._round_s,
        )
        self.shards = ShardTopics(
            parts.shard_exchange,
            take=self._take,
            opened=self._shard_opened,
            errors=self.errors,
            outdated_s=self._round_s,
            # A plane before this one may have used as many.
            joined=core.identity.sequence,
        )
        self.stock: StockNeighbours | None = None
        if parts.stock is not None:
            self.stock = StockNeighbours(
                parts.stock,
                self.errors,
                parts.clock,
                handle=self._handle,
                members=core.stock.members,
                broker=self.broker,
            )
        #: Policies that are in force and not logged yet.
        self._unlogged: tuple[PolicySnapshot, int] | None = None
        self.backlogs = Backlogs(core.backlogs, self._handle, parts.clock)
        #: Set when the time keeper should look at the core again.
        self._poked = asyncio.Event()
        #: How long the wakes took in which the present round ends.
        self._ending_ns = 0
        self._is_draining = False
        #: Called when the core has raised: a plane's process ends at once, because its gate goes on.
        self.on_broken: Callable[[str], None] = self._halt
        #: Why this daemon may not go on.
        self.halted: str | None = None
        #: Called with it once: a plane's process tells its gate, which first stops granting and then sets `until`.
        self.on_halted: Callable[[str], None] = nobody_listens
        self._alarms = AlarmLog(self.broker)
        core.gate.news.on_news = self._poked.set
        #: Whether `run` has begun, and whether the core was started.
        self._is_up = False
        self._started = asyncio.Event()
        # Before any door opens: nothing is decided without policies.
        self._on_snapshot(parts.policies.snapshot(), 0)

    # The doors (rgd.ports.daemon); those that decide are in `answering`.

    def health(self) -> Health:
        """Whether shares are known, and what is degraded."""
        try:
            return self._health()
        except Exception as error:  # noqa: BLE001 -- a probe that fails takes a daemon away that grants
            self.errors.note("view", error, may_end=False)
            return Health(not self._is_draining, (f"internal errors: {self.errors.trouble}",))

    def _health(self) -> Health:
        policies = self.parts.policies
        beside = {
            "exchange": self.traffic.trouble,
            **(self.stock.troubles() if self.stock else {}),
            "shards": self.shards.trouble,
            "usage log": self.parts.usage_log.trouble,
            "tier": self.parts.log_keeper.trouble if self.parts.log_keeper else None,
            "policies": policies.trouble,
            "backlogs": self.parts.poller.trouble if self.parts.poller else None,
            "internal errors": self.errors.trouble,
        }
        notes = tuple(f"{what}: {why}" for what, why in beside.items() if why)
        state = health(self.core, is_draining=self._is_draining, notes=notes)
        return replace(state, ready=state.ready and policies.is_settled)

    async def change(self, key: str, change: Change) -> None:
        """Change one policy."""
        await self.parts.policies.change(key, change)

    async def delete_group(self, name: str) -> None:
        """Delete a group."""
        await admin.delete_group(self.parts.policies, name)

    async def attach(self, key: str, group: str | None) -> None:
        """Attach a tenant, namespace or topic to a group, or to none."""
        await admin.attach(self.parts.policies, key, group)

    # Looks: each is one slice of bounded work on the event loop, and changes nothing.

    def snapshot(self) -> PolicySnapshot:
        """The policies in force."""
        return self.core.sharing.snapshot

    @contained("view")
    def group(self, name: str) -> GroupView:
        """One group with its rows."""
        return group_view(self.core, name, self.now())

    @contained("view")
    def groups(self, names: Sequence[str]) -> list[GroupView]:
        """Those of some groups that exist, with their rows."""
        return group_views(self.core, names, self.now())

    def broker_names(self) -> list[str]:
        """The names of every member known, this one too."""
        stock = self.core.stock.members.names()
        return [self.core.settings.sender.broker, *self.core.peers.names(), *stock]

    @contained("view")
    def brokers(self, among: Sequence[str]) -> tuple[BrokerView, ...]:
        """The members known among these names, in their order."""
        also_pulsar = self.stock.senders if self.stock else ()
        return broker_views(self.core, self.now(), among, also_pulsar)

    @contained("view")
    def explain(self, name: Request) -> ExplainView:
        """Why a name is limited, or is not."""
        return explain(self.core, name, self.now())

    @contained("view")
    def throttled(self, topic: str) -> list[Throttled]:
        """What throttled the dispatch of a topic's subscriptions lately."""
        return [*looks.all_throttled(self.core.gate, self.now(), topic)]

    @contained("view")
    def throttled_partitions(self, topic: str) -> list[str]:
        """The partitions of a topic whose dispatch was throttled lately."""
        of_topic = partial(looks.throttled_partitions, topic=topic, now=self.now())
        return looks.listed(self.core.gate, of_topic)

    # Its life.

    async def run(self, until: asyncio.Event, *, on_up: Callable[[], None]) -> None:
        """Serve until `until` is set, then leave in order."""
        await self.parts.usage_log.open()
        if self.parts.log_keeper is not None:
            self.parts.log_keeper.start()
        self._start()
        on_up()
        async with asyncio.TaskGroup() as tasks:
            works: dict[str, Callable[[], Awaitable[None]]] = {
                "time": self._keep_time,
                "exchange": self._follow_exchange,
                "policies": self._follow_policies,
                "send": self.traffic.send,
            }
            if self.parts.poller is not None:
                works["backlogs"] = partial(self.parts.poller.follow, self.backlogs)
            if self.stock is not None:
                works |= self.stock.works()
            running = [
                tasks.create_task(self.errors.keep(name, work), name=name)
                for name, work in works.items()
            ]
            await until.wait()
            self._handle(Stopping(self.now()))
            self.backlogs.close()
            await self.traffic.flush()
            if self.stock is not None:
                await self.stock.traffic.flush()
            for task in running:
                task.cancel()

    async def close(self) -> None:
        """Close the exchange, the policies and the log, each whatever the others raise."""
        parts = self.parts
        for part in (
            self.shards,
            parts.exchange,
            parts.policies,
            parts.usage_log,
            parts.log_keeper,
            parts.poller,
            self.stock,
        ):
            try:
                if part is not None:
                    await part.close()
            except Exception as error:  # noqa: BLE001 -- the next part has nothing to do with it
                self.errors.note("close", error, about=type(part).__name__)

    def drain(self) -> None:
        """Tell load balancers to go elsewhere."""
        self._is_draining = True
        if self.parts.log_keeper is not None:
            self.parts.log_keeper.drain()

    def groups_asked(self, keys: Sequence[GroupKey]) -> None:
        """Give groups a slot that the gate, in another process, was asked for."""
        self._handle(GroupsAsked(self.now(), tuple(keys)))

    def gate_isolated(self) -> None:
        """Tell the gate, in another process, all shares again."""
        self._handle(GateIsolated(self.now()))

    # Tasks.

    async def _keep_time(self) -> None:
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(self._until_wake_s()):
                    await self._poked.wait()
            self._poked.clear()
            wake_at = self.core.wake_at
            if wake_at is not None and self.now() >= wake_at:
                self._wake()
                # Messages are read between two pieces of the core's work.
                await asyncio.sleep(0)

    async def _follow_exchange(self) -> None:
        await self._started.wait()
        await self.traffic.follow(self._take)

    async def _follow_policies(self) -> None:
        with suppress(ExchangeClosed):
            await self.parts.policies.follow(self._on_snapshot)

    # Events in, effects out.

    def _handle(self, event: Event) -> None:
        try:
            effects = self.core.handle(event)
        except Exception as error:  # noqa: BLE001 -- whatever it is, the core is not to be used any more
            self.errors.note("core", error, about=type(event).__name__)
            self.on_broken(f"the core raised {error!r}")
            return
        for effect in effects:
            try:
                self._carry_out(effect)
            except Exception as error:  # noqa: BLE001 -- the next effect has nothing to do with it
                self.errors.note("effect", error, about=type(effect).__name__)
        # The core may want to be woken earlier than it did before.
        self._poked.set()

    def _wake(self) -> None:
        publisher, began = self.core.publisher, self.now()
        round_began = publisher.round_began
        self._handle(Woken(began))
        self._ending_ns += self.now() - began
        if publisher.round_began != round_began:
            self.parts.observe_round(self._ending_ns / NS_PER_S)
        if not self.core.rounds.is_ending:
            self._ending_ns = 0

    def _carry_out(self, effect: Effect) -> None:
        match effect:
            case Publish() | Listen() | SendStockReport():
                self._send(effect)
            case Append(record):
                self._append(record)
            case Remember(peers):
                self.parts.remember(peers)
                self.traffic.keep_names({*peers, self.broker})
            case Alarm():
                self._alarms.tell(effect, self.now())
            case Halt(reason):
                self._halt(reason)
            case Evict(evictions):
                self.parts.evict(evictions)
            case BacklogChecked(number, began_at):
                self.backlogs.checked(number)
                self.parts.observe_backlog_check((self.now() - began_at) / NS_PER_S)
            case _:
                assert_never(effect)

    def _append(self, record: RoundRecord) -> None:
        """Log a round, and before it the policies that it goes by, if others were logged last."""
        append, unix_ms = self.parts.usage_log.append, self.parts.clock.unix_ms()
        # Each segment begins with the policies that the log took last, so dropped ones are due again.
        if self._unlogged is not None and append(
            PoliciesInForce(record.sender, *self._unlogged), broker_timestamp_ms=unix_ms
        ):
            self._unlogged = None
        append(record, broker_timestamp_ms=unix_ms)

    def _send(self, effect: Publish | Listen | SendStockReport) -> None:
        match effect:
            case Publish(Report(shard=shard) as report) if shard != WHOLE:
                self.shards.post(report, shard)
            case Publish(message):
                self.shards.leave_idle()
                self.traffic.post(message)
            case Listen(shards):
                self.shards.listen(shards)
            case SendStockReport(report):
                if self.stock is not None:
                    self.stock.post(report)

    def _halt(self, reason: str) -> None:
        """Leave in order: this daemon may not go on."""
        if self.halted is None:
            self.halted = reason
            _log.error("refused to go on", reason=reason)
            self.on_halted(reason)

    def _shard_opened(self, shard: Shard) -> None:
        self._handle(ShardOpened(self.now(), shard))

    def _resume(self) -> None:
        """Take over the groups of the gate whose plane has gone."""
        groups: list[tuple[GroupKey, Rates]] = []
        gate = self.core.gate
        # All of them before the first gets a slot id, because that changes which are there.
        while some := gate.ask(LocalGate.groups_in_use, len(groups), GROUPS_SLICE, self.now()):
            groups += some
        for begin in range(0, len(groups), GROUPS_SLICE):
            some = groups[begin : begin + GROUPS_SLICE]
            self._handle(GroupsResumed(self.now(), tuple(some)))

    @property
    def _round_s(self) -> float:
        return self.core.settings.round_ns / NS_PER_S

    def _take(self, received: Received) -> None:
        message = self.traffic.decoded(received.payload)
        if message is not None:
            self._handle(MessageReceived(self.now(), message))

    def _on_snapshot(self, snapshot: PolicySnapshot, policies_hash: int) -> None:
        known = self.parts.policies.is_known
        self._unlogged = (snapshot, policies_hash)
        self._handle(PoliciesChanged(self.now(), snapshot, policies_hash, known))
        if self._is_up:
            self._start()

    def _start(self) -> None:
        """Start the core; one that takes over does so with the first policies, because the gate has groups."""
        self._is_up = True
        if self._started.is_set() or (self.core.resumes and not self.parts.policies.is_known):
            return
        if self.core.resumes:
            self._resume()
        self._handle(Started(self.now()))
        self._started.set()

    def _until_wake_s(self) -> float | None:
        wake_at = self.core.wake_at
        return None if wake_at is None else max(0.0, (wake_at - self.now()) / NS_PER_S)
