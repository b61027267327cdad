"""The stock brokers whose reports were received, and what each of them uses of each group.

Law: a row is what its broker reported last. A group without amounts is unchanged, and unknown if no
amounts came before it. A group that a later report lacks is no longer registered there.
Rows are kept in `rgd.core.stock.rows`.

Rows never expire by themselves, as Pulsar's do not; their broker is removed as a whole:

- when the admin API's list of brokers lacks it and it was silent for `LEFT_PERIODS`: the list may
  be older than the broker, or name it differently;
- when it was silent for `SILENT_PERIODS`. A live one reports every period.

Every table is bounded: further brokers, groups and rows are refused and counted.
"""

from collections import Counter, deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from statistics import median
from typing import Final

from rgd.core.bounds import BOUNDS, StockBounds
from rgd.core.policies.model import GroupKey
from rgd.core.stock.messages import GroupUsage
from rgd.core.stock.rows import BrokerRows, Usage
from rgd.core.units import Kind, Nanos, Pair

#: Stock periods of silence after which a broker is removed, if the admin API lacks it; and in any
#: case.
LEFT_PERIODS: Final = 1.5
SILENT_PERIODS: Final = 10

#: Spacings of a broker's reports that are kept, and from how many on their median counts.
SPACINGS_KEPT: Final = 8
SPACINGS_LEAST: Final = 4

#: A spacing further than this part from the configured period is another period.
SPACING_TOLERANCE: Final = 0.25


@dataclass(slots=True)
class StockBroker:
    """One stock broker."""

    since: Nanos
    received_at: Nanos
    #: When its last report was published, by its own clock; Unix ms, 0: unknown.
    published_ms: int = 0
    #: Between its last reports, in ms.
    spacings: deque[int] = field(default_factory=lambda: deque(maxlen=SPACINGS_KEPT))
    #: Of the groups that it has registered.
    rows: BrokerRows = field(default_factory=BrokerRows)
    #: Whether its reports come in another period than the configured one.
    is_off_period: bool = False

    @property
    def spacing_ms(self) -> int | None:
        """The observed period; None: unknown."""
        return int(median(self.spacings)) if len(self.spacings) >= SPACINGS_LEAST else None


@dataclass(slots=True)
class _Sum:
    """The sum over the stock brokers of one group."""

    #: The one object that is a key in all tables.
    key: GroupKey
    #: How many rows there are.
    rows: int = 0
    messages: int = 0
    bytes: int = 0
    unknown: int = 0


class StockMembers:
    """The stock brokers by name, and their rows by group."""

    def __init__(self, period_ns: int, bounds: StockBounds = BOUNDS.stock) -> None:
        self._bounds = bounds
        self._period_ns = period_ns
        self._brokers: dict[str, StockBroker] = {}
        #: The sums of their rows, and how many of them are not known.
        self._sums: dict[GroupKey, _Sum] = {}
        self._rows = 0
        #: As the admin API listed them last; None: never.
        self.listed: frozenset[str] | None = None
        #: What was refused, by reason.
        self.refused: Counter[str] = Counter()

    def __len__(self) -> int:
        return len(self._brokers)

    def names(self) -> list[str]:
        """The stock brokers that take part."""
        return list(self._brokers)

    def get(self, name: str) -> StockBroker | None:
        """One stock broker."""
        return self._brokers.get(name)

    def groups(self) -> list[str]:
        """All groups that stock brokers have registered."""
        return list(dict.fromkeys(key.group for key in self._sums))

    def keys_of(self, name: str) -> list[GroupKey]:
        """The groups and kinds that one stock broker has rows of."""
        broker = self._brokers.get(name)
        return [] if broker is None else list(broker.rows)

    def usage(self, key: GroupKey) -> Mapping[str, Usage]:
        """What each stock broker uses of one group, by its last report."""
        brokers = self._brokers.items()
        return {name: broker.rows.now(key) for name, broker in brokers if key in broker.rows}

    def counted(self, name: str, key: GroupKey) -> Usage:
        """What counts in shares of one broker's row; nothing where it has none."""
        broker = self._brokers.get(name)
        return Pair() if broker is None or key not in broker.rows else broker.rows.counted(key)

    def used(self, key: GroupKey) -> Usage:
        """What stock brokers use of a group, together; None: not known of each."""
        found = self._sums.get(key)
        if found is None:
            return Pair()
        return None if found.unknown else Pair(found.messages, found.bytes)

    def receive(self, name: str, published_ms: int, now: Nanos) -> bool | None:
        """Note that a broker sent a report.

        Returns:
            Whether it is new; None where it is refused.
        """
        broker = self._brokers.get(name)
        if broker is None:
            if len(self._brokers) >= self._bounds.brokers_max:
                self.refused["brokers"] += 1
                return None
            self._brokers[name] = StockBroker(now, now, published_ms)
            return True
        if published_ms and broker.published_ms:
            broker.spacings.append(max(0, published_ms - broker.published_ms))
        broker.received_at = now
        broker.published_ms = published_ms
        return False

    def is_newly_off_period(self, name: str) -> bool:
        """Whether a broker's reports turn out to come in another period than the configured one."""
        broker = self._brokers[name]
        was, spacing_ms = broker.is_off_period, broker.spacing_ms
        if spacing_ms is not None:
            period_ms = self._period_ns / 1_000_000
            broker.is_off_period = abs(spacing_ms - period_ms) > SPACING_TOLERANCE * period_ms
        return broker.is_off_period and not was

    def put(self, name: str, entry: GroupUsage) -> list[tuple[GroupKey, Usage]]:
        """Take in one group of a broker's report; returns the rows that changed, as they count."""
        is_unchanged = entry.publish is None and entry.dispatch is None
        rows = self._brokers[name].rows
        changed = []
        for kind, usage in ((Kind.PUBLISH, entry.publish), (Kind.DISPATCH, entry.dispatch)):
            key = GroupKey(entry.group, kind)
            if key in rows:
                held = rows.now(key), rows.counted(key)
                now = rows.report(key, usage)
                self._count(key, held[0], -1)
            elif self._make_room(rows, key):
                # One kind without amounts beside one with them: Pulsar fills both or none.
                held = None
                amounts = Pair() if usage is None and not is_unchanged else usage
                now = rows.add(self._sums[key].key, amounts)
            else:
                continue
            self._count(key, now, 1)
            counted = rows.counted(key)
            if held != (now, counted):
                changed.append((key, counted))
        return changed

    def drop(self, name: str, key: GroupKey) -> None:
        """Remove one row: its broker has not registered the group any more."""
        self._count(key, self._brokers[name].rows.remove(key), -1)
        self._rows -= 1
        total = self._sums[key]
        total.rows -= 1
        if not total.rows:
            del self._sums[key]

    def remove(self, name: str) -> None:
        """Remove a broker whose rows were dropped."""
        del self._brokers[name]

    def silent(self, now: Nanos) -> tuple[list[str], list[str]]:
        """The brokers to remove: those that left, and those that were silent for too long."""
        left, silent = [], []
        for name, broker in self._brokers.items():
            silence_ns = now - broker.received_at
            is_listed = self.listed is None or name in self.listed
            if not is_listed and silence_ns > LEFT_PERIODS * self._period_ns:
                left.append(name)
            elif silence_ns > SILENT_PERIODS * self._period_ns:
                silent.append(name)
        return left, silent

    def _count(self, key: GroupKey, usage: Usage, sign: int) -> None:
        total = self._sums[key]
        if usage is None:
            total.unknown += sign
        else:
            total.messages += sign * usage.messages
            total.bytes += sign * usage.bytes

    def _make_room(self, rows: BrokerRows, key: GroupKey) -> bool:
        if self._rows >= self._bounds.rows_max or len(rows) >= self._bounds.broker_rows_max:
            self.refused["rows"] += 1
            return False
        self._sums.setdefault(key, _Sum(key)).rows += 1
        self._rows += 1
        return True
