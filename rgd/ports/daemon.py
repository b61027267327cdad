"""The daemon as its HTTP doors see it: decide, look, change policies, health.

Law: `acquire` is the short road: a plain call that never waits. Everything
that changes policies is awaited until it is in force on this daemon.

The views are plain values in the design's words, rates in units per second
(None is unlimited), ages in seconds, ready to be shown as JSON.
"""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Protocol

from rgd.core.buckets.decision import Answer, Request, Together
from rgd.core.policies.book import PolicyBook
from rgd.core.policies.model import Attachments
from rgd.core.policies.records import Change


@dataclass(frozen=True, slots=True)
class RatesView:
    """Rates in units per second; None is unlimited."""

    messages: float | None = None
    bytes: float | None = None


@dataclass(frozen=True, slots=True)
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
    #: `rgd` or `stock`.
    implementation: str
    self: bool
    since_s: float
    #: Since it was last heard.
    age_s: float
    sequence: int
    #: Rows it has in this daemon's usage map.
    rows: int


@dataclass(frozen=True, slots=True)
class Health:
    """`GET /readyz`."""

    ready: bool
    #: What works less well than it should, in words; also when not ready: why.
    degraded: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class CutView:
    """What a limit cut, whole units; `retries` of the requests said they had been refused before."""

    requests: int
    retries: int
    messages: int
    bytes: int


@dataclass(frozen=True, slots=True)
class CutLastMinuteView:
    """What a limit cut here lately, of all names it governs, by the dimension that was short."""

    #: How long ago counting began: 50 to 60 seconds, less on a daemon that is younger.
    window_s: float
    by_messages: CutView
    by_bytes: CutView


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
    cut_last_minute: CutLastMinuteView


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


class Daemon(Protocol):
    """What a door may do with the daemon."""

    #: This broker's name and the cluster's (Pulsar's `cluster` label).
    broker: str
    cluster: str

    def acquire(self, request: Request) -> Answer:
        """Decide one request now.

        Raises:
            UnknownGroup: `request.group` names no group.
            InternalError: a bug; nothing was taken from any bucket.
        """

    def acquire_together(self, asked: Collection[Together]) -> bool:
        """Grant all of these questions now, or do nothing: then each is to be decided by itself."""

    def names_resolved(self) -> int:
        """How many questions so far were the first of their name: these are much more work than others."""

    def book(self) -> PolicyBook:
        """The policies in force."""

    def group(self, name: str, attached: Attachments | None = None) -> GroupView:
        """One group with its rows.

        Args:
            name: of the group.
            attached: what is attached to it, where that is known already: it is looked for among all
                attachments.

        Raises:
            UnknownGroup: there is no such group.
        """

    def broker_names(self) -> list[str]:
        """The names of every member known, this one too."""

    def brokers(self, among: Collection[str]) -> tuple[BrokerView, ...]:
        """The members known among these names, by name."""

    def explain(self, name: Request) -> ExplainView:
        """Why a name is limited, or is not; makes nothing and counts nothing.

        Args:
            name: kind, namespace, and perhaps topic and subscription; the rest is not looked at.
        """

    def health(self) -> Health:
        """Whether shares are known, and what is degraded."""

    async def change(self, key: str, change: Change) -> None:
        """Change one policy; in force here when it returns.

        Args:
            key: as in `rgd.core.policies.records`.
            change: given what is known of it (None: nothing), says what it becomes. Called again
                where another daemon changed it meanwhile; what it raises is passed on.

        Raises:
            PoliciesReadOnly: something else owns the policies (a file, a stock Pulsar).
            ExchangeDown: the policies table cannot be written now.
        """

    async def delete_group(self, name: str) -> None:
        """Delete a group.

        Raises:
            UnknownGroup: there is no such group.
            GroupInUse: something is attached to it.
            PoliciesReadOnly, ExchangeDown: as `change`.
        """

    async def attach(self, key: str, group: str | None) -> None:
        """Attach a tenant, namespace or topic (its key in `rgd.core.policies.records`), or detach it.

        Raises:
            UnknownGroup: there is no such group.
            PoliciesReadOnly, ExchangeDown: as `change`.
        """
