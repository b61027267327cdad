"""The policy book: one immutable snapshot of every policy in force.

Law: a request is decided against exactly one book. A change makes a new book
and swaps it whole, so moving a namespace between groups is atomic.

Each distinct group among topic, namespace and tenant is charged once
(design 2), narrowest first. Where policies come from is `rgd.app`'s business.
"""

from dataclasses import dataclass, field

from rgd.core.policies.model import Attachments, Group, Limits
from rgd.core.policies.names import namespace_of_topic, tenant_of


@dataclass(frozen=True, slots=True)
class PolicyBook:
    """Groups by name, their attachments, and this broker's limits."""

    groups: dict[str, Group] = field(default_factory=dict)
    attach: Attachments = field(default_factory=Attachments)
    limits: Limits = field(default_factory=Limits)
    #: Namespaces that were named once and may be attached to nothing now.
    named: frozenset[str] = frozenset()

    def groups_of(self, namespace: str | None, topic: str | None = None) -> tuple[Group, ...]:
        """The distinct groups that charge a topic of a full namespace, narrowest first.

        An attachment to a group that does not exist (yet) charges nothing.
        """
        names: list[str | None] = []
        if topic is not None:
            names.append(self.attach.topics.get(topic))
        if namespace is not None:
            names.append(self.attach.namespaces.get(namespace))
            names.append(self.attach.tenants.get(tenant_of(namespace)))
        found = dict.fromkeys(name for name in names if name is not None)
        return tuple(self.groups[name] for name in found if name in self.groups)

    def attached_to(self, group: str) -> Attachments:
        """What is attached to one group."""
        return Attachments(
            {name: to for name, to in self.attach.tenants.items() if to == group},
            {name: to for name, to in self.attach.namespaces.items() if to == group},
            {name: to for name, to in self.attach.topics.items() if to == group},
        )

    def namespaces(self) -> frozenset[str]:
        """Every namespace that was ever named here (a namespace exists once named)."""
        named = {*self.named, *self.attach.namespaces}
        named.update(namespace_of_topic(topic) for topic in self.attach.topics)
        named.update(namespace_of_topic(topic) for topic in self.limits.topics)
        named.update(namespace_of_topic(topic) for topic, _ in self.limits.subscriptions)
        return frozenset(named)


EMPTY_BOOK = PolicyBook()
