"""The policy snapshot: all policies in force, immutable.

Law: a request is decided against exactly one snapshot. A change makes a new snapshot
and replaces the old one as a whole, so moving a namespace between groups is atomic.

Each distinct group among topic, namespace and tenant is charged once, narrowest first. `rgd.app` has the sources of policies.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import InitVar, dataclass, field
from operator import attrgetter
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from rgd.core.bounds import BOUNDS
from rgd.core.policies.model import Attachments, Backlogs, Group, Limits, LocalLimit
from rgd.core.policies.names import namespace_of_topic, tenant_of
from rgd.core.policies.precedence import Scope, names_of
from rgd.core.policies.table import Table, changed_keys


class Attached(NamedTuple):
    """The names attached to one group."""

    tenants: list[str]
    namespaces: list[str]
    topics: list[str]


@dataclass(frozen=True, slots=True)
class PolicySnapshot:
    """Groups by name, their attachments, and this broker's limits."""

    groups: Mapping[str, Group] = field(default_factory=dict)
    attach: Attachments = field(default_factory=Attachments)
    limits: Limits = field(default_factory=Limits)
    backlogs: Backlogs = field(default_factory=Backlogs)
    #: What exists, if the creator of the snapshot knows; otherwise it is what the policies here name.
    named: InitVar[Collection[str] | None] = None
    #: Namespaces that exist (full names), and their tenants.
    existing: Collection[str] = field(init=False, compare=False, repr=False)
    #: Of each table of attachments, the names by group; empty until somebody asks.
    _attached: Sequence[Mapping[str, list[str]]] = field(
        init=False, default=(), compare=False, repr=False
    )

    def __post_init__(self, named: Collection[str] | None) -> None:
        existing = with_tenants(self._namespaces()) if named is None else named
        object.__setattr__(self, "existing", existing)

    def groups_of(self, namespace: str | None, topic: str | None = None) -> tuple[Group, ...]:
        """The distinct groups that charge a topic of a full namespace, narrowest first.

        An attachment to a group that does not exist (yet) charges nothing.
        """
        found = dict.fromkeys(name for name, _, _ in self.attachments_of(namespace, topic))
        return tuple(self.groups[name] for name in found if name in self.groups)

    def attachments_of(
        self, namespace: str | None, topic: str | None = None
    ) -> Iterator[tuple[str, Scope, str]]:
        """The attachments of a topic, narrowest first: each one's group, scope and name."""
        if topic is not None:
            # A partition's own attachment overrides its partitioned topic's.
            for name in names_of(topic):
                if (group := self.attach.topics.get(name)) is not None:
                    yield group, Scope.TOPIC, name
                    break
        if namespace is not None:
            if (group := self.attach.namespaces.get(namespace)) is not None:
                yield group, Scope.NAMESPACE, namespace
            tenant = tenant_of(namespace)
            if (group := self.attach.tenants.get(tenant)) is not None:
                yield group, Scope.TENANT, tenant

    def attached_to(self, group: str) -> Attached:
        """The names attached to a group, sorted; the first call passes over all attachments."""
        if not self._attached:
            tables = self.attach.tenants, self.attach.namespaces, self.attach.topics
            object.__setattr__(self, "_attached", [_by_value(table) for table in tables])
        return Attached(*(sorted(names.get(group, ())) for names in self._attached))

    def _namespaces(self) -> Iterator[str]:
        """Every named namespace, once for each policy that names it."""
        for table, of in NAMESPACE_OF.items():
            yield from map(of, attrgetter(table)(self))


def _of_subscription(name: tuple[str, str]) -> str:
    return namespace_of_topic(name[0])


#: Of each table whose entries name a namespace, as attributes of a snapshot, how they do.
NAMESPACE_OF: Final[Mapping[str, Callable[[Any], str]]] = MappingProxyType(
    {
        "attach.namespaces": str,
        "attach.topics": namespace_of_topic,
        "limits.topics": namespace_of_topic,
        "limits.subscriptions": _of_subscription,
        "limits.namespaces": str,
        "limits.namespace_subscriptions": str,
        "limits.topic_subscriptions": namespace_of_topic,
        "backlogs.namespaces": str,
        "backlogs.topics": namespace_of_topic,
    }
)


def with_tenants(namespaces: Iterable[str]) -> Collection[str]:
    """These namespaces (full names) and their tenants, as `PolicySnapshot.existing` has them."""
    names = set(namespaces)
    return names.union(map(tenant_of, names))


def _by_value(table: Mapping[str, str]) -> Mapping[str, list[str]]:
    found = defaultdict(list)
    for name, value in table.items():
        found[value].append(name)
    return found


EMPTY_SNAPSHOT = PolicySnapshot()

#: The tables of limits, as attributes of a snapshot.
LIMIT_TABLES: Final = (
    "limits.topics",
    "limits.subscriptions",
    "limits.namespaces",
    "limits.namespace_subscriptions",
    "limits.topic_subscriptions",
)
#: The tables that decide requests.
DECIDING_TABLES: Final = (
    "groups",
    "attach.tenants",
    "attach.namespaces",
    "attach.topics",
    *LIMIT_TABLES,
)


def snapshot_of(
    tables: Mapping[str, Mapping[Any, Any]], of_broker: LocalLimit, existing: Collection[str]
) -> PolicySnapshot:
    """The snapshot of these tables.

    Args:
        tables: by attribute of the snapshot, such as `limits.topics`; others are empty.
        of_broker: the limit of all traffic of a broker.
        existing: the namespaces that exist, and their tenants.
    """

    def of(part: str) -> dict[str, Mapping[Any, Any]]:
        paths = (path.partition(".") for path in tables)
        return {name: tables[f"{head}.{name}"] for head, _, name in paths if head == part and name}

    return PolicySnapshot(
        tables["groups"],
        Attachments(**of("attach")),
        Limits(of_broker, **of("limits")),
        backlogs=Backlogs(**of("backlogs")),
        named=existing,
    )


def replaced_parts(before: PolicySnapshot, after: PolicySnapshot) -> list[dict[Any, Any]]:
    """The dicts of the tables that decide requests which only the former of two snapshots has."""
    tables_of = attrgetter(*DECIDING_TABLES)
    return [
        old
        for former, table in zip(tables_of(before), tables_of(after), strict=True)
        if isinstance(former, Table) and isinstance(table, Table)
        for old, new in zip(former.parts, table.parts, strict=True)
        if old is not new
    ]


class Changes(NamedTuple):
    """What differs between two snapshots; computed once, and handed to all that follow policies."""

    #: The names of the groups that differ; None: any may differ, because they are many.
    groups: Collection[str] | None
    #: Whether the limits of the broker, of topics or of subscriptions may differ.
    limits: bool


#: As if everything differed, to repair what a failed change left behind.
ALL_CHANGED: Final = Changes(None, limits=True)


def changes_between(
    before: PolicySnapshot, after: PolicySnapshot, most: int = BOUNDS.sharing.changes_max
) -> Changes:
    """Compare two snapshots, in a time that does not grow with their size; at most so many groups are named."""
    tables_of = attrgetter(*LIMIT_TABLES)
    limits = before.limits.broker != after.limits.broker or any(
        one is not other and (one or other)
        for one, other in zip(tables_of(before), tables_of(after), strict=True)
    )
    return Changes(changed_keys(before.groups, after.groups, most), limits)
