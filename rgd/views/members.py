"""Views of the members of the exchange: rgd daemons, and stock brokers beside them."""

from collections.abc import Collection, Sequence

from rgd.core.broker.broker import Broker
from rgd.core.exchange.dialects import ABILITIES, Ability, DialectName
from rgd.core.units import NS_PER_S, Nanos
from rgd.views.model import BrokerView


def broker_views(
    broker: Broker, now: Nanos, among: Sequence[str], also_pulsar: Collection[str] = ()
) -> tuple[BrokerView, ...]:
    """The views of the known members among these names, this one included, in the order given.

    Args:
        broker: its state is read.
        now: for the ages.
        among: names of members.
        also_pulsar: the rgd brokers that also sent a message in the stock brokers' dialect.
    """
    views = (_view(broker, now, name, also_pulsar) for name in among)
    return tuple(view for view in views if view is not None)


def _view(broker: Broker, now: Nanos, name: str, also_pulsar: Collection[str]) -> BrokerView | None:
    is_self = name == broker.settings.sender.broker
    peer, stock = broker.peers.get(name), broker.stock.members.get(name)
    if peer is None and stock is None and not is_self:
        return None
    is_stock = peer is None and not is_self
    since, received_at, sequence = broker.created_at, now, broker.identity.sequence
    if peer is not None:
        since, received_at, sequence = peer.since, peer.received_at, peer.sequence
    elif stock is not None and is_stock:
        since, received_at, sequence = stock.since, stock.received_at, 0
    own = DialectName.PULSAR if is_stock else DialectName.COMPACT
    dialects = (own,) if is_stock or name not in also_pulsar else (own, DialectName.PULSAR)
    return BrokerView(
        broker=name,
        implementation="stock" if is_stock else "rgd",
        dialects=dialects,
        abilities=tuple(ability for ability in Ability if ability in ABILITIES[own]),
        self=is_self,
        since_s=_seconds(now - since),
        age_s=_seconds(now - received_at),
        sequence=sequence,
        rows=broker.usage.count_of(name),
    )


def _seconds(nanos: int) -> float:
    return round(nanos / NS_PER_S, 3)
