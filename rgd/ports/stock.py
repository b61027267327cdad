"""A stock Pulsar's policies, as its admin API tells them.

Law: what cannot be read stays as it was known, and is told as a fault; nothing is ever taken away
because an answer was bad. Only an answer that says so (a list without the name, a 404 of Pulsar's
own) takes a policy away.

What Pulsar cannot say (blocked, shadow, share policies, groups of tenants and topics) is not here.
When to read, and what comes of it, is `rgd.app`'s business.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Protocol

from rgd.core.policies.model import NOT_SET, BacklogQuotas, Group, LocalLimit
from rgd.errors import RgdError


class StockError(RgdError):
    """The admin API cannot be read."""


class StockDown(StockError):
    """It does not answer now; it may come back by itself."""

    transient = True


class StockRefused(StockError):
    """It answered, and not with what can be used."""

    def __init__(self, message: str, status: int | None = None) -> None:
        super().__init__(message)
        #: The HTTP status, where that is what cannot be used.
        self.status = status


NO_QUOTAS: Final = BacklogQuotas()


@dataclass(frozen=True, slots=True)
class StockNamespace:
    """What one namespace's policies say of what rgd governs."""

    #: The name of its resource group, which need not exist.
    group: str | None = None
    #: Of each of its topics.
    limit: LocalLimit = NOT_SET
    #: Of each subscription in it.
    subscriptions: LocalLimit = NOT_SET
    backlogs: BacklogQuotas = NO_QUOTAS


@dataclass(frozen=True, slots=True)
class StockTopic:
    """What the policies of one topic (never a partition) say."""

    limit: LocalLimit = NOT_SET
    #: Of each of its subscriptions, and of those that have one of their own, by name.
    subscriptions: LocalLimit = NOT_SET
    by_subscription: dict[str, LocalLimit] = field(default_factory=dict)
    backlogs: BacklogQuotas = NO_QUOTAS


NOTHING_SET: Final = StockTopic()


@dataclass(frozen=True, slots=True)
class StockPolicies:
    """Everything that was read: groups by name, namespaces and topics by full name."""

    groups: dict[str, Group] = field(default_factory=dict)
    namespaces: dict[str, StockNamespace] = field(default_factory=dict)
    topics: dict[str, StockTopic] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Reading:
    """What one poll brought."""

    policies: StockPolicies
    #: What could not be read and stays as it was known: why, by the call's path. At most
    #: `rgd.adapters.stock.reader.FAULTS_MAX` of them.
    faults: Mapping[str, str] = field(default_factory=dict)


class StockPulsar(Protocol):
    """The admin API of a stock Pulsar, read only."""

    async def read(self, known: StockPolicies, topics: Mapping[str, frozenset[str]]) -> Reading:
        """Read all groups, all namespaces, and some topics.

        Args:
            known: what was read last; it stays where an answer cannot be used.
            topics: the topics to ask for (full names, no partitions), each with the subscriptions
                to ask for; of other topics that are known nothing changes.

        Raises:
            StockError: nothing at all can be said; everything stays as it is known.
        """

    async def close(self) -> None:
        """Let go of the connections."""


class StockStore(Protocol):
    """Where what was read last outlives the process; losing it costs a start without policies."""

    def load(self) -> StockPolicies | None:
        """What was stored last for this Pulsar; None where there is none that can be used."""

    def store(self, policies: StockPolicies) -> None:
        """Replace it. Never raises; may be called in a thread."""
