"""Groups as people see them: quota, share, every row of the usage map, and what is attached.

Law: a slice is at most `SLICE_WORK` points of work, or one group. Its rows are gathered and its quotas
shared out together, all groups and both kinds at once, because numpy's calls cost more than their rows.
"""

from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import Final

import numpy as np

from rgd.core.broker.broker import Broker
from rgd.core.buckets.level import GroupKey
from rgd.core.errors import UnknownGroup
from rgd.core.exchange.columns import KINDS, Ints, rates
from rgd.core.policies.index import Attached
from rgd.core.policies.model import Group, Rate, Rates
from rgd.core.shares.columns import NO_RATE
from rgd.core.units import NS_PER_S, Kind, Nanos, to_units
from rgd.core.views.model import GroupSlice, GroupView, KindView, RatesView, RowView

#: Points of work in a slice: about 1 ms with its JSON.
SLICE_WORK: Final = 160
#: What a group costs beside its rows, which cost a point each, and how many names cost a point.
GROUP_WORK: Final = 4
NAMES_PER_POINT: Final = 32

_NO_LIMIT: Final = RatesView()


def group_view(broker: Broker, name: str, now: Nanos) -> GroupView:
    """One group with its rows.

    Raises:
        UnknownGroup: there is no such group.
    """
    group = broker.sharing.book.groups.get(name)
    if group is None:
        raise UnknownGroup(name)
    return _views(broker, [group], now)[0]


def group_slice(broker: Broker, names: Sequence[str], now: Nanos) -> GroupSlice:
    """The first of these groups: as many as fit a slice of work, at least one."""
    names = names[: SLICE_WORK // GROUP_WORK]
    found = [broker.sharing.book.groups.get(name) for name in names]
    work = list(accumulate(_work_of(broker, names)))
    done = max(1, sum(points <= SLICE_WORK for points in work))
    views = _views(broker, [group for group in found[:done] if group is not None], now)
    return GroupSlice(views, min(done, len(names)), work[done - 1] if work else 0)


def _work_of(broker: Broker, names: Sequence[str]) -> list[int]:
    """[names] the points of work that each group costs."""
    index = broker.sharing.book.index
    places = np.array([_place(broker, GroupKey(name, kind)) for name in names for kind in KINDS])
    has_slot = places >= 0
    rows = np.zeros(len(places), np.int64)
    rows[has_slot] = broker.usage.counts(places[has_slot])
    return [
        GROUP_WORK + count + sum(map(len, index.attached_to(name))) // NAMES_PER_POINT
        for name, count in zip(names, rows.reshape(-1, len(KINDS)).sum(1).tolist(), strict=True)
    ]


def _views(broker: Broker, groups: Sequence[Group], now: Nanos) -> list[GroupView]:
    keys = [GroupKey(group.name, kind) for group in groups for kind in KINDS]
    kinds = iter(_kind_views(broker, keys, now))
    index = broker.sharing.book.index
    return [
        _view(broker, group, index.attached_to(group.name), dict(zip(KINDS, kinds, strict=False)))
        for group in groups
    ]


def _view(
    broker: Broker, group: Group, attached: Attached, kinds: dict[Kind, KindView]
) -> GroupView:
    return GroupView(
        group=group.name,
        blocked=group.blocked,
        shadow=group.shadow,
        policy=group.policy or broker.settings.policy,
        topic_split=group.topic_split or broker.settings.topic_split,
        state=broker.mode,
        publish=kinds[Kind.PUBLISH],
        dispatch=kinds[Kind.DISPATCH],
        tenants=tuple(attached.tenants),
        namespaces=tuple(attached.namespaces),
        topics=tuple(attached.topics),
    )


def _kind_views(broker: Broker, keys: Sequence[GroupKey], now: Nanos) -> list[KindView]:
    """[keys] quota, share and rows of each; everything is shared out in one go."""
    sharing = broker.sharing
    quotas = [sharing.quota(key) for key in keys]
    places = [_place(broker, key) for key in keys]
    slotted = [at for at, place in enumerate(places) if place >= 0]
    shares: list[Rates | None] = [None] * len(keys)
    rows: list[list[RowView]] = [[] for _ in keys]
    if slotted:
        own, tables = _shared_out(
            broker,
            np.array([places[at] for at in slotted]),
            rates([(quotas[at].messages, quotas[at].bytes) for at in slotted]),
            [keys[at] for at in slotted],
            _ages(broker, now),
        )
        for at, share, table in zip(slotted, own, tables, strict=True):
            shares[at], rows[at] = share, table
    return [
        KindView(_rates_view(quota), _rates_view(_in_force(broker, key, share)), tuple(table))
        for key, quota, share, table in zip(keys, quotas, shares, rows, strict=True)
    ]


def _in_force(broker: Broker, key: GroupKey, computed: Rates | None) -> Rates:
    """This broker's share: the one in force, else the one that the usage map gives, else the floor."""
    state = broker.limiter.state(key)
    if state is not None:
        return state.share
    return broker.shares(key)[broker.settings.speaker.broker] if computed is None else computed


def _shared_out(
    broker: Broker,
    places: Ints,
    quota: Ints,
    keys: Sequence[GroupKey],
    age_of: Callable[[str], float],
) -> tuple[list[Rates], list[list[RowView]]]:
    """[places] each: this broker's share by the usage map, and every row with its broker's share."""
    ranks = broker.sharing.ranks
    shared = ranks.share_out(places, quota, [broker.sharing.policy(key) for key in keys])
    gathered, topics = broker.usage.gather(places), broker.usage.topics(places)
    group, rank = shared.rows.group, shared.rows.place
    of_rows = shared.columns.of_rows.copy()
    for at, table in shared.others:
        is_of = group == at
        of_rows[is_of] = table[rank[is_of]]
    # The order of ranks is that of the names.
    order = np.lexsort((rank, group))
    columns = (group, rank, topics, gathered.admitted, gathered.wanted, of_rows)
    names = ranks.names()
    tables: list[list[RowView]] = [[] for _ in keys]
    for at, place, count, admitted, wanted, share in zip(
        *(column[order].tolist() for column in columns), strict=True
    ):
        name = names[place]
        tables[at].append(
            RowView(name, _units(admitted), _units(wanted), count, age_of(name), _units(share))
        )
    own = shared.of_rank(ranks.own).tolist()
    return [Rates(*(None if rate == NO_RATE else rate for rate in pair)) for pair in own], tables


def _ages(broker: Broker, now: Nanos) -> Callable[[str], float]:
    """How long ago a broker was last heard, in seconds; each is looked up once."""
    known: dict[str, float] = {}

    def age(name: str) -> float:
        found = known.get(name)
        if found is None:
            peer = broker.peers.get(name)
            found = 0.0 if peer is None else round((now - peer.heard_at) / NS_PER_S, 3)
            known[name] = found
        return found

    return age


def _place(broker: Broker, key: GroupKey) -> int:
    """The slot of a group and kind; below 0: it has none."""
    place = broker.usage.index.find(key)
    return -1 if place is None else place


def _rates_view(rates: Rates) -> RatesView:
    return _NO_LIMIT if rates.is_unlimited else RatesView(_unit(rates.messages), _unit(rates.bytes))


def _units(pair: Sequence[int]) -> RatesView:
    messages, size = pair
    return RatesView(
        None if messages == NO_RATE else to_units(messages),
        None if size == NO_RATE else to_units(size),
    )


def _unit(rate: Rate) -> float | None:
    return None if rate is None else to_units(rate)
