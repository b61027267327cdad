"""Groups under pressure: rows say what the usage map says, and the shares of all brokers are the quota."""

from rgd.core.broker.broker import Broker
from rgd.core.broker.events import MessageReceived, PoliciesChanged, Started
from rgd.core.broker.settings import BrokerSettings
from rgd.core.exchange.messages import Sender
from rgd.core.policies.model import Group, Limit
from rgd.core.policies.snapshot import PolicySnapshot
from rgd.views.live import members_view
from rgd.views.live_model import GoneView
from rgd.views.pressure import coloured_of, table_of
from tests.unit.core.values import key, ms, rates, report, usage
from tests.unit.views.conftest import START


def cluster(*groups: Group) -> Broker:
    """b1 with a peer b2, which has reported nothing."""
    broker = Broker(BrokerSettings(Sender("b1", 1)), START)
    broker.handle(PoliciesChanged(START, PolicySnapshot({group.name: group for group in groups})))
    broker.handle(Started(START))
    broker.handle(MessageReceived(ms(10), report("b2", full=True)))
    return broker


def test_of_many_brokers_those_that_want_most_have_a_colour() -> None:
    broker = cluster(Group("gold", Limit(rates(100))))
    names = [f"c{at:02}" for at in range(12)]
    for at, name in enumerate(names):
        broker.handle(MessageReceived(ms(30 + at), report(name, usage(at + 1), full=True)))
    assert coloured_of(table_of(broker, [key("gold")])) == tuple(names[-8:])


def test_a_member_that_says_nothing_for_a_round_and_a_half_is_silent() -> None:
    broker = cluster(Group("gold"))
    gone = {"b9": ms(500), "b8": ms(700)}
    heard = members_view(broker, ms(1_500), gone)
    assert [(one.broker, one.silent) for one in heard.members] == [("b1", False), ("b2", False)]
    assert heard.gone == (GoneView("b8", 0.8), GoneView("b9", 1.0))
    silent = members_view(broker, ms(1_511), {})
    assert [(one.broker, one.silent) for one in silent.members] == [("b2", True), ("b1", False)]
    assert (silent.total, silent.silent) == (2, 1)
