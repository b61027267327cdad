"""The bodies of `/v1` that come in: their fields, ranges and error texts.

They are strict: what they do not know is refused. The descriptions end the
sentence "expected ..." in a reason, and document the field in /openapi.json.
Reading them is `strict`'s business; what they mean is `acquire`'s and `groups`'s.
Those of `/admin/v2` are in `pulsar_admin.bodies`.
"""

from typing import Annotated, Final

from msgspec import UNSET, Meta, Struct, UnsetType

from rgd.core.backlog.model import TIME_MS_MAX
from rgd.core.leases.model import TTL_MAX_NS, TTL_MIN_NS
from rgd.core.policies.model import SharePolicyName, TopicSplit
from rgd.core.shares.model import PPM
from rgd.core.units import COUNT_MAX, NS_PER_MS, Kind

Name = Annotated[str, Meta(description="a string")]
Flag = Annotated[bool, Meta(description="true or false")]
_COUNT: Final = f"an integer from 0 to {COUNT_MAX}"
Count = Annotated[int, Meta(ge=0, le=COUNT_MAX, description=_COUNT)]
SignedCount = Annotated[
    int,
    Meta(ge=-COUNT_MAX, le=COUNT_MAX, description=f"an integer from {-COUNT_MAX} to {COUNT_MAX}"),
]
Ordinal = Annotated[int, Meta(ge=1, le=COUNT_MAX, description=f"an integer from 1 to {COUNT_MAX}")]
AKind = Annotated[Kind, Meta(description=" or ".join(Kind))]
APolicy = Annotated[
    SharePolicyName, Meta(description=f"null or one of {', '.join(SharePolicyName)}")
]
ATopicSplit = Annotated[TopicSplit, Meta(description=f"null or one of {', '.join(TopicSplit)}")]

#: Whole numbers stay exact; a fraction is welcome (one message in two seconds is 0.5).
_RATE: Final = (
    f"a number above 0 and at most {COUNT_MAX}, units per second; "
    "null or absent is unlimited, and blocked: true lets nothing pass"
)
ARate = (
    Annotated[int, Meta(ge=1, le=COUNT_MAX, description=_RATE)]
    | Annotated[float, Meta(gt=0, le=float(COUNT_MAX))]
    | None
)


_WANT: Final = f"a number from 0 to {COUNT_MAX}, units per second"
AWant = (
    Annotated[int, Meta(ge=0, le=COUNT_MAX, description=_WANT)]
    | Annotated[float, Meta(ge=0, le=float(COUNT_MAX))]
)
_TTL_MS: Final = (TTL_MIN_NS // NS_PER_MS, TTL_MAX_NS // NS_PER_MS)
ATtl = Annotated[
    int,
    Meta(ge=_TTL_MS[0], le=_TTL_MS[1], description="milliseconds from {} to {}".format(*_TTL_MS)),
]

_PART: Final = "null, or a number of at least 0.000001 and at most 1, a part of the share"
APart = (
    Annotated[int, Meta(ge=1, le=1, description=_PART)]
    | Annotated[float, Meta(ge=1 / PPM, le=1.0)]
    | None
)

_TIME: Final = f"null or milliseconds since 1970, from 0 to {TIME_MS_MAX}"
ATime = Annotated[int, Meta(ge=0, le=TIME_MS_MAX, description=_TIME)] | None
APosition = Annotated["PositionBody", Meta(description="null or {ledger, entry}")] | None
AMessageCount = Annotated[int, Meta(ge=0, le=COUNT_MAX, description=f"null or {_COUNT}")] | None


class NamedBody(Struct, forbid_unknown_fields=True, gc=False):
    """A tenant and namespace, or a group directly; perhaps a topic and a subscription of it.

    Nothing has a value that was not said, so that encoding a body again gives the names that it has.
    """

    tenant: Name | UnsetType = UNSET
    namespace: Name | UnsetType = UNSET
    group: Name | UnsetType = UNSET
    topic: Name | UnsetType = UNSET
    subscription: Name | UnsetType = UNSET
    #: `publish` if absent.
    kind: AKind | UnsetType = UNSET


class AcquireBody(NamedBody, forbid_unknown_fields=True, gc=False):
    """May so much pass?

    The amounts come last: in an array, questions that differ in nothing else are answered together.
    """

    partial: Flag | UnsetType = UNSET
    #: Unsaid is not 1: work whose caller never says is bounded, for it may be retries.
    attempt: Ordinal | UnsetType = UNSET
    held_messages: Count | UnsetType = UNSET
    held_bytes: Count | UnsetType = UNSET
    #: 1 if absent.
    messages: Count | UnsetType = UNSET
    #: 0 if absent.
    bytes: Count | UnsetType = UNSET


class PositionBody(Struct, forbid_unknown_fields=True, frozen=True, gc=False):
    """An entry of a topic."""

    ledger: Count
    entry: Count


class LedgerBody(Struct, forbid_unknown_fields=True, frozen=True, gc=False):
    """A ledger of a topic; without `closed_at_ms` it is the current one, which comes last."""

    id: Count
    entries: Count
    bytes: Count
    closed_at_ms: ATime | UnsetType = UNSET


class SubscriptionBody(Struct, forbid_unknown_fields=True, frozen=True, gc=False):
    """A durable subscription, with the oldest entry that it has not acknowledged."""

    name: Name
    #: Null or absent: everything is acknowledged.
    oldest: APosition | UnsetType = UNSET
    #: Of that message: when the broker stored it, and when it was published.
    broker_time_ms: ATime | UnsetType = UNSET
    publish_time_ms: ATime | UnsetType = UNSET
    #: Unacknowledged messages that are not delayed; absent: the entries from `oldest` on.
    messages: AMessageCount | UnsetType = UNSET


class BacklogBody(Struct, forbid_unknown_fields=True, frozen=True, gc=False):
    """The backlog of a topic, as its broker reads it."""

    ledgers: Annotated[list[LedgerBody], Meta(description="a list of ledgers")]
    subscriptions: Annotated[list[SubscriptionBody], Meta(description="a list of subscriptions")]
    #: When it was read, by the clock that stamps the messages; now if absent.
    read_at_ms: ATime | UnsetType = UNSET


class BacklogItem(BacklogBody, forbid_unknown_fields=True, frozen=True, gc=False, kw_only=True):
    """The backlog of one of several topics; names as in `POST /v1/acquire`."""

    tenant: Name
    namespace: Name
    topic: Name


class SettleBody(NamedBody, forbid_unknown_fields=True, gc=False):
    """What was not used of a name's grants; names, and absent fields, as in `AcquireBody`."""

    #: What goes back; below 0 what was used beyond the grants; 0 if absent.
    messages: SignedCount | UnsetType = UNSET
    bytes: SignedCount | UnsetType = UNSET


class LeaseBody(NamedBody, forbid_unknown_fields=True, gc=False):
    """A lease: what a caller wants of it, and for how long. An absent rate is 0."""

    attempt: Ordinal | UnsetType = UNSET
    wants_messages_per_s: AWant | UnsetType = UNSET
    wants_bytes_per_s: AWant | UnsetType = UNSET
    ttl_ms: ATtl | UnsetType = UNSET


class RenewBody(Struct, forbid_unknown_fields=True, gc=False):
    """The renewal of a lease; absent terms stay as they were."""

    #: What the caller holds and has not spent; 0 if absent.
    messages: Count | UnsetType = UNSET
    bytes: Count | UnsetType = UNSET
    wants_messages_per_s: AWant | UnsetType = UNSET
    wants_bytes_per_s: AWant | UnsetType = UNSET
    ttl_ms: ATtl | UnsetType = UNSET


class ReleaseBody(Struct, forbid_unknown_fields=True, gc=False):
    """The end of a lease."""

    #: What the caller holds and has not spent; 0 if absent.
    messages: Count | UnsetType = UNSET
    bytes: Count | UnsetType = UNSET


class RatesBody(Struct, forbid_unknown_fields=True, frozen=True):
    """Rates of one kind, cluster-wide: null is unlimited, absent as in `GroupBody`."""

    messages: ARate | UnsetType = UNSET
    bytes: ARate | UnsetType = UNSET


class GroupBody(Struct, forbid_unknown_fields=True, frozen=True):
    """A group as in groups.yaml. Null is the default; absent, too, in `PUT`, and `PATCH` keeps it."""

    publish: RatesBody = RatesBody()
    dispatch: RatesBody = RatesBody()
    policy: APolicy | UnsetType | None = UNSET
    topic_split: ATopicSplit | UnsetType | None = UNSET
    shadow: Flag | UnsetType = UNSET
    soft: APart | UnsetType = UNSET
    blocked: Flag | UnsetType = UNSET
