"""Views of groups: quota, share, every row of the usage map, and attachments.

The rows and shares of many groups, in both kinds, are computed together, because numpy's calls cost more than their rows.
"""

from collections.abc import Iterable, Sequence
from typing import Final

import numpy as np

from rgd.core.broker.broker import Broker
from rgd.core.errors import UnknownGroup
from rgd.core.exchange.columns import KINDS, Ints, rates, rates_of
from rgd.core.policies.model import Group, GroupKey, Rate, Rates
from rgd.core.shares.columns import NO_RATE, Shares
from rgd.core.shares.model import PPM
from rgd.core.units import MILLI, NS_PER_S, Nanos, to_units
from rgd.views.model import GroupView, IdleView, KindView, RatesView, RowView

_NO_LIMIT: Final = RatesView()


def group_view(broker: Broker, name: str, now: Nanos) -> GroupView:
    """The view of one group with its rows, and with the live brokers without one.

    Raises:
        UnknownGroup: there is no such group.
    """
    group = broker.sharing.snapshot.groups.get(name)
    if group is None:
        raise UnknownGroup(name)
    return _views(broker, [group], now, with_idle=True)[0]


def group_views(broker: Broker, names: Sequence[str], now: Nanos) -> list[GroupView]:
    """The views of those of some groups that exist, with their rows."""
    groups = broker.sharing.snapshot.groups
    found = [groups[name] for name in names if name in groups]
    return _views(broker, found, now) if found else []


def _views(
    broker: Broker, groups: Sequence[Group], now: Nanos, *, with_idle: bool = False
) -> list[GroupView]:
    kinds = iter(_kind_views(broker, groups, now, with_idle=with_idle))
    snapshot = broker.sharing.snapshot
    views = []
    for group in groups:
        attached = snapshot.attached_to(group.name)
        views.append(
            GroupView(
                group=group.name,
                blocked=group.blocked,
                shadow=group.shadow,
                policy=group.policy or broker.settings.policy,
                topic_split=group.topic_split or broker.settings.topic_split,
                state=broker.mode,
                publish=next(kinds),
                dispatch=next(kinds),
                tenants=tuple(attached.tenants),
                namespaces=tuple(attached.namespaces),
                topics=tuple(attached.topics),
                soft=None if group.soft_ppm is None else group.soft_ppm / PPM,
            )
        )
    return views


def _kind_views(
    broker: Broker, groups: Sequence[Group], now: Nanos, *, with_idle: bool
) -> list[KindView]:
    """[groups and kinds] quota, share and rows of each, computed together."""
    keys = [GroupKey(group.name, kind) for group in groups for kind in KINDS]
    quotas = [group.rates(kind) for group in groups for kind in KINDS]
    sharing, slots = broker.sharing, slots_of(broker, keys)
    broker_index, policies = sharing.broker_index, [*map(sharing.policies.policy, keys)]
    shared = broker_index.share_out(slots, rates(quotas), policies)
    shares = shared.of_all()
    rows = _row_views(broker, slots, shared, shares, now)
    # A share in force takes precedence over the one computed from the usage map.
    in_force = map(sharing.in_force_of, keys, slots.tolist())
    own = map(rates_of, shares[:, broker_index.own].tolist())
    views = []
    for at, (quota, used, share) in enumerate(zip(quotas, in_force, own, strict=True)):
        share_view = _rates_view(share if used is None else used)
        idle: list[IdleView] = []
        if with_idle:
            has_row = {row.broker for row in rows[at]}
            of_brokers = zip(broker_index.names(), shares[at].tolist(), strict=True)
            idle = [
                IdleView(name, _rates_view(rates_of(pair)))
                for name, pair in of_brokers
                if name not in has_row
            ]
        views.append(KindView(_rates_view(quota), share_view, tuple(rows[at]), tuple(idle)))
    return views


def _row_views(
    broker: Broker, slots: Ints, shared: Shares, shares: Ints, now: Nanos
) -> list[list[RowView]]:
    """[slots] every row, in the order of names, with the share of its broker."""
    gathered, group, of_broker = (
        broker.usage.gather(slots),
        shared.rows.group,
        shared.rows.broker_index,
    )
    # Brokers are indexed in the order of their names, so this sorts the rows of a group by name.
    order = np.lexsort((of_broker, group))
    group, of_broker = group[order], of_broker[order]
    units = (gathered.admitted[order] / MILLI, gathered.wanted[order] / MILLI)
    columns = (group, of_broker, gathered.topics[order], *units, shares[group, of_broker])
    names = broker.sharing.broker_index.names()
    members = (broker.peers.get(name) or broker.stock.members.get(name) for name in names)
    ages = [0.0 if one is None else round((now - one.received_at) / NS_PER_S, 3) for one in members]
    views: list[list[RowView]] = [[] for _ in slots]
    for at, index, count, admitted, wanted, share in zip(
        *(column.tolist() for column in columns), strict=True
    ):
        of_row = RatesView(*[None if rate == NO_RATE else rate / MILLI for rate in share])
        views[at].append(
            RowView(
                names[index], RatesView(*admitted), RatesView(*wanted), count, ages[index], of_row
            )
        )
    return views


def slots_of(broker: Broker, keys: Iterable[GroupKey]) -> Ints:
    """[keys] slot ids; below 0, where there are no rows, for a group that has none."""
    found = map(broker.usage.index.find, keys)
    return np.array([-1 if slot is None else slot for slot in found], np.int64)


def _rates_view(rates: Rates) -> RatesView:
    return (
        _NO_LIMIT
        if rates.is_unlimited
        else RatesView(units_of(rates.messages), units_of(rates.bytes))
    )


def units_of(rate: Rate) -> float | None:
    """A rate in units per second."""
    return None if rate is None else to_units(rate)
