"""The daemon's interface to the HTTP server: decide, read, change policies, health.

Law: `acquire` is the fast path: a plain call that never waits. Every read is a bounded
slice of work: a caller that needs more reads again, and others are served in between. A call
that changes policies returns when the change is in force on this daemon.

`rgd.views.model` has the results of reads.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Protocol

from rgd.core.buckets.decision import Answer, Name, Request, Together
from rgd.core.buckets.headroom import Headroom
from rgd.core.buckets.throttled import Throttled
from rgd.core.leases.model import LeaseAnswer, LeaseRequest, Renewal
from rgd.core.policies.records import Change
from rgd.core.policies.snapshot import PolicySnapshot
from rgd.core.units import Pair
from rgd.ports.backlogs import BacklogDoor
from rgd.views.model import BrokerView, ExplainView, GroupSlice, GroupView


@dataclass(frozen=True, slots=True)
class Health:
    """`GET /readyz`."""

    ready: bool
    #: What is impaired, as text; the reason when it is not ready.
    degraded: tuple[str, ...] = ()


class Daemon(Protocol):
    """The calls that the HTTP server may make."""

    #: This broker's name and the cluster's (Pulsar's `cluster` label).
    broker: str
    cluster: str

    @property
    def backlogs(self) -> BacklogDoor:
        """The backlogs of topics: reports in, checks, views."""

    def acquire(self, request: Request) -> Answer:
        """Decide one request now.

        Raises:
            UnknownGroup: `request.group` names no group.
            InternalError: a bug; nothing was taken from any bucket.
        """

    def acquire_together(self, asked: Collection[Together]) -> bool:
        """Grant all of these questions now, or do nothing: then each is to be decided by itself."""

    def nearest(self, name: Name) -> Headroom | None:
        """The limit nearest to refusing a name that was just granted; None if none applies.

        Raises:
            InternalError: a bug.
        """

    def settle(self, name: Name, unused: Pair) -> Pair:
        """Give back what a name did not use of its grants, or charge what it used beyond them.

        Args:
            name: as it was asked for.
            unused: whole units; below 0 what was used beyond the grants.

        Returns:
            What was given back; below 0 what was charged.

        Raises:
            UnknownGroup: the name is of a group that does not exist.
            InternalError: a bug.
        """

    def open_lease(self, request: LeaseRequest) -> LeaseAnswer | Answer:
        """Give a lease; or an answer that grants nothing.

        Raises:
            UnknownGroup: the name is of a group that does not exist.
            TooManyLeases: there is no room for one more.
            InternalError: a bug.
        """

    def renew_lease(self, lease_id: str, renewal: Renewal) -> LeaseAnswer | Answer:
        """Extend a lease and take what it lacks; or an answer that leaves it as it was.

        Raises:
            UnknownLease: it has expired or was released.
            UnknownGroup: its group was deleted.
            InternalError: a bug.
        """

    def release_lease(self, lease_id: str, left: Pair) -> Pair:
        """End a lease, and give back what its caller has not spent; returns what was given back.

        Raises:
            UnknownLease: it has expired or was released; nothing was given back.
            InternalError: a bug.
        """

    def names_resolved(self) -> int:
        """The number of requests so far that were the first of their name, which cost much more."""

    def snapshot(self) -> PolicySnapshot:
        """The policies in force."""

    def group(self, name: str) -> GroupView:
        """One group with its rows.

        Raises:
            UnknownGroup: there is no such group.
        """

    def groups(self, names: Sequence[str]) -> GroupSlice:
        """The first of these groups, with their rows: as many as are one slice of work."""

    def broker_names(self) -> list[str]:
        """The names of every member known, this one too."""

    def brokers(self, among: Sequence[str]) -> tuple[BrokerView, ...]:
        """The members known among these names, in their order."""

    def explain(self, name: Request) -> ExplainView:
        """Why a name is limited or not; it creates and counts nothing.

        Args:
            name: kind, namespace, and optionally topic and subscription; the rest is ignored.
        """

    def throttled(self, topic: str) -> list[Throttled]:
        """What throttled the dispatch of a topic's subscriptions lately; without those never throttled."""

    def throttled_partitions(self, topic: str) -> list[str]:
        """The partitions of a partitioned topic whose dispatch was throttled lately."""

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
