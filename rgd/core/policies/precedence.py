"""Selects the scope of a topic's or a subscription's own limit.

Law: the narrowest scope that sets a kind sets it completely, as in Pulsar; a kind without any
setting is unlimited. For a topic: itself, else its partitioned topic, else its namespace.
For a subscription: itself, else its topic's subscriptions, else its namespace's.
For a backlog quota, each type by itself: the topic, else its partitioned topic, else its namespace.

Groups have no precedence: each distinct one is charged (`PolicySnapshot.groups_of`).
"""

from collections.abc import Iterator
from enum import StrEnum
from typing import NamedTuple

from rgd.core.policies.model import (
    UNLIMITED,
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


class Scope(StrEnum):
    """The scope of a limit or an attachment."""

    BROKER = "broker"
    TENANT = "tenant"
    NAMESPACE = "namespace"
    TOPIC = "topic"
    SUBSCRIPTION = "subscription"


class ScopedRates(NamedTuple):
    """The rates in force with their scope and its name; no scope if no scope sets them."""

    rates: Rates = UNLIMITED
    scope: Scope | None = None
    name: str = ""


NO_RATES = ScopedRates()


def topic_limit(limits: Limits, topic: str, kind: Kind) -> ScopedRates:
    """The limit of one topic (full name) on each broker."""
    return _first(_topic_scopes(limits, topic), kind)


def subscription_limit(limits: Limits, topic: str, subscription: str, kind: Kind) -> ScopedRates:
    """The limit of one subscription of a topic (full name) on each broker."""
    return _first(_subscription_scopes(limits, topic, subscription), kind)


class ScopedQuota(NamedTuple):
    """A backlog quota with its scope and its name."""

    quota: BacklogQuota
    scope: Scope
    name: str


def backlog_quota(
    backlogs: Backlogs, namespace: str, topic: str | None, which: BacklogType
) -> ScopedQuota | None:
    """The quota of one type that is set for a topic, or for a namespace; None if none is."""
    for quotas, scope, name in _backlog_scopes(backlogs, namespace, topic):
        if quotas is not None and (quota := quotas.of(which)) is not None:
            return ScopedQuota(quota, scope, name)
    return None


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


def _first(candidates: _Candidates, kind: Kind) -> ScopedRates:
    for limit, scope, name in candidates:
        rates = None if limit is None else limit.of(kind)
        if rates is not None:
            return ScopedRates(rates, scope, name)
    return NO_RATES
