"""The JSON of `/admin/v2` as it comes in and as it goes out, field by field as Pulsar has it.

What comes in (`...Body`) is lenient: fields that it does not know are ignored. The descriptions end
the sentence "expected ..." in a reason, and document the field in /openapi.json. Reading the values is
`jackson`'s business.
"""

from typing import Annotated, Final

from msgspec import UNSET, Meta, Struct, UnsetType

from rgd.adapters.http.pulsar_admin.jackson import INT32_MAX, INT64_MAX
from rgd.core.policies.model import BacklogAction

_INT32: Final = f"an integer from {-INT32_MAX - 1} to {INT32_MAX}"
_INT64: Final = f"an integer from {-INT64_MAX - 1} to {INT64_MAX}"

#: Jackson, which Pulsar reads with, takes numbers in quotes and cuts fractions off.
_Lenient = float | str | None
_KEEPS: Final = "; 0 or less is unlimited, absent or null keeps what is"
_LIFTS: Final = "; 0 or less, absent or null is unlimited"
KeptInt32 = Annotated[int, Meta(description=_INT32 + _KEEPS)] | _Lenient
KeptInt64 = Annotated[int, Meta(description=_INT64 + _KEEPS)] | _Lenient
RateInt32 = Annotated[int, Meta(description=_INT32 + _LIFTS)] | _Lenient
RateInt64 = Annotated[int, Meta(description=_INT64 + _LIFTS)] | _Lenient
SizeInt64 = (
    Annotated[int, Meta(description=f"{_INT64}; less than 0 is unlimited, absent or null is 0")]
    | _Lenient
)
PeriodInt32 = (
    Annotated[int, Meta(description=f"{_INT32}, seconds; less than 1, absent or null is 1")]
    | _Lenient
)
LenientFlag = Annotated[bool, Meta(description="true or false")] | int | str | None
ActionName = Annotated[str, Meta(description=f"one of {', '.join(BacklogAction)}")] | None


class ResourceGroupBody(Struct, rename="camel", frozen=True):
    """Pulsar's ResourceGroup as it is sent to us."""

    publish_rate_in_msgs: KeptInt32 = None
    publish_rate_in_bytes: KeptInt64 = None
    dispatch_rate_in_msgs: KeptInt32 = None
    dispatch_rate_in_bytes: KeptInt64 = None


class ResourceGroup(Struct, rename="camel", frozen=True):
    """Pulsar's ResourceGroup: rates per second, cluster-wide; -1 is unlimited."""

    publish_rate_in_msgs: int
    publish_rate_in_bytes: int
    dispatch_rate_in_msgs: int
    dispatch_rate_in_bytes: int


class DispatchRateBody(Struct, rename="camel", frozen=True):
    """Pulsar's DispatchRate as it is sent to us; it replaces the rate whole."""

    dispatch_throttling_rate_in_msg: RateInt32 = None
    dispatch_throttling_rate_in_byte: RateInt64 = None
    relative_to_publish_rate: LenientFlag = None
    rate_period_in_second: PeriodInt32 = None


class DispatchRate(Struct, rename="camel", frozen=True):
    """Pulsar's DispatchRate: rates per period, of each broker alone; -1 is unlimited."""

    dispatch_throttling_rate_in_msg: int
    dispatch_throttling_rate_in_byte: int
    relative_to_publish_rate: bool
    rate_period_in_second: int


class PublishRateBody(Struct, rename="camel", frozen=True):
    """Pulsar's PublishRate as it is sent to us; it replaces the rate whole."""

    publish_throttling_rate_in_msg: RateInt32 = None
    publish_throttling_rate_in_byte: RateInt64 = None


class PublishRate(Struct, rename="camel", frozen=True):
    """Pulsar's PublishRate: rates per second, of each broker alone; -1 is unlimited."""

    publish_throttling_rate_in_msg: int
    publish_throttling_rate_in_byte: int


class BacklogQuotaBody(Struct, rename="camel", frozen=True):
    """Pulsar's BacklogQuota as it is sent to us; it replaces the quota of its type whole."""

    #: Bytes; `limit` is its older name.
    limit_size: SizeInt64 = None
    limit: SizeInt64 = None
    limit_time: RateInt32 = None
    policy: ActionName = None


class BacklogQuotaAnswer(Struct, rename="camel", frozen=True):
    """Pulsar's BacklogQuota: bytes, seconds, and what happens; both limits as they were put."""

    limit: int
    limit_size: int
    limit_time: int
    policy: BacklogAction


class BacklogQuotaMap(Struct, frozen=True, omit_defaults=True):
    """The quotas that are set, by what they measure: the names are `BacklogType`'s."""

    destination_storage: BacklogQuotaAnswer | UnsetType = UNSET
    message_age: BacklogQuotaAnswer | UnsetType = UNSET


class NamespacePolicies(
    Struct,
    frozen=True,
    rename={
        "cluster_dispatch_rate": "clusterDispatchRate",
        "topic_dispatch_rate": "topicDispatchRate",
        "subscription_dispatch_rate": "subscriptionDispatchRate",
        "publish_max_message_rate": "publishMaxMessageRate",
    },
):
    """Of Pulsar's Policies those that rgd holds; rates by the cluster's name."""

    replication_clusters: list[str]
    backlog_quota_map: BacklogQuotaMap
    #: The same as the topics': its older name.
    cluster_dispatch_rate: dict[str, DispatchRate]
    topic_dispatch_rate: dict[str, DispatchRate]
    subscription_dispatch_rate: dict[str, DispatchRate]
    publish_max_message_rate: dict[str, PublishRate]
    resource_group_name: str | UnsetType = UNSET
