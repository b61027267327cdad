"""Rounds that end in pieces, groups without a place, and the last round.

Not covered: what a round says of one group (test_rounds.py).
"""

from dataclasses import replace

import pytest

from rgd.core.bounds import BOUNDS, Bounds
from rgd.core.broker.mode import Mode
from rgd.core.broker.settings import BrokerSettings
from rgd.core.exchange.messages import Report, Sender
from rgd.core.exchange.usage_map import UsageMap
from tests.unit.core.broker.rounds_house import GROUPS, SETTINGS, House
from tests.unit.core.values import key, ms, report, usage


def small(**bounds: int) -> BrokerSettings:
    """Settings with small pieces."""
    return replace(SETTINGS, bounds=Bounds(rounds=replace(BOUNDS.rounds, **bounds)))


# Whether a group is short, by the map.


def test_where_a_group_is_short_a_fall_is_called_out_and_believed() -> None:
    calls = []
    for others in (0, 1000):
        house = House()
        # Nothing is refused here, so that what is called out is a fall.
        house.sharing.mode = Mode.OPEN
        house.peers.receive(Sender("b2", 1), ms(0))
        house.sharing.refresh_all(ms(0))
        house.usage.apply(report("b2", usage(others)))
        for at in range(0, 1000, 100):
            house.ask(8, at=at)
        house.end(1000)
        for at in range(1000, 1500, 100):
            house.ask(1, at=at)
        calls.append(house.urgent())
    assert calls == [[], [key()]]


# Pieces.


@pytest.mark.parametrize("is_told_before", [True, False])
def test_a_group_that_leaves_between_pieces_is_idle_once(is_told_before: bool) -> None:
    house = House(small(piece_rows=1))
    mirror = UsageMap()
    names = ("gold", "trial")
    for name in names:
        house.ask(3, at=0, group=name)
    if is_told_before:
        mirror.apply(report("b1", *house.end(1000)))
        for name in names:
            house.ask(13, at=1000, group=name)
    house.rounds.begin()
    house.rounds.step(ms(2000))
    house.change({"trial": GROUPS["trial"]}, at=2001)
    house.step_through(2002)
    told, _ = house.rounds.finish()
    # The law of columns: a group and kind comes once.
    assert len(set(told.groups)) == len(told.groups)
    mirror.apply(Report(Sender("b1", 1), 9, 1, told))
    assert mirror.hash_of("b1") == house.rounds.suppression.hash_of()
    assert set(mirror.rows_of("b1")) == {key("trial")}


def test_a_group_that_went_and_came_back_is_counted_from_zero() -> None:
    house = House()
    house.ask(30, at=0)
    house.end(1000)
    house.change({"trial": GROUPS["trial"]}, at=1100)
    house.change(GROUPS, at=1200)
    house.ask(10, at=1300)
    house.end(2000)
    assert house.logged().admitted_total.messages == 10
    assert house.logged().usage.admitted.messages > 0
