"""What a person decides: groups with four rates, and limits beside them.

A rate of `None` is unlimited. Zero is possible only through `blocked`: in files
and in the Pulsar-compatible API, <= 0 or absent means unlimited, as in Pulsar
(design 2, "Zero"); the borders translate with `rate_of`.
"""

from dataclasses import dataclass, field
from enum import StrEnum

from rgd.core.units import QUOTA_MAX, Dimension, Kind, Milli, to_milli

#: A rate in Milli per second, or None for unlimited.
Rate = Milli | None


class SharePolicyName(StrEnum):
    """The share policies of design 3."""

    MAX_MIN = "max-min"
    RESIDUAL = "residual"
    PROPORTIONAL = "proportional"
    STEAL = "steal"


class TopicSplit(StrEnum):
    """How a broker sub-divides its share of a group over the topics it serves (PIP-82)."""

    #: Not at all: one bucket for all topics.
    SHARED = "shared"
    EVEN = "even"
    #: By what each topic used and was refused.
    PROPORTIONAL = "proportional"


def rate_of(units_per_s: float | None) -> Rate:
    """Read a person's number: absent, <= 0 or above `QUOTA_MAX` is unlimited."""
    if units_per_s is None or units_per_s <= 0 or units_per_s > QUOTA_MAX:
        return None
    return max(1, to_milli(units_per_s))


@dataclass(frozen=True, slots=True)
class Rates:
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


UNLIMITED = Rates()
BLOCKED = Rates(0, 0)


@dataclass(frozen=True, slots=True)
class Limit:
    """Rates for publishing and dispatching: a group's quota, or a broker's, topic's, subscription's limit."""

    publish: Rates = UNLIMITED
    dispatch: Rates = UNLIMITED

    def of(self, kind: Kind) -> Rates:
        """The rates of one kind."""
        return self.publish if kind is Kind.PUBLISH else self.dispatch


NO_LIMIT = Limit()


@dataclass(frozen=True, slots=True)
class Group:
    """A resource group (PIP-82): one quota that all brokers hold together."""

    name: str
    #: Cluster-wide rates.
    quota: Limit = NO_LIMIT
    #: Nothing is granted (the only way to say zero).
    blocked: bool = False
    #: Count what would be refused, refuse nothing.
    shadow: bool = False
    #: None: the daemon's `shares.policy`.
    policy: SharePolicyName | None = None
    #: None: the daemon's `shares.topic_split`.
    topic_split: TopicSplit | None = None

    def rates(self, kind: Kind) -> Rates:
        """The cluster-wide rates in force for one kind."""
        return BLOCKED if self.blocked else self.quota.of(kind)


@dataclass(frozen=True, slots=True)
class Attachments:
    """Which group a tenant, namespace (`tenant/namespace`) or topic (full name) is in."""

    tenants: dict[str, str] = field(default_factory=dict)
    namespaces: dict[str, str] = field(default_factory=dict)
    topics: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of this broker alone, beside the groups."""

    broker: Limit = NO_LIMIT
    #: By full topic name.
    topics: dict[str, Limit] = field(default_factory=dict)
    #: By (full topic name, subscription).
    subscriptions: dict[tuple[str, str], Limit] = field(default_factory=dict)
