"""Views of the members of the exchange."""

from collections.abc import Sequence

from rgd.core.broker.broker import Broker
from rgd.core.units import NS_PER_S, Nanos
from rgd.views.model import BrokerView


def broker_views(broker: Broker, now: Nanos, among: Sequence[str]) -> tuple[BrokerView, ...]:
    """The views of the known members among these names, this one included, in the order given."""
    me = broker.settings.sender.broker
    views = []
    for name in among:
        peer = broker.peers.get(name)
        if peer is None and name != me:
            continue
        views.append(
            BrokerView(
                broker=name,
                implementation="rgd",
                self=name == me,
                since_s=_seconds(now - (broker.created_at if peer is None else peer.since)),
                age_s=0.0 if peer is None else _seconds(now - peer.received_at),
                sequence=broker.sequence if peer is None else peer.sequence,
                rows=broker.usage.count_of(name),
            )
        )
    return tuple(views)


def _seconds(nanos: int) -> float:
    return round(nanos / NS_PER_S, 3)
