"""Every group in use has its figures, whichever end of the seam knows them.

The samples made of them are tested in tests/integration/http.
"""

from dataclasses import replace

from rgd.core.bounds import BOUNDS, Bounds
from rgd.core.broker.broker import Broker
from rgd.core.broker.events import PoliciesChanged
from rgd.core.broker.settings import BrokerSettings
from rgd.core.buckets.decision import Request
from rgd.core.exchange.messages import Sender
from rgd.core.policies.model import Group, Limit
from rgd.core.policies.snapshot import PolicySnapshot
from rgd.core.units import Kind, to_units
from rgd.views.figures import SLICE_GROUPS, group_figures
from rgd.views.groups import group_view
from tests.unit.core.values import key, ms, rates
from tests.unit.views.conftest import NAMES, START


def test_every_group_in_use_has_the_figures_that_its_requests_met(broker: Broker) -> None:
    for name in NAMES[5:20]:
        broker.limiter.acquire(Request(Kind.DISPATCH, group=name), ms(4100))
    states = {state.key: state for state in broker.limiter.states()}
    assert len(states) > SLICE_GROUPS
    seen = [(one.key, one.quota, one.share, one.admitted) for one, _ in group_figures(broker)]
    assert len(seen) == len(states)
    for of, *figures in seen:
        state = states[of]
        assert figures == [state.quota, state.share, state.counters.admitted]


def test_a_group_without_a_slot_id_is_shown_with_its_floor() -> None:
    bounds = Bounds(exchange=replace(BOUNDS.exchange, slots_max=1))
    broker = Broker(BrokerSettings(Sender("b1", 1), bounds=bounds), START)
    groups = {name: Group(name, Limit(rates(100))) for name in ("gold", "late", "unused")}
    broker.handle(PoliciesChanged(START, PolicySnapshot(groups)))
    for name in ("gold", "late"):
        broker.limiter.acquire(Request(group=name), ms(1))
    assert broker.sharing.slotless == 1
    late = {one.key: one for one, _ in group_figures(broker)}[key("late")]
    state = broker.limiter.state(key("late"))
    assert state is not None
    assert late.share == state.share
    shown = group_view(broker, "late", ms(2)).publish.share
    assert shown.messages == to_units(state.share.messages or 0)
