"""What people see of a group that says nothing: the daemon's defaults.

Not covered: the rest of the views (tests/integration/http, tests/e2e).
"""

import pytest

from rgd.app.views import group_view
from rgd.core.broker.broker import Broker
from rgd.core.broker.events import PoliciesChanged
from rgd.core.broker.settings import BrokerSettings
from rgd.core.exchange.messages import Speaker
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
