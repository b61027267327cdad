"""A gate that notes groups instead of calling the plane: what it grants until it is answered, and what it has then.

Not covered: how notes travel.
"""

from dataclasses import replace

import pytest
from typing_extensions import override

from rgd.core.bounds import BOUNDS, Bounds
from rgd.core.broker.broker import Broker
from rgd.core.broker.effects import Append
from rgd.core.broker.events import GateIsolated, GroupsAsked
from rgd.core.broker.mode import Mode
from rgd.core.broker.parts import gate_of
from rgd.core.broker.settings import BrokerSettings
from rgd.core.counts.counters import NO_SLOT
from rgd.core.exchange.messages import Report, Sender
from rgd.core.policies.model import GroupKey, OnIsolation
from rgd.core.units import Nanos
from tests.unit.core.broker.own_reader import OwnReader
from tests.unit.core.values import key, ms, rates, report, usage

SETTINGS = BrokerSettings(Sender("b1", 1), floor_ppm=10_000, expiry_rounds=100)


class House(OwnReader):
    """A live broker with one peer; its gate notes groups, or calls it."""

    def __init__(self, *, notes: bool = True, start: bool = True, slots_max: int = 1000) -> None:
        exchange = replace(BOUNDS.exchange, slots_max=slots_max)
        # One group without a slot id is tried again in a round.
        sharing = replace(BOUNDS.sharing, retried_a_round=1)
        settings = replace(SETTINGS, bounds=Bounds(exchange=exchange, sharing=sharing))
        self.gate = gate_of(settings) if notes else None
        super().__init__(settings, self.gate)
        self.change(gold=1000)
        if start:
            self.start()

    @override
    def start(self) -> None:
        """Let it start, and hear a peer that wants 300 of gold."""
        super().start()
        self.hear(report("b2", usage(300)))
        self.wait(2200)
        assert self.broker.mode is Mode.LIVE

    def answer(self) -> list[GroupKey]:
        """Give the broker what the gate noted; returns it."""
        asked: list[GroupKey] = []
        if self.gate is not None:
            asked, self.gate.asked = self.gate.asked, []
            self.live(GroupsAsked(ms(self.now), tuple(asked)))
        return asked

    def slot(self, group: str = "gold") -> int:
        return self.state(group).counters.slot

    def known(self) -> tuple[object, ...]:
        """What the broker has of gold, and has logged."""
        records = [effect.record for effect in self.effects if isinstance(effect, Append)]
        rows = [(record.sequence, list(record.rows)) for record in records]
        demand = self.broker.rounds.advertised_demand([key()])
        return self.share(), self.broker.shares(key()), demand, rows


def test_until_it_is_answered_a_group_has_an_equal_part_of_its_quota() -> None:
    house = House()
    house.ask()
    assert (house.share(), house.slot()) == (rates(500), NO_SLOT)
    assert house.answer() == [key()]
    # The peer wants 300, so an equal part is not the fair one.
    assert house.share() == house.broker.shares(key())["b1"] != rates(500)
    assert house.slot() != NO_SLOT


def test_a_gate_that_was_isolated_meanwhile_is_told_its_shares_again() -> None:
    house = House()
    house.ask()
    house.answer()
    share = house.share()
    assert house.gate is not None
    house.gate.isolate(OnIsolation.OPEN, ms(house.now))
    # What is in force is seen when it is next used.
    house.ask()
    assert house.share().is_unlimited
    house.live(GateIsolated(ms(house.now)))
    assert house.share() == share != rates(1000)
    # Groups asked for from now on are limited, too.
    house.change(gold=1000, late=1000)
    house.ask(group="late")
    assert not house.share("late").is_unlimited


def test_what_was_refused_before_it_is_answered_is_reported_at_once() -> None:
    house = House()
    house.ask(1000)
    house.ask(1000)
    house.answer()
    house.sent()
    house.wait(200)
    (report,) = house.sent()
    assert isinstance(report, Report)
    assert len(report.rows) == 1


def test_asked_twice_is_answered_once() -> None:
    house = House()
    house.ask()
    noted = house.answer()
    slot = house.slot()
    house.live(GroupsAsked(ms(house.now), (*noted, *noted)))
    assert house.slot() == slot
    assert house.broker.sharing.slots_in_use.tolist() == [slot]
    house.ask(10)
    house.wait(2000)


def test_without_a_slot_left_it_has_its_floor_and_is_tried_again() -> None:
    house = House(slots_max=2)
    house.change(gold=1000, late=1000, more=1000)
    for group in ("gold", "late", "more"):
        house.ask(group=group)
    house.answer()
    without = [group for group in ("gold", "late", "more") if house.slot(group) == NO_SLOT]
    assert (without, house.broker.sharing.slotless) == (["more"], 1)
    house.wait(1000)
    assert house.share("more") == rates(5)
    house.change(gold=1000, more=1000)
    house.wait(3000)
    assert house.slot("more") != NO_SLOT
    assert house.broker.sharing.slotless == 0


def test_groups_without_a_slot_id_take_turns() -> None:
    house = House(slots_max=2)
    house.change(gold=10, late=10, more=10, most=10)
    for group in ("gold", "late", "more", "most"):
        house.ask(group=group)
    house.answer()
    assert house.broker.sharing.slotless == 2
    house.change(gold=10, late=10, more=10)
    house.wait(3000)
    assert house.broker.sharing.slotless == 1


def test_before_the_start_it_is_answered_too() -> None:
    house = House(start=False)
    house.ask()
    house.answer()
    slot = house.slot()
    assert slot != NO_SLOT
    house.start()
    house.wait(500)
    assert (house.slot(), house.share()) == (slot, house.broker.shares(key())["b1"])


def test_the_fast_path_is_not_where_the_gate_is_not() -> None:
    real = gate_of(SETTINGS)

    class Elsewhere:
        """Passes on what a broker calls."""

        def __getattr__(self, name: str) -> object:
            return getattr(real, name)

    broker = Broker(SETTINGS, Nanos(0), Elsewhere())  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="another process"):
        broker.limiter  # noqa: B018 -- it raises
