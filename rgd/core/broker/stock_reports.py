"""What this broker reports to stock brokers, group by group.

Law: the daemons' reports of a group sum to what rgd reports as a whole (`steering.foreign_usage`),
because all of them compute it from the same map and split it by the same shares.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import numpy as np

from rgd.core.broker.settings import BrokerSettings
from rgd.core.broker.sharing import Sharing
from rgd.core.exchange.columns import rates
from rgd.core.exchange.usage_map import UsageMap
from rgd.core.policies.model import GroupKey
from rgd.core.stock.members import StockMembers
from rgd.core.stock.messages import GroupUsage, StockReport
from rgd.core.stock.steering import foreign_usage, split
from rgd.core.units import Kind, Pair

#: Bytes of one report at most, and of an entry beside its name: half of what a message may have.
PART_BYTES_MAX: Final = 512 * 1024
ENTRY_BYTES: Final = 64

_NOTHING: Final = Pair()


class StockReports:
    """Makes the entries of reports."""

    def __init__(
        self, settings: BrokerSettings, members: StockMembers, usage: UsageMap, sharing: Sharing
    ) -> None:
        self._settings = settings
        self._members = members
        self._usage = usage
        self._sharing = sharing

    def entries(self, groups: Sequence[str]) -> list[GroupUsage]:
        """This broker's entries of some groups.

        A group without policies here is left out; one with usage that is not known yet is
        unchanged.
        """
        known = [name for name in groups if name in self._sharing.snapshot.groups]
        used = {key: self._members.used(key) for name in known for key in _keys_of(name)}
        reported = self._reported({key: pair for key, pair in used.items() if pair and any(pair)})
        entries = []
        for name in known:
            publish, dispatch = (
                None if used[key] is None else reported.get(key, _NOTHING) for key in _keys_of(name)
            )
            entries.append(GroupUsage(name, publish, dispatch))
        return entries

    def _reported(self, used: dict[GroupKey, Pair]) -> dict[GroupKey, Pair]:
        """This broker's part of what rgd reports of groups that stock brokers use."""
        found = [(key, slot) for key in used if (slot := self._usage.index.find(key)) is not None]
        if not found:
            return {}
        keys = [key for key, _ in found]
        quota = rates(map(self._sharing.policies.quota, keys))
        index = self._sharing.broker_index
        slots = np.array([slot for _, slot in found], np.int64)
        policies = [self._sharing.policies.policy(key) for key in keys]
        table = index.share_out(slots, quota, policies, stock_is_hungry=True).of_all()
        is_stock = index.is_stock
        own = np.array([used[key] for key in keys], np.float64)
        whole = foreign_usage(
            own, quota, table[:, is_stock].sum(axis=1), self._settings.stock_period_ns
        )
        shares = np.maximum(table[:, ~is_stock], 0).swapaxes(0, 1)
        at = int(np.count_nonzero(~is_stock[: index.own]))
        return {
            key: Pair(*pair)
            for key, pair in zip(keys, split(whole, shares, at).tolist(), strict=True)
        }


def nothing_used(groups: Iterable[str]) -> list[GroupUsage]:
    """Entries of zeros: Pulsar never expires a row, so this takes it back."""
    return [GroupUsage(name, _NOTHING, _NOTHING) for name in groups]


def in_parts(broker: str, entries: Iterable[GroupUsage]) -> Iterator[StockReport]:
    """Reports in one broker's name, none larger than a message may be."""
    part: list[GroupUsage] = []
    size = 0
    for entry in entries:
        cost = ENTRY_BYTES + len(entry.group.encode())
        if part and size + cost > PART_BYTES_MAX:
            yield StockReport(broker, tuple(part))
            part, size = [], 0
        part.append(entry)
        size += cost
    if part:
        yield StockReport(broker, tuple(part))


def _keys_of(group: str) -> tuple[GroupKey, GroupKey]:
    return GroupKey(group, Kind.PUBLISH), GroupKey(group, Kind.DISPATCH)
