"""Computes a topic's backlog from its report: the oldest message, size, age, and what to evict.

Definitions (PIP-323): a topic's backlog is that of the subscription with the oldest unacknowledged
message. Its size is the sum of the ledgers from that message's to the current one. Its age is that
message's.

Laws: an age is never below 0. A position in a deleted ledger means the next entry that exists. An
eviction never moves a subscription backwards.

What an eviction keeps is at most `KEPT_PERCENT` of each limit that was exceeded. Whole ledgers are
skipped as long as that is enough. Where the current ledger alone is too large or too old, a part of
its entries is skipped by an estimate, as if its entries were alike, so that no more than necessary
is lost; its size then counts whole until it is closed.
"""

from bisect import bisect_left
from collections.abc import Iterator
from itertools import accumulate, pairwise
from typing import Final, NamedTuple

from rgd.core.backlog.model import Ledger, Position, SubscriptionBacklog, TopicBacklog

#: An eviction leaves so much of a limit, as in Pulsar; otherwise the next message would exceed it.
KEPT_PERCENT: Final = 90


class Oldest(NamedTuple):
    """The oldest unacknowledged message of a topic, and the backlog from there on."""

    subscription: str
    position: Position
    #: The sum of the ledgers from this message's to the current one.
    size_bytes: int
    #: Ages at the time of the report: the message's, and that of its ledger's end, which is a lower
    #: bound. None if not known, or if the ledger is still open.
    message_age_ms: int | None
    ledger_age_ms: int | None


def positions_of(report: TopicBacklog) -> list[tuple[Position, SubscriptionBacklog]]:
    """The oldest unacknowledged entry of each subscription that has one, as it exists."""
    ids = [ledger.id for ledger in report.ledgers]
    return [
        (at, one)
        for one in report.subscriptions
        if one.oldest is not None and (at := _existing(report.ledgers, ids, one.oldest))
    ]


def oldest_of(report: TopicBacklog) -> Oldest | None:
    """The oldest unacknowledged message of any subscription; None if there is none.

    Of several subscriptions at one position the first by name counts.
    """
    found = min(positions_of(report), key=lambda one: (one[0], one[1].name), default=None)
    if found is None:
        return None
    position, subscription = found
    at = _index_of(report.ledgers, position)
    return Oldest(
        subscription.name,
        position,
        sum(ledger.bytes for ledger in report.ledgers[at:]),
        _age_ms(report, subscription.message_time_ms),
        _age_ms(report, report.ledgers[at].closed_at_ms),
    )


def unacknowledged(report: TopicBacklog) -> Iterator[tuple[str, int]]:
    """Each subscription with its unacknowledged messages that are not delayed."""
    positions = {one.name: position for position, one in positions_of(report)}
    # By ledger: entries from its beginning to the end of the topic.
    following = [*accumulate(ledger.entries for ledger in reversed(report.ledgers))][::-1]
    for one in report.subscriptions:
        position = positions.get(one.name)
        if position is None:
            yield one.name, 0
        elif one.messages is not None:
            yield one.name, one.messages
        else:
            yield one.name, following[_index_of(report.ledgers, position)] - position.entry


def keep_by_size(report: TopicBacklog, begin: Position, limit_bytes: int) -> Position:
    """The first position to keep so that the size from there on is inside a limit."""
    kept = limit_bytes * KEPT_PERCENT // 100
    at = _index_of(report.ledgers, begin)
    size = sum(ledger.bytes for ledger in report.ledgers[at:])
    last = len(report.ledgers) - 1
    while at < last and size > kept:
        size -= report.ledgers[at].bytes
        at += 1
    ledger = report.ledgers[at]
    if size <= kept:
        return max(begin, Position(ledger.id, 0))
    return max(begin, Position(ledger.id, ledger.entries - ledger.entries * kept // size))


def keep_by_ledger_age(report: TopicBacklog, begin: Position, since_ms: int) -> Position:
    """The first position to keep so that no ledger from there on was closed before a time."""
    for ledger in report.ledgers[_index_of(report.ledgers, begin) :]:
        if ledger.closed_at_ms is None or ledger.closed_at_ms >= since_ms:
            return max(begin, Position(ledger.id, 0))
    return end_of(report)


def keep_by_message_age(report: TopicBacklog, begin: Position, since_ms: int) -> Position:
    """The first position to keep so that messages from there on were published since a time.

    It is the first one that is known to be young enough: a ledger after one that was closed since
    then, or another subscription's oldest message. Within the current ledger it is estimated.
    """
    known = [
        (position, one.message_time_ms)
        for position, one in positions_of(report)
        if one.message_time_ms is not None and position >= begin
    ]
    ledgers = report.ledgers[_index_of(report.ledgers, begin) :]
    for ledger, following in pairwise(ledgers):
        # Entries of a ledger are younger than the end of the ledger before it.
        known.append((Position(following.id, 0), ledger.closed_at_ms or 0))
    young = [position for position, time_ms in known if time_ms >= since_ms]
    if young:
        return min(young)
    last = ledgers[-1]
    if last.closed_at_ms is not None or since_ms >= report.read_at_ms:
        return end_of(report)
    before, time_ms = max(known, default=(begin, since_ms))
    before = max(before, Position(last.id, 0))
    entries = last.entries - before.entry
    older = -(-entries * (since_ms - time_ms) // (report.read_at_ms - time_ms))
    return Position(last.id, before.entry + older)


def end_of(report: TopicBacklog) -> Position:
    """The position of the entry that would be written next; the topic has a ledger."""
    last = report.ledgers[-1]
    return Position(last.id, last.entries)


def _existing(ledgers: tuple[Ledger, ...], ids: list[int], position: Position) -> Position | None:
    """The first entry that exists at or after a position; None if there is none."""
    at, entry = bisect_left(ids, position.ledger), position.entry
    if at < len(ids) and ids[at] != position.ledger:
        entry = 0
    while at < len(ids):
        if entry < ledgers[at].entries:
            return Position(ids[at], entry)
        at, entry = at + 1, 0
    return None


def _index_of(ledgers: tuple[Ledger, ...], position: Position) -> int:
    return bisect_left(ledgers, position.ledger, key=lambda ledger: ledger.id)


def _age_ms(report: TopicBacklog, time_ms: int | None) -> int | None:
    return None if time_ms is None else max(0, report.read_at_ms - time_ms)
