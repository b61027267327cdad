"""Who is in the exchange, and what each can be asked: rgd daemons and stock brokers."""

from dataclasses import asdict

from rgd.core.broker.broker import Broker
from rgd.core.broker.events import (
    MessageReceived,
    PoliciesChanged,
    Started,
    StockReportReceived,
    Woken,
)
from rgd.core.broker.settings import BrokerSettings
from rgd.core.exchange.messages import Sender
from rgd.core.policies.model import Group, Limit
from rgd.core.policies.snapshot import PolicySnapshot
from rgd.core.stock.messages import GroupUsage, StockReport
from rgd.core.units import NS_PER_S, Nanos, Pair
from rgd.views.groups import group_view
from rgd.views.members import broker_views
from tests.unit.core.values import ms, rates, report, usage

START = Nanos(0)
STOCK = "pulsar://h:6650"
ALL = ("hello", "ask", "hash", "goodbye", "wanted")


def with_neighbours() -> Broker:
    """A broker with one peer and one stock broker, 4 s after its start."""
    broker = Broker(BrokerSettings(Sender("b1", 1), stock_period_ns=5 * NS_PER_S), START)
    groups = {"gold": Group("gold", Limit(rates(100), rates(100)))}
    broker.handle(PoliciesChanged(START, PolicySnapshot(groups)))
    broker.handle(Started(START))
    broker.handle(MessageReceived(ms(10), report("b2", usage(5, 5, group="gold"), full=True)))
    stock = StockReport(STOCK, (GroupUsage("gold", Pair(50, 5000), Pair()),))
    broker.handle(StockReportReceived(ms(1000), stock, 1_000_000))
    for at in range(1010, 4010, 10):
        broker.handle(Woken(ms(at)))
    return broker


def test_each_member_is_shown_with_its_dialects_and_what_it_can_be_asked() -> None:
    broker = with_neighbours()
    names = ["b1", "b2", STOCK, "rgd://b1", "nobody"]
    views = {view.broker: asdict(view) for view in broker_views(broker, ms(4000), names, {"b1"})}
    assert list(views) == ["b1", "b2", STOCK]
    told = {name: (view["implementation"], view["dialects"]) for name, view in views.items()}
    assert told == {
        "b1": ("rgd", ("compact", "pulsar")),
        "b2": ("rgd", ("compact",)),
        STOCK: ("stock", ("pulsar",)),
    }
    assert [view["abilities"] for view in views.values()] == [ALL, ALL, ()]
    stock = views[STOCK]
    assert (stock["since_s"], stock["age_s"], stock["sequence"], stock["self"]) == (3, 3, 0, False)
    assert stock["rows"] == 1


def test_a_stock_brokers_row_has_the_age_of_its_report() -> None:
    rows = group_view(with_neighbours(), "gold", ms(4000)).publish.rows
    (row,) = [row for row in rows if row.broker == STOCK]
    assert (row.age_s, row.admitted.messages) == (3.0, 10.0)
