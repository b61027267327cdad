"""Policies as records that several daemons write: the higher revision wins.

Law: applying the same records in any order gives the same book on every
daemon; a lower revision never wins, and of two equal ones the greater writer
does. A record whose value is None says "deleted" and stays, so that a late
older record cannot bring the value back.

Keys are readable: `group:gold`, `tenant:acme`, `namespace:acme/orders`,
`topic:persistent://acme/orders/eu`, `limit:broker`, `limit:topic:TOPIC`,
`limit:subscription:TOPIC|NAME`, where the topic's own `|` and `%` are written
`%7C` and `%25`. How a record is written down is `rgd.wire.policies`.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from rgd.core.policies.book import PolicyBook
from rgd.core.policies.model import NO_LIMIT, Attachments, Group, Limit, Limits

GROUP: Final = "group:"
TENANT: Final = "tenant:"
NAMESPACE: Final = "namespace:"
TOPIC: Final = "topic:"
LIMIT_BROKER: Final = "limit:broker"
LIMIT_TOPIC: Final = "limit:topic:"
LIMIT_SUBSCRIPTION: Final = "limit:subscription:"

#: A group, the name of the group attached to, a limit, or None: deleted.
Value = Group | str | Limit | None


def subscription_name(topic: str, subscription: str) -> str:
    """What follows `LIMIT_SUBSCRIPTION` in a key; different for any two subscriptions."""
    escaped = topic.replace("%", "%25").replace("|", "%7C")
    return f"{escaped}|{subscription}"


def subscription_of(name: str) -> tuple[str, str]:
    """The full topic and the subscription of a `subscription_name`."""
    escaped, _, subscription = name.partition("|")
    return escaped.replace("%7C", "|").replace("%25", "%"), subscription


@dataclass(frozen=True, slots=True)
class PolicyRecord:
    """One policy as one writer last decided it."""

    key: str
    revision: int
    writer: str
    value: Value

    def beats(self, other: "PolicyRecord | None") -> bool:
        """Whether this record replaces `other`."""
        if other is None:
            return True
        return (self.revision, self.writer) > (other.revision, other.writer)


class PolicyRecords:
    """The winning record of each key, and the book they make."""

    def __init__(self) -> None:
        self._records: dict[str, PolicyRecord] = {}

    def apply(self, record: PolicyRecord) -> bool:
        """Take a record in; False when a newer one is known."""
        if not record.beats(self._records.get(record.key)):
            return False
        self._records[record.key] = record
        return True

    def next(self, key: str, value: Value, writer: str) -> PolicyRecord:
        """Make the record that replaces what is known of `key`; applies nothing."""
        known = self._records.get(key)
        return PolicyRecord(key, known.revision + 1 if known else 1, writer, value)

    def __contains__(self, key: str) -> bool:
        return key in self._records

    def book(self) -> PolicyBook:
        """The book that the winning records make."""
        broker = self._records.get(LIMIT_BROKER)
        return PolicyBook(
            groups={
                value.name: value for _, value in self._under(GROUP) if isinstance(value, Group)
            },
            attach=Attachments(
                dict(self._names(TENANT)), dict(self._names(NAMESPACE)), dict(self._names(TOPIC))
            ),
            limits=Limits(
                broker=broker.value if broker and isinstance(broker.value, Limit) else NO_LIMIT,
                topics=dict(self._limits(LIMIT_TOPIC)),
                subscriptions={
                    subscription_of(name): limit for name, limit in self._limits(LIMIT_SUBSCRIPTION)
                },
            ),
            named=frozenset(name for name, _ in self._under(NAMESPACE)),
        )

    def _under(self, prefix: str) -> Iterator[tuple[str, Value]]:
        for key, record in self._records.items():
            if key.startswith(prefix):
                yield key.removeprefix(prefix), record.value

    def _names(self, prefix: str) -> Iterator[tuple[str, str]]:
        return ((name, value) for name, value in self._under(prefix) if isinstance(value, str))

    def _limits(self, prefix: str) -> Iterator[tuple[str, Limit]]:
        return ((name, value) for name, value in self._under(prefix) if isinstance(value, Limit))


def records_of(book: PolicyBook, writer: str) -> Iterable[PolicyRecord]:
    """Write a book as first-revision records: how a groups file seeds an empty table."""
    values: dict[str, Value] = {}
    values.update((GROUP + name, group) for name, group in book.groups.items())
    values.update((TENANT + name, group) for name, group in book.attach.tenants.items())
    values.update((NAMESPACE + name, group) for name, group in book.attach.namespaces.items())
    values.update((TOPIC + name, group) for name, group in book.attach.topics.items())
    if book.limits.broker != NO_LIMIT:
        values[LIMIT_BROKER] = book.limits.broker
    values.update((LIMIT_TOPIC + name, limit) for name, limit in book.limits.topics.items())
    values.update(
        (LIMIT_SUBSCRIPTION + subscription_name(topic, name), limit)
        for (topic, name), limit in book.limits.subscriptions.items()
    )
    return [PolicyRecord(key, 1, writer, value) for key, value in values.items()]
