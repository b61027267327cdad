"""The backlog of one topic as a source reported it: ledgers, and subscriptions with positions.

Law: both sources make the same report, and everything about a backlog is computed from it here in
the core. A report never contains a computed answer, for example a size or an age.

Counts and names are checked (`check_backlog`), because reports come from outside; numbers where each source is read.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final, NamedTuple

from rgd.core.errors import InvalidBacklog
from rgd.core.policies.names import check_subscription, parse_topic

#: Most topics of one `BacklogsReported` or `BacklogsWithdrawn` event: about 1 ms of work.
EVENT_TOPICS_MAX: Final = 64

#: Most subscriptions and ledgers of one topic.
TOPIC_SUBSCRIPTIONS_MAX: Final = 1_000
TOPIC_LEDGERS_MAX: Final = 1_000

#: Largest time, ms since 1970: the year 9999.
TIME_MS_MAX: Final = 253_402_300_799_999

_PERSISTENT: Final = "persistent://"


class Source(StrEnum):
    """Where a report came from."""

    #: The topic's broker, over HTTP.
    PUSHED = "pushed"
    #: This daemon's poller of a stock Pulsar.
    POLLED = "polled"


class Position(NamedTuple):
    """An entry of a topic; positions compare in the order in which entries were written."""

    ledger: int
    entry: int


class Ledger(NamedTuple):
    """A run of a topic's entries."""

    id: int
    entries: int
    bytes: int
    #: When it was closed, ms since 1970; None for the current one, which is still written.
    closed_at_ms: int | None = None


class SubscriptionBacklog(NamedTuple):
    """One durable subscription of a topic."""

    name: str
    #: Its oldest unacknowledged entry; None if everything is acknowledged. A position after the
    #: last entry means the same.
    oldest: Position | None
    #: The times of that message, ms since 1970: the broker's (PIP-70) and the producer's; None if
    #: not known. The broker's is used if both are known.
    broker_time_ms: int | None = None
    publish_time_ms: int | None = None
    #: Unacknowledged messages that are not delayed; None if not known: then the entries from
    #: `oldest` to the last one count.
    messages: int | None = None

    @property
    def message_time_ms(self) -> int | None:
        """The time of its oldest unacknowledged message, if known."""
        return self.publish_time_ms if self.broker_time_ms is None else self.broker_time_ms


@dataclass(frozen=True, slots=True)
class TopicBacklog:
    """The report of one topic."""

    #: Full name, `persistent://tenant/namespace/topic`; a partition is a topic.
    topic: str
    #: In ascending order of ids. Only the last one may be open.
    ledgers: tuple[Ledger, ...]
    subscriptions: tuple[SubscriptionBacklog, ...]
    source: Source
    #: When the source read it, ms since 1970, by the clock that stamps the messages or one that
    #: agrees with it: ages are differences to it.
    read_at_ms: int


class QuotaType(StrEnum):
    """Which limit of a quota a backlog exceeds; the metrics' label `quota_type`."""

    SIZE = "size"
    TIME = "time"


@dataclass(frozen=True, slots=True)
class Eviction:
    """What to skip on one subscription so that its topic's backlog is inside its quota again."""

    topic: str
    subscription: str
    #: The first position to keep: acknowledge everything before it. At the end of the topic it is
    #: the entry that would be written next.
    to: Position
    #: If set, only messages of before this time (ms since 1970) need to be skipped, and `to` is the
    #: first position that is known or estimated to be young enough. A carrier that can read the
    #: messages' times may stop at the first younger message.
    published_before_ms: int | None
    #: Which limits the topic exceeded.
    exceeded: tuple[QuotaType, ...]
    #: Who reported the topic; only `POLLED` ones are carried out by this daemon.
    source: Source


def check_backlog(report: TopicBacklog) -> None:
    """Check that a report is well formed and within the limits.

    Raises:
        InvalidName: a topic's or subscription's name is malformed.
        InvalidBacklog: another field is; names it and what was expected.
    """
    parse_topic(report.topic)
    if not report.topic.startswith(_PERSISTENT):
        raise InvalidBacklog("topic: expected a persistent topic, because others have no backlog")
    _check_ledgers(report.ledgers)
    subscriptions = report.subscriptions
    if len(subscriptions) > TOPIC_SUBSCRIPTIONS_MAX:
        raise InvalidBacklog(f"subscriptions: expected at most {TOPIC_SUBSCRIPTIONS_MAX}")
    if len({one.name for one in subscriptions}) < len(subscriptions):
        raise InvalidBacklog("subscriptions: expected each name once")
    for one in subscriptions:
        check_subscription(one.name)


def _check_ledgers(ledgers: tuple[Ledger, ...]) -> None:
    if len(ledgers) > TOPIC_LEDGERS_MAX:
        raise InvalidBacklog(f"ledgers: expected at most {TOPIC_LEDGERS_MAX}")
    before = -1
    for ledger in ledgers:
        if ledger.id <= before:
            raise InvalidBacklog("ledgers: expected ascending ids, each once")
        before = ledger.id
    if any(ledger.closed_at_ms is None for ledger in ledgers[:-1]):
        raise InvalidBacklog("ledgers.closed_at_ms: expected a time in all ledgers but the last")
