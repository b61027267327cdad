"""Groups: what is shown together is what each shows alone.

The JSON of it is tested in tests/integration/http.
"""

import pytest

from rgd.core.broker.broker import Broker
from rgd.core.broker.settings import BrokerSettings
from rgd.core.errors import UnknownGroup
from rgd.core.exchange.messages import Sender
from rgd.core.policies.model import Rates
from rgd.core.units import Kind, to_units
from rgd.views.groups import group_view, group_views
from rgd.views.model import RatesView
from tests.unit.core.values import key, ms
from tests.unit.views.conftest import NAMES, START


def units(given: Rates) -> RatesView:
    """Rates as they are shown."""
    return RatesView(
        *(None if rate is None else to_units(rate) for rate in (given.messages, given.bytes))
    )


def test_every_row_is_shown_with_its_brokers_share(broker: Broker) -> None:
    for view in group_views(broker, NAMES, ms(4100)):
        for kind, of_kind in ((Kind.PUBLISH, view.publish), (Kind.DISPATCH, view.dispatch)):
            held, shares = (
                broker.usage.rows(key(view.group, kind)),
                broker.shares(key(view.group, kind)),
            )
            assert [row.broker for row in of_kind.rows] == sorted(held)
            for row in of_kind.rows:
                assert row.share == units(shares[row.broker])
                assert row.wanted == units(Rates(*held[row.broker].wanted))
                assert row.admitted == units(Rates(*held[row.broker].admitted))
                assert row.topics == held[row.broker].topics
            assert of_kind.quota == units(broker.sharing.policies.quota(key(view.group, kind)))
            state = broker.limiter.state(key(view.group, kind))
            if state is not None:
                assert of_kind.share == units(state.share)
            elif held:
                assert of_kind.share == units(shares["b1"])
            else:
                # Whoever has the remainder of a quota that nobody uses is not looked for.
                assert of_kind.share.messages == pytest.approx(
                    units(shares["b1"]).messages, abs=0.0015
                )


def test_a_group_that_does_not_exist_is_said_to() -> None:
    broker = Broker(BrokerSettings(Sender("b1", 1)), START)
    with pytest.raises(UnknownGroup):
        group_view(broker, "gold", START)
    assert group_views(broker, ["gold"], START) == []
