"""The daemon's interface to the HTTP server: decide, read, change policies, health.

Law: `acquire` is the fast path: a plain call that never waits. A call
that changes policies returns when the change is in force on this daemon.

The views are plain values in the design's terms, rates in units per second
(None is unlimited), ages in seconds, ready to be shown as JSON.
"""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Protocol

from rgd.core.buckets.decision import Answer, Request
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
    #: That broker's share, as this daemon computes it.
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
    #: Time since its last message.
    age_s: float
    sequence: int
    #: Rows it has in this daemon's usage map.
    rows: int


@dataclass(frozen=True, slots=True)
class Health:
    """`GET /readyz`."""

    ready: bool
    #: What is impaired, as text; the reason when it is not ready.
    degraded: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class CutView:
    """The work that a limit refused, in whole units; `retries` counts requests that declared a retry."""

    requests: int
    retries: int
    messages: int
    bytes: int


@dataclass(frozen=True, slots=True)
class CutLastMinuteView:
    """The work that a limit refused here lately, for all its names, by the short dimension."""

    #: The length of the counted time: 50 to 60 seconds, less after a start.
    window_s: float
    by_messages: CutView
    by_bytes: CutView


@dataclass(frozen=True, slots=True)
class DimensionView:
    """One dimension of a limit; None is unlimited, or not known here."""

    #: Cluster-wide for a group, this broker's own for any other limit; units per second.
    quota: float | None
    #: The rate in force here, units per second.
    share: float | None
    #: The topic's part of the share, where the share is divided over topics.
    part: float | None
    #: The bucket's capacity and its tokens; below 0 it is in debt. Units.
    depth: float | None
    tokens: float | None
    #: For a group, of all its names, as this broker last advertised it; units per second.
    wanted: float | None
    admitted: float | None
    #: Demand that was not admitted.
    refused: float | None


@dataclass(frozen=True, slots=True)
class SaidView:
    """The scope where a limit was set or a group attached."""

    #: `broker`, `tenant`, `namespace`, `topic` or `subscription`.
    place: str
    name: str


@dataclass(frozen=True, slots=True)
class LevelView:
    """One limit that applies to a name."""

    #: `broker`, `resource_group`, `topic` or `subscription`.
    level: str
    group: str | None
    #: The attachments through which the group applies, or the scope that set the limit.
    said: tuple[SaidView, ...]
    #: Whether a request has used it here; before that it has no share and no bucket.
    in_use: bool
    #: As `GroupView` has them; None where it is no group.
    state: str | None
    blocked: bool | None
    shadow: bool | None
    policy: str | None
    topic_split: str | None
    messages: DimensionView
    bytes: DimensionView
    #: The wait for a request of one message and one byte now; 0 if it is granted.
    retry_after_ms: int
    cut_last_minute: CutLastMinuteView


@dataclass(frozen=True, slots=True)
class LimitedByView:
    """The limit and the dimension that refused most requests in the last minute."""

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
    """The calls that the HTTP server may make."""

    #: This broker's name and the cluster's (Pulsar's `cluster` label).
    broker: str
    cluster: str

    def acquire(self, request: Request) -> Answer:
        """Decide one request now.

        Raises:
            UnknownGroup: `request.group` names no group.
            InternalError: a bug; nothing was taken from any bucket.
        """

    def names_resolved(self) -> int:
        """The number of requests so far that were the first of their name, which cost much more."""

    def book(self) -> PolicyBook:
        """The policies in force."""

    def group(self, name: str, attached: Attachments | None = None) -> GroupView:
        """One group with its rows.

        Args:
            name: of the group.
            attached: its attachments, if the caller knows them; otherwise all attachments are
                searched.

        Raises:
            UnknownGroup: there is no such group.
        """

    def broker_names(self) -> list[str]:
        """The names of every member known, this one too."""

    def brokers(self, among: Collection[str]) -> tuple[BrokerView, ...]:
        """The members known among these names, by name."""

    def explain(self, name: Request) -> ExplainView:
        """Why a name is limited or not; it creates and counts nothing.

        Args:
            name: kind, namespace, and optionally topic and subscription; the rest is ignored.
        """

    def health(self) -> Health:
        """Whether shares are known, and what is degraded."""

    async def change(self, key: str, change: Change) -> None:
        """Change one policy; in force here when it returns.

        Args:
            key: as in `rgd.core.policies.records`.
            change: maps the current value (None: none) to the new one. It is called again
                if another daemon changed the policy meanwhile; its exceptions are passed on.

        Raises:
            PoliciesReadOnly: another source owns the policies (a file, a stock Pulsar).
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
