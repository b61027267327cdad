"""What a broker does with stock brokers: rows in its map, reports to them, zeros for who is gone.

Each event's effects. Not covered: the arithmetic (tests/unit/core/stock), whether stock brokers obey
(tests/simulation/test_stock.py).
"""

from dataclasses import replace

import pytest

from rgd.core.bounds import BOUNDS, Bounds
from rgd.core.broker.effects import Alarm, AlarmCode, Effect, SendStockReport
from rgd.core.broker.events import StockBrokersListed, StockReportReceived
from rgd.core.broker.stock_work import ZEROS_PERIODS
from rgd.core.exchange.messages import Sender
from rgd.core.policies.model import Group, Limit
from rgd.core.policies.snapshot import PolicySnapshot
from rgd.core.stock.messages import GroupUsage, StockReport
from rgd.core.units import NS_PER_S, Pair
from tests.unit.core.broker.conftest import Seat
from tests.unit.core.broker.desk import Desk, Effects, codes, reports
from tests.unit.core.values import key, ms, rates, report, usage

S1, S2 = "pulsar://s1:6650", "pulsar://s2:6650"
PERIOD_MS = 5_000
ZERO = Pair()


@pytest.fixture
def desk(seat: Seat) -> Desk:
    """A broker with a stock period, alone and live; it is 2005 ms old."""
    desk = seat(stock_period_ns=5 * NS_PER_S)
    desk.go_live()
    desk.share()
    return desk


def stock(desk: Desk, at: float, *usage: GroupUsage, broker: str = S1) -> list[StockReport]:
    """Let a stock broker report; what is sent until nothing more is due then."""
    effects = desk.handle(StockReportReceived(ms(at), StockReport(broker, usage)))
    return sent(effects) + idle(desk, at, at)


def idle(desk: Desk, since: float, until: float) -> list[StockReport]:
    """What is sent to stock brokers until then, while everything that is said comes back."""
    return sent(woken(desk, since, until))


def woken(desk: Desk, since: float, until: float) -> Effects:
    """All effects until then."""
    found: list[Effect] = []
    now = since
    while desk.wake_at is not None and max(now, desk.wake_at) <= until:
        now = max(now, desk.wake_at)
        found += desk.wake(now)
        desk.read_back(now)
    return tuple(found)


def sent(effects: Effects) -> list[StockReport]:
    """The reports to stock brokers among effects."""
    return [effect.report for effect in effects if isinstance(effect, SendStockReport)]


def used(messages: int) -> GroupUsage:
    """Messages that a stock broker published in a period."""
    return GroupUsage("gold", Pair(messages, 0), ZERO)


def told(messages: int, broker: str = "b1") -> StockReport:
    """A report of rgd's."""
    return StockReport(f"rgd://{broker}", (GroupUsage("gold", Pair(messages), ZERO),))


def test_a_group_that_a_report_has_twice_has_one_row_that_leaves(desk: Desk) -> None:
    stock(desk, 2020, used(150), used(40))
    held = desk.broker.usage.count_of(S1)
    stock(desk, 7020, GroupUsage("other", Pair(1, 0), ZERO))

    assert held == 1
    assert desk.broker.usage.rows(key()).keys().isdisjoint({S1})


def test_rows_that_were_not_kept_are_applied_once_their_groups_have_policies(seat: Seat) -> None:
    bounds = Bounds(exchange=replace(BOUNDS.exchange, unknown_rows_max=1))
    desk = seat(stock_period_ns=5 * NS_PER_S, bounds=bounds)
    desk.go_live()
    names = ("iron", "tin")
    stock(desk, 2020, *(GroupUsage(name, Pair(1, 0), ZERO) for name in names))
    assert desk.broker.usage.is_partial(S1)
    groups = {name: Group(name, Limit(rates(100))) for name in names}
    desk.change(PolicySnapshot(groups), 2030)
    assert {one.group for one in desk.broker.usage.rows_of(S1)} == set(names)
    assert not desk.broker.usage.is_partial(S1)


def test_nothing_is_reported_while_it_is_idle(desk: Desk) -> None:
    desk.hold_own(report("b1", usage(500), sequence=100), 2010)
    assert told(0) in stock(desk, 2020, used(0))
    # All but the stock broker's half of the floors.
    assert desk.share() == rates(99.5)


def test_what_is_due_while_the_map_is_not_believed_is_reported_once_it_is(seat: Seat) -> None:
    desk = seat(stock_period_ns=5 * NS_PER_S)
    desk.start()
    desk.read_back(5)
    desk.share()
    assert stock(desk, 20, used(500)) == []
    assert idle(desk, 20, 2000) == []
    assert [one.broker for one in idle(desk, 2000, 2010)] == ["rgd://b1"]


def test_the_lowest_name_reports_zeros_for_a_daemon_that_is_gone(desk: Desk) -> None:
    desk.hear(report("b2", usage(500)), 2010)
    stock(desk, 2020, used(500))
    # b2 is silent from now on, and expires.
    everything = idle(desk, 2020, 2020 + 8 * PERIOD_MS)
    assert everything.count(told(0, "b2")) == ZEROS_PERIODS


def test_it_reports_zeros_when_it_leaves(desk: Desk) -> None:
    stock(desk, 2020, used(500))
    assert sent(desk.stop(2500)) == [told(0)]


def test_a_broker_that_the_list_lacks_and_is_silent_is_cleared_with_zeros(desk: Desk) -> None:
    stock(desk, 2020, used(500))
    desk.handle(StockBrokersListed(ms(2030), frozenset({S2})))
    woken(desk, 2030, 7030)
    stock(desk, 7030, used(300), broker=S2)
    effects = woken(desk, 7030, 2020 + 4 * PERIOD_MS)
    assert Alarm(AlarmCode.STOCK_BROKER_LEFT, S1) in effects
    assert set(desk.broker.usage.rows(key())) - {"b1"} == {S2}
    assert StockReport(S1, (GroupUsage("gold", ZERO, ZERO),)) in sent(effects)


def test_a_stock_broker_is_no_member_whose_state_is_awaited(desk: Desk) -> None:
    desk.hear(report("b2", usage(500)), 2010)
    stock(desk, 2020, used(500))
    said = reports(woken(desk, 2020, 4000))
    assert {one.members for one in said} == {2}


def test_who_has_lost_its_name_reports_nothing_in_it_when_it_leaves(desk: Desk) -> None:
    stock(desk, 2020, used(500))
    other = replace(report("b1"), sender=Sender("b1", 0), rival=1)
    assert AlarmCode.NAME_YIELDED in codes(desk.hear(other, 5100))
    assert sent(desk.stop(5200)) == []


def test_reports_of_rgd_and_of_a_peers_name_are_not_taken_in(desk: Desk) -> None:
    desk.hear(report("b2", usage(500)), 2010)
    stock(desk, 2020, used(500), broker="rgd://b2")
    stock(desk, 2030, used(500), broker="b2")
    assert len(desk.broker.stock.members) == 0
    assert desk.broker.stock.members.refused == {"name": 1}
