"""What people see of a group that says nothing: the daemon's defaults.

Not covered: the rest of the views (tests/integration/http, tests/e2e).
"""

import pytest

from rgd.app.views import group_view, health
from rgd.core.broker.broker import Broker
from rgd.core.broker.events import MessageReceived, PoliciesChanged, Started
from rgd.core.broker.settings import BrokerSettings
from rgd.core.exchange.messages import Report, Speaker
from rgd.core.policies.book import PolicyBook
from rgd.core.policies.model import Group, TopicSplit
from rgd.core.units import Nanos

START = Nanos(0)


@pytest.mark.parametrize(
    ("said", "shown"), [(None, "even"), (TopicSplit.PROPORTIONAL, "proportional")]
)
def test_a_group_shows_how_its_share_is_divided(said: TopicSplit | None, shown: str) -> None:
    broker = Broker(BrokerSettings(Speaker("b1", 1), topic_split=TopicSplit.EVEN), START)
    book = PolicyBook({"gold": Group("gold", topic_split=said)})
    broker.handle(PoliciesChanged(START, book))
    assert group_view(broker, "gold", START).topic_split == shown


def test_one_whose_name_is_anothers_is_not_ready_and_says_why() -> None:
    broker = Broker(BrokerSettings(Speaker("b1", 1)), START)
    broker.handle(Started(START))
    second = Report(Speaker("b1", 9), 1, 1, rival=1)
    broker.handle(MessageReceived(START, second))
    shown = health(broker, is_draining=False, notes=("policies: old",))
    assert not shown.ready
    taken, note = shown.degraded
    assert "name conflict: another daemon speaks for broker 'b1'" in taken
    assert note == "policies: old"
