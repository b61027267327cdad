"""A broker on a desk: the test is its clock, its callers and its exchange.

What the broker says goes nowhere unless the test says it comes back (`read_back`) or that a peer
heard it. Moments are milliseconds since the broker was made.
"""

from dataclasses import replace
from typing import Any

from rgd.core.broker.broker import Broker
from rgd.core.broker.effects import Alarm, AlarmCode, Effect, Publish, Remember
from rgd.core.broker.events import Event, MessageReceived, PoliciesChanged, Started, Stopping, Woken
from rgd.core.broker.mode import Mode
from rgd.core.broker.settings import BrokerSettings
from rgd.core.buckets.decision import Decision, Request
from rgd.core.exchange.messages import Message, Report, Sender
from rgd.core.policies.model import Group, Limit, Rates
from rgd.core.policies.snapshot import PolicySnapshot
from rgd.core.units import NS_PER_MS
from tests.unit.core.values import key, ms, rates, report, usage

ME = Sender("b1", 1)

#: Full rows out of the way: a test that wants them says so.
SETTINGS = BrokerSettings(ME, full_every_rounds=1_000_000)

Effects = tuple[Effect, ...]


def gold(messages: float = 100, **changes: Any) -> PolicySnapshot:
    """A snapshot of one group."""
    return PolicySnapshot({"gold": Group("gold", Limit(rates(messages)), **changes)})


def codes(effects: Effects) -> list[AlarmCode]:
    """The alarms among effects."""
    return [effect.code for effect in effects if isinstance(effect, Alarm)]


class Desk:
    """One broker, not started yet, with a group of 100 messages a second."""

    def __init__(self, **settings: Any) -> None:
        self.broker = Broker(replace(SETTINGS, **settings), ms(0))
        self.said: list[Message] = []
        #: The latest moment of all events.
        self.now = ms(0)
        assert self.handle(PoliciesChanged(ms(0), gold())) == ()

    def believes(self) -> Mode:
        """What the broker believes of the others."""
        return self.broker.mode

    def is_past_start(self) -> bool:
        """Whether it is ready."""
        return self.broker.is_past_start

    @property
    def wake_at(self) -> float | None:
        """When the broker wants to be woken."""
        due = self.broker.wake_at
        return None if due is None else due / NS_PER_MS

    def rests_until(self, at: float) -> bool:
        """Whether it wants to be woken then, and has nothing to say when it is woken before."""
        while self.wake_at is not None and self.wake_at < at:
            effects = self.wake(max(self.wake_at, self.now / NS_PER_MS))
            if not all(isinstance(effect, Remember) for effect in effects):
                return False
        return self.wake_at == at

    def catch_up(self) -> None:
        """Let it compute all shares that are marked."""
        while self.broker.sharing.has_marks:
            self.handle(Woken(self.now))

    def share(self) -> Rates:
        """The share in force of the group, which is in use from now on, when all is reckoned."""
        self.catch_up()
        self.broker.limiter.acquire(Request(messages=0, group="gold"), self.now)
        state = self.broker.limiter.state(key())
        assert state is not None
        return state.share

    def handle(self, event: Event) -> Effects:
        """Let an event happen."""
        self.now = max(self.now, event.now)
        effects = self.broker.handle(event)
        self.said += [effect.message for effect in effects if isinstance(effect, Publish)]
        return effects

    def start(self, at: float = 0) -> Effects:
        """Let it start."""
        return self.handle(Started(ms(at)))

    def wake(self, at: float) -> Effects:
        """Wake it."""
        return self.handle(Woken(ms(at)))

    def hear(self, message: Message, at: float) -> Effects:
        """Let a message arrive."""
        return self.handle(MessageReceived(ms(at), message))

    def read_back(self, at: float) -> Effects:
        """Let all it said come back to it, which is all that it hears of it."""
        coming, self.said = self.said, []
        return tuple(effect for message in coming for effect in self.hear(message, at))

    def hold_own(self, report: Report, at: float) -> bool:
        """Let the map have this of us, as if we had sent it and it came back."""
        return self.broker.membership.read_back(report, ms(at))

    def want_all(self) -> None:
        """Let us want the whole quota, as the map knows."""
        self.share()
        self.hold_own(report("b1", usage(500), sequence=100), 2010)

    def run(self, since: float, until: float) -> None:
        """Wake it whenever it wants, each word coming back five milliseconds later."""
        now = since
        while self.wake_at is not None and max(now, self.wake_at) <= until:
            now = max(now, self.wake_at)
            self.wake(now)
            self.read_back(now + 5)

    def go_live(self) -> None:
        """Start it alone; two rounds and a moment later it believes the map."""
        self.start()
        self.read_back(5)
        self.run(5, 2005)
        assert self.believes() is Mode.LIVE

    def ask(self, messages: int, at: float) -> bool:
        """Ask for messages of the group; whether they were granted."""
        answer = self.broker.limiter.acquire(Request(messages=messages, group="gold"), ms(at))
        assert isinstance(answer, Decision)
        return answer.granted

    def change(self, snapshot: PolicySnapshot, at: float, policies_hash: int = 0) -> Effects:
        """Put a snapshot in force."""
        return self.handle(PoliciesChanged(ms(at), snapshot, policies_hash))

    def stop(self, at: float) -> Effects:
        """Let it leave."""
        return self.handle(Stopping(ms(at)))


def reports(effects: Effects) -> list[Report]:
    """The reports among effects."""
    said = [effect.message for effect in effects if isinstance(effect, Publish)]
    return [message for message in said if isinstance(message, Report)]
