"""The values of policies: groups with four rates, further limits, and backlog quotas.

A rate of `None` is unlimited. Zero is possible only through `blocked`: in files
and in the Pulsar-compatible API, <= 0 or absent means unlimited, as in Pulsar
(docs/decisions/0008); readers convert with `rate_of`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from rgd.core.units import QUOTA_MAX, Dimension, Kind, Milli, to_milli

#: A rate in Milli per second, or None for unlimited.
Rate = Milli | None


class SharePolicyName(StrEnum):
    """The share policies (docs/decisions/0003)."""

    MAX_MIN = "max-min"
    RESIDUAL = "residual"
    PROPORTIONAL = "proportional"
    STEAL = "steal"


class OnUnknown(StrEnum):
    """The answer to requests while no policies are known (`policies.unknown`)."""

    #: Refuse, with the reason and a time to retry.
    DENY = "deny"
    #: Grant, ungoverned, and count it.
    ALLOW = "allow"


class OnIsolation(StrEnum):
    """How a broker acts that is isolated from the exchange (`exchange.on_isolation`)."""

    #: Quota / known brokers.
    EQUAL = "equal"
    #: The shares at the time when it became isolated.
    HOLD = "hold"
    #: No group limits at all: fail open.
    OPEN = "open"


class TopicSplit(StrEnum):
    """How a broker divides its share of a group over its topics (PIP-82)."""

    #: Not at all: one bucket for all topics.
    SHARED = "shared"
    EVEN = "even"
    #: In proportion to each topic's granted and refused work.
    PROPORTIONAL = "proportional"


def rate_of(units_per_s: float | None) -> Rate:
    """Convert a configured number: absent, <= 0 or above `QUOTA_MAX` is unlimited."""
    if units_per_s is None or units_per_s <= 0 or units_per_s > QUOTA_MAX:
        return None
    return max(1, to_milli(units_per_s))


class Rates(NamedTuple):
    """Rates of one kind of traffic, each in Milli per second or None (unlimited)."""

    messages: Rate = None
    bytes: Rate = None

    def of(self, dimension: Dimension) -> Rate:
        """The rate in one dimension."""
        return self.messages if dimension is Dimension.MESSAGES else self.bytes

    @property
    def is_unlimited(self) -> bool:
        """Whether nothing is limited."""
        return self.messages is None and self.bytes is None


def lower(had: Rates, other: Rates) -> Rates:
    """The lower rate in each dimension."""
    return Rates(_lower(had.messages, other.messages), _lower(had.bytes, other.bytes))


def _lower(had: Rate, other: Rate) -> Rate:
    if had is None or other is None:
        return other if had is None else had
    return min(had, other)


UNLIMITED = Rates()
BLOCKED = Rates(0, 0)


@dataclass(frozen=True, slots=True)
class Limit:
    """Rates for publishing and dispatching: a group's quota."""

    publish: Rates = UNLIMITED
    dispatch: Rates = UNLIMITED

    def of(self, kind: Kind) -> Rates:
        """The rates of one kind."""
        return self.publish if kind is Kind.PUBLISH else self.dispatch


NO_LIMIT = Limit()


@dataclass(frozen=True, slots=True)
class Group:
    """A resource group (PIP-82): one quota that all brokers enforce together."""

    name: str
    #: Cluster-wide rates.
    quota: Limit = NO_LIMIT
    #: Nothing is granted (the only way to set zero).
    blocked: bool = False
    #: Count what would be refused, refuse nothing.
    shadow: bool = False
    #: The part of each broker's share, in millionths, beyond which callers are told; None: no part.
    soft_ppm: int | None = None
    #: None: the daemon's `shares.policy`.
    policy: SharePolicyName | None = None
    #: None: the daemon's `shares.topic_split`.
    topic_split: TopicSplit | None = None

    def rates(self, kind: Kind) -> Rates:
        """The cluster-wide rates in force for one kind."""
        return BLOCKED if self.blocked else self.quota.of(kind)


class GroupKey(NamedTuple):
    """A group in one kind: the key of a quota, a share and a row of the usage map."""

    group: str
    kind: Kind


@dataclass(frozen=True, slots=True)
class Attachments:
    """Which group a tenant, namespace (`tenant/namespace`) or topic (full name) is in."""

    tenants: Mapping[str, str] = field(default_factory=dict)
    namespaces: Mapping[str, str] = field(default_factory=dict)
    topics: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class LocalLimit:
    """A limit of each broker separately, in addition to the groups, as it was set at one scope.

    None means not set: the next wider scope applies (subscription, topic, namespace), if it is set.
    `UNLIMITED` means set to no limit.
    """

    publish: Rates | None = None
    dispatch: Rates | None = None
    #: Pulsar's `ratePeriodInSecond`, only shown; the rates here are always per second.
    dispatch_period_s: int = 1
    #: Pulsar's `relativeToPublishRate`: kept and shown; such a rate is not enforced.
    dispatch_relative: bool = False

    def of(self, kind: Kind) -> Rates | None:
        """The rates that are in force here, if they are set here."""
        if kind is Kind.PUBLISH:
            return self.publish
        is_relative = self.dispatch_relative and self.dispatch is not None
        return UNLIMITED if is_relative else self.dispatch


NOT_SET = LocalLimit()


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of each broker separately, in addition to the groups."""

    #: Of all traffic of this broker.
    broker: LocalLimit = NOT_SET
    #: By full topic name.
    topics: Mapping[str, LocalLimit] = field(default_factory=dict)
    #: By (full topic name, subscription).
    subscriptions: Mapping[tuple[str, str], LocalLimit] = field(default_factory=dict)
    #: By full namespace: of each of its topics that has none of its own.
    namespaces: Mapping[str, LocalLimit] = field(default_factory=dict)
    #: By full namespace, and by full topic name: of each subscription in it without one of its own.
    namespace_subscriptions: Mapping[str, LocalLimit] = field(default_factory=dict)
    topic_subscriptions: Mapping[str, LocalLimit] = field(default_factory=dict)


class BacklogAction(StrEnum):
    """The action when a backlog exceeds its quota, with Pulsar's names."""

    HOLD = "producer_request_hold"
    REFUSE = "producer_exception"
    EVICT = "consumer_backlog_eviction"


class BacklogType(StrEnum):
    """The quantity that a backlog quota limits, with Pulsar's names."""

    SIZE = "destination_storage"
    AGE = "message_age"


@dataclass(frozen=True, slots=True)
class BacklogQuota:
    """The largest backlog, and the action beyond it; below 0 is unlimited."""

    size_bytes: int = -1
    #: 0 is unlimited, too.
    age_s: int = -1
    action: BacklogAction = BacklogAction.HOLD


@dataclass(frozen=True, slots=True)
class BacklogQuotas:
    """The backlog quotas of a namespace or a topic; None is not set there."""

    size: BacklogQuota | None = None
    age: BacklogQuota | None = None

    def of(self, which: BacklogType) -> BacklogQuota | None:
        """The quota of one type."""
        return self.size if which is BacklogType.SIZE else self.age


@dataclass(frozen=True, slots=True)
class Backlogs:
    """Backlog quotas by full namespace and by full topic name (`rgd.core.backlog` enforces them)."""

    namespaces: Mapping[str, BacklogQuotas] = field(default_factory=dict)
    topics: Mapping[str, BacklogQuotas] = field(default_factory=dict)
