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
    me = broker.settings.sender.broker
    peer, stock = broker.peers.get(name), broker.stock.members.get(name)
    if peer is None and name != me:
        if stock is None:
            return None
        return BrokerView(
            broker=name,
            implementation="stock",
            dialects=(DialectName.PULSAR,),
            abilities=_abilities(DialectName.PULSAR),
            self=False,
            since_s=_seconds(now - stock.since),
            age_s=_seconds(now - stock.received_at),
            sequence=0,
            rows=broker.usage.count_of(name),
        )
    dialects = (DialectName.COMPACT, *((DialectName.PULSAR,) if name in also_pulsar else ()))
    return BrokerView(
        broker=name,
        implementation="rgd",
        dialects=dialects,
        abilities=_abilities(DialectName.COMPACT),
        self=name == me,
        since_s=_seconds(now - (broker.created_at if peer is None else peer.since)),
        age_s=0.0 if peer is None else _seconds(now - peer.received_at),
        sequence=broker.identity.sequence if peer is None else peer.sequence,
        rows=broker.usage.count_of(name),
    )


def _abilities(dialect: DialectName) -> tuple[str, ...]:
    return tuple(ability for ability in Ability if ability in ABILITIES[dialect])


def _seconds(nanos: int) -> float:
    return round(nanos / NS_PER_S, 3)
