"""Selects the scope of a topic's or a subscription's own limit.

Law: the narrowest scope that sets a kind sets it completely, as in Pulsar; a kind without any
setting is unlimited. For a topic: itself, else its partitioned topic, else its namespace.
For a subscription: itself, else its topic's subscriptions, else its namespace's.

Groups have no precedence: each distinct one is charged (`PolicySnapshot.groups_of`).
"""

from collections.abc import Iterator
from enum import StrEnum
from typing import NamedTuple

from rgd.core.policies.model import UNLIMITED, Limits, LocalLimit, Rates
from rgd.core.policies.names import namespace_of_topic, partitioned_topic_of
from rgd.core.units import Kind


class Place(StrEnum):
    """The scope of a limit or an attachment."""

    BROKER = "broker"
    TENANT = "tenant"
    NAMESPACE = "namespace"
    TOPIC = "topic"
    SUBSCRIPTION = "subscription"


class Said(NamedTuple):
    """The rates in force with their scope and its name; no scope if no scope sets them."""

    rates: Rates = UNLIMITED
    place: Place | None = None
    name: str = ""


NOWHERE = Said()


def topic_limit(limits: Limits, topic: str, kind: Kind) -> Said:
    """The limit of one topic (full name) on each broker."""
    return _first(_topic_places(limits, topic), kind)


def subscription_limit(limits: Limits, topic: str, subscription: str, kind: Kind) -> Said:
    """The limit of one subscription of a topic (full name) on each broker."""
    return _first(_subscription_places(limits, topic, subscription), kind)


def names_of(topic: str) -> tuple[str, ...]:
    """The names of a topic, narrowest first: a partition has two."""
    partitioned = partitioned_topic_of(topic)
    return (topic,) if partitioned is None else (topic, partitioned)


_Places = Iterator[tuple[LocalLimit | None, Place, str]]


def _topic_places(limits: Limits, topic: str) -> _Places:
    for name in names_of(topic):
        yield limits.topics.get(name), Place.TOPIC, name
    namespace = namespace_of_topic(topic)
    yield limits.namespaces.get(namespace), Place.NAMESPACE, namespace


def _subscription_places(limits: Limits, topic: str, subscription: str) -> _Places:
    names = names_of(topic)
    for name in names:
        yield limits.subscriptions.get((name, subscription)), Place.SUBSCRIPTION, subscription
    for name in names:
        yield limits.topic_subscriptions.get(name), Place.TOPIC, name
    namespace = namespace_of_topic(topic)
    yield limits.namespace_subscriptions.get(namespace), Place.NAMESPACE, namespace


def _first(places: _Places, kind: Kind) -> Said:
    for limit, place, name in places:
        rates = None if limit is None else limit.of(kind)
        if rates is not None:
            return Said(rates, place, name)
    return NOWHERE
