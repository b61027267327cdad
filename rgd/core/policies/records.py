"""Policies as records that several daemons write: the higher revision wins.

Law: applying the same records in any order gives the same book on every
daemon; a lower revision never wins, and of two equal ones the first in the topic's order
does. A record whose value is None says "deleted" and stays, so that a late
older record cannot bring the value back.

Keys are readable: `group:gold`, `tenant:acme`, `namespace:acme/orders`,
`topic:persistent://acme/orders/eu`, `limit:broker`, `limit:topic:TOPIC`,
`limit:subscription:TOPIC|NAME`, where the topic's own `|` and `%` are written
`%7C` and `%25`, `limit:namespace:NAMESPACE` (of each topic), `limit:namespace-subscriptions:NAMESPACE`
and `limit:topic-subscriptions:TOPIC` (of each subscription), `backlog:namespace:NAMESPACE`,
`backlog:topic:TOPIC`. How a record is written down is `rgd.wire.policies`.
"""

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from rgd.core.policies.book import PolicyBook
from rgd.core.policies.index import NamesWriter, PolicyIndex
from rgd.core.policies.model import (
    NOT_SET,
    Attachments,
    BacklogQuotas,
    Backlogs,
    Group,
    Limits,
    LocalLimit,
)
from rgd.core.policies.names import namespace_of_topic, tenant_of
from rgd.core.policies.table import Table, TableWriter

GROUP: Final = "group:"
TENANT: Final = "tenant:"
NAMESPACE: Final = "namespace:"
TOPIC: Final = "topic:"
LIMIT_BROKER: Final = "limit:broker"
LIMIT_TOPIC: Final = "limit:topic:"
LIMIT_SUBSCRIPTION: Final = "limit:subscription:"
LIMIT_NAMESPACE: Final = "limit:namespace:"
LIMIT_NAMESPACE_SUBSCRIPTIONS: Final = "limit:namespace-subscriptions:"
LIMIT_TOPIC_SUBSCRIPTIONS: Final = "limit:topic-subscriptions:"
BACKLOG_NAMESPACE: Final = "backlog:namespace:"
BACKLOG_TOPIC: Final = "backlog:topic:"

#: Highest revision: what every JSON reader takes exactly, and a change each millisecond would reach in
#: 285,000 years. A record above it is refused. Of several with this one the last counts, not the first,
#: so that a forged one locks nobody out of a policy.
REVISION_MAX: Final = (1 << 53) - 1
#: Policies that a table may have, deleted ones too; records of further keys are refused. Five for each
#: of 100,000 namespaces.
KEYS_MAX: Final = 500_000

#: Keys that begin so have two words before their name.
_LONG: Final = ("limit:", "backlog:")

_Name = TypeVar("_Name", bound=Hashable)
_Sort = TypeVar("_Sort")

#: Keys of what is attached to groups.
_ATTACHED: Final = (TENANT, NAMESPACE, TOPIC)
_OF_NAMESPACES: Final = (
    NAMESPACE,
    LIMIT_NAMESPACE,
    LIMIT_NAMESPACE_SUBSCRIPTIONS,
    BACKLOG_NAMESPACE,
)
_OF_TOPICS: Final = (TOPIC, LIMIT_TOPIC, LIMIT_TOPIC_SUBSCRIPTIONS, BACKLOG_TOPIC)

#: A group, the name of the group attached to, a limit, backlog quotas, or None: deleted.
Value = Group | str | LocalLimit | BacklogQuotas | None
#: What a policy becomes, given what is known of it (None: nothing).
Change = Callable[[Value], Value]


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
    """The winning record of each key, and the book they make.

    What a book holds is kept as records come, so that neither a record nor a book waits for the others.
    """

    def __init__(self) -> None:
        self._records: dict[str, PolicyRecord] = {}
        self._broker = NOT_SET
        self._groups: TableWriter[str, Group] = TableWriter()
        self._attached = _Writers(str, _ATTACHED)
        self._limits = _Writers(
            LocalLimit,
            (
                LIMIT_TOPIC,
                LIMIT_NAMESPACE,
                LIMIT_NAMESPACE_SUBSCRIPTIONS,
                LIMIT_TOPIC_SUBSCRIPTIONS,
            ),
        )
        self._subscriptions: TableWriter[tuple[str, str], LocalLimit] = TableWriter()
        self._backlogs = _Writers(BacklogQuotas, (BACKLOG_NAMESPACE, BACKLOG_TOPIC))
        #: Namespaces that are named by records of which nothing else may tell, and by how many.
        self._named: TableWriter[str, int] = TableWriter()
        #: What is attached to each group, by the prefix of its key; and each tenant's namespaces.
        self._attached_to = {prefix: NamesWriter() for prefix in _ATTACHED}
        self._existing = NamesWriter()

    def apply(self, record: PolicyRecord) -> bool:
        """Take a record in; False when a newer one is known."""
        if not record.beats(self._records.get(record.key)):
            return False
        self.put(record)
        return True

    def put(self, record: PolicyRecord) -> None:
        """Take a record in, whatever is known."""
        known = self._records.get(record.key)
        self._records[record.key] = record
        self._name(None if known is None else _named_by(known), _named_by(record))
        self._index(known, record)
        self._show(record.key, record.value)

    def next(self, key: str, value: Value, writer: str) -> PolicyRecord:
        """Make the record that replaces what is known of `key`; applies nothing."""
        known = self._records.get(key)
        revision = min(known.revision + 1, REVISION_MAX) if known else 1
        return PolicyRecord(key, revision, writer, value)

    def get(self, key: str) -> PolicyRecord | None:
        """The winning record of a key, deleted or not; None: there was never one."""
        return self._records.get(key)

    def value(self, key: str) -> Value:
        """What is known of a key; None: nothing, or that it was deleted."""
        known = self._records.get(key)
        return None if known is None else known.value

    def keys(self) -> set[str]:
        """Every key that there was ever a record of."""
        return set(self._records)

    def all(self) -> list[PolicyRecord]:
        """Every winning record, deleted or not."""
        return list(self._records.values())

    def __len__(self) -> int:
        return len(self._records)

    def __contains__(self, key: str) -> bool:
        return key in self._records

    def book(self) -> PolicyBook:
        """The book that the winning records make."""
        attached, limits, backlogs = self._attached, self._limits, self._backlogs
        return PolicyBook(
            groups=self._groups.table(),
            attach=Attachments(
                attached.table(TENANT), attached.table(NAMESPACE), attached.table(TOPIC)
            ),
            limits=Limits(
                broker=self._broker,
                topics=limits.table(LIMIT_TOPIC),
                subscriptions=self._subscriptions.table(),
                namespaces=limits.table(LIMIT_NAMESPACE),
                namespace_subscriptions=limits.table(LIMIT_NAMESPACE_SUBSCRIPTIONS),
                topic_subscriptions=limits.table(LIMIT_TOPIC_SUBSCRIPTIONS),
            ),
            named=self._named.table().keys(),
            backlogs=Backlogs(backlogs.table(BACKLOG_NAMESPACE), backlogs.table(BACKLOG_TOPIC)),
            indexed=PolicyIndex(
                self._attached_to[TENANT].table(),
                self._attached_to[NAMESPACE].table(),
                self._attached_to[TOPIC].table(),
                self._existing.table(),
            ),
        )

    def _index(self, before: PolicyRecord | None, after: PolicyRecord) -> None:
        """Index a record in place of the one of its key that is known."""
        prefix, name = _parted(after.key)
        namespace = _namespace_of(prefix, name)
        if before is None and namespace is not None:
            # A namespace exists once named: that of a deleted record, too.
            self._existing.add(tenant_of(namespace), namespace)
        attached = self._attached_to.get(prefix)
        was = before.value if before is not None else None
        if attached is None or was == after.value:
            return
        if isinstance(was, str):
            attached.remove(was, name)
        if isinstance(after.value, str):
            attached.add(after.value, name)

    def _name(self, before: str | None, after: str | None) -> None:
        """Count the namespace that a record names, in place of the one that it named before."""
        if before == after:
            return
        if before is not None:
            count = self._named.get(before, 1) - 1
            _write(self._named, before, count or None)
        if after is not None:
            self._named.put(after, self._named.get(after, 0) + 1)

    def _show(self, key: str, value: Value) -> None:
        """Have the next book say what a record says; a value of another sort than its key's says nothing."""
        prefix, name = _parted(key)
        if key == LIMIT_BROKER:
            self._broker = value if isinstance(value, LocalLimit) else NOT_SET
        elif prefix == GROUP:
            _write(self._groups, name, value if isinstance(value, Group) else None)
        elif prefix == LIMIT_SUBSCRIPTION:
            limit = value if isinstance(value, LocalLimit) else None
            _write(self._subscriptions, subscription_of(name), limit)
        else:
            for writers in (self._attached, self._limits, self._backlogs):
                writers.write(prefix, name, value)


class _Writers(Generic[_Sort]):
    """Tables of one sort of values, by the prefix of their keys."""

    def __init__(self, sort: type[_Sort], prefixes: Iterable[str]) -> None:
        self._sort = sort
        self._by_prefix: dict[str, TableWriter[str, _Sort]] = {
            prefix: TableWriter() for prefix in prefixes
        }

    def write(self, prefix: str, name: str, value: Value) -> None:
        """Write a value that may be of this sort, if the prefix is one of these."""
        writer = self._by_prefix.get(prefix)
        if writer is not None:
            _write(writer, name, value if isinstance(value, self._sort) else None)

    def table(self, prefix: str) -> Table[str, _Sort]:
        """The table of one prefix."""
        return self._by_prefix[prefix].table()


def _named_by(record: PolicyRecord) -> str | None:
    """The namespace that exists because of a record; that of a live one of another sort tells itself."""
    prefix, name = _parted(record.key)
    is_telling = prefix == NAMESPACE or record.value is None
    return _namespace_of(prefix, name) if is_telling else None


def _namespace_of(prefix: str, name: str) -> str | None:
    """The namespace that a key names, if it names one."""
    if prefix in _OF_NAMESPACES:
        return name
    if prefix == LIMIT_SUBSCRIPTION:
        return namespace_of_topic(subscription_of(name)[0])
    return namespace_of_topic(name) if prefix in _OF_TOPICS else None


def _write(writer: TableWriter[_Name, _Sort], name: _Name, value: _Sort | None) -> None:
    if value is None:
        writer.remove(name)
    else:
        writer.put(name, value)


def _parted(key: str) -> tuple[str, str]:
    """The prefix of a key, and the name after it."""
    end = key.find(":") + 1
    if key.startswith(_LONG):
        end = key.find(":", end) + 1
    return key[:end], key[end:]


def records_of(book: PolicyBook, writer: str) -> Iterable[PolicyRecord]:
    """Write a book as first-revision records: how a groups file seeds an empty table."""
    attach, limits, backlogs = book.attach, book.limits, book.backlogs
    by_name: tuple[tuple[str, Mapping[str, Value]], ...] = (
        (GROUP, book.groups),
        (TENANT, attach.tenants),
        (NAMESPACE, attach.namespaces),
        (TOPIC, attach.topics),
        (LIMIT_NAMESPACE, limits.namespaces),
        (LIMIT_TOPIC, limits.topics),
        (LIMIT_NAMESPACE_SUBSCRIPTIONS, limits.namespace_subscriptions),
        (LIMIT_TOPIC_SUBSCRIPTIONS, limits.topic_subscriptions),
        (BACKLOG_NAMESPACE, backlogs.namespaces),
        (BACKLOG_TOPIC, backlogs.topics),
    )
    values: dict[str, Value] = {
        prefix + name: value for prefix, values in by_name for name, value in values.items()
    }
    if limits.broker != NOT_SET:
        values[LIMIT_BROKER] = limits.broker
    values.update(
        (LIMIT_SUBSCRIPTION + subscription_name(topic, name), limit)
        for (topic, name), limit in limits.subscriptions.items()
    )
    return [PolicyRecord(key, 1, writer, value) for key, value in values.items()]
