"""A stock Pulsar's backlogs, read through its admin API, and evictions that it carries out.

Law: everything is read from, and done by, the one broker that this daemon stands beside, and only for
topics that this broker owns at that moment: Pulsar itself checks it for each call. So of two daemons
beside two brokers never both have a topic.

`rgd.app` decides when to read, and passes the reports on; the core computes from them.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

from rgd.core.backlog.model import Eviction, TopicBacklog
from rgd.ports.stock import StockError


class BrokerAway(StockError):
    """This daemon's broker is not among the live ones, so it owns nothing."""

    transient = True


#: Takes reports as they arrive.
Deliver = Callable[[TopicBacklog], None]


@dataclass(frozen=True, slots=True)
class BacklogReading:
    """The result of reading some topics."""

    #: The last topic of the list that was read or failed; None: there was no time for any.
    last: str | None
    #: Topics that this broker does not own any more, or that do not exist any more.
    gone: tuple[str, ...] = ()
    #: The topics that cannot be read, with the reasons; at most
    #: `rgd.adapters.stock.parts.FAULTS_MAX` of them.
    faults: Mapping[str, str] = field(default_factory=dict)


class EvictionOutcome(StrEnum):
    """What became of an eviction; a label of `rgd_backlog_evictions_total`."""

    #: Pulsar acknowledged the messages.
    DONE = "done"
    #: The subscription is past the position already; nothing was sent.
    PASSED = "passed"
    #: The topic moved to another broker, or the topic or subscription is gone.
    GONE = "gone"
    #: Pulsar refused or did not answer; the next check tries again.
    FAILED = "failed"


class StockBacklogs(Protocol):
    """The backlogs of one broker of a stock Pulsar."""

    async def owned(self) -> Sequence[str]:
        """The full names of all persistent topics (partitions, too) that this broker owns, sorted.

        Raises:
            BrokerAway: the broker is not alive, or it is not clear which one it is.
            StockError: they cannot be listed; nothing is known about any topic.
        """

    async def read(self, topics: Sequence[str], deliver: Deliver, seconds: float) -> BacklogReading:
        """Read topics in this order until all are read or the time is over.

        Raises:
            StockError: the broker does not answer.
        """

    async def evict(self, eviction: Eviction) -> tuple[EvictionOutcome, str]:
        """Acknowledge a subscription's messages up to a position; also the reason if it failed.

        It only moves forward: a subscription that is further already stays where it is.
        """

    async def close(self) -> None:
        """Close the connections."""
