"""The demand of every limited group beside its quota, and the rows of those under the most pressure.

Laws: looking takes nothing and creates nothing. Under max-min the shares of all brokers of a row, those without demand too, sum to
its quota.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rgd.core.broker.broker import Broker
from rgd.core.buckets.decision import Level
from rgd.core.exchange.columns import KINDS, Ints, rates
from rgd.core.gate import looks
from rgd.core.policies.model import GroupKey
from rgd.core.policies.snapshot import PolicySnapshot
from rgd.core.shares.columns import NO_RATE
from rgd.core.units import MILLI, Dimension
from rgd.views.figures import SLICE_GROUPS
from rgd.views.groups import slots_of
from rgd.views.live_model import OthersView, PartView, PressureView

#: Groups and kinds that are looked at in one look; of more the next ones are looked at next time.
LOOKED_AT_MAX: Final = 8_192
#: Groups that are read in one step when policies changed: some milliseconds.
READ_AT_ONCE: Final = 2_048
#: Brokers of a row that are shown each by itself; the others are shown together.
COLOURED_MAX: Final = 8

Floats = NDArray[np.float64]

_DIMENSIONS: Final = tuple(Dimension)


class RowKey(NamedTuple):
    """A row: a group in one kind and dimension."""

    key: GroupKey
    dimension: Dimension


class Pressure:
    """Wanted and quota of every limited group and kind, as of the last look at each; none of blocked groups."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._snapshot: PolicySnapshot | None = None
        self._keys: list[GroupKey] = []
        #: [keys, 2] Milli per second.
        self._quotas: Ints = np.zeros((0, 2), np.int64)
        #: [keys, 2] wanted divided by the quota; -1 where there is none.
        self._pressure: Floats = np.zeros((0, 2))
        self._next = 0

    @property
    def total(self) -> int:
        """Number of rows."""
        return int(np.count_nonzero(self._pressure >= 0))

    @property
    def short(self) -> int:
        """Number of rows that want more than their quota."""
        return int(np.count_nonzero(self._pressure > 1))

    def look(self) -> Iterator[None]:
        """Look at all groups, or at the next `LOOKED_AT_MAX`, in steps."""
        snapshot = self._broker.sharing.snapshot
        if snapshot is not self._snapshot:
            yield from self._read(snapshot)
        count = min(len(self._keys), LOOKED_AT_MAX)
        if count:
            self._look_at(np.arange(self._next, self._next + count) % len(self._keys))
            self._next = (self._next + count) % len(self._keys)

    def top(self, most: int) -> list[RowKey]:
        """The rows under the most pressure, of equal ones by name."""
        flat = self._pressure.ravel()
        found = np.arange(len(flat))
        if len(flat) > most:
            found = np.argpartition(-flat, most - 1)[:most]
        rows = [
            (-float(flat[at]), RowKey(self._keys[at // 2], _DIMENSIONS[at % 2]))
            for at in found.tolist()
            if flat[at] >= 0
        ]
        return [row for _, row in sorted(rows)]

    def _read(self, snapshot: PolicySnapshot) -> Iterator[None]:
        keys: list[GroupKey] = []
        quotas: list[Ints] = []
        groups = iter(snapshot.groups.values())
        while part := list(islice(groups, READ_AT_ONCE)):
            limited = [
                (GroupKey(group.name, kind), quota)
                for group in part
                if not group.blocked
                for kind in KINDS
                if not (quota := group.rates(kind)).is_unlimited
            ]
            keys += [key for key, _ in limited]
            quotas.append(rates(quota for _, quota in limited))
            yield
        self._keys, self._snapshot, self._next = keys, snapshot, 0
        self._quotas = np.concatenate([np.zeros((0, 2), np.int64), *quotas])
        self._pressure = np.where(self._quotas == NO_RATE, -1.0, 0.0)

    def _look_at(self, seats: Ints) -> None:
        slots = slots_of(self._broker, (self._keys[seat] for seat in seats.tolist()))
        rows = self._broker.usage.gather(slots)
        quota = self._quotas[seats]
        for at in range(2):
            wanted = np.bincount(rows.group, rows.wanted[:, at], len(slots))
            ratio = wanted / np.maximum(quota[:, at], 1)
            self._pressure[seats, at] = np.where(quota[:, at] == NO_RATE, -1.0, ratio)


class Table(NamedTuple):
    """The live brokers of some groups; in units per second, both dimensions."""

    keys: Sequence[GroupKey]
    brokers: Sequence[str]
    #: [keys, 2]
    quota: Floats
    #: [keys, brokers, 2]
    wanted: Floats
    admitted: Floats
    share: Floats
    #: The max-min part of what each wants, which is fair; `share` where the policy is max-min.
    fair: Floats


def table_of(broker: Broker, keys: Sequence[GroupKey]) -> Table:
    """The table of those groups that exist."""
    groups, policies = broker.sharing.snapshot.groups, broker.sharing.policies
    keys = [key for key in keys if key.group in groups]
    quota, slots = rates(map(policies.quota, keys)), slots_of(broker, keys)
    names = list(broker.sharing.broker_index.names())
    shared = broker.sharing.broker_index.share_out(slots, quota, [*map(policies.policy, keys)])
    share, fair = shared.of_all(), replace(shared, others=()).of_all()
    rows, places = broker.usage.gather(slots), (shared.rows.group, shared.rows.broker_index)
    wanted, admitted = np.zeros((2, len(keys), len(names), 2), np.int64)
    wanted[places], admitted[places] = rows.wanted, rows.admitted
    columns = (wanted, admitted, np.maximum(share, 0), np.maximum(fair, 0))
    return Table(keys, names, quota / MILLI, *(column / MILLI for column in columns))


class Counts(NamedTuple):
    """What a group had refused here at a time, in whole units since the start."""

    at_ns: int
    refused: Mapping[tuple[Level, Dimension], int]


def counts_of(broker: Broker, keys: Sequence[GroupKey], now: int) -> dict[GroupKey, Counts]:
    """What some groups have refused here so far, by level and dimension."""
    counts: dict[GroupKey, Counts] = {}
    for begin in range(0, len(keys), SLICE_GROUPS):
        some = keys[begin : begin + SLICE_GROUPS]
        for key, one in zip(some, broker.gate.ask(looks.groups, some), strict=True):
            counts[key] = Counts(now, {} if one is None else dict(one.refused))
    return counts


def row_of(
    broker: Broker,
    table: Table,
    row: RowKey,
    coloured: Sequence[str] | None,
    refused: Mapping[str, float] | None,
) -> PressureView:
    """A row of a table.

    Args:
        broker: for the group's policies.
        table: has the row's group.
        row: which one.
        coloured: the brokers to show each by itself; None: all.
        refused: units per second by level; None: not known.
    """
    at, of = table.keys.index(row.key), _DIMENSIONS.index(row.dimension)
    wanted, admitted, share, fair = (
        column[at, :, of] for column in (table.wanted, table.admitted, table.share, table.fair)
    )
    quota = float(table.quota[at, of])
    part = np.minimum(wanted, fair)
    ratio = np.where(part > 0, admitted / np.maximum(part, 1 / MILLI), np.inf)
    ratios = [None if value == np.inf else round(value, 4) for value in ratio.tolist()]
    lowest = int(ratio.argmin())
    is_shown = np.array([coloured is None or name in coloured for name in table.brokers])
    columns = [column[is_shown].tolist() for column in (wanted, admitted, share)]
    places = is_shown.nonzero()[0].tolist()
    names, of_shown = [table.brokers[at] for at in places], [ratios[at] for at in places]
    rest = [float(column[~is_shown].sum()) for column in (wanted, admitted, share)]
    others = len(table.brokers) - len(names)
    group = broker.sharing.snapshot.groups[row.key.group]
    return PressureView(
        group=row.key.group,
        kind=row.key.kind,
        dimension=row.dimension,
        quota=quota,
        wanted=float(wanted.sum()),
        admitted=float(admitted.sum()),
        pressure=round(float(wanted.sum()) / max(quota, 1 / MILLI), 4),
        lowest=ratios[lowest],
        lowest_broker=None if ratios[lowest] is None else table.brokers[lowest],
        brokers=tuple(map(PartView, names, *columns, of_shown)),
        others=OthersView(others, *rest) if others else None,
        refused=refused,
        shadow=group.shadow,
    )


def refused_between(
    before: Counts | None, after: Counts, dimension: Dimension
) -> dict[str, float] | None:
    """Units refused per second between two readings, by level; None where there is one alone."""
    if before is None or after.at_ns <= before.at_ns:
        return None
    seconds = (after.at_ns - before.at_ns) / 1e9
    counted = {
        level.value: count - before.refused.get((level, of), 0)
        for (level, of), count in after.refused.items()
        if of is dimension
    }
    return {level: round(count / seconds, 3) for level, count in counted.items() if count > 0}


def coloured_of(table: Table) -> tuple[str, ...]:
    """The brokers that rows show each by itself: all, or those that want most of their quotas."""
    brokers = table.brokers
    if not table.keys or len(brokers) <= COLOURED_MAX:
        return tuple(brokers) if table.keys else ()
    is_limited = table.quota[:, None] > 0
    quota = np.where(is_limited, table.quota[:, None], 1.0)
    parts = np.where(is_limited, table.wanted / quota, 0.0).sum((0, 2))
    most = np.argsort(-parts, kind="stable")[:COLOURED_MAX]
    return tuple(sorted(brokers[at] for at in most.tolist()))
