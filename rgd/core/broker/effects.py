"""The effects that a broker returns; the daemon and the simulator carry them out in order.

An effect does not report whether it succeeded. Where that matters, an event shows it: for example,
this broker's own report is read back from the exchange.
"""

from dataclasses import dataclass
from enum import StrEnum

from rgd.core.backlog.model import Eviction
from rgd.core.exchange.messages import Message, RoundRecord
from rgd.core.exchange.shards import Shard
from rgd.core.stock.messages import StockReport
from rgd.core.units import Nanos


@dataclass(frozen=True, slots=True)
class Publish:
    """Send a message on the exchange."""

    message: Message


@dataclass(frozen=True, slots=True)
class Listen:
    """Receive the reports of these shards from now on, and of no others.

    `ShardOpened` says of each new one when that is so.
    """

    shards: frozenset[Shard]


@dataclass(frozen=True, slots=True)
class SendStockReport:
    """Send a report on the topic of stock Pulsar brokers.

    Its broker need not be this one: the lowest live name reports zeros for a broker that left.
    """

    report: StockReport


@dataclass(frozen=True, slots=True)
class Append:
    """Append a record to the usage log."""

    record: RoundRecord


@dataclass(frozen=True, slots=True)
class Remember:
    """Store the names of the live peers for the next start (`stored_peers`)."""

    peers: tuple[str, ...]


class AlarmCode(StrEnum):
    """Conditions that an operator is alerted to."""

    PEER_JOINED = "peer_joined"
    PEER_LEFT = "peer_left"
    PEER_EXPIRED = "peer_expired"
    PEER_RESTARTED = "peer_restarted"
    REPORTS_MISSED = "reports_missed"
    NAME_CONFLICT = "name_conflict"
    POLICIES_DIFFER = "policies_differ"
    #: Another daemon has this broker's name, and this broker yields it.
    NAME_YIELDED = "name_yielded"
    #: The other daemon has gone, and this broker has its name again.
    NAME_BACK = "name_back"
    SEQUENCE_REFUSED = "sequence_refused"
    TOO_MANY_BROKERS = "too_many_brokers"
    WEIGHT_BOUNDED = "weight_bounded"
    ISOLATED = "isolated"
    REJOINED = "rejoined"
    #: A peer sent more rows, or rows of more groups without policies, than are kept.
    PEER_ROWS_REFUSED = "peer_rows_refused"
    #: This broker's own reports of a shard do not come back; they do again.
    SHARD_CUT_OFF = "shard_cut_off"
    SHARD_BACK = "shard_back"
    #: A stock Pulsar broker reported for the first time; left, by the admin API; was silent too long.
    STOCK_BROKER_JOINED = "stock_broker_joined"
    STOCK_BROKER_LEFT = "stock_broker_left"
    STOCK_BROKER_SILENT = "stock_broker_silent"
    #: Its reports come in another period than `exchange.pulsar_period_s`, so rates are wrong.
    STOCK_PERIOD_DIFFERS = "stock_period_differs"
    #: More groups are in use than there are slot ids; those without one are granted their floor.
    GROUPS_WITHOUT_SLOT = "groups_without_slot"


@dataclass(frozen=True, slots=True)
class Alarm:
    """Alert the operator."""

    code: AlarmCode
    #: The broker concerned, or "".
    broker: str = ""
    #: The cause and the consequence, where the code does not say them.
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Halt:
    """Refuse to start, or end: another daemon uses this broker's name."""

    reason: str


@dataclass(frozen=True, slots=True)
class Evict:
    """Skip the oldest messages of these subscriptions: their backlogs exceed a quota.

    Whoever reported the topic carries it out; the poller where `backlog.enforce` is set. A check
    names an eviction again until a report shows that it was carried out.
    """

    evictions: tuple[Eviction, ...]


@dataclass(frozen=True, slots=True)
class BacklogChecked:
    """A check of all backlogs has ended."""

    #: Checks so far, this one included.
    number: int
    #: When it began.
    began_at: Nanos
    #: Topics that were checked.
    topics: int


Effect = (
    Publish | Listen | SendStockReport | Append | Remember | Alarm | Halt | Evict | BacklogChecked
)
