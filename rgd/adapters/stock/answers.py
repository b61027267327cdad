"""Converts the answers of Pulsar's admin API to rgd's values.

Law: a wrong type anywhere refuses the whole answer; fields that rgd does not use are ignored.
<= 0 or null is unlimited, as in Pulsar. An absent rate is not set, and the next
wider scope applies. Rates are per `ratePeriodInSecond` in Pulsar (0 is 1) and per second in rgd.

The fields are those in recorded answers of Apache Pulsar 4.0.8 (tests/unit/adapters/stock/recorded.json).
An object with none of the fields that Pulsar always writes is not Pulsar's, and no empty policy.
"""

import re
from typing import Annotated, Final

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from rgd.core.policies.model import (
    NOT_SET,
    BacklogAction,
    BacklogQuota,
    BacklogQuotas,
    BacklogType,
    Group,
    Limit,
    LocalLimit,
    Rates,
    rate_of,
)
from rgd.core.policies.names import check_entity
from rgd.ports.stock import StockNamespace, StockRefused, StockTopic

_INTEGER: Final = re.compile(r"[-+]?[0-9]{1,19}")
_Int64 = Annotated[int, Meta(ge=-(1 << 63), le=(1 << 63) - 1)]


class ResourceGroup(Struct, rename="camel", frozen=True):
    """Rates per second, cluster-wide."""

    publish_rate_in_msgs: _Int64 | UnsetType | None = UNSET
    publish_rate_in_bytes: _Int64 | UnsetType | None = UNSET
    dispatch_rate_in_msgs: _Int64 | UnsetType | None = UNSET
    dispatch_rate_in_bytes: _Int64 | UnsetType | None = UNSET


class DispatchRate(Struct, rename="camel", frozen=True):
    """A dispatch rate; Pulsar returns 0 for a value that was not set."""

    dispatch_throttling_rate_in_msg: _Int64
    dispatch_throttling_rate_in_byte: _Int64
    relative_to_publish_rate: bool = False
    rate_period_in_second: _Int64 = 1


class PublishRate(Struct, rename="camel", frozen=True):
    """A publish rate, per second."""

    publish_throttling_rate_in_msg: _Int64
    publish_throttling_rate_in_byte: _Int64


class Quota(Struct, rename="camel", frozen=True):
    """A backlog quota; Pulsar before 2.9 has only `limit`."""

    policy: BacklogAction
    limit: _Int64 | None = None
    limit_size: _Int64 | None = None
    limit_time: _Int64 | None = None


#: By type; unknown types are ignored.
Quotas = dict[str, Quota]


class NamespacePolicies(Struct, frozen=True):
    """The part of a namespace's policies that rgd uses; rates are by cluster."""

    #: Always present; distinguishes Pulsar's object from any other.
    replication_clusters: msgspec.Raw
    resource_group_name: str | None = None
    topic_dispatch_rate: dict[str, DispatchRate] | None = msgspec.field(
        name="topicDispatchRate", default=None
    )
    subscription_dispatch_rate: dict[str, DispatchRate] | None = msgspec.field(
        name="subscriptionDispatchRate", default=None
    )
    publish_rate: dict[str, PublishRate] | None = msgspec.field(
        name="publishMaxMessageRate", default=None
    )
    backlog_quota_map: Quotas | None = None


class Configuration(Struct, frozen=True):
    """The cluster name in a broker's configuration."""

    cluster: str = msgspec.field(name="clusterName")


class DynamicConfiguration(Struct, frozen=True):
    """The part of the cluster's dynamic configuration that rgd uses; values are text."""

    dispatch_messages: str | None = msgspec.field(name="dispatchThrottlingRateInMsg", default=None)
    dispatch_bytes: str | None = msgspec.field(name="dispatchThrottlingRateInByte", default=None)


NAMES: Final = msgspec.json.Decoder(list[str])
CONFIGURATION: Final = msgspec.json.Decoder(Configuration)
DYNAMIC_CONFIGURATION: Final = msgspec.json.Decoder(DynamicConfiguration)
RESOURCE_GROUP: Final = msgspec.json.Decoder(ResourceGroup)
NAMESPACE: Final = msgspec.json.Decoder(NamespacePolicies)
DISPATCH_RATE: Final = msgspec.json.Decoder(DispatchRate | None)
PUBLISH_RATE: Final = msgspec.json.Decoder(PublishRate | None)
QUOTAS: Final = msgspec.json.Decoder(Quotas | None)


def group_of(name: str, answer: ResourceGroup) -> Group:
    """A group.

    Raises:
        InvalidName: rgd cannot use the name. Pulsar checks no names of groups.
        StockRefused: the object is no group.
    """
    check_entity(name, "group")
    raw = (
        answer.publish_rate_in_msgs,
        answer.publish_rate_in_bytes,
        answer.dispatch_rate_in_msgs,
        answer.dispatch_rate_in_bytes,
    )
    if all(rate is UNSET for rate in raw):
        raise StockRefused(f"group {name}: expected a resource group, got none of its four rates")
    rates = [rate_of(None if isinstance(rate, UnsetType) else rate) for rate in raw]
    return Group(name, Limit(Rates(*rates[:2]), Rates(*rates[2:])))


def broker_of(answer: DynamicConfiguration) -> LocalLimit:
    """The limit of all that each broker dispatches.

    Raises:
        StockRefused: a value is no number. Pulsar accepts it and keeps the limit that was in force.
    """
    return LocalLimit(
        dispatch=_set_rates(
            _number("dispatchThrottlingRateInMsg", answer.dispatch_messages),
            _number("dispatchThrottlingRateInByte", answer.dispatch_bytes),
        )
    )


def _number(name: str, value: str | None) -> int:
    if value is None:
        return 0
    if not _INTEGER.fullmatch(value):
        raise StockRefused(f"{name}: expected an integer, got {value[:40]!r}")
    return int(value)


def namespace_of(answer: NamespacePolicies, cluster: str) -> StockNamespace:
    """A namespace's policies for one cluster; rgd may refuse its group's name."""
    return StockNamespace(
        group=answer.resource_group_name or None,
        limit=limit_of(
            (answer.publish_rate or {}).get(cluster),
            (answer.topic_dispatch_rate or {}).get(cluster),
        ),
        subscriptions=limit_of(None, (answer.subscription_dispatch_rate or {}).get(cluster)),
        backlogs=backlogs_of(answer.backlog_quota_map),
    )


def limit_of(publish: PublishRate | None, dispatch: DispatchRate | None) -> LocalLimit:
    """A scope's limit, of which each kind may be set or not.

    As in Pulsar (`PublishRate.normalize`, `DispatchRateImpl.normalize`), a rate whose two
    numbers are 0 or less is not set, so the next wider scope applies.
    """
    publishing = None
    if publish is not None:
        publishing = _set_rates(
            publish.publish_throttling_rate_in_msg, publish.publish_throttling_rate_in_byte
        )
    if dispatch is None:
        return NOT_SET if publishing is None else LocalLimit(publish=publishing)
    # Pulsar stores an absent period as 0, and computes per second.
    period_s = max(1, dispatch.rate_period_in_second)
    return LocalLimit(
        publish=publishing,
        dispatch=_set_rates(
            dispatch.dispatch_throttling_rate_in_msg / period_s,
            dispatch.dispatch_throttling_rate_in_byte / period_s,
        ),
        dispatch_period_s=period_s,
        dispatch_relative=dispatch.relative_to_publish_rate,
    )


def _set_rates(messages: float, size: float) -> Rates | None:
    return None if messages <= 0 and size <= 0 else Rates(rate_of(messages), rate_of(size))


def backlogs_of(answer: Quotas | None) -> BacklogQuotas:
    """Backlog quotas; each keeps only what its type measures."""
    quotas = answer or {}
    size, age = quotas.get(BacklogType.SIZE), quotas.get(BacklogType.AGE)
    return BacklogQuotas(
        size=None if size is None else BacklogQuota(size_bytes=_size(size), action=size.policy),
        age=None if age is None else BacklogQuota(age_s=_age(age), action=age.policy),
    )


def topic_of(
    publish: PublishRate | None,
    dispatch: DispatchRate | None,
    *,
    each_subscription: DispatchRate | None,
    by_subscription: dict[str, DispatchRate],
    backlogs: Quotas | None,
) -> StockTopic:
    """A topic's policies."""
    return StockTopic(
        limit=limit_of(publish, dispatch),
        subscriptions=limit_of(None, each_subscription),
        by_subscription={name: limit_of(None, rate) for name, rate in by_subscription.items()},
        backlogs=backlogs_of(backlogs),
    )


def _size(quota: Quota) -> int:
    limit = quota.limit if quota.limit_size is None else quota.limit_size
    return -1 if limit is None else limit


def _age(quota: Quota) -> int:
    return -1 if quota.limit_time is None else quota.limit_time
