"""The usage map of PIP-82: group -> broker -> usage, as the exchange told it.

Laws: it holds exactly what each broker told last, this one too (as read back
from the topic), so every daemon that heard the same holds the same; a row that
says 0 removes the broker from the group, as PIP-82 asks.

`told_hash` lets a receiver find out cheaply that it missed something.
"""

from collections.abc import Iterable, Mapping
from hashlib import blake2b
from types import MappingProxyType
from typing import Final

from rgd.core.buckets.level import GroupKey
from rgd.core.exchange.messages import Report, UsageRow

#: Most rows kept of one broker; a report that would exceed it is cut there, and its hash differs.
ROWS_MAX: Final = 1_000_000

_NO_ROWS: Final[Mapping[str, UsageRow]] = MappingProxyType({})


class UsageMap:
    """Rows by group and kind, and by broker."""

    def __init__(self) -> None:
        self._by_key: dict[GroupKey, dict[str, UsageRow]] = {}
        self._by_broker: dict[str, dict[GroupKey, UsageRow]] = {}

    def apply(self, report: Report) -> set[GroupKey]:
        """Take a report in; returns the groups and kinds whose rows changed."""
        broker = report.speaker.broker
        own = self._by_broker.setdefault(broker, {})
        told = {GroupKey(row.group, row.kind): row for row in report.rows}
        gone = set(own) - set(told) if report.full else set()
        changed = set(gone)
        for key, row in told.items():
            before = own.get(key)
            if row.is_idle:
                if before is not None:
                    gone.add(key)
                    changed.add(key)
            elif before is not None or len(own) < ROWS_MAX:
                own[key] = row
                self._by_key.setdefault(key, {})[broker] = row
                if before is None or _rates(before) != _rates(row):
                    changed.add(key)
        for key in gone:
            self._forget(broker, key)
        return changed

    def remove(self, broker: str) -> set[GroupKey]:
        """Forget a broker; returns the groups and kinds it had rows in."""
        keys = set(self._by_broker.get(broker, ()))
        for key in keys:
            self._forget(broker, key)
        self._by_broker.pop(broker, None)
        return keys

    def rows(self, key: GroupKey) -> Mapping[str, UsageRow]:
        """The rows of one group and kind, by broker."""
        return self._by_key.get(key, _NO_ROWS)

    def rows_of(self, broker: str) -> Mapping[GroupKey, UsageRow]:
        """Everything one broker told and did not take back."""
        return self._by_broker.get(broker, MappingProxyType({}))

    def brokers(self) -> set[str]:
        """Everybody who has a row of anything."""
        return {broker for broker, rows in self._by_broker.items() if rows}

    def _forget(self, broker: str, key: GroupKey) -> None:
        del self._by_broker[broker][key]
        del self._by_key[key][broker]
        if not self._by_key[key]:
            del self._by_key[key]


def told_hash(rows: Iterable[UsageRow]) -> int:
    """Hash what a broker has told, whatever the order; 63 bits, 0 for no rows.

    Totals are left out: they move while a row is held back as unchanged.
    """
    return sum(map(_row_hash, rows)) & ((1 << 63) - 1)


def _row_hash(row: UsageRow) -> int:
    text = f"{row.group}\0{row.kind}\0{row.topics}\0{_rates(row)}"
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest())


def _rates(row: UsageRow) -> tuple[int, int, int, int]:
    return (*row.admitted, *row.wanted)
