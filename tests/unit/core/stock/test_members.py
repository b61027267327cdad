"""The table of stock brokers: what they reported, who left, and what is refused.

Not covered: how their rows come into the usage map (tests/unit/core/broker/test_stock_work.py).
"""

import pytest

from rgd.core.bounds import StockBounds
from rgd.core.policies.model import GroupKey
from rgd.core.stock.members import StockMembers
from rgd.core.stock.messages import GroupUsage
from rgd.core.units import NS_PER_S, Kind, Nanos, Pair

B1, B2 = "pulsar://b1:6650", "pulsar://b2:6650"
PERIOD_NS = 5 * NS_PER_S
GOLD = GroupKey("gold", Kind.PUBLISH)
NOTHING = Pair()


def at(seconds: float) -> Nanos:
    return Nanos(int(seconds * NS_PER_S))


@pytest.fixture
def members() -> StockMembers:
    members = StockMembers(PERIOD_NS)
    members.receive(B1, 0, at(0))
    return members


def test_a_group_without_amounts_is_unknown_then_unused_and_later_unchanged(
    members: StockMembers,
) -> None:
    assert members.put(B1, GroupUsage("gold"))[0] == (GOLD, None)
    assert members.put(B1, GroupUsage("gold"))[0] == (GOLD, NOTHING)
    assert members.put(B1, GroupUsage("gold")) == []
    assert members.put(B1, GroupUsage("gold", Pair(5, 50), NOTHING))[0] == (GOLD, Pair(5, 50))
    assert members.put(B1, GroupUsage("gold")) == []
    assert members.usage(GOLD) == {B1: Pair(5, 50)}


def test_a_broker_that_the_list_lacks_leaves_once_it_is_silent(members: StockMembers) -> None:
    members.receive(B2, 0, at(0))
    members.listed = frozenset({B2})
    assert members.silent(at(7.5)) == ([], [])
    assert members.silent(at(7.6)) == ([B1], [])


@pytest.mark.parametrize(
    ("spacing_ms", "is_off"),
    [(5_000, False), (6_200, False), (6_300, True), (60_000, True), (3_700, True)],
)
def test_the_spacing_of_reports_shows_another_period(
    members: StockMembers, spacing_ms: int, is_off: bool
) -> None:
    for turn in range(1, 7):
        members.receive(B1, turn * spacing_ms, at(turn))
    assert members.is_newly_off_period(B1) is is_off
    assert members.is_newly_off_period(B1) is False


def test_more_than_the_tables_hold_is_refused_and_counted() -> None:
    members = StockMembers(PERIOD_NS, StockBounds(brokers_max=1, broker_rows_max=2))
    members.receive(B1, 0, at(0))
    assert members.receive(B2, 0, at(0)) is None
    members.put(B1, GroupUsage("gold", Pair(1, 1), NOTHING))
    assert members.put(B1, GroupUsage("lead", Pair(1, 1), NOTHING)) == []
    assert members.groups() == ["gold"]
    assert members.refused == {"brokers": 1, "rows": 2}
