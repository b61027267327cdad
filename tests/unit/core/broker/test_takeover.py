"""A plane takes over with a gate: what the gate goes on with, what is counted, and what peers receive.

Not covered: whole clusters (tests/simulation/test_planes.py).
"""

from dataclasses import replace

import pytest
from typing_extensions import override

from rgd.core.backlog.model import QuotaType
from rgd.core.backlog.quota import Blocked
from rgd.core.broker.broker import Broker
from rgd.core.broker.effects import Publish
from rgd.core.broker.events import GroupsAsked, GroupsResumed, MessageReceived, PoliciesChanged
from rgd.core.broker.identity import SKIPPED
from rgd.core.broker.mode import Mode
from rgd.core.broker.parts import gate_of
from rgd.core.broker.settings import BrokerSettings
from rgd.core.buckets.decision import Answer, Decision, PoliciesUnknown, Request
from rgd.core.counts.counters import NO_SLOT
from rgd.core.exchange.messages import Ask, Report, Sender
from rgd.core.policies.model import UNLIMITED, BacklogAction, Group, Limit, OnIsolation, Rates
from rgd.core.policies.snapshot import EMPTY_SNAPSHOT, PolicySnapshot
from rgd.core.units import NS_PER_MS, NS_PER_S
from tests.unit.core.broker.own_reader import OwnReader
from tests.unit.core.values import key, ms, rates, report, usage

SETTINGS = BrokerSettings(Sender("b1", 1), floor_ppm=10_000, expected_brokers=2)
QUOTAS = {"gold": rates(1000), "late": rates(1000), "none": rates(0, 0)}
SNAPSHOT = PolicySnapshot({name: Group(name, Limit(quota)) for name, quota in QUOTAS.items()})


class House(OwnReader):
    """A gate and planes that come and go; each plane has one peer."""

    def __init__(self) -> None:
        self.gate = gate_of(SETTINGS)
        super().__init__(SETTINGS, self.gate)
        self.live(PoliciesChanged(ms(0), SNAPSHOT))
        self.start()

    @override
    def start(self) -> None:
        super().start()
        self.hear_peer()

    def hear_peer(self) -> None:
        self.hear(report("b2", usage(300), sequence=int(self.now + 1)))

    @override
    def wait(self, milliseconds: float, *, asking: int = 0) -> None:
        """Let time pass; each 10 ms some work is asked for."""
        until = self.now + milliseconds
        while self.now < until:
            self.now += 10
            if asking:
                self.ask(asking)
            if self.gate.asked:
                asked = tuple(self.gate.asked)
                self.gate.asked.clear()
                self.live(GroupsAsked(ms(self.now), asked))
            if self.now % 500 == 0:
                self.hear_peer()
            super().wait(0)

    @override
    def ask(self, messages: int = 1, group: str = "gold") -> Answer:
        return self.gate.acquire(Request(messages=messages, group=group), ms(self.now))

    def lose(self) -> None:
        while self.gate.forget_slots():
            pass

    def begin(self) -> None:
        """Begin another plane, before its policies are known."""
        self.effects.clear()
        self.broker = Broker(SETTINGS, ms(self.now), self.gate, self.gate.sequences)
        self.live(PoliciesChanged(ms(self.now), EMPTY_SNAPSHOT, known=False))

    def take_over(self) -> None:
        self.begin()
        self.live(PoliciesChanged(ms(self.now), SNAPSHOT))
        groups = tuple(self.gate.groups_in_use(0, 100, ms(self.now)))
        self.live(GroupsResumed(ms(self.now), groups))
        self.start()

    @override
    def share(self, group: str = "gold") -> Rates:
        (found,) = [s for k, s in self.gate.groups_in_use(0, 100, ms(self.now)) if k == key(group)]
        return found

    def mode(self) -> Mode:
        return self.broker.mode

    def is_led(self) -> bool:
        return self.gate.is_led

    def reports(self) -> list[Report]:
        messages = [one.message for one in self.effects if isinstance(one, Publish)]
        return [one for one in messages if isinstance(one, Report)]


@pytest.fixture
def house() -> House:
    """Demand of 1,000 a second for 6 s, of which the peer leaves 700."""
    house = House()
    house.wait(6000, asking=10)
    assert house.mode() is Mode.LIVE
    return house


def test_without_policies_a_plane_takes_none_from_its_gate(house: House) -> None:
    house.lose()
    house.begin()
    assert isinstance(house.ask(), Decision)
    assert house.share() == house.gate.state(key()).share  # type: ignore[union-attr]
    # The first plane of a gate does say that it knows none.
    house.broker = Broker(SETTINGS, ms(house.now), house.gate)
    house.live(PoliciesChanged(ms(house.now), EMPTY_SNAPSHOT, known=False))
    assert isinstance(house.ask(), PoliciesUnknown)


@pytest.mark.parametrize(
    ("rule", "share", "new"),
    [
        (OnIsolation.EQUAL, rates(500), rates(500)),
        (OnIsolation.HOLD, rates(700), rates(500)),
        (OnIsolation.OPEN, UNLIMITED, UNLIMITED),
    ],
)
def test_a_gate_that_is_left_alone_does_as_on_isolation_says(
    house: House, rule: OnIsolation, share: Rates, new: Rates
) -> None:
    house.ask(group="none")
    house.lose()
    assert not house.is_led()
    house.gate.isolate(rule, ms(house.now))
    found = house.share().messages
    assert found == (None if share.messages is None else pytest.approx(share.messages, rel=0.01))
    assert house.share("none").messages == 0
    house.ask(group="late")
    assert house.share("late") == new
    house.take_over()
    # Its own messages come back, so its gate is no longer alone.
    assert house.is_led()
    assert house.gate.isolation is None
    house.wait(2500, asking=10)
    assert house.share().messages == pytest.approx(rates(700).messages, rel=0.02)


def test_while_a_plane_takes_over_no_floor_reaches_its_gate(house: House) -> None:
    house.lose()
    house.take_over()
    house.ask(group="late")
    house.wait(10)
    # What the gate gave it alone.
    assert house.share("late") == rates(500)
    house.change(gold=990, late=1000)
    assert house.mode() is Mode.STARTING
    assert house.share() == rates(495)


def test_what_was_the_planes_own_is_forgotten(house: House) -> None:
    topic = "persistent://t/n/a"
    house.gate.block(topic, Blocked(QuotaType.SIZE, BacklogAction.HOLD, ms(0), ms(10_000)))
    house.gate.news.backlogged.add(3)
    house.lose()
    state = house.gate.state(key())
    assert state is not None
    assert (state.counters.slot, state.reported) == (NO_SLOT, False)
    assert house.gate.blocked.get(topic) is None
    assert not house.gate.news.backlogged


@pytest.mark.parametrize("lives_ms", [0, 1500])
def test_no_sequence_is_used_twice_and_late_messages_are_no_news(
    house: House, lives_ms: int
) -> None:
    sent = house.reports()
    for _ in range(4):
        house.lose()
        house.take_over()
        late = replace(sent[-1], sender=SETTINGS.sender)
        house.live(MessageReceived(ms(house.now), late))
        house.wait(lives_ms)
        house.live(MessageReceived(ms(house.now), report("b3", usage(1))))
        house.wait(110)
        sent += house.reports()
    sequences = [one.sequence for one in sent]
    assert sequences == sorted(set(sequences))
    assert not house.broker.name.is_contested(ms(house.now))


def test_a_group_that_is_asked_for_before_policies_are_known_keeps_its_bucket(house: House) -> None:
    house.lose()
    house.begin()
    house.ask(group="late")
    before = house.gate.state(key("late"))
    house.wait(100)
    assert house.gate.state(key("late")) is before
    house.take_over()
    house.wait(100)
    assert house.gate.state(key("late")) is before
    assert house.state("late").counters.slot != NO_SLOT


def test_the_sequences_of_a_long_round_with_many_reports_are_not_used_again() -> None:
    settings = replace(SETTINGS, round_ns=60 * NS_PER_S, min_interval_ns=NS_PER_MS)
    gate = gate_of(settings)
    plane = OwnReader(settings, gate)
    plane.start()
    for _ in range(SKIPPED + 100):
        plane.hear(Ask(Sender("b2", 1), "b1", full=False))
        plane.wait(1)
    following = Broker(settings, ms(plane.now), gate, gate.sequences)
    assert plane.broker.identity.sequence > SKIPPED
    assert following.identity.sequence > plane.broker.identity.sequence
