"""What a broker does with stock brokers: rows in its map, reports to them, zeros for who is gone.

Each event's effects. Not covered: the arithmetic (tests/unit/core/stock), whether stock brokers obey
(tests/simulation/test_stock.py).
"""

import pytest

from rgd.core.bounds import BOUNDS, Bounds, StockBounds
from rgd.core.broker.effects import Alarm, AlarmCode, Effect, Fault, SendStockReport
from rgd.core.broker.events import StockBrokersListed, StockReportReceived
from rgd.core.broker.stock_work import ZEROS_PERIODS
from rgd.core.policies.model import Group, Limit
from rgd.core.policies.snapshot import PolicySnapshot
from rgd.core.stock.messages import GroupUsage, StockReport
from rgd.core.units import NS_PER_S, Pair
from tests.unit.core.broker.conftest import Seat
from tests.unit.core.broker.desk import Desk, Effects
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


def test_usage_of_a_stock_broker_is_a_row_and_lowers_the_share(desk: Desk) -> None:
    desk.hold_own(report("b1", usage(500), sequence=100), 2010)
    assert desk.share() == rates(100)
    stock(desk, 2020, used(150))
    assert desk.broker.usage.rows(key())[S1].wanted == Pair(30_000)
    assert desk.share() == rates(70)
    assert sum(share.messages or 0 for share in desk.broker.shares(key()).values()) == 100_000


def test_a_group_that_a_report_has_twice_has_one_row_that_leaves(desk: Desk) -> None:
    stock(desk, 2020, used(150), used(40))
    held = desk.broker.usage.count_of(S1)
    stock(desk, 7020, GroupUsage("other", Pair(1, 0), ZERO))

    assert held == 1
    assert desk.broker.usage.rows(key()).keys().isdisjoint({S1})


def test_one_that_uses_little_is_led_to_all_that_it_may_have(desk: Desk) -> None:
    desk.hold_own(report("b1", usage(500), sequence=100), 2010)
    assert told(140) in stock(desk, 2020, used(100))
    assert desk.share() == rates(80)


def test_nothing_is_reported_while_it_is_idle(desk: Desk) -> None:
    desk.hold_own(report("b1", usage(500), sequence=100), 2010)
    assert told(0) in stock(desk, 2020, used(0))
    # All but the stock broker's half of the floors.
    assert desk.share() == rates(99.5)


def test_usage_that_is_not_known_counts_as_hungry_and_is_left_as_it_is(desk: Desk) -> None:
    desk.hold_own(report("b1", usage(500), sequence=100), 2010)
    answers = stock(desk, 2020, GroupUsage("gold"))
    assert answers[-1].usage == (GroupUsage("gold"),)
    assert desk.share() == rates(50)


def test_two_daemons_report_halves(desk: Desk) -> None:
    desk.hold_own(report("b1", usage(500), sequence=100), 2010)
    desk.hear(report("b2", usage(500)), 2010)
    # A third is theirs: 1.2 * 3 - 1 = 2.6, halved.
    assert told(650) in stock(desk, 2020, used(500))


def test_the_lowest_name_reports_zeros_for_a_daemon_that_is_gone(desk: Desk) -> None:
    desk.hear(report("b2", usage(500)), 2010)
    stock(desk, 2020, used(500))
    # b2 is silent from now on, and expires.
    reports = idle(desk, 2020, 2020 + 8 * PERIOD_MS)
    assert reports.count(told(0, "b2")) == ZEROS_PERIODS


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


def test_reports_of_rgd_and_of_a_peers_name_are_not_taken_in(desk: Desk) -> None:
    desk.hear(report("b2", usage(500)), 2010)
    stock(desk, 2020, used(500), broker="rgd://b2")
    stock(desk, 2030, used(500), broker="b2")
    assert len(desk.broker.stock.members) == 0
    assert desk.broker.stock.members.refused == {"name": 1}


def test_more_reports_than_may_wait_are_dropped(seat: Seat) -> None:
    desk = seat(
        stock_period_ns=5 * NS_PER_S, bounds=Bounds(stock=StockBounds(pending_entries_max=1))
    )
    desk.go_live()
    stock(desk, 2020, used(1), used(2))
    assert desk.broker.stock.members.refused == {"pending": 1}


def test_where_there_are_many_brokers_a_slice_reports_few_groups(seat: Seat) -> None:
    names = [f"g{n}" for n in range(12)]
    worked, reported = [], []
    # Two live brokers in two kinds.
    for slice_shares in (BOUNDS.stock.slice_shares, 4 * 5):
        bounds = Bounds(stock=StockBounds(slice_shares=slice_shares))
        desk = seat(stock_period_ns=5 * NS_PER_S, bounds=bounds)
        desk.go_live()
        groups = {name: Group(name, Limit(rates(100))) for name in names}
        desk.change(PolicySnapshot(groups), 2010)
        report = StockReport(S1, tuple(GroupUsage(name, Pair(1, 1), ZERO) for name in names))
        effects = [desk.handle(StockReportReceived(ms(2020), report))]
        slices = []
        while desk.broker.stock.due_at(ms(2020)) == ms(2020):
            before = desk.broker.stock.groups_worked
            effects.append(tuple(desk.broker.stock.work(ms(2020))))
            slices.append(desk.broker.stock.groups_worked - before)
        worked.append(slices)
        reported.append([one for some in effects for one in sent(some)])
    assert reported[0] == reported[1] != []
    assert max(worked[0]) == len(names)
    assert max(worked[1]) <= 5


@pytest.mark.parametrize("name", ["b2", "", "rgd://b2"])
def test_a_report_in_a_name_that_an_rgd_broker_may_have_does_not_count(
    desk: Desk, name: str
) -> None:
    stock(desk, 2020, used(500), broker=name)
    assert name not in desk.broker.usage.rows(key())
    desk.hear(report("b2", usage(500)), 2030)
    assert set(desk.broker.usage.rows(key())) - {"b1"} == {"b2"}


def test_a_recovery_keeps_what_stock_brokers_use(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    stock(desk, 2020, used(500))
    with monkeypatch.context() as patch:
        patch.setattr(desk.broker.membership, "receive", None)
        (fault,) = desk.hear(report("b2"), 2030)
    assert isinstance(fault, Fault)
    assert S1 in desk.broker.usage.rows(key())
    assert S1 in desk.broker.sharing.brokers
