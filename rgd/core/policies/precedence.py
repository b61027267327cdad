"""Selects the scope of a topic's or a subscription's own limit.

Law: the narrowest scope that sets a kind sets it completely, as in Pulsar; a kind without any
setting is unlimited. For a topic: itself, else its partitioned topic, else its namespace.
For a subscription: itself, else its topic's subscriptions, else its namespace's.
For a backlog quota, each type by itself: the topic, else its partitioned topic, else its namespace.

Groups have no precedence: each distinct one is charged (`PolicySnapshot.groups_of`).
"""

from collections.abc import Iterator
from enum import StrEnum
from typing import Any, Generic, NamedTuple, TypeVar

from rgd.core.policies.model import (
    BacklogQuota,
    BacklogQuotas,
    Backlogs,
    BacklogType,
    Limits,
    LocalLimit,
    Rates,
)
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
    return _first(_topic_scopes(limits, topic), kind)


def subscription_limit(
    limits: Limits, topic: str, subscription: str, kind: Kind
) -> Scoped[Rates] | None:
    """The limit of one subscription of a topic (full name) on each broker; likewise."""
    return _first(_subscription_scopes(limits, topic, subscription), kind)


def backlog_quota(
    backlogs: Backlogs, namespace: str, topic: str | None, which: BacklogType
) -> Scoped[BacklogQuota] | None:
    """The quota of one type that is set for a topic, or for a namespace; None if none is."""
    return _first(_backlog_scopes(backlogs, namespace, topic), which)


def names_of(topic: str) -> tuple[str, ...]:
    """The names of a topic, narrowest first: a partition has two."""
    partitioned = partitioned_topic_of(topic)
    return (topic,) if partitioned is None else (topic, partitioned)


_Candidates = Iterator[tuple[LocalLimit | None, Scope, str]]


def _topic_scopes(limits: Limits, topic: str) -> _Candidates:
    for name in names_of(topic):
        yield limits.topics.get(name), Scope.TOPIC, name
    namespace = namespace_of_topic(topic)
    yield limits.namespaces.get(namespace), Scope.NAMESPACE, namespace


def _subscription_scopes(limits: Limits, topic: str, subscription: str) -> _Candidates:
    names = names_of(topic)
    for name in names:
        yield limits.subscriptions.get((name, subscription)), Scope.SUBSCRIPTION, subscription
    for name in names:
        yield limits.topic_subscriptions.get(name), Scope.TOPIC, name
    namespace = namespace_of_topic(topic)
    yield limits.namespace_subscriptions.get(namespace), Scope.NAMESPACE, namespace


def _backlog_scopes(
    backlogs: Backlogs, namespace: str, topic: str | None
) -> Iterator[tuple[BacklogQuotas | None, Scope, str]]:
    if topic is not None and backlogs.topics:
        for name in names_of(topic):
            yield backlogs.topics.get(name), Scope.TOPIC, name
    yield backlogs.namespaces.get(namespace), Scope.NAMESPACE, namespace


def _first(candidates: Iterator[tuple[Any, Scope, str]], which: Any) -> Scoped[Any] | None:
    """What the first scope says that sets it."""
    for setting, scope, name in candidates:
        found = None if setting is None else setting.of(which)
        if found is not None:
            return Scoped(found, scope, name)
    return None
