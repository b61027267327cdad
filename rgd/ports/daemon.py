"""The daemon as its HTTP doors see it: decide, look, change policies, health.

Law: `acquire` is the short road: a plain call that never waits. Everything
that changes policies is awaited until it is in force on this daemon.

The views are plain values in the design's words, rates in units per second
(None is unlimited), ages in seconds, ready to be shown as JSON.
"""

from dataclasses import dataclass
from typing import Protocol

from rgd.core.buckets.decision import Answer, Request
from rgd.core.policies.book import PolicyBook
from rgd.core.policies.model import Group


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
    #: `live`, or how the daemon acts while cut off: `holding`, `equal`, `hold`, `open`; `starting`.
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


class Daemon(Protocol):
    """What a door may do with the daemon."""

    #: This broker's name and the cluster's (Pulsar's `cluster` label).
    broker: str
    cluster: str

    def acquire(self, request: Request) -> Answer:
        """Decide one request now.

        Raises:
            UnknownGroup: `request.group` names no group.
        """

    def book(self) -> PolicyBook:
        """The policies in force."""

    def groups(self) -> tuple[GroupView, ...]:
        """Every group, by name."""

    def group(self, name: str) -> GroupView:
        """One group with its rows.

        Raises:
            UnknownGroup: there is no such group.
        """

    def brokers(self) -> tuple[BrokerView, ...]:
        """Every member known, this one too."""

    def health(self) -> Health:
        """Whether shares are known, and what is degraded."""

    async def put_group(self, group: Group) -> None:
        """Create or replace a group.

        Raises:
            PoliciesReadOnly: a file owns the policies.
            ExchangeDown: the policies table cannot be written now.
        """

    async def delete_group(self, name: str) -> None:
        """Delete a group.

        Raises:
            UnknownGroup: there is no such group.
            GroupInUse: something is attached to it.
            PoliciesReadOnly, ExchangeDown: as `put_group`.
        """

    async def attach_namespace(self, namespace: str, group: str | None) -> None:
        """Attach a full namespace to a group, or to none.

        Raises:
            UnknownGroup: there is no such group.
            PoliciesReadOnly, ExchangeDown: as `put_group`.
        """
