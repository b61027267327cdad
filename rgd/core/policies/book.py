"""The policy snapshot: all policies in force, immutable.

Law: a request is decided against exactly one snapshot. A change makes a new snapshot
and replaces the old one as a whole, so moving a namespace between groups is atomic.

Each distinct group among topic, namespace and tenant is charged once
(design 2), narrowest first. `rgd.app` has the sources of policies.
"""

from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

from rgd.core.policies.model import Attachments, Backlogs, Group, Limits
from rgd.core.policies.names import namespace_of_topic, tenant_of
from rgd.core.policies.precedence import Place, names_of


@dataclass(frozen=True, slots=True)
class PolicyBook:
    """Groups by name, their attachments, and this broker's limits."""

    groups: Mapping[str, Group] = field(default_factory=dict)
    attach: Attachments = field(default_factory=Attachments)
    limits: Limits = field(default_factory=Limits)
    #: Namespaces that were named once and may have no attachment now.
    named: AbstractSet[str] = frozenset()
    backlogs: Backlogs = field(default_factory=Backlogs)

    def groups_of(self, namespace: str | None, topic: str | None = None) -> tuple[Group, ...]:
        """The distinct groups that charge a topic of a full namespace, narrowest first.

        An attachment to a group that does not exist (yet) charges nothing.
        """
        found = dict.fromkeys(name for name, _, _ in self.attachments_of(namespace, topic))
        return tuple(self.groups[name] for name in found if name in self.groups)

    def attachments_of(
        self, namespace: str | None, topic: str | None = None
    ) -> Iterator[tuple[str, Place, str]]:
        """The attachments of a topic, narrowest first: the group, the attachment's scope, its name."""
        if topic is not None:
            # A partition's own attachment overrides its partitioned topic's.
            for name in names_of(topic):
                if (group := self.attach.topics.get(name)) is not None:
                    yield group, Place.TOPIC, name
                    break
        if namespace is not None:
            if (group := self.attach.namespaces.get(namespace)) is not None:
                yield group, Place.NAMESPACE, namespace
            tenant = tenant_of(namespace)
            if (group := self.attach.tenants.get(tenant)) is not None:
                yield group, Place.TENANT, tenant

    def attached_to(self, group: str) -> Attachments:
        """The attachments of one group."""
        return Attachments(
            {name: to for name, to in self.attach.tenants.items() if to == group},
            {name: to for name, to in self.attach.namespaces.items() if to == group},
            {name: to for name, to in self.attach.topics.items() if to == group},
        )

    def namespaces(self) -> frozenset[str]:
        """Every namespace that was ever named here (a namespace exists once named)."""
        limits, backlogs = self.limits, self.backlogs
        by_namespace = (limits.namespaces, limits.namespace_subscriptions, backlogs.namespaces)
        by_topic = (self.attach.topics, limits.topics, limits.topic_subscriptions, backlogs.topics)
        named = {*self.named, *self.attach.namespaces}
        named.update(*by_namespace)
        for topics in by_topic:
            named.update(namespace_of_topic(topic) for topic in topics)
        named.update(namespace_of_topic(topic) for topic, _ in limits.subscriptions)
        return frozenset(named)


EMPTY_BOOK = PolicyBook()
