"""Selects the scope of a topic's or a subscription's own limit.

Law: the narrowest scope that sets a kind sets it completely, as in Pulsar; a kind without any
setting is unlimited. For a topic: itself, else its partitioned topic, else its namespace.
For a subscription: itself, else its topic's subscriptions, else its namespace's.
For a backlog quota, each type by itself: the topic, else its partitioned topic, else its namespace.

Groups have no precedence: each distinct one is charged (`PolicySnapshot.groups_of`).
"""

from collections.abc import Iterator, Mapping
from enum import StrEnum
from itertools import chain
from typing import Any, Generic, NamedTuple, TypeVar

from rgd.core.policies.model import BacklogQuota, Backlogs, BacklogType, Limits, Rates
from rgd.core.policies.names import namespace_of_topic, partitioned_topic_of
from rgd.core.units import Kind

_Value = TypeVar("_Value")


class Scope(StrEnum):
    """The scope of a limit or an attachment."""

    BROKER = "broker"
    TENANT = "tenant"
    NAMESPACE = "namespace"
    TOPIC = "topic"
    SUBSCRIPTION = "subscription"


class Scoped(NamedTuple, Generic[_Value]):
    """What is set for a scope, and its name."""

    value: _Value
    scope: Scope
    name: str


def topic_limit(limits: Limits, topic: str, kind: Kind) -> Scoped[Rates] | None:
    """The limit of one topic (full name) on each broker; None if no scope sets one."""
    namespace = namespace_of_topic(topic)
    return _first(_scopes(limits.topics, limits.namespaces, namespace, topic), kind)


def subscription_limit(
    limits: Limits, topic: str, subscription: str, kind: Kind
) -> Scoped[Rates] | None:
    """The limit of one subscription of a topic (full name) on each broker; likewise."""
    own = (
        (limits.subscriptions.get((name, subscription)), Scope.SUBSCRIPTION, subscription)
        for name in names_of(topic)
    )
    namespace = namespace_of_topic(topic)
    wider = limits.topic_subscriptions, limits.namespace_subscriptions
    return _first(chain(own, _scopes(*wider, namespace, topic)), kind)


def backlog_quota(
    backlogs: Backlogs, namespace: str, topic: str | None, which: BacklogType
) -> Scoped[BacklogQuota] | None:
    """The quota of one type that is set for a topic, or for a namespace; None if none is."""
    return _first(_scopes(backlogs.topics, backlogs.namespaces, namespace, topic), which)


def names_of(topic: str) -> tuple[str, ...]:
    """The names of a topic, narrowest first: a partition has two."""
    partitioned = partitioned_topic_of(topic)
    return (topic,) if partitioned is None else (topic, partitioned)


_Candidates = Iterator[tuple[Any, Scope, str]]


def _scopes(
    topics: Mapping[str, Any], namespaces: Mapping[str, Any], namespace: str, topic: str | None
) -> _Candidates:
    if topic is not None and topics:
        for name in names_of(topic):
            yield topics.get(name), Scope.TOPIC, name
    yield namespaces.get(namespace), Scope.NAMESPACE, namespace


def _first(candidates: _Candidates, which: Any) -> Scoped[Any] | None:
    """What the first scope says that sets it."""
    for setting, scope, name in candidates:
        found = None if setting is None else setting.of(which)
        if found is not None:
            return Scoped(found, scope, name)
    return None
