"""Policies as records that several daemons write, and the snapshot that they make.

Law: the snapshot depends on the last record put for each key, and on nothing before it. Which of a
key's records is put, the higher revision, is decided in `rgd.app.policies.ledger`. A record whose
value is None means "deleted" and stays, so that a late older record cannot restore the value.

Keys are readable: `group:gold`, `tenant:acme`, `namespace:acme/orders`,
`topic:persistent://acme/orders/eu`, `limit:broker`, `limit:topic:TOPIC`,
`limit:subscription:TOPIC|NAME`, where the topic's own `|` and `%` are written
`%7C` and `%25`, `limit:namespace:NAMESPACE` (of each topic),
`limit:namespace-subscriptions:NAMESPACE` and `limit:topic-subscriptions:TOPIC` (of each
subscription), `backlog:namespace:NAMESPACE`, `backlog:topic:TOPIC`.
`rgd.wire.policies` encodes records.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from operator import attrgetter
from types import MappingProxyType
from typing import Any, Final

from rgd.core.policies.model import NOT_SET, BacklogQuotas, Group, LocalLimit
from rgd.core.policies.names import tenant_of
from rgd.core.policies.snapshot import NAMESPACE_OF, PolicySnapshot, snapshot_of
from rgd.core.policies.table import TableWriter

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

#: Highest revision: the largest integer that every JSON reader parses exactly. One change each
#: millisecond would reach it in 285,000 years. A record above it is refused. Of several records
#: with this revision the last counts, not the first, so that a forged record cannot lock a policy.
REVISION_MAX: Final = (1 << 53) - 1
#: Policies that a table may have, deleted ones too; records of further keys are refused. Five for
#: each of 100,000 namespaces.
KEYS_MAX: Final = 500_000

#: Keys with these prefixes have a second prefix before the name.
_LONG: Final = ("limit:", "backlog:")

#: Of each prefix, the table of the snapshot that its records are in, and the type of their values.
_SORTS: Final[Mapping[str, tuple[str, type]]] = MappingProxyType(
    {
        GROUP: ("groups", Group),
        TENANT: ("attach.tenants", str),
        NAMESPACE: ("attach.namespaces", str),
        TOPIC: ("attach.topics", str),
        LIMIT_TOPIC: ("limits.topics", LocalLimit),
        LIMIT_SUBSCRIPTION: ("limits.subscriptions", LocalLimit),
        LIMIT_NAMESPACE: ("limits.namespaces", LocalLimit),
        LIMIT_NAMESPACE_SUBSCRIPTIONS: ("limits.namespace_subscriptions", LocalLimit),
        LIMIT_TOPIC_SUBSCRIPTIONS: ("limits.topic_subscriptions", LocalLimit),
        BACKLOG_NAMESPACE: ("backlogs.namespaces", BacklogQuotas),
        BACKLOG_TOPIC: ("backlogs.topics", BacklogQuotas),
    }
)

#: A group, the name of the group attached to, a limit, backlog quotas, or None: deleted.
Value = Group | str | LocalLimit | BacklogQuotas | None
#: Maps a policy's current value (None: none) to its new one.
Change = Callable[[Value], Value]


def subscription_name(topic: str, subscription: str) -> str:
    """The part of a key after `LIMIT_SUBSCRIPTION`; unique for each subscription."""
    escaped = topic.replace("%", "%25").replace("|", "%7C")
    return f"{escaped}|{subscription}"


def subscription_of(name: str) -> tuple[str, str]:
    """The full topic and the subscription of a `subscription_name`."""
    escaped, _, subscription = name.partition("|")
    return escaped.replace("%7C", "|").replace("%25", "%"), subscription


@dataclass(frozen=True, slots=True)
class PolicyRecord:
    """One policy as one writer last set it."""

    key: str
    revision: int
    writer: str
    value: Value


class PolicyRecords:
    """The record of each key that was put last, and their snapshot.

    Each record updates the tables of the snapshot, so that neither a record nor a snapshot needs a
    pass over all others.
    """

    def __init__(self) -> None:
        self._records: dict[str, PolicyRecord] = {}
        self._broker = NOT_SET
        #: The tables of the snapshot, by key prefix.
        self._tables: dict[str, TableWriter[Any, Any]] = {
            prefix: TableWriter() for prefix in _SORTS
        }
        #: Namespaces that exist, and their tenants: once named, even by a record that was deleted since.
        self._existing: TableWriter[str, None] = TableWriter()

    def put(self, record: PolicyRecord) -> None:
        """Apply a record, whatever is known of its key."""
        if record.key not in self._records and (namespace := _namespace_of(record.key)):
            self._existing.put(namespace, None)
            self._existing.put(tenant_of(namespace), None)
        self._records[record.key] = record
        self._show(record.key, record.value)

    def next(self, key: str, value: Value, writer: str) -> PolicyRecord:
        """Make the record that replaces the known one of `key`, without applying it."""
        known = self._records.get(key)
        revision = min(known.revision + 1, REVISION_MAX) if known else 1
        return PolicyRecord(key, revision, writer, value)

    def get(self, key: str) -> PolicyRecord | None:
        """The record of a key, deleted or not; None if there was never one."""
        return self._records.get(key)

    def value(self, key: str) -> Value:
        """The value of a key; None if it is unknown or deleted."""
        known = self._records.get(key)
        return None if known is None else known.value

    def keys(self) -> set[str]:
        """Every key that ever had a record."""
        return set(self._records)

    def all(self) -> list[PolicyRecord]:
        """Every winning record, deleted or not."""
        return list(self._records.values())

    def __len__(self) -> int:
        return len(self._records)

    def __contains__(self, key: str) -> bool:
        return key in self._records

    def snapshot(self) -> PolicySnapshot:
        """The snapshot of the winning records."""
        tables = {_SORTS[prefix][0]: writer.table() for prefix, writer in self._tables.items()}
        return snapshot_of(tables, self._broker, self._existing.table())

    def _show(self, key: str, value: Value) -> None:
        """Write a value to the next snapshot; a value of the wrong type counts as absent."""
        if key == LIMIT_BROKER:
            self._broker = value if isinstance(value, LocalLimit) else NOT_SET
            return
        prefix, entry = _parted(key)
        table = self._tables.get(prefix)
        if table is None:
            return
        if isinstance(value, _SORTS[prefix][1]):
            table.put(entry, value)
        else:
            table.remove(entry)


def _namespace_of(key: str) -> str | None:
    """The namespace that a key names, if it names one."""
    prefix, entry = _parted(key)
    of = NAMESPACE_OF.get(_SORTS[prefix][0]) if prefix in _SORTS else None
    return None if of is None else of(entry)


def _parted(key: str) -> tuple[str, Any]:
    """The prefix of a key, and what the name after it is in the table of the snapshot."""
    end = key.find(":") + 1
    if key.startswith(_LONG):
        end = key.find(":", end) + 1
    prefix, name = key[:end], key[end:]
    return prefix, subscription_of(name) if prefix == LIMIT_SUBSCRIPTION else name


def value_in(snapshot: PolicySnapshot, key: str) -> Value:
    """The policy of a key (but a broker's) in a snapshot; None: there is none."""
    prefix, entry = _parted(key)
    value: Value = attrgetter(_SORTS[prefix][0])(snapshot).get(entry)
    return value


def values_of(snapshot: PolicySnapshot) -> Iterator[tuple[str, Value]]:
    """Every policy of a snapshot, by its key."""
    for prefix, (table, _) in _SORTS.items():
        for name, value in attrgetter(table)(snapshot).items():
            is_pair = prefix == LIMIT_SUBSCRIPTION
            yield prefix + (subscription_name(*name) if is_pair else name), value
    if snapshot.limits.broker != NOT_SET:
        yield LIMIT_BROKER, snapshot.limits.broker


def records_of(snapshot: PolicySnapshot, writer: str) -> Iterable[PolicyRecord]:
    """Convert a snapshot to first-revision records, by which a groups file seeds an empty table."""
    return [PolicyRecord(key, 1, writer, value) for key, value in values_of(snapshot)]
