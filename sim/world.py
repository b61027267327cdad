"""A world of brokers: one heap of things to come, one clock, one seeded dice.

Law: the same seed and the same calls give the same run. Virtual time moves only from one thing to
the next, so an hour takes as long as its events do.

Each member has a brain (`sim.member`: the daemon's core, or a rival) and a clock of its own; what it
publishes reaches every member, itself too, over `sim.network`. A member that is frozen, as in a
paused virtual machine, lives through everything at once when it thaws. Load is the business of
`sim.load` and `sim.caller`, faults are those of `sim.fault`, what to check of `sim.checkers`.
"""

import heapq
from collections.abc import Callable, Sequence
from itertools import count
from random import Random
from typing import Any

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
    MessageReceived,
    PoliciesChanged,
    ShardOpened,
    Started,
    Stopping,
    Woken,
)
from rgd.core.broker.settings import BrokerSettings
from rgd.core.buckets.decision import Decision, Request
from rgd.core.exchange.messages import Message, Report
from rgd.core.exchange.shards import WHOLE, Shard
from rgd.core.gate.local import hold_rounds
from rgd.core.policies.snapshot import PolicySnapshot
from rgd.core.stock.messages import StockReport
from rgd.core.units import Nanos
from sim.clock import Clock
from sim.member import Brain, CoreBrain, Member
from sim.network import Network
from sim.planes import ApartBrain

#: From settings and the moment (of the member's own clock) to a brain.
BrainMaker = Callable[[BrokerSettings, Nanos], Brain]


class World:
    """Runs members until a moment."""

    def __init__(
        self,
        *,
        seed: int = 0,
        network: Network | None = None,
        make_brain: BrainMaker = CoreBrain,
    ) -> None:
        self.now = Nanos(0)
        self.network = network or Network()
        self.dice = Random(seed)
        #: By address; a restarted member takes the place of the one that crashed.
        self.members: dict[str, Member] = {}
        #: Called after every event, with the member to whom it happened.
        self.watchers: list[Callable[[Member], None]] = []
        self.make_brain = make_brain
        #: Called with what a member reports to stock brokers; `sim.stock.topic` carries it.
        self.on_stock_report: Callable[[StockReport], object] = _lost
        #: How long a wake or a message, a slice of work each, keeps its member busy.
        self.slice_ns = 0
        self._order = count()
        self._agenda: list[tuple[int, int, Callable[..., object], tuple[Any, ...]]] = []

    # Who is there.

    def add(
        self,
        settings: BrokerSettings,
        snapshot: PolicySnapshot,
        *,
        clock: Clock | None = None,
        address: str | None = None,
    ) -> Member:
        """Make a member; it takes part once it is started. A former one at its address is gone.

        The address is its broker's name, unless another member is to use that name as well.
        """
        clock = clock or Clock()
        brain = self.make_brain(settings, clock.local_time(self.now))
        member = Member(address or settings.sender.broker, brain, clock)
        self.members[member.name] = member
        brain.listen(lambda: self._schedule_wake(member))
        self._carry_out(member, brain.handle(PoliciesChanged(clock.local_time(self.now), snapshot)))
        return member

    def start(self, member: Member) -> None:
        """Let a member join the exchange."""
        member.is_up = True
        self.tell(member, Started(member.clock.local_time(self.now)))

    def crash(self, member: Member) -> None:
        """Stop a member without a word."""
        member.is_up = False
        self._show(member)

    def stop(self, member: Member) -> None:
        """Stop a member in order."""
        self.tell(member, Stopping(member.clock.local_time(self.now)))
        member.is_up = False
        self._show(member)

    def lose_plane(self, member: Member) -> None:
        """End a member's plane without a word; its gate goes on, for a while as it is."""
        brain, settings = member.brain, member.broker.settings
        if not isinstance(brain, ApartBrain):
            raise TypeError(f"{member.name} has no plane of its own")
        brain.lose_plane()
        member.shards = frozenset()
        held = hold_rounds(settings.isolation_hold_rounds, settings.expiry_rounds)
        hold_ns = held * settings.round_ns
        self.at(self.now + hold_ns, self._isolate, member, brain, brain.losses)
        self._show(member)

    def take_over(self, member: Member, snapshot: PolicySnapshot) -> None:
        """Let another plane take over with a member's gate."""
        brain, now = member.brain, member.clock.local_time(self.now)
        if isinstance(brain, ApartBrain) and member.is_live and not brain.has_plane:
            self._carry_out(member, brain.take_over(member.remembered, snapshot, now))
            self.tell(member, Started(now))

    def _isolate(self, member: Member, brain: ApartBrain, losses: int) -> None:
        if member.is_live and brain.losses == losses:
            now = member.clock.local_time(self.now)
            if (alarm := brain.isolate(now)) is not None:
                member.keep(alarm, self.now)
                self.tell(member, GateIsolated(now))

    def freeze(self, member: Member, duration_ns: int) -> None:
        """Let nothing happen at a member for a while, and then everything at once."""
        member.frozen_until = max(member.frozen_until, self.now + duration_ns)

    def set_policies(self, snapshot: PolicySnapshot) -> None:
        """Put a policy snapshot in force everywhere."""
        for member in self.members.values():
            self.tell(member, PoliciesChanged(member.clock.local_time(self.now), snapshot))

    # What happens.

    def acquire(self, member: Member, request: Request) -> Decision:
        """Ask a member now; an answer of the wrong size is a bug of the caller."""
        answer = member.brain.limiter.acquire(request, member.clock.local_time(self.now))
        if not isinstance(answer, Decision):
            raise TypeError(f"expected a request of a size that can be granted, got {answer}")
        return answer

    def tell(self, member: Member, event: Event) -> None:
        """Let an event happen to a member that is up."""
        if not member.is_up or member.halted is not None:
            return
        effects = member.brain.handle(event)
        if effects:
            self._carry_out(member, effects)
        self._schedule_wake(member)
        self._show(member)

    def at(self, moment: int, action: Callable[..., object], *arguments: object) -> None:
        """Do something at a moment (not before now); of one moment's things, in this order."""
        due = moment if moment > self.now else self.now  # noqa: FURB136 -- min() and max() take three times as long
        heapq.heappush(self._agenda, (due, next(self._order), action, arguments))

    def run_until(self, moment: int) -> None:
        """Let everything happen that is due up to and at a moment."""
        agenda, pop = self._agenda, heapq.heappop
        while agenda and agenda[0][0] <= moment:
            due, _, action, arguments = pop(agenda)
            self.now = Nanos(due)
            action(*arguments)
        self.now = Nanos(moment)

    def _show(self, member: Member) -> None:
        for watcher in self.watchers:
            watcher(member)

    def _carry_out(self, member: Member, effects: Sequence[Effect]) -> None:
        for effect in effects:
            match effect:
                case Publish(message):
                    self.broadcast(member.name, member.encoded(message))
                case Listen(shards):
                    self._listen(member, shards)
                case Append() | Remember() | Alarm() | Halt():
                    member.keep(effect, self.now)
                case SendStockReport(report):
                    self.on_stock_report(report)
                case Evict() | BacklogChecked():
                    pass  # No scenario has backlogs.

    def broadcast(self, sender: str, message: Message) -> None:
        """Send a message to every member, the sender too."""
        network = self.network
        if network.is_uniform:
            # One entry is as good as one each, where all of them are due at the same moment.
            self.at(self.now + network.delay_min_ns, self._deliver_to_all, message)
            return
        agenda, order, deliver, push = self._agenda, self._order, self.deliver, heapq.heappush
        shard = message.shard if isinstance(message, Report) else WHOLE
        for moment, name in network.arrivals(self.now, sender, self.members, self.dice, shard):
            push(agenda, (moment, next(order), deliver, (name, message)))

    def _listen(self, member: Member, shards: frozenset[Shard]) -> None:
        """Let a member receive these shards, new ones after a while; a shard is a topic to be joined."""
        fresh, member.shards = shards - member.shards, member.shards & shards
        for shard in sorted(fresh):
            self.at(self.now + self.network.opening_ns, self._open_shard, member, shard)

    def _open_shard(self, member: Member, shard: Shard) -> None:
        member.shards |= {shard}
        self.tell(member, ShardOpened(member.clock.local_time(self.now), shard))

    def _deliver_to_all(self, message: Message) -> None:
        for name in list(self.members):
            self.deliver(name, message)

    def deliver(self, name: str, message: Message) -> None:
        """Let a message arrive at a member, once it is awake."""
        member = self.members.get(name)
        if member is None or not member.receives(message):
            return
        if self.now < member.frozen_until:
            self.at(member.frozen_until, self.deliver, name, message)
            return
        self.freeze(member, self.slice_ns)
        self.tell(member, MessageReceived(member.clock.local_time(self.now), message))

    def _schedule_wake(self, member: Member) -> None:
        wake_at = member.brain.wake_at
        if wake_at is None:
            return
        moment = member.clock.world_time(wake_at)
        if member.next_wake is None or moment < member.next_wake:
            member.next_wake = moment
            self.at(moment, self._wake, member, moment)

    def _wake(self, member: Member, moment: int) -> None:
        if member.next_wake != moment:
            return
        if self.now < member.frozen_until:
            member.next_wake = member.frozen_until
            self.at(member.frozen_until, self._wake, member, member.frozen_until)
            return
        member.next_wake = None
        wake_at, now = member.brain.wake_at, member.clock.local_time(self.now)
        if wake_at is None or wake_at > now:
            # An event has put it off since.
            self._schedule_wake(member)
            return
        self.freeze(member, self.slice_ns)
        self.tell(member, Woken(now))


def _lost(_report: StockReport) -> None:
    """There are no stock brokers."""
