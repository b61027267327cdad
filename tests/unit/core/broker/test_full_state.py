"""A broker whose state is too large for one report: how it is sent, received, compared and repaired.

Two real brokers, wired by hand. Not covered: any loss (tests/property/test_report_parts.py), the sizes
on the wire (tests/unit/wire/test_report_sizes.py).
"""

from rgd.core.bounds import Bounds, ExchangeBounds
from rgd.core.broker.broker import Broker
from rgd.core.broker.effects import Alarm, AlarmCode, Effect, Publish
from rgd.core.broker.events import Event, MessageReceived, PoliciesChanged, Started, Woken
from rgd.core.broker.mode import Mode
from rgd.core.broker.settings import BrokerSettings
from rgd.core.buckets.decision import Request
from rgd.core.exchange.messages import ALL_ROWS, Ask, Message, Report, Sender
from rgd.core.exchange.report_parts import ROW_BYTES_MAX
from rgd.core.policies.model import Group, Limit
from rgd.core.policies.snapshot import PolicySnapshot
from rgd.core.units import Nanos
from tests.unit.core.values import advertised, ms, rates

GROUPS = [f"g{number:02}" for number in range(40)]
SNAPSHOT = PolicySnapshot({name: Group(name, Limit(rates(1000))) for name in GROUPS})


#: Seven rows a part.
BOUNDS = Bounds(exchange=ExchangeBounds(part_bytes_max=7 * (ROW_BYTES_MAX + 3)))


class Member:
    """A broker that hears itself at once; what it says is kept."""

    def __init__(self, name: str) -> None:
        self.broker = Broker(
            BrokerSettings(Sender(name, 1), expected_brokers=2, bounds=BOUNDS), Nanos(0)
        )
        self.now = Nanos(0)
        self.said: list[Message] = []
        self.effects: list[Effect] = []
        self.live(PoliciesChanged(Nanos(0), SNAPSHOT))
        self.live(Started(Nanos(0)))

    def live(self, event: Event) -> None:
        self.now = max(self.now, event.now)
        for effect in self.broker.handle(event):
            self.effects.append(effect)
            if isinstance(effect, Publish):
                self.said.append(effect.message)
                self.live(MessageReceived(self.now, effect.message))

    def hear(self, *messages: Message) -> None:
        for message in messages:
            self.live(MessageReceived(self.now, message))

    def wait(self, until_ms: float) -> None:
        while (due := self.broker.wake_at) is not None and due <= ms(until_ms):
            self.live(Woken(max(self.now, due)))
        self.now = ms(until_ms)

    def ask(self, *groups: str) -> None:
        for group in groups:
            self.broker.limiter.acquire(Request(messages=5, group=group), self.now)

    def take(self) -> list[Message]:
        said, self.said = self.said, []
        return said

    def reports(self) -> list[Report]:
        return [message for message in self.take() if isinstance(message, Report)]

    def missed(self) -> int:
        """How often it found that it had missed something."""
        effects, self.effects = self.effects, []
        return sum(
            isinstance(effect, Alarm) and effect.code is AlarmCode.REPORTS_MISSED
            for effect in effects
        )


def pair() -> tuple[Member, Member]:
    """A sender with forty rows, and a receiver that knows none of them; both live."""
    sender, receiver = Member("s"), Member("r")
    for at in range(0, 3001, 250):
        for one, other in ((sender, receiver), (receiver, sender)):
            one.wait(at)
            other.wait(at)
            other.hear(*one.take())
    assert (sender.broker.mode, receiver.broker.mode) == (Mode.LIVE, Mode.LIVE)
    sender.ask(*GROUPS)
    sender.wait(4100)
    receiver.wait(4100)
    receiver.effects.clear()
    return sender, receiver


def told(sender: Member) -> dict[str, int]:
    return {row.group: row.wanted.messages for row in advertised(sender.broker.rounds)}


def held(receiver: Member) -> dict[str, int]:
    rows = receiver.broker.usage.rows_of("s")
    return {key.group: row.wanted.messages for key, row in rows.items()}


def test_who_asks_is_sent_the_whole_state_in_parts() -> None:
    sender, receiver = pair()
    sender.take()
    sender.hear(Ask(Sender("r", 1), "s"))
    sender.wait(4700)
    reports = [report for report in sender.reports() if report.full]
    assert len(reports) > 5
    assert [report.more for report in reports] == [True] * (len(reports) - 1) + [False]
    assert reports[0].span.begin == 0
    assert reports[-1].span.end == ALL_ROWS.end
    receiver.hear(*reports)
    assert held(receiver) == told(sender)
    assert receiver.missed() == 0
    receiver.broker.validate()
