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
from rgd.core.units import Pair
from tests.support.columns import advertised_hash
from tests.unit.core.broker.rounds_house import GROUPS, MANY, PIECE, SETTINGS, House
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


def test_a_round_of_many_groups_ends_in_pieces_each_group_once() -> None:
    house = House(small(piece_rows=PIECE), groups=MANY)
    for name in MANY:
        house.ask(3, at=0, group=name)
    house.rounds.begin()
    assert house.rounds.is_ending
    assert house.step_through(1000) == 3
    rows = house.finish()
    assert sorted(row.group for row in rows) == sorted(MANY)
    assert sorted(row.usage.group for row in house.log[-1]) == sorted(MANY)
    assert {row.admitted_total.messages for row in house.log[-1]} == {3}
    assert house.rounds.suppression.hash_of() == advertised_hash(rows)
    for name in MANY:
        house.ask(3, at=1500, group=name)
    house.rounds.begin()
    assert house.step_through(2000) == 3
    assert len(house.finish()) == len(MANY)
    assert len(house.log[-1]) == len(MANY)


def test_a_group_that_comes_between_the_pieces_waits_for_the_next_round() -> None:
    house = House(small(piece_rows=PIECE), groups=MANY)
    names = list(MANY)
    for name in names[1:]:
        house.ask(3, at=0, group=name)
    house.rounds.begin()
    house.rounds.step(ms(1000))
    house.ask(7, at=1001, group=names[0])
    house.step_through(1002)
    assert names[0] not in {row.group for row in house.finish()}
    house.end(2000)
    assert house.logged(names[0]).admitted_total == Pair(7)


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
