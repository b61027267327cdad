"""A world of brokers: one heap of things to come, one clock, one seeded dice.

Law: the same seed and the same calls give the same run. Virtual time moves only
from one thing to the next, so an hour takes as long as its events do.

Each member is a real Broker; what it publishes reaches every member, itself
too, over `Network`. Load is `sim.load`'s business, what to check the caller's.
"""

import heapq
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from random import Random

from rgd.core.broker.broker import Broker
from rgd.core.broker.effects import Alarm, Append, Effect, Halt, Publish, Remember
from rgd.core.broker.events import (
    DemandUnreported,
    Event,
    MessageReceived,
    PoliciesChanged,
    Started,
    Stopping,
    Woken,
)
from rgd.core.broker.settings import BrokerSettings
from rgd.core.buckets.decision import Decision, Request
from rgd.core.exchange.messages import Message, RoundRecord
from rgd.core.policies.book import PolicyBook
from rgd.core.units import NS_PER_MS, Nanos


@dataclass(slots=True)
class Network:
    """How messages travel, from whom to whom."""

    #: Least and greatest one-way delay.
    delay_min_ns: int = NS_PER_MS
    delay_max_ns: int = 20 * NS_PER_MS
    #: Part of the messages that is lost, 0 to 1, for each receiver by itself.
    loss: float = 0.0
    #: Part of the messages that arrive twice, 0 to 1, for each receiver by itself.
    duplication: float = 0.0
    #: Pairs (from, to) that hear nothing.
    cut: set[tuple[str, str]] = field(default_factory=set)


class Member:
    """One broker in the world, with what it asked the world to keep."""

    def __init__(self, settings: BrokerSettings, now: Nanos) -> None:
        self.name = settings.speaker.broker
        self.broker = Broker(settings, now)
        self.records: list[RoundRecord] = []
        self.alarms: list[Alarm] = []
        self.remembered: tuple[str, ...] = ()
        self.halted: str | None = None
        #: False before the start, after a crash, and after a goodbye.
        self.is_up = False
        self.next_wake: Nanos | None = None


class World:
    """Runs members until a moment."""

    def __init__(self, *, seed: int = 0, network: Network | None = None) -> None:
        self.now = Nanos(0)
        self.network = network or Network()
        self.dice = Random(seed)
        self.members: dict[str, Member] = {}
        #: Called after every event, to check what must always hold.
        self.checks: list[Callable[[], None]] = []
        self._order = count()
        self._agenda: list[tuple[Nanos, int, Callable[[], None]]] = []

    def add(self, settings: BrokerSettings, book: PolicyBook) -> Member:
        """Make a member; it takes part once it is started. A former one of its name is gone."""
        member = Member(settings, self.now)
        self.members[member.name] = member
        member.broker.limiter.on_unreported = lambda: self.at(
            self.now, lambda: self.tell(member, DemandUnreported(self.now))
        )
        self._carry_out(member, member.broker.handle(PoliciesChanged(self.now, book)))
        return member

    def start(self, member: Member) -> None:
        """Let a member join the exchange."""
        member.is_up = True
        self.tell(member, Started(self.now))

    def crash(self, member: Member) -> None:
        """Stop a member without a word."""
        member.is_up = False

    def stop(self, member: Member) -> None:
        """Stop a member in order."""
        self.tell(member, Stopping(self.now))
        member.is_up = False

    def set_book(self, book: PolicyBook) -> None:
        """Put a policy book in force everywhere."""
        for member in self.members.values():
            self.tell(member, PoliciesChanged(self.now, book))

    def acquire(self, member: Member, request: Request) -> Decision:
        """Ask a member now; an answer of the wrong size is a bug of the caller."""
        answer = member.broker.limiter.acquire(request, self.now)
        if not isinstance(answer, Decision):
            raise TypeError(f"expected a request of a size that can be granted, got {answer}")
        return answer

    def tell(self, member: Member, event: Event) -> None:
        """Let an event happen to a member that is up."""
        if not member.is_up or member.halted is not None:
            return
        self._carry_out(member, member.broker.handle(event))
        self._schedule_wake(member)
        for check in self.checks:
            check()

    def at(self, moment: int, action: Callable[[], None]) -> None:
        """Do something at a moment (not before now)."""
        heapq.heappush(self._agenda, (Nanos(max(moment, self.now)), next(self._order), action))

    def run_until(self, moment: int) -> None:
        """Let everything happen that is due up to and at a moment."""
        while self._agenda and self._agenda[0][0] <= moment:
            self.now, _, action = heapq.heappop(self._agenda)
            action()
        self.now = Nanos(moment)

    def _carry_out(self, member: Member, effects: tuple[Effect, ...]) -> None:
        for effect in effects:
            match effect:
                case Publish(message):
                    self._broadcast(member, message)
                case Append(record):
                    member.records.append(record)
                case Remember(peers):
                    member.remembered = peers
                case Alarm():
                    member.alarms.append(effect)
                case Halt(reason):
                    member.halted = reason

    def _broadcast(self, sender: Member, message: Message) -> None:
        twice = self.network.duplication
        for name in sorted(self.members):
            self._send(sender.name, name, message)
            if twice and self.dice.random() < twice:
                self._send(sender.name, name, message)

    def _send(self, sender: str, name: str, message: Message) -> None:
        net = self.network
        delay_ns = self.dice.randint(net.delay_min_ns, net.delay_max_ns)
        is_lost = self.dice.random() < net.loss or (sender, name) in net.cut
        if not is_lost:
            self.at(self.now + delay_ns, partial(self._deliver, name, message))

    def _deliver(self, name: str, message: Message) -> None:
        member = self.members.get(name)
        if member is not None:
            self.tell(member, MessageReceived(self.now, message))

    def _schedule_wake(self, member: Member) -> None:
        wake_at = member.broker.wake_at
        if wake_at is None or (member.next_wake is not None and member.next_wake <= wake_at):
            return
        member.next_wake = wake_at
        self.at(wake_at, lambda: self._wake(member, wake_at))

    def _wake(self, member: Member, wake_at: Nanos) -> None:
        if member.next_wake == wake_at:
            member.next_wake = None
            self.tell(member, Woken(self.now))
