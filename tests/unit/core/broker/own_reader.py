"""A broker that reads each message of its own back at once; time passes when the test says so, in milliseconds."""

from rgd.core.broker.broker import Broker
from rgd.core.broker.effects import Effect, Publish
from rgd.core.broker.events import Event, MessageReceived, PoliciesChanged, Started, Woken
from rgd.core.broker.settings import BrokerSettings
from rgd.core.buckets.decision import Answer, Request
from rgd.core.buckets.level import GroupState
from rgd.core.exchange.messages import Message
from rgd.core.gate.local import LocalGate
from rgd.core.policies.model import Group, Limit, Rates
from rgd.core.policies.snapshot import PolicySnapshot
from tests.unit.core.values import key, ms, rates


class OwnReader:
    """A broker, not started yet, and what it has had done.

    Args:
        settings: the broker's.
        gate: one that notes groups; None: the broker is called for each.
    """

    def __init__(self, settings: BrokerSettings, gate: LocalGate | None = None) -> None:
        self.broker = Broker(settings, ms(0), gate)
        self.now = 0.0
        self.effects: list[Effect] = []

    def live(self, event: Event) -> None:
        """Let an event happen, and all that it leads to."""
        for effect in self.broker.handle(event):
            self.effects.append(effect)
            if isinstance(effect, Publish):
                self.hear(effect.message)

    def start(self) -> None:
        """Let it start."""
        self.live(Started(ms(self.now)))

    def hear(self, *messages: Message) -> None:
        """Let messages arrive."""
        for message in messages:
            self.live(MessageReceived(ms(self.now), message))

    def change(self, **quotas: float | None) -> None:
        """Put groups of so many messages a second in force, or without a limit, in place of every other."""
        groups = {name: Group(name, Limit(rates(quota))) for name, quota in quotas.items()}
        self.live(PoliciesChanged(ms(self.now), PolicySnapshot(groups)))

    def wait(self, milliseconds: float) -> None:
        """Let time pass; it is woken whenever it wants."""
        until = self.now + milliseconds
        while (due := self.broker.wake_at) is not None and due <= ms(until):
            self.now = max(self.now, due / 1e6)
            self.live(Woken(ms(self.now)))
        self.now = until

    def ask(self, messages: int = 1, group: str = "gold") -> Answer:
        """Let a caller ask."""
        return self.broker.limiter.acquire(Request(messages=messages, group=group), ms(self.now))

    def state(self, group: str = "gold") -> GroupState:
        """What the gate has of a group that is in use."""
        state = self.broker.limiter.state(key(group))
        assert state is not None
        return state

    def share(self, group: str = "gold") -> Rates:
        """The share in force of a group that is in use."""
        return self.state(group).share

    def sent(self) -> list[Message]:
        """The messages among what it has had done since this was asked last; nothing else is kept."""
        effects, self.effects = self.effects, []
        return [effect.message for effect in effects if isinstance(effect, Publish)]
