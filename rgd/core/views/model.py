"""What people see of a broker's state: plain values in the design's words, ready to be shown as JSON.

Law: a view is a value: it is made from the broker's state when somebody asks, and keeps nothing of it.

Rates are in units per second (None is unlimited), ages in seconds. `RatesView` and `RowView` are made by the
ten thousand for one list, and a frozen one takes three times as long to make: they are values by agreement.
"""

from dataclasses import dataclass
from typing import NamedTuple


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
    #: What this broker's share is, as this daemon reckons it.
    share: RatesView


@dataclass(frozen=True, slots=True)
class KindView:
    """A group in one kind."""

    quota: RatesView
    #: This broker's share in force.
    share: RatesView
    rows: tuple[RowView, ...]


@dataclass(frozen=True, slots=True)
class GroupView:
    """`GET /v1/groups/{g}`."""

    group: str
    blocked: bool
    shadow: bool
    policy: str
    #: How this broker sub-divides its share over topics: `shared`, `even` or `proportional`.
    topic_split: str
    #: `live`, or how the daemon acts while cut off: `holding`, `equal`, `hold`, `open`; `starting`;
    #: `rejoining`, or `yielding` where another daemon has its name.
    state: str
    publish: KindView
    dispatch: KindView
    tenants: tuple[str, ...]
    namespaces: tuple[str, ...]
    topics: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class BrokerView:
    """A member of the exchange."""

    broker: str
    #: Always `rgd`: brokers that speak another dialect are not members.
    implementation: str
    self: bool
    since_s: float
    #: Since it was last heard.
    age_s: float
    sequence: int
    #: Rows it has in this daemon's usage map.
    rows: int


@dataclass(frozen=True, slots=True)
class RefusedView:
    """What a limit cut, whole units; `retries` of the requests said they had been refused before."""

    requests: int
    retries: int
    messages: int
    bytes: int


@dataclass(frozen=True, slots=True)
class RefusedLastMinuteView:
    """What a limit cut here lately, of all names it governs, by the dimension that was short."""

    #: How long ago counting began: 50 to 60 seconds, less on a daemon that is younger.
    window_s: float
    by_messages: RefusedView
    by_bytes: RefusedView


@dataclass(frozen=True, slots=True)
class DimensionView:
    """One dimension of a limit; None is unlimited, or not known here."""

    #: Cluster-wide for a group, this broker's own for any other limit; units per second.
    quota: float | None
    #: What flows here, units per second.
    share: float | None
    #: The topic's part of the share, where the share is divided over topics.
    part: float | None
    #: The most that can be in the bucket, and what is; below 0 it is in debt. Units.
    depth: float | None
    tokens: float | None
    #: Of a group, all of its names, as this broker last told the others; units per second.
    wanted: float | None
    admitted: float | None
    #: Wanted and not admitted.
    refused: float | None


@dataclass(frozen=True, slots=True)
class SaidView:
    """Where somebody set a limit or attached a group."""

    #: `broker`, `tenant`, `namespace`, `topic` or `subscription`.
    place: str
    name: str


@dataclass(frozen=True, slots=True)
class LevelView:
    """One limit that applies to a name."""

    #: `broker`, `resource_group`, `topic` or `subscription`.
    level: str
    group: str | None
    #: Through which attachments the group applies; or who set the limit.
    said: tuple[SaidView, ...]
    #: Whether it was asked here since it exists: before that it has no share and no bucket.
    in_use: bool
    #: As `GroupView` has them; None where it is no group.
    state: str | None
    blocked: bool | None
    shadow: bool | None
    policy: str | None
    topic_split: str | None
    messages: DimensionView
    bytes: DimensionView
    #: How long whoever asks for one message and one byte now is told to wait; 0: not at all.
    retry_after_ms: int
    cut_last_minute: RefusedLastMinuteView


@dataclass(frozen=True, slots=True)
class LimitedByView:
    """The limit and the dimension that cut most requests in the last minute."""

    level: str
    group: str | None
    dimension: str


@dataclass(frozen=True, slots=True)
class MissingGroupView:
    """An attachment to a group that does not exist, which limits nothing."""

    group: str
    said: SaidView


@dataclass(frozen=True, slots=True)
class BacklogQuotaView:
    """A backlog quota that is stored for a name."""

    #: `destination_storage` or `message_age`, with the one limit that it has; None is unlimited.
    type: str
    size_bytes: int | None
    age_s: int | None
    action: str
    said: SaidView
    #: Whether this version acts on it.
    enforced: bool


@dataclass(frozen=True, slots=True)
class ExplainView:
    """`GET /v1/explain`: every limit that applies to a name, in the order of decision."""

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


class GroupSlice(NamedTuple):
    """The views of some groups: one slice of work."""

    #: Groups that do not exist are left out.
    views: list[GroupView]
    #: How many of the names that were given are done.
    done: int
    #: What it took, in points (`rgd.core.views.groups`).
    work: int
