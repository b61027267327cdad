"""Views of groups: quota, share, every row of the usage map, and attachments.

The rows and shares of many groups, in both kinds, are computed together, because numpy's calls cost more than their rows.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from rgd.core.broker.broker import Broker
from rgd.core.errors import UnknownGroup
from rgd.core.exchange.columns import KINDS, Ints, rates, rates_of
from rgd.core.policies.model import Group, GroupKey, Rate, Rates
from rgd.core.shares.columns import NO_RATE, Rows, share_out
from rgd.core.shares.model import PPM
from rgd.core.units import MILLI, NS_PER_S, Kind, Nanos, to_units
from rgd.views.model import GroupView, IdleView, KindView, RatesView, RowView

_NO_LIMIT: Final = RatesView()

_NOTHING: Final = np.zeros(0, np.int64)
NO_ROWS: Final = Rows(_NOTHING, _NOTHING, np.zeros((0, 2), np.int64), _NOTHING)

#: The slot ids of one group, by kind; below 0 where it has none.
_Slots = list[int]


def group_view(broker: Broker, name: str, now: Nanos) -> GroupView:
    """The view of one group with its rows.

    Raises:
        UnknownGroup: there is no such group.
    """
    group = broker.sharing.snapshot.groups.get(name)
    if group is None:
        raise UnknownGroup(name)
    slots = _slots_of(broker, name)
    view = _views(broker, [(group, slots)], now)[0]
    publish, dispatch = (
        replace(of_kind, idle=_idle(broker, group, kind, slot, of_kind.rows))
        for kind, slot, of_kind in zip(KINDS, slots, (view.publish, view.dispatch), strict=True)
    )
    return replace(view, publish=publish, dispatch=dispatch)


def group_views(broker: Broker, names: Sequence[str], now: Nanos) -> list[GroupView]:
    """The views of those of some groups that exist, with their rows."""
    groups = broker.sharing.snapshot.groups
    found = [(groups[name], _slots_of(broker, name)) for name in names if name in groups]
    return _views(broker, found, now) if found else []


def _views(broker: Broker, groups: Sequence[tuple[Group, _Slots]], now: Nanos) -> list[GroupView]:
    kinds = iter(_kind_views(broker, groups, now))
    snapshot = broker.sharing.snapshot
    views = []
    for group, _ in groups:
        attached = snapshot.attached_to(group.name)
        of_kind = dict(zip(KINDS, kinds, strict=False))
        views.append(
            GroupView(
                group=group.name,
                blocked=group.blocked,
                shadow=group.shadow,
                policy=group.policy or broker.settings.policy,
                topic_split=group.topic_split or broker.settings.topic_split,
                state=broker.mode,
                publish=of_kind[Kind.PUBLISH],
                dispatch=of_kind[Kind.DISPATCH],
                tenants=tuple(attached.tenants),
                namespaces=tuple(attached.namespaces),
                topics=tuple(attached.topics),
                soft=None if group.soft_ppm is None else group.soft_ppm / PPM,
            )
        )
    return views


def _kind_views(
    broker: Broker, groups: Sequence[tuple[Group, _Slots]], now: Nanos
) -> list[KindView]:
    """[groups and kinds] quota, share and rows of each, computed together."""
    keys = [GroupKey(group.name, kind) for group, _ in groups for kind in KINDS]
    quotas = [group.rates(kind) for group, _ in groups for kind in KINDS]
    slots = [slot for _, of_group in groups for slot in of_group]
    slotted = [at for at, slot in enumerate(slots) if slot >= 0]
    shares: dict[int, Rates] = {}
    rows: dict[int, list[RowView]] = {}
    if slotted:
        own, tables = _shared_out(
            broker,
            np.array(slots)[slotted],
            rates(quotas[at] for at in slotted),
            [keys[at] for at in slotted],
            now,
        )
        shares = dict(zip(slotted, own, strict=True))
        rows = dict(zip(slotted, tables, strict=True))
    # A share in force takes precedence over the one computed from the usage map.
    in_force = map(broker.sharing.in_force_of, keys, slots)
    shares |= {at: share for at, share in enumerate(in_force) if share is not None}
    unused = [at for at in range(len(keys)) if at not in shares]
    shares |= zip(unused, _unused_shares(broker, [quotas[at] for at in unused]), strict=True)
    return [
        KindView(_rates_view(quota), _rates_view(shares[at]), tuple(rows.get(at, ())))
        for at, quota in enumerate(quotas)
    ]


def _idle(
    broker: Broker, group: Group, kind: Kind, slot: int, rows: Sequence[RowView]
) -> tuple[IdleView, ...]:
    """The live brokers without a row of a group, in the order of names, with their shares."""
    broker_index, quota = broker.sharing.broker_index, rates([group.rates(kind)])
    names = broker_index.names()
    if slot < 0:
        floor_ppm = broker.settings.floor_ppm
        unused = share_out(NO_ROWS, quota, brokers=len(names), floor_ppm=floor_ppm)
        shares = unused.of_all()[0]
    else:
        policy = broker.sharing.policies.policy(GroupKey(group.name, kind))
        shares = broker_index.share_out(np.array([slot]), quota, [policy]).of_all()[0]
    has_row = {row.broker for row in rows}
    return tuple(
        IdleView(name, _rates_view(rates_of(share)))
        for name, share in zip(names, shares.tolist(), strict=True)
        if name not in has_row
    )


def _unused_shares(broker: Broker, quotas: Sequence[Rates]) -> list[Rates]:
    """[quotas] this broker's shares of groups that no broker uses: all live brokers have the same.

    Under a policy other than max-min, the remainder of a thousandth may belong to another broker.
    """
    if all(quota.is_unlimited for quota in quotas):
        return list(quotas)
    broker_index, floor_ppm = broker.sharing.broker_index, broker.settings.floor_ppm
    shares = share_out(
        NO_ROWS, rates(quotas), brokers=len(broker_index.names()), floor_ppm=floor_ppm
    )
    return [rates_of(pair) for pair in shares.of_index(broker_index.own).tolist()]


def _shared_out(
    broker: Broker, slots: Ints, quota: Ints, keys: Sequence[GroupKey], now: Nanos
) -> tuple[list[Rates], list[list[RowView]]]:
    """[slots] this broker's share by the usage map, and every row with the share of its broker."""
    broker_index = broker.sharing.broker_index
    shared = broker_index.share_out(
        slots, quota, [broker.sharing.policies.policy(key) for key in keys]
    )
    gathered = broker.usage.gather(slots)
    group, of_broker = shared.rows.group, shared.rows.broker_index
    of_rows = shared.of_rows.copy()
    for at, table in shared.others:
        is_of = np.isin(group, at)
        of_rows[is_of] = table[np.searchsorted(at, group[is_of]), of_broker[is_of]]
    # Brokers are indexed in the order of their names, so this sorts the rows of a group by name.
    order = np.lexsort((of_broker, group))
    units = (gathered.admitted[order] / MILLI, gathered.wanted[order] / MILLI)
    columns = (group[order], of_broker[order], gathered.topics[order], *units, of_rows[order])
    names, age_of = broker_index.names(), _ages(broker, now)
    tables: list[list[RowView]] = [[] for _ in keys]
    for at, index, count, admitted, wanted, share in zip(
        *(column.tolist() for column in columns), strict=True
    ):
        name = names[index]
        of_row = RatesView(*[None if rate == NO_RATE else rate / MILLI for rate in share])
        tables[at].append(
            RowView(name, RatesView(*admitted), RatesView(*wanted), count, age_of(name), of_row)
        )
    own = shared.of_index(broker_index.own).tolist()
    return [rates_of(pair) for pair in own], tables


def _ages(broker: Broker, now: Nanos) -> Callable[[str], float]:
    """A function that gives the seconds since a broker's last message, and looks each up once."""
    known: dict[str, float] = {}

    def age(name: str) -> float:
        found = known.get(name)
        if found is None:
            peer, stock = broker.peers.get(name), broker.stock.members.get(name)
            received_at = now if stock is None else stock.received_at
            received_at = received_at if peer is None else peer.received_at
            found = round((now - received_at) / NS_PER_S, 3)
            known[name] = found
        return found

    return age


def _slots_of(broker: Broker, name: str) -> _Slots:
    """The slot ids of a group, by kind; below 0 where it has none."""
    index = broker.usage.index
    found = [index.find(GroupKey(name, kind)) for kind in KINDS]
    return [-1 if slot is None else slot for slot in found]


def _rates_view(rates: Rates) -> RatesView:
    return _NO_LIMIT if rates.is_unlimited else RatesView(_unit(rates.messages), _unit(rates.bytes))


def _unit(rate: Rate) -> float | None:
    return None if rate is None else to_units(rate)
