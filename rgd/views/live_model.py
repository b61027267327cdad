"""The live view as plain values: what `GET /v1/live`, the live page and `rgd top` show.

Law: as in `rgd.views.model`. Rates are in units per second, ages in seconds.
"""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(slots=True)
class PartView:
    """One broker's part of a row."""

    broker: str
    wanted: float
    admitted: float
    #: As this daemon computes it from the usage map.
    share: float
    #: Admitted divided by the fair part: the lesser of demand and max-min share; None: it wants nothing.
    ratio: float | None


@dataclass(slots=True)
class OthersView:
    """The brokers of a row that are shown together."""

    brokers: int
    wanted: float
    admitted: float
    share: float


@dataclass(slots=True)
class PressureView:
    """A group in one kind and dimension; under max-min the shares of all its brokers sum to the quota."""

    group: str
    kind: str
    dimension: str
    quota: float
    wanted: float
    admitted: float
    #: Wanted divided by the quota: above 1 the group is short.
    pressure: float
    #: The lowest ratio of a broker, and that broker; None: nobody wants anything.
    lowest: float | None
    lowest_broker: str | None
    brokers: tuple[PartView, ...]
    #: None: all brokers are in `brokers`.
    others: OthersView | None
    #: Units refused on this broker per second since the last look, by the level that refused; None: not known.
    refused: Mapping[str, float] | None
    shadow: bool


@dataclass(frozen=True, slots=True)
class VerdictView:
    """The state of things in a sentence."""

    #: `good`, `poor` or `bad`.
    level: str
    text: str


@dataclass(frozen=True, slots=True)
class MemberView:
    """A member of the exchange; the first fields are those of `BrokerView`."""

    broker: str
    implementation: str
    self: bool
    since_s: float
    age_s: float
    rows: int
    #: Whether its last message is too old.
    silent: bool
    #: The age from which on it is.
    silent_after_s: float


@dataclass(frozen=True, slots=True)
class GoneView:
    """A broker that is no member any more."""

    broker: str
    ago_s: float


@dataclass(frozen=True, slots=True)
class MembersView:
    """The members of the exchange."""

    #: Silent ones first, then by name; at most `rgd.views.live.MEMBERS_MAX`.
    members: tuple[MemberView, ...]
    total: int
    silent: int
    #: `exchange.expected_brokers`.
    expected: int
    #: Those that left or were removed in the last ten minutes, the latest first.
    gone: tuple[GoneView, ...]


@dataclass(frozen=True, slots=True)
class PressuresView:
    """The groups under the most pressure."""

    rows: tuple[PressureView, ...]
    #: Rows that there are in all, and those that want more than their quota.
    total: int
    short: int
    #: Groups in the policies, with and without a quota.
    groups: int


@dataclass(frozen=True, slots=True)
class BlockedTopicView:
    """A topic to which publishing is not granted because of its backlog."""

    topic: str
    #: `size` or `time`.
    quota_type: str
    size_bytes: int


@dataclass(frozen=True, slots=True)
class BacklogsView:
    """The backlogs that this daemon knows of."""

    topics: int
    blocked: int
    evicting: int
    #: The first of the blocked ones.
    some_blocked: tuple[BlockedTopicView, ...]


@dataclass(frozen=True, slots=True)
class TierView:
    """How far the usage log's tier is behind."""

    records: int
    bytes: int
    segments: int
    oldest_s: float


@dataclass(frozen=True, slots=True)
class ReaderView:
    """How far a reader of the usage log is behind."""

    name: str
    behind: int
    idle_s: float
    holds: bool


@dataclass(frozen=True, slots=True)
class LogView:
    """The usage log."""

    entries: int
    lost: int
    #: None: the log has no tier.
    tier: TierView | None
    readers: tuple[ReaderView, ...]


@dataclass(frozen=True, slots=True)
class EventView:
    """An event of the daemon's log."""

    number: int
    unix_ms: int
    level: str
    #: Stable (docs/events.md); `library` for a line that a library logs.
    code: str
    event: str
    #: Its keys and values.
    details: str
    #: What happened and what to do, for an event with a code; empty: nothing is known, or to be done.
    meaning: str
    do: str
    #: The alert whose section of the runbooks leads to the cause; empty: there is none.
    runbook: str


@dataclass(frozen=True, slots=True)
class HistoryView:
    """The last minutes of a row, a value for each point; None where it was not among the shown ones."""

    kind: str
    dimension: str
    unix_ms: tuple[int, ...]
    quota: tuple[float | None, ...]
    wanted: tuple[float | None, ...]
    admitted: tuple[float | None, ...]
    lowest: tuple[float | None, ...]


@dataclass(frozen=True, slots=True)
class LiveGroupView:
    """One group with all its brokers; one that is blocked has no rows, because nothing passes."""

    group: str
    blocked: bool
    rows: tuple[PressureView, ...]
    history: tuple[HistoryView, ...]


@dataclass(frozen=True, slots=True)
class LiveView:
    """`GET /v1/live`: the whole cluster as one daemon knows it, computed once a round."""

    #: Counts the looks since the daemon's start.
    number: int
    unix_ms: int
    round_s: float
    version: str
    broker: str
    cluster: str
    verdict: VerdictView
    ready: bool
    degraded: tuple[str, ...]
    brokers: MembersView
    #: Those that the rows show each by itself: all, or those that want most.
    coloured: tuple[str, ...]
    groups: PressuresView
    backlogs: BacklogsView
    leases: int
    #: None: there is no usage log.
    log: LogView | None
    #: The number of the newest event.
    last_event: int
