"""A daemon whose name is another's is not ready, and says why.

Not covered: the rest of what is degraded (tests/integration/http/test_probes.py, tests/e2e).
"""

from rgd.app.health import health
from rgd.core.broker.broker import Broker
from rgd.core.broker.events import MessageReceived, Started
from rgd.core.broker.settings import BrokerSettings
from rgd.core.exchange.messages import Report, Sender
from rgd.core.units import Nanos

START = Nanos(0)


def test_one_whose_name_is_anothers_is_not_ready_and_says_why() -> None:
    broker = Broker(BrokerSettings(Sender("b1", 1)), START)
    broker.handle(Started(START))
    second = Report(Sender("b1", 9), 1, 1, rival=1)
    broker.handle(MessageReceived(START, second))
    shown = health(broker, is_draining=False, notes=("policies: old",))
    assert not shown.ready
    taken, note = shown.degraded
    assert "name conflict: another daemon speaks for broker 'b1'" in taken
    assert note == "policies: old"
