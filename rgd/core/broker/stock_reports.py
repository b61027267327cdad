"""What this broker reports to stock brokers, group by group.

Law: the daemons' reports of a group sum to what rgd reports as a whole (`steering.foreign_usage`),
because all of them compute it from the same map and split it by the same shares.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import numpy as np

from rgd.core.broker.policies_in_use import row_of
from rgd.core.broker.settings import BrokerSettings
from rgd.core.broker.sharing import Sharing
from rgd.core.buckets.level import GroupKey
from rgd.core.exchange.columns import Ints
from rgd.core.exchange.usage_map import UsageMap
from rgd.core.policies.model import SharePolicyName
from rgd.core.stock.members import StockMembers, Usage
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
        used: dict[GroupKey, Usage] = {
            key: self._used(key) for name in known for key in _keys_of(name)
        }
        reported = self._reported({key: pair for key, pair in used.items() if pair and any(pair)})
        entries = []
        for name in known:
            publish, dispatch = (
                None if used[key] is None else reported.get(key, _NOTHING) for key in _keys_of(name)
            )
            entries.append(GroupUsage(name, publish, dispatch))
        return entries

    def _used(self, key: GroupKey) -> Usage:
        """What stock brokers use of a group, together; None: not known of each."""
        rows = self._members.usage(key).values()
        pairs = [pair for pair in rows if pair is not None]
        if len(pairs) < len(rows):
            return None
        return Pair(sum(pair.messages for pair in pairs), sum(pair.bytes for pair in pairs))

    def _reported(self, used: dict[GroupKey, Pair]) -> dict[GroupKey, Pair]:
        """This broker's part of what rgd reports of groups that stock brokers use."""
        slots = {key: self._usage.index.find(key) for key in used}
        keys = [key for key in used if slots[key] is not None]
        if not keys:
            return {}
        quota = np.concatenate([row_of(self._sharing.quota(key))[None] for key in keys])
        index = self._sharing.broker_index
        table = index.share_out(
            np.array([slots[key] for key in keys], np.int64),
            quota,
            self._policies_of(keys),
            stock_is_hungry=True,
        ).of_all()
        is_stock = index.is_stock
        at = int(np.count_nonzero(~is_stock[: index.own]))
        parts, own = table[:, is_stock].sum(axis=1), table[:, ~is_stock]
        return {
            key: Pair(*(self._one(used[key], quota[i], parts[i], own[i], at)))
            for i, key in enumerate(keys)
        }

    def _one(self, used: Pair, quota: Ints, part: Ints, own: Ints, at: int) -> Iterator[int]:
        """One group's part in each dimension; `own`: [rgd brokers, 2] their shares."""
        period_ns = self._settings.stock_period_ns
        for k, usage in enumerate(used):
            total = foreign_usage(usage, int(quota[k]), int(part[k]), period_ns)
            yield split(total, [max(0, share) for share in own[:, k].tolist()], at)

    def _policies_of(self, keys: Sequence[GroupKey]) -> Sequence[SharePolicyName]:
        policies = [self._sharing.policy(key) for key in keys]
        return policies if set(policies) != {SharePolicyName.MAX_MIN} else ()


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
