"""Converts what Pulsar's admin API says of one topic's ledgers and cursors to a backlog report.

Law: only raw state is used: ledgers, mark-delete positions, individually acknowledged ranges, and the
metadata of one message. Pulsar's own answers about backlogs (`backlogSize`, `msgBacklog`,
`oldestBacklogMessageAgeSeconds`, quotas) are not even decoded.

The fields are those of Apache Pulsar 4.0.8. `backlog_reader` makes the calls.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from itertools import accumulate
from typing import Annotated, Final, NamedTuple

import msgspec
from msgspec import Meta, Struct

from rgd.core.backlog.model import (
    TOPIC_LEDGERS_MAX,
    TOPIC_SUBSCRIPTIONS_MAX,
    Ledger,
    Position,
    Source,
    SubscriptionBacklog,
    TopicBacklog,
)
from rgd.ports.stock import StockRefused

#: Most characters of one cursor's individually acknowledged ranges that are read, some 10,000 ranges:
#: about 20 ms, in a thread.
RANGES_CHARS_MAX: Final = 256 << 10

#: Cursors of Pulsar itself that nobody consumes: it acknowledges them on its own.
_INTERNAL_CURSORS: Final = frozenset({"pulsar.dedup"})
#: The state of a cursor that is in use. A durable one has a ledger of its own then.
_OPEN: Final = "Open"

#: Headers of a peeked message.
PUBLISH_TIME: Final = "X-Pulsar-publish-time"
BROKER_TIME: Final = "X-Pulsar-Broker-Entry-METADATA-timestamp"

_POSITION: Final = re.compile(r"(-?\d{1,19}):(-?\d{1,19})")
_RANGE: Final = re.compile(r"[(\[](-?\d{1,19}):(-?\d{1,19})\.\.(-?\d{1,19}):(-?\d{1,19})[)\]]")

_Count = Annotated[int, Meta(ge=-1, le=(1 << 63) - 1)]


class LedgerStats(Struct, rename="camel", frozen=True):
    """A ledger; the counts of the one that is written are 0 here."""

    ledger_id: _Count
    entries: _Count
    size: _Count


class CursorStats(Struct, rename="camel", frozen=True):
    """A subscription's cursor."""

    mark_delete_position: str
    individually_deleted_messages: str
    cursor_ledger: int
    state: str


class InternalStats(Struct, rename="camel", frozen=True):
    """`internalStats` of a topic."""

    current_ledger_entries: _Count
    current_ledger_size: _Count
    last_confirmed_entry: str
    ledgers: list[LedgerStats]
    cursors: dict[str, CursorStats]


class ClosedLedger(Struct, rename="camel", frozen=True):
    """A ledger in a topic's metadata."""

    ledger_id: _Count
    #: When it was closed, ms since 1970; meaningless for the one that is written.
    timestamp: int = 0


class InternalInfo(Struct, frozen=True):
    """`internal-info` of a topic, from its metadata."""

    ledgers: list[ClosedLedger]


class Stamp(NamedTuple):
    """The times of one message, ms since 1970; None where it has none."""

    broker_time_ms: int | None
    publish_time_ms: int | None


class OwnedBundle(Struct, frozen=True):
    """The state of one bundle of namespaces."""

    #: False while it is being unloaded.
    is_active: bool


STATS: Final = msgspec.json.Decoder(InternalStats)
INFO: Final = msgspec.json.Decoder(InternalInfo)
BUNDLES: Final = msgspec.json.Decoder(dict[str, OwnedBundle] | None)


def ledgers_of(stats: InternalStats) -> tuple[Ledger, ...]:
    """The ledgers in order, without close times, the last one with its present counts.

    Raises:
        StockRefused: there are more than a report may have.
    """
    if len(stats.ledgers) > TOPIC_LEDGERS_MAX:
        raise StockRefused(
            f"{len(stats.ledgers)} ledgers, expected at most {TOPIC_LEDGERS_MAX}; larger ledgers "
            "(managedLedgerMaxEntriesPerLedger, managedLedgerMinLedgerRolloverTimeMinutes) are fewer"
        )
    found = [Ledger(one.ledger_id, one.entries, one.size) for one in stats.ledgers]
    if found and not found[-1].entries:
        last = found[-1]
        # While a new ledger is created, the counts may still be of the one before it.
        if position_of(stats.last_confirmed_entry).ledger >= last.id:
            counts = max(0, stats.current_ledger_entries), max(0, stats.current_ledger_size)
            found[-1] = Ledger(last.id, *counts)
    return tuple(found)


def closed(ledgers: Sequence[Ledger], closed_at: Mapping[int, int]) -> tuple[Ledger, ...]:
    """The ledgers with their close times; a closed one whose time is unknown was deleted meanwhile."""
    *before, last = ledgers
    known = [one._replace(closed_at_ms=closed_at[one.id]) for one in before if one.id in closed_at]
    return (*known, last)


def durable_cursors(stats: InternalStats) -> dict[str, CursorStats]:
    """The cursors whose backlog counts: without those of readers, which Pulsar forgets.

    A durable cursor that is open has a ledger of its own; after a restart it has none until it
    moves, and is not open.

    Raises:
        StockRefused: there are more than a report may have.
    """
    found = {
        name: cursor
        for name, cursor in stats.cursors.items()
        if name not in _INTERNAL_CURSORS and (cursor.cursor_ledger >= 0 or cursor.state != _OPEN)
    }
    if len(found) > TOPIC_SUBSCRIPTIONS_MAX:
        raise StockRefused(
            f"{len(found)} subscriptions, expected at most {TOPIC_SUBSCRIPTIONS_MAX}"
        )
    return found


def position_of(text: str) -> Position:
    """`ledger:entry`; the entry is -1 before a ledger's first.

    Raises:
        StockRefused: it is not one.
    """
    match = _POSITION.fullmatch(text)
    if match is None:
        raise StockRefused(f"expected a position such as 12:34, got {text[:80]!r}")
    return Position(int(match[1]), int(match[2]))


class Entries:
    """Numbers a topic's entries from 0, ledger by ledger."""

    def __init__(self, ledgers: Sequence[Ledger]) -> None:
        self._ids = [ledger.id for ledger in ledgers]
        self._entries = [max(0, ledger.entries) for ledger in ledgers]
        self._before = [0, *accumulate(self._entries)]

    @property
    def all(self) -> int:
        """All entries."""
        return self._before[-1]

    def until(self, position: Position) -> int:
        """The entries before a position."""
        at = bisect_left(self._ids, position.ledger)
        if at == len(self._ids) or self._ids[at] != position.ledger:
            return self._before[at]
        return self._before[at] + min(max(0, position.entry), self._entries[at])

    def at(self, number: int) -> Position | None:
        """Where the entry of this number is; None: there is none."""
        if not 0 <= number < self.all:
            return None
        ledger = bisect_right(self._before, number) - 1
        return Position(self._ids[ledger], number - self._before[ledger])


def unacknowledged(entries: Entries, mark: Position, ranges: str) -> int | None:
    """The entries after a mark-delete position without those that were acknowledged one by one.

    None where there are too many ranges to read.
    """
    if len(ranges) > RANGES_CHARS_MAX:
        return None
    left = entries.all - entries.until(_after(mark))
    for match in _RANGE.finditer(ranges):
        first, last = Position(int(match[1]), int(match[2])), Position(int(match[3]), int(match[4]))
        left -= entries.until(_after(last)) - entries.until(_after(first))
    return max(0, left)


def _after(position: Position) -> Position:
    return Position(position.ledger, position.entry + 1)


def subscriptions_of(
    stats: InternalStats, ledgers: Sequence[Ledger]
) -> tuple[SubscriptionBacklog, ...]:
    """The durable subscriptions' backlogs, without the times of their oldest messages.

    Raises:
        StockRefused: there are more than a report may have, or a position is none.
    """
    entries, found = Entries(ledgers), []
    for name, cursor in durable_cursors(stats).items():
        mark = position_of(cursor.mark_delete_position)
        messages = unacknowledged(entries, mark, cursor.individually_deleted_messages)
        oldest = entries.at(entries.until(_after(mark)))
        found.append(SubscriptionBacklog(name, oldest, messages=messages))
    return tuple(found)


def report_of(
    topic: str,
    ledgers: tuple[Ledger, ...],
    subscriptions: Sequence[SubscriptionBacklog],
    oldest: tuple[Position, Stamp] | None,
    read_at_ms: int,
) -> TopicBacklog:
    """The report of a topic.

    Args:
        topic: its full name.
        ledgers: with close times.
        subscriptions: as `subscriptions_of` made them.
        oldest: the times of the message at a position, for the subscriptions that are there.
        read_at_ms: when the cursors were read.
    """
    stamped = tuple(subscriptions)
    if oldest is not None:
        position, stamp = oldest
        stamped = tuple(
            one._replace(broker_time_ms=stamp.broker_time_ms, publish_time_ms=stamp.publish_time_ms)
            if one.oldest == position
            else one
            for one in subscriptions
        )
    return TopicBacklog(topic, ledgers, stamped, Source.POLLED, read_at_ms)


def stamp_of(headers: Mapping[str, str]) -> Stamp:
    """The times in a peeked message's headers."""
    return Stamp(_time_ms(headers.get(BROKER_TIME)), _time_ms(headers.get(PUBLISH_TIME)))


def _time_ms(text: str | None) -> int | None:
    if not text:
        return None
    try:
        time = datetime.fromisoformat(text)
    except ValueError as exc:
        raise StockRefused(
            f"expected a time such as 2026-01-31T12:00:00.5Z, got {text[:80]!r}"
        ) from exc
    if time.tzinfo is None:
        time = time.replace(tzinfo=UTC)
    return round(time.timestamp() * 1000)
