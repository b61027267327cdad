"""A stock Pulsar's policies, read through its admin API.

Law: an unreadable policy keeps its known value, and is reported as a fault. A bad answer never removes
a policy. Only an explicit answer (a list without the name, a 404 of Pulsar's
own) removes one.

Pulsar cannot express blocked, shadow, share policies, or groups of tenants and topics, so they are
missing here. `rgd.app` decides when to read, and applies the result.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Protocol

from rgd.core.policies.model import NOT_SET, BacklogQuotas, Group, LocalLimit
from rgd.errors import RgdError


class StockError(RgdError):
    """The admin API cannot be read."""


class StockDown(StockError):
    """It does not answer now; it may recover by itself."""

    transient = True


class StockRefused(StockError):
    """Its answer is unusable."""

    def __init__(self, message: str, status: int | None = None) -> None:
        super().__init__(message)
        #: The HTTP status, where that is the reason.
        self.status = status


NO_QUOTAS: Final = BacklogQuotas()


@dataclass(frozen=True, slots=True)
class StockNamespace:
    """The policies of one namespace that rgd uses."""

    #: The name of its resource group, which need not exist.
    group: str | None = None
    #: Of each of its topics.
    limit: LocalLimit = NOT_SET
    #: Of each subscription in it.
    subscriptions: LocalLimit = NOT_SET
    backlogs: BacklogQuotas = NO_QUOTAS


@dataclass(frozen=True, slots=True)
class StockTopic:
    """The policies of one topic (never a partition)."""

    limit: LocalLimit = NOT_SET
    #: Of each of its subscriptions, and of those that have one of their own, by name.
    subscriptions: LocalLimit = NOT_SET
    by_subscription: dict[str, LocalLimit] = field(default_factory=dict)
    backlogs: BacklogQuotas = NO_QUOTAS


NOTHING_SET: Final = StockTopic()


@dataclass(frozen=True, slots=True)
class StockPolicies:
    """All policies: groups by name, namespaces and topics by full name, the limit of each broker."""

    groups: dict[str, Group] = field(default_factory=dict)
    namespaces: dict[str, StockNamespace] = field(default_factory=dict)
    topics: dict[str, StockTopic] = field(default_factory=dict)
    #: Of the cluster's dynamic configuration.
    broker: LocalLimit = NOT_SET


@dataclass(frozen=True, slots=True)
class Reading:
    """The result of one poll."""

    policies: StockPolicies
    #: The unreadable parts, which keep their known values: the reason by the call's path. At most
    #: `rgd.adapters.stock.parts.FAULTS_MAX` of them.
    faults: Mapping[str, str] = field(default_factory=dict)


class StockPulsar(Protocol):
    """The admin API of a stock Pulsar, read only."""

    async def read(self, known: StockPolicies, topics: Mapping[str, frozenset[str]]) -> Reading:
        """Read all groups, all namespaces, and some topics.

        Args:
            known: the last result; its values stay where an answer is unusable.
            topics: the topics to read (full names, no partitions), each with the subscriptions
                to read; other known topics do not change.

        Raises:
            StockError: the poll failed completely; all known values stay.
        """

    async def close(self) -> None:
        """Close the connections."""


class StockStore(Protocol):
    """Storage for the last result across restarts; without it a start may have no policies."""

    def load(self) -> StockPolicies | None:
        """The last stored result for this Pulsar; None if there is none that is usable."""

    def store(self, policies: StockPolicies) -> None:
        """Replace it, also in a thread; raises OSError where it cannot be."""
