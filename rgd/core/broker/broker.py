"""One member of the exchange: it takes events and returns effects.

Laws:

- Only `Broker.handle` changes this state; requests and leases are the exception, because they take
  the fast path through `Broker.limiter` and `Broker.leases`. The same events in the same order give the same effects, in
  the daemon and in the simulator.
- What a handler raises is raised: nothing that the broker says after it can be trusted, so its process ends.

A broker sends a hello at its start, the changed rows each round, an early report of demand that the
peers do not know of, its full state when a peer asks for it, and a goodbye. The state is kept by
`membership` (the live peers), `exchange_state` (whether to use what they sent), `sharing` (shares)
and `rounds` (reports).
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace

import numpy as np

from rgd.core.backlog.store import BacklogStore
from rgd.core.broker.effects import Alarm, AlarmCode, Append, BacklogChecked, Effect, Evict
from rgd.core.broker.events import (
    BacklogCheckAsked,
    BacklogEvicted,
    BacklogsReported,
    BacklogsWithdrawn,
    Event,
    GateIsolated,
    GroupsAsked,
    GroupsResumed,
    MessageReceived,
    PoliciesChanged,
    ShardOpened,
    Started,
    StockBrokersListed,
    StockReportReceived,
    Stopping,
    Woken,
)
from rgd.core.broker.exchange_state import ExchangeState
from rgd.core.broker.identity import Identity
from rgd.core.broker.link import Link
from rgd.core.broker.membership import Membership
from rgd.core.broker.mode import Mode, Signal
from rgd.core.broker.name_claim import NameClaim
from rgd.core.broker.own_name import OwnName
from rgd.core.broker.parts import gate_of, local, peers_of
from rgd.core.broker.publisher import Publisher, Sources
from rgd.core.broker.rounds import Rounds
from rgd.core.broker.settings import BrokerSettings
from rgd.core.broker.shard_reader import ShardReader
from rgd.core.broker.shard_sender import ShardSender
from rgd.core.broker.sharing import Sharing
from rgd.core.broker.stock_work import StockWork
from rgd.core.broker.takeover import resume
from rgd.core.buckets.limiter import Limiter
from rgd.core.exchange.group_index import GroupIndex
from rgd.core.exchange.messages import Ask, Hello
from rgd.core.exchange.usage_map import UsageMap
from rgd.core.gate.port import Gate
from rgd.core.leases.leases import Leases
from rgd.core.policies.model import Group, GroupKey, OnUnknown, Rates
from rgd.core.policies.snapshot import ALL_CHANGED, PolicySnapshot, changes_between
from rgd.core.shares.model import bounded_weight
from rgd.core.units import Kind, Nanos


class Broker:
    """The state of one member; the module states its laws.

    Args:
        settings: they do not change.
        now: the time of the start.
        gate: answers requests; without one the broker makes its own.
        former: the sequences that another plane noted (`rgd.core.broker.identity`), which used this gate and has gone; after the
            first policies that are known come the groups that the gate has (`GroupsResumed`), and then the start.
    """

    def __init__(
        self,
        settings: BrokerSettings,
        now: Nanos,
        gate: Gate | None = None,
        former: Mapping[tuple[int, int], int] | None = None,
    ) -> None:
        # The peers compute with the bounded weight, so this broker does, too.
        settings = replace(settings, weight=bounded_weight(settings.weight))
        self.settings = settings
        self.created_at = now
        self.resumes = former is not None
        self.identity = Identity(settings, former)
        self.peers = peers_of(settings)
        self.index = GroupIndex(settings.bounds.exchange)
        self.usage = UsageMap(self.index)
        self.link = Link(settings.patience_ns, settings.damping_max_ns)
        self.gate = gate or gate_of(settings, self._first_share)
        self.sharing = Sharing(
            settings, self.usage, self.peers, self.link, self.gate, resumes=self.resumes
        )
        self.stock = StockWork(settings, self.usage, self.sharing, self.peers)
        self._now = now
        #: How requests are answered while no policies are known; None: they are known.
        self.unknown: OnUnknown | None = None
        self.backlogs = BacklogStore(settings.backlog, self.gate.block, settings.bounds.backlog)
        self.rounds = Rounds(settings, self.gate.news, self.sharing, self.index)
        self.shards = ShardSender(settings, self.identity, self.rounds, self.peers)
        self.shard_reader = ShardReader(self.peers, self.usage, self.sharing, self.shards)
        self.membership = Membership(
            self.peers, self.usage, self.sharing, sender=self.shards, reader=self.shard_reader
        )
        self.name = NameClaim(
            settings, self.identity, self.link, is_isolated=lambda: self.mode.is_isolated
        )
        self.exchange_state = ExchangeState(
            settings,
            self.link,
            self.membership,
            sharing=self.sharing,
            now=now,
        )
        sources = Sources(
            self.identity,
            self.name,
            self.link,
            self.peers,
            self.rounds,
            self.sharing,
            self.membership,
            self.shards,
            self.shard_reader,
        )
        self.publisher = Publisher(settings, sources, now)
        self.own_name = OwnName(settings, sources, self.exchange_state, self.publisher)
        self.rounds.is_resuming = self.resumes
        self.membership.awaits_own_state = self.resumes and settings.shards == 1
        self._is_started = self._knows_policies = self._lacks_slots = False
        self._round_end = now
        self._handlers = self._handlers_by_event()

    @property
    def limiter(self) -> Limiter:
        """The fast path of requests, where the gate is in this process."""
        return local(self.gate)

    @property
    def leases(self) -> Leases:
        """The fast path of leases, where the gate is in this process."""
        return local(self.gate).leases

    @property
    def mode(self) -> Mode:
        """What this broker computes its shares from."""
        return self.sharing.mode

    @property
    def reports_received(self) -> int:
        """How many reports of peers were new."""
        return self.membership.reports_received + self.shard_reader.reports_received

    @property
    def wake_at(self) -> Nanos | None:
        """When the next `Woken` is due; None before the start."""
        if not self._is_started:
            return None
        # A list, because a generator takes longer, and this is read after each event.
        return min([at for at in self._due() if at is not None])

    @property
    def is_past_start(self) -> bool:
        """Whether shares are known, or the exchange is unreachable two rounds after the start."""
        return self.exchange_state.is_past_start(self._now)

    def handle(self, event: Event) -> tuple[Effect, ...]:
        """Apply an event.

        Returns:
            The effects to carry out, in order.

        Raises:
            Exception: a bug; this broker is not to be used any more.
        """
        if event.now < self._now:
            event = replace(event, now=self._now)
        gap_ns, self._now = event.now - self._now, event.now
        return (*self._notice_gap(gap_ns, event.now), *self._handlers[type(event)](event))

    def shares(self, key: GroupKey) -> dict[str, Rates]:
        """Every live broker's share of a group, as this broker computes it."""
        return self.sharing.shares(key)

    def validate(self) -> None:
        """Check the invariants of the whole state.

        Raises:
            InvariantBroken: one does not hold; a bug.
        """
        self.usage.validate()
        self.membership.validate()
        self.sharing.validate()

    def _due(self) -> tuple[Nanos | None, ...]:
        """When each part has work; None where it has none."""
        now, publisher = self._now, self.publisher
        return (
            now if self.rounds.is_ending else self._round_end,
            now if self.rounds.has_unreported else self.rounds.tick_at,
            publisher.early_at,
            publisher.alive_at,
            self.shards.due_at,
            self.shard_reader.due_at,
            self.own_name.due_at,
            self.membership.check_at,
            self.sharing.due_at,
            self.exchange_state.due_at,
            now if self.gate.is_behind else None,
            self.backlogs.due_at(now),
            self.stock.due_at(now),
        )

    @property
    def _leaves_gate(self) -> bool:
        """Whether the gate goes on with another plane's policies, because this one knows none yet."""
        return self.resumes and not self._knows_policies

    # Handlers, one for each event.

    def _handlers_by_event(self) -> Mapping[type[Event], Callable[..., Iterable[Effect]]]:
        return {
            Started: self._on_started,
            Woken: self._on_woken,
            MessageReceived: self._on_message_received,
            ShardOpened: self._on_shard_opened,
            PoliciesChanged: self._on_policies_changed,
            GroupsAsked: self._on_groups_asked,
            GroupsResumed: self._on_groups_resumed,
            GateIsolated: self._on_gate_isolated,
            BacklogsReported: self._on_backlogs_reported,
            BacklogsWithdrawn: self._on_backlogs_withdrawn,
            BacklogEvicted: self._on_backlog_evicted,
            BacklogCheckAsked: self._on_backlog_check_asked,
            StockReportReceived: self.stock.on_report,
            StockBrokersListed: self.stock.on_listed,
            Stopping: self._on_stopping,
        }

    def _on_started(self, event: Started) -> list[Effect]:
        self._is_started = self.publisher.is_started = True
        self.exchange_state.start(event.now)
        self.name.start(event.now, resumes=self.resumes)
        self.gate.note_sequences(self.identity.used())
        self._round_end = Nanos(event.now + self.settings.round_ns)
        return [self.publisher.hello(event.now)]

    def _on_woken(self, event: Woken) -> Iterator[Effect]:
        now = event.now
        if not self._is_started:
            return
        yield from self.own_name.check(now)
        yield from self.exchange_state.check(now)
        yield from self.membership.check(now)
        yield from self.shard_reader.work(now)
        if self.rounds.has_unreported:
            self.rounds.collect_unreported()
            self._report_early_from(now)
        # Due messages are sent before any work, because peers would take a silent broker for dead.
        begins = now >= self._round_end and not self.rounds.is_ending
        yield from self.publisher.send_due(now, round_begins_to_end=begins)
        if begins:
            self._begin_end(now)
        yield from self._work(now)
        if self.identity.is_to_note:
            self.gate.note_sequences(self.identity.used())

    def _work(self, now: Nanos) -> Iterator[Effect]:
        """Do a piece of each kind of work; where more is left, the next wake is due at once."""
        if self.rounds.tick(now):
            self._report_early_from(now)
        yield from self._end_round(now)
        self.sharing.work(now)
        self.sharing.raise_due(now)
        self.gate.work(now)
        yield from self._check_backlogs(now)
        yield from self.stock.work(now)

    def _report_early_from(self, now: Nanos) -> None:
        if not self.rounds.is_resuming:
            self.publisher.report_early_from(now)

    def _on_message_received(self, event: MessageReceived) -> list[Effect]:
        message, now = event.message, event.now
        me = self.identity.sender
        if message.sender == me:
            effects = self.own_name.read_back(message, now)
            if self.link.reached_at is not None and self.sharing.is_resuming:
                # The peers know that this broker is there, so they leave it the shares that its gate has.
                self.gate.set_depth(self.settings.burst_ns)
            return effects
        if message.sender.broker == me.broker:
            return self.own_name.receive(message, now)
        effects = self.membership.receive(message, now)
        if isinstance(message, Hello):
            self.publisher.answer_soon(message.sender.incarnation, now)
        elif isinstance(message, Ask) and message.broker in {me.broker, message.sender.broker}:
            if message.full:
                self.publisher.answer_soon(message.sender.incarnation, now, message.shard)
            else:
                self.publisher.show_life(now)
        return [*effects, *self.exchange_state.check_answers(now)]

    def _on_shard_opened(self, event: ShardOpened) -> list[Effect]:
        return self.shard_reader.opened(event.shard, event.now)

    def _on_policies_changed(self, event: PoliciesChanged) -> list[Effect]:
        if self._leaves_gate and not event.known:
            return []
        self._knows_policies = event.known
        self._put_policies(event.snapshot, event.now)
        self.membership.policies_hash = event.policies_hash
        self.unknown = None if event.known else self.settings.on_unknown
        self.gate.set_unknown(self.unknown)
        self.membership.policies_changed()
        self.backlogs.backlogs = event.snapshot.backlogs
        self.stock.renew(event.now)
        return []

    def _put_policies(self, snapshot: PolicySnapshot, now: Nanos) -> None:
        before, changes = self.gate.snapshot, ALL_CHANGED
        # The gate may have those of a plane before, and this one none yet.
        if self.sharing.snapshot is before:
            changes = changes_between(before, snapshot, self.settings.bounds.sharing.changes_max)
        few = self.sharing.set_policies(snapshot, changes)
        self.gate.set_policies(snapshot, now, changes)
        self.sharing.share_out(few, now)

    def _on_groups_asked(self, event: GroupsAsked) -> Iterable[Effect]:
        # `GroupsResumed` has them, too.
        if not self._leaves_gate:
            self.sharing.give_slots(event.keys, event.now)
        return ()

    def _on_groups_resumed(self, event: GroupsResumed) -> Iterable[Effect]:
        resume(event, self.index, self.sharing, self.rounds, self.gate)
        return ()

    def _on_gate_isolated(self, event: GateIsolated) -> Iterable[Effect]:
        self.sharing.become(self.sharing.mode, event.now)
        return ()

    def _on_backlogs_reported(self, event: BacklogsReported) -> Iterable[Effect]:
        for report in event.reports:
            self.backlogs.report(report, event.now)
        return ()

    def _on_backlogs_withdrawn(self, event: BacklogsWithdrawn) -> Iterable[Effect]:
        for topic in event.topics:
            self.backlogs.withdraw(topic, event.source)
        return ()

    def _on_backlog_evicted(self, event: BacklogEvicted) -> Iterable[Effect]:
        self.backlogs.evicted_now(event.eviction)
        return ()

    def _on_backlog_check_asked(self, _event: BacklogCheckAsked) -> Iterable[Effect]:
        self.backlogs.ask()
        return ()

    def _on_stopping(self, event: Stopping) -> Iterator[Effect]:
        if not self._is_started:
            return
        if not self.rounds.is_ending:
            self._begin_end(event.now)
        while self.rounds.is_ending:
            self.rounds.step(event.now)
        ungoverned = self.gate.drain_ungoverned()
        reports, record = self.publisher.finish_round(event.now, ungoverned, last=True)
        # These reports are not sent, because peers drop this broker's rows at its goodbye.
        self.publisher.reports_sent -= len(reports)
        yield Append(record)
        if not self.name.is_lost:
            # Zeros would replace what the other daemon of the name reports.
            yield from self.stock.farewell()
        yield from self.publisher.goodbye()

    def _check_backlogs(self, now: Nanos) -> Iterator[Effect]:
        """Do a slice of a check of backlogs, if one is due."""
        store, due_at = self.backlogs, self.backlogs.due_at(now)
        if due_at is None or now < due_at:
            return
        before = store.checks
        if named := store.work(now):
            yield Evict(tuple(named))
        if store.checks != before:
            yield BacklogChecked(store.checks, store.began_at, store.visited)

    # Rounds.

    def _begin_end(self, now: Nanos) -> None:
        self.publisher.early_at = None
        # Rounds that were missed are skipped.
        ended = 1 + (now - self._round_end) // self.settings.round_ns
        self._round_end = Nanos(self._round_end + ended * self.settings.round_ns)
        self.rounds.begin()

    def _end_round(self, now: Nanos) -> Iterator[Effect]:
        """Do a piece of a round's end, if one is ending."""
        if not self.rounds.is_ending or not self.rounds.step(now):
            return
        self.gate.end_round(now)
        yield from self._report_round(now)
        self.gate.note_sequences(self.identity.used())
        if self.rounds.is_resuming:
            # Every group in use has been measured, so the peers may replace what the former plane sent.
            self.rounds.is_resuming = False
            self.shards.answer_all(now)
        if self.link.reached_at is None and not self.name.is_lost:
            yield self.publisher.hello(now)
        if self.shard_reader.is_used:
            self.sharing.shards.use(self.sharing.slots_in_use, now)
            self.shard_reader.end_round(now)
        yield from self._free_slots(now)

    def _report_round(self, now: Nanos) -> list[Effect]:
        reports, record = self.publisher.finish_round(now, self.gate.drain_ungoverned())
        # Requests that no limit applied to are also worth a record.
        is_worth = len(record.rows) or record.ungoverned or record.unknown_refused
        return [Append(record), *reports] if is_worth else reports

    def _free_slots(self, now: Nanos) -> Iterator[Effect]:
        """Free unused slot ids, and try again to give them to groups without one; alert where they became too few."""
        slots = np.arange(len(self.index))
        used = self.sharing.is_in_use(slots) | self.rounds.suppression.is_advertised(slots)
        used |= self.usage.counts(slots) > 0
        unused = np.flatnonzero(self.index.is_given[: len(slots)] & ~used)
        self.rounds.free_dropped()
        self.index.free(unused[: self.index.bounds.freed_a_round])
        self.sharing.retry(now)
        lacked, self._lacks_slots = self._lacks_slots, self.sharing.slotless > 0
        if self._lacks_slots and not lacked:
            yield Alarm(AlarmCode.GROUPS_WITHOUT_SLOT)

    def _notice_gap(self, gap_ns: int, now: Nanos) -> list[Effect]:
        """Detect a suspended process: no event came for `patience_ns`."""
        if not self._is_started or gap_ns <= self.settings.patience_ns:
            return []
        # Messages of the peers may still wait to be read, so no peer counts as silent yet.
        self.peers.forgive(now)
        self.name.doubt(now)
        if self.exchange_state.wait_again(now):
            return [self.publisher.hello(now), *self.shard_reader.rejoin(now)]
        # The peers drop this broker about now, so they use its shares. The gap counts without
        # `damping_max_ns`, because its last message may be older than the gap.
        is_dropped = gap_ns > self.settings.expiry_rounds * self.settings.round_ns
        if is_dropped and (rejoined := self.own_name.come_back(Signal.DROPPED, now)):
            return rejoined
        return [] if self.name.is_lost else self.shard_reader.rejoin(now, asks_warm=False)

    def _first_share(self, group: Group, kind: Kind, now: Nanos) -> tuple[int, Rates]:
        return self.sharing.first_share(group, kind, now)
