"""Which tenants and namespaces exist: those of which anything is named in the policies.

Law: nothing here puts all names together. Whether one exists is looked up where it would be named; lists
are gone through one by one, so that whoever answers with them may rest in between.
"""

from collections.abc import Iterator
from itertools import chain

from rgd.core.policies.book import PolicyBook
from rgd.core.policies.names import namespace_of_topic, tenant_of


def namespaces(book: PolicyBook) -> Iterator[str]:
    """Every namespace that was ever named, full names; one may come several times."""
    limits, backlogs = book.limits, book.backlogs
    yield from chain(
        book.named,
        book.attach.namespaces,
        limits.namespaces,
        limits.namespace_subscriptions,
        backlogs.namespaces,
    )
    yield from map(namespace_of_topic, _topics(book))


def tenants(book: PolicyBook) -> Iterator[str]:
    """Every tenant of which anything is named; one may come several times."""
    yield from book.attach.tenants
    yield from map(tenant_of, namespaces(book))


def is_namespace(book: PolicyBook, namespace: str) -> bool:
    """Whether a full name is one of `namespaces`."""
    limits, backlogs = book.limits, book.backlogs
    return (
        namespace in book.named
        or namespace in book.attach.namespaces
        or namespace in limits.namespaces
        or namespace in limits.namespace_subscriptions
        or namespace in backlogs.namespaces
        or any(namespace_of_topic(topic) == namespace for topic in _topics(book))
    )


def is_tenant(book: PolicyBook, tenant: str) -> bool:
    """Whether a name is one of `tenants`."""
    return tenant in book.attach.tenants or any(
        tenant_of(namespace) == tenant for namespace in namespaces(book)
    )


def _topics(book: PolicyBook) -> Iterator[str]:
    limits = book.limits
    yield from chain(
        book.attach.topics, limits.topics, limits.topic_subscriptions, book.backlogs.topics
    )
    yield from (topic for topic, _ in limits.subscriptions)
