"""Slots of groups at their limits: what invented names take, what is freed, what a group without gets.

Not covered: that a slot given again keeps nothing of before (tests/property/test_slots.py).
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from rgd.core.bounds import BOUNDS, Bounds
from rgd.core.broker.effects import Alarm, AlarmCode
from rgd.core.broker.mode import Mode
from rgd.core.broker.settings import BrokerSettings
from rgd.core.exchange.columns import UsageColumns
from rgd.core.exchange.messages import Ask, Goodbye, Report, Sender
from rgd.core.policies.model import Rates
from rgd.core.units import NS_PER_S
from tests.unit.core.broker.own_reader import OwnReader
from tests.unit.core.values import key, rates

ME = Sender("me", 1)
ROUND_MS = 1000


class House(OwnReader):
    """A live broker with groups of 1,000 messages a second."""

    def __init__(self, *groups: str, floor_ppm: int = 10_000, **bounds: int) -> None:
        settings = BrokerSettings(
            ME,
            floor_ppm=floor_ppm,
            expiry_rounds=100,
            bounds=Bounds(exchange=replace(BOUNDS.exchange, **bounds)),
        )
        super().__init__(settings)
        self.have(*groups)
        self.start()
        self.wait(2.2 * ROUND_MS)
        assert self.broker.mode is Mode.LIVE

    def have(self, *groups: str) -> None:
        """Put these groups in force."""
        self.change(**dict.fromkeys(groups, 1000.0))

    def hear_rows(self, peer: str, sequence: int, *names: str, full: bool = False) -> None:
        """Let a peer report groups; its hash is of more."""
        some = np.full((len(names), 2), 10, np.int64)
        kinds, topics = np.zeros(len(names), np.uint8), some[:, 0]
        rows = UsageColumns(names, kinds, topics, some, some)
        self.hear(Report(Sender(peer, 1), sequence, NS_PER_S, rows, full=full, rows_hash=1))

    def share_asked(self, group: str) -> Rates:
        """Let a caller ask; the share of the group."""
        self.ask(group=group)
        return self.share(group)

    def alarms(self) -> Sequence[tuple[str, str]]:
        """What was told of slots."""
        found = [
            (effect.code, effect.broker)
            for effect in self.effects
            if isinstance(effect, Alarm)
            and effect.code in {AlarmCode.PEER_ROWS_REFUSED, AlarmCode.GROUPS_WITHOUT_SLOT}
        ]
        self.effects.clear()
        return found

    def asked(self) -> int:
        """How often somebody was asked to repeat itself."""
        return sum(isinstance(message, Ask) and message.full for message in self.sent())


def invented(peer: str, count: int) -> list[str]:
    return [f"{peer}-{number}" for number in range(count)]


def test_invented_names_take_no_more_slots_than_each_peer_may_have_and_are_freed_with_it() -> None:
    house = House("gold", "late")
    house.ask(group="gold")
    for peer in ("e1", "e2"):
        house.hear_rows(peer, 1, *invented(peer, BOUNDS.exchange.unknown_rows_max + 10_000), "gold")
    assert house.broker.index.unknown == 2 * BOUNDS.exchange.unknown_rows_max
    assert house.broker.index.refused == 2 * 10_000
    assert house.alarms() == [
        (AlarmCode.PEER_ROWS_REFUSED, "e1"),
        (AlarmCode.PEER_ROWS_REFUSED, "e2"),
    ]
    # What has policies is kept all the same, and shared.
    assert set(house.broker.usage.rows(key())) == {"e1", "e2"}
    assert house.share_asked("late").messages == house.broker.shares(key("late"))["me"].messages
    for peer in ("e1", "e2"):
        house.hear(Goodbye(Sender(peer, 1)))
    house.wait(12 * ROUND_MS)
    assert house.broker.index.unknown == 0
    assert house.broker.index.given <= 3
    assert len(house.broker.index) > 2 * BOUNDS.exchange.unknown_rows_max


def test_a_group_without_a_slot_is_granted_its_floor_and_never_the_quota() -> None:
    house = House("gold", "silver", "late", slots_max=2)
    house.hear_rows("b2", 1, "gold")
    house.ask(group="gold")
    house.ask(group="silver")
    # One percent of the quota, evenly over two brokers.
    assert house.share_asked("late") == rates(5)
    house.wait(2 * ROUND_MS)
    assert house.share("late") == rates(5)
    assert set(house.broker.shares(key("late")).values()) == {rates(5)}
    assert house.broker.rounds.advertised_demand([key("late")]) == [(0, 0)]
    assert house.alarms() == [(AlarmCode.GROUPS_WITHOUT_SLOT, "")]
    house.broker.validate()
    # Its policy is followed, and where a slot comes free it gets its share.
    house.have("gold", "late")
    house.wait(4 * ROUND_MS)
    assert house.broker.sharing.slotless == 0
    assert house.share("late").messages == house.broker.shares(key("late"))["me"].messages
    assert (house.share("late").messages or 0) > 100_000


def test_a_group_without_a_slot_that_is_deleted_is_forgotten() -> None:
    house = House("gold", "late", slots_max=1)
    house.ask(group="gold")
    house.ask(group="late")
    house.have("gold")
    house.wait(2 * ROUND_MS)
    assert house.broker.sharing.slotless == 0
    assert house.broker.limiter.state(key("late")) is None


def test_once_policies_come_the_rows_that_were_refused_are_asked_for() -> None:
    house = House("gold", unknown_rows_max=2)
    names = invented("e1", 5)
    house.hear_rows("e1", 1, *names)
    house.wait(3 * ROUND_MS)
    assert house.asked() == 1
    house.have("gold", *names)
    house.hear_rows("e1", 2, *names[:1])
    house.hear_rows("e1", 3)
    assert house.asked() == 1
    house.hear_rows("e1", 4, *names, full=True)
    assert len(house.broker.usage.rows_of("e1")) == 5
    assert not house.broker.usage.is_partial("e1")
    assert house.broker.index.unknown == 0
    house.broker.validate()


def test_many_groups_that_get_policies_at_once_are_no_longer_unknown() -> None:
    house = House("gold")
    names = invented("e1", 100)
    house.hear_rows("e1", 1, *names)
    assert house.broker.index.unknown == 100
    house.have("gold", *names)
    assert house.broker.index.unknown == 0
