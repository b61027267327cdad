"""The views of a broker's state: plain values with the names of docs/http.md, ready to be shown as JSON.

Law: a view is a value. It is made from the broker's state on request and refers to none of it.

Rates are in units per second (None is unlimited), ages in seconds. `RatesView` and `RowView` are
not frozen, because one list has tens of thousands of them and a frozen one takes three times as
long to make. No code changes them.
"""

from dataclasses import dataclass

from rgd.views.backlog import BacklogView


@dataclass(slots=True)
class RatesView:
    """Rates in units per second; None is unlimited."""

    messages: float | None = None
    bytes: float | None = None


@dataclass(slots=True)
class RowView:
    """One broker's row of the usage map."""

    broker: str
    admitted: RatesView
    wanted: RatesView
    topics: int
    #: Since the row was last confirmed by a report or heartbeat.
    age_s: float
    #: The share of the row's broker, as this daemon computes it.
    share: RatesView


@dataclass(frozen=True, slots=True)
class IdleView:
    """A live broker that has advertised no demand for a group, and its share."""

    broker: str
    share: RatesView


@dataclass(frozen=True, slots=True)
class KindView:
    """A group in one kind of traffic."""

    quota: RatesView
    #: This broker's share in force.
    share: RatesView
    rows: tuple[RowView, ...]
    #: The live brokers without a row; only where one group is asked for.
    idle: tuple[IdleView, ...] = ()


@dataclass(frozen=True, slots=True)
class GroupView:
    """`GET /v1/groups/{g}`."""

    group: str
    blocked: bool
    shadow: bool
    policy: str
    #: How this broker divides its share over topics: `shared`, `even` or `proportional`.
    topic_split: str
    #: The mode: `live`; while isolated `holding`, `equal`, `hold` or `open`; `starting`;
    #: `rejoining`; or `yielding` where another daemon has its name.
    state: str
    publish: KindView
    dispatch: KindView
    tenants: tuple[str, ...]
    namespaces: tuple[str, ...]
    topics: tuple[str, ...]
    #: The part of a share beyond which callers are told; None: no part.
    soft: float | None = None


@dataclass(frozen=True, slots=True)
class BrokerView:
    """A member of the exchange."""

    broker: str
    #: `rgd`, or `stock`: a Pulsar broker that knows nothing of rgd.
    implementation: str
    #: Those of its messages: `compact`, `pulsar`.
    dialects: tuple[str, ...]
    #: What it does beside telling its traffic: `hello`, `ask`, `hash`, `goodbye`, `wanted`
    #: (`rgd.core.exchange.dialects`).
    abilities: tuple[str, ...]
    self: bool
    since_s: float
    #: Since its last message.
    age_s: float
    #: Of its last report; 0: its reports have none.
    sequence: int
    #: Rows it has in this daemon's usage map.
    rows: int


@dataclass(frozen=True, slots=True)
class RefusedView:
    """The work that a limit refused, in whole units; `retries` of the requests were retries."""

    requests: int
    retries: int
    messages: int
    bytes: int


@dataclass(frozen=True, slots=True)
class RefusedLastMinuteView:
    """The work that a limit refused here lately, for all its names, by the short dimension."""

    #: How long ago counting began: 50 to 60 seconds, or less on a daemon that started later.
    window_s: float
    by_messages: RefusedView
    by_bytes: RefusedView


@dataclass(frozen=True, slots=True)
class DimensionView:
    """One dimension of a limit; None is unlimited, or not known here."""

    #: Cluster-wide for a group, this broker's own for any other limit; units per second.
    quota: float | None
    #: The rate in force on this broker, units per second.
    share: float | None
    #: The topic's part of the share, where the share is divided over topics.
    part: float | None
    #: The capacity of the bucket and its tokens, in units; tokens below 0 are debt.
    depth: float | None
    tokens: float | None
    #: Rates of a group over all its names, as this broker last advertised them; units per second.
    wanted: float | None
    admitted: float | None
    #: `wanted` minus `admitted`, at least 0.
    refused: float | None


@dataclass(frozen=True, slots=True)
class ScopeView:
    """Where a limit is set or a group is attached."""

    #: `broker`, `tenant`, `namespace`, `topic` or `subscription`.
    scope: str
    name: str


@dataclass(frozen=True, slots=True)
class LeasesView:
    """The leases of all names that a limit governs."""

    leases: int
    #: What they want together, each at most the whole share; units per second.
    wants: RatesView
    #: Units that they have taken and may not have spent, at most.
    held_messages: int
    held_bytes: int


@dataclass(frozen=True, slots=True)
class SoftView:
    """The soft limit of a group: work beyond it is granted, and its callers are told."""

    #: The part of the share, and the rate in force here: None is unlimited, or not known yet.
    part: float
    messages: float | None
    bytes: float | None
    #: Whether the last grant was beyond it; what was granted beyond it since the start.
    is_over: bool
    over_messages: int
    over_bytes: int


@dataclass(frozen=True, slots=True)
class LevelView:
    """One limit that applies to a name."""

    #: `broker`, `resource_group`, `topic` or `subscription`.
    level: str
    group: str | None
    #: The attachments through which the group applies; or where the limit is set.
    set_at: tuple[ScopeView, ...]
    #: Whether a request has used it here since it exists; before, it has no share and no bucket.
    in_use: bool
    messages: DimensionView
    bytes: DimensionView
    #: The wait of a request for one message and one byte now, in milliseconds; 0: none.
    retry_after_ms: int
    refused_last_minute: RefusedLastMinuteView
    #: As in `GroupView`; None for other levels.
    state: str | None = None
    blocked: bool | None = None
    shadow: bool | None = None
    policy: str | None = None
    topic_split: str | None = None
    #: None: there are none.
    leases: LeasesView | None = None
    soft: SoftView | None = None


@dataclass(frozen=True, slots=True)
class LimitedByView:
    """The limit and the dimension that refused most requests in the last minute.

    A backlog over its quota (level `backlog`) goes before all limits. By size its dimension is
    `bytes`; by time it has none.
    """

    level: str
    group: str | None
    dimension: str | None


@dataclass(frozen=True, slots=True)
class MissingGroupView:
    """An attachment to a group that does not exist, which limits nothing."""

    group: str
    set_at: ScopeView


@dataclass(frozen=True, slots=True)
class BacklogQuotaView:
    """A backlog quota that is stored for a name."""

    #: `destination_storage` (uses `size_bytes`) or `message_age` (`age_s`); None is unlimited.
    type: str
    size_bytes: int | None
    age_s: int | None
    action: str
    set_at: ScopeView
    #: Whether it has an effect: only where somebody reports the topic's backlog to this daemon.
    enforced: bool


@dataclass(frozen=True, slots=True)
class ThrottledLevelView:
    """How often a level lowered what the earlier levels left of a subscription's read."""

    level: str
    messages_events: int
    bytes_events: int


@dataclass(frozen=True, slots=True)
class ThrottledView:
    """What throttled a subscription's dispatch here since its first throttled request."""

    #: Every level, in the order of the decision.
    levels: tuple[ThrottledLevelView, ...]
    #: Units that were requested and not granted.
    messages: int
    bytes: int
    #: The time for which answers asked the caller to wait, overlaps once.
    throttled_s: float


@dataclass(frozen=True, slots=True)
class WordsView:
    """An `ExplainView` in words (`rgd.views.why_words`)."""

    verdict: str
    details: tuple[str, ...]
    #: Of a table with a row for each limit and dimension; the first three columns are text.
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    remarks: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ExplainView:
    """`GET /v1/explain`: every limit that applies to a name, in the order of the decision."""

    broker: str
    kind: str
    namespace: str
    topic: str | None
    subscription: str | None
    #: False where no limit applies.
    governed: bool
    limited_by: LimitedByView | None
    levels: tuple[LevelView, ...]
    missing_groups: tuple[MissingGroupView, ...]
    backlog_quotas: tuple[BacklogQuotaView, ...]
    #: The topic's backlog; None if nobody reports it here.
    backlog: BacklogView | None = None
    #: What was refused of a topic while its backlog blocks publishing.
    backlog_refused_last_minute: RefusedLastMinuteView | None = None
    #: None: no subscription is named, or its dispatch was not throttled lately.
    throttled: ThrottledView | None = None
    #: The same in words; always in an answer over HTTP.
    words: WordsView | None = None
