"""The events that a broker handles; each carries the time at which it happened.

The daemon and the simulator make them. Besides events, only requests on the fast path change a
broker's state.
"""

from dataclasses import dataclass

from rgd.core.backlog.model import Eviction, Source, TopicBacklog
from rgd.core.exchange.messages import Message
from rgd.core.exchange.shards import Shard
from rgd.core.policies.model import GroupKey, Rates
from rgd.core.policies.snapshot import PolicySnapshot
from rgd.core.stock.messages import StockReport
from rgd.core.units import Nanos


@dataclass(frozen=True, slots=True)
class Started:
    """The daemon reads the exchange and may send on it."""

    now: Nanos


@dataclass(frozen=True, slots=True)
class Woken:
    """The time `Broker.wake_at` is reached; an earlier or later one does no harm."""

    now: Nanos


@dataclass(frozen=True, slots=True)
class MessageReceived:
    """A message came from the exchange; it may be this broker's own."""

    now: Nanos
    message: Message


@dataclass(frozen=True, slots=True)
class ShardOpened:
    """Every report of a shard that is sent from now on will be received (`Listen`)."""

    now: Nanos
    shard: Shard


@dataclass(frozen=True, slots=True)
class PoliciesChanged:
    """A new policy snapshot is in force."""

    now: Nanos
    snapshot: PolicySnapshot
    #: Hash of the policies in force, which peers compare with theirs; 0: not known.
    #: At most `COUNT_MAX`, because `RoundRecord` holds it.
    policies_hash: int = 0
    #: False: no policies have been loaded yet, so the snapshot is empty.
    known: bool = True


@dataclass(frozen=True, slots=True)
class GroupsAsked:
    """The gate, in another process, was asked for groups for the first time, and has no share of them yet."""

    now: Nanos
    #: Few, so that the piece of work is short; some may come twice.
    keys: tuple[GroupKey, ...]


@dataclass(frozen=True, slots=True)
class GroupsResumed:
    """The gate has groups whose shares another plane gave, which has gone; the policies in force are known."""

    now: Nanos
    #: Some 200 at most, with the share that is in force; some may be in use already.
    groups: tuple[tuple[GroupKey, Rates], ...]


@dataclass(frozen=True, slots=True)
class GateIsolated:
    """The gate, in another process, heard nothing for so long that it grants no shares until all are told again."""

    now: Nanos


@dataclass(frozen=True, slots=True)
class BacklogsReported:
    """A source read the backlogs of some topics."""

    now: Nanos
    #: At most `rgd.core.backlog.model.EVENT_TOPICS_MAX`, each checked (`check_backlog`).
    reports: tuple[TopicBacklog, ...]


@dataclass(frozen=True, slots=True)
class BacklogsWithdrawn:
    """A source no longer reports some topics: they were deleted, or moved to another broker.

    Reports of another source stay.
    """

    now: Nanos
    source: Source
    #: Full names, at most `rgd.core.backlog.model.EVENT_TOPICS_MAX`.
    topics: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class BacklogEvicted:
    """An eviction of a polled topic was carried out."""

    now: Nanos
    eviction: Eviction


@dataclass(frozen=True, slots=True)
class BacklogCheckAsked:
    """Somebody wants all backlogs checked now; `BacklogChecked` says when that is done."""

    now: Nanos


@dataclass(frozen=True, slots=True)
class StockReportReceived:
    """A report came on the topic of stock Pulsar brokers; it may be an rgd broker's own."""

    now: Nanos
    report: StockReport
    #: When its sender published it, by the sender's clock: Unix time in ms; 0: unknown. Only
    #: differences between two reports of one sender are used.
    published_ms: int = 0


@dataclass(frozen=True, slots=True)
class StockBrokersListed:
    """The stock cluster's admin API named its live brokers; brokers that it lacks have left."""

    now: Nanos
    #: As their reports name them: service URLs such as `pulsar://host:6650`.
    names: frozenset[str]


@dataclass(frozen=True, slots=True)
class Stopping:
    """The daemon is about to leave."""

    now: Nanos


Event = (
    Started
    | Woken
    | MessageReceived
    | ShardOpened
    | PoliciesChanged
    | GroupsAsked
    | GroupsResumed
    | GateIsolated
    | BacklogsReported
    | BacklogsWithdrawn
    | BacklogEvicted
    | BacklogCheckAsked
    | StockReportReceived
    | StockBrokersListed
    | Stopping
)
