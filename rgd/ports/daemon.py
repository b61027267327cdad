"""The daemon's interface to the calls that read and change policies.

Law: every read is a bounded slice of work: a caller that needs more reads again, and others are served in between. A call
that changes policies returns when the change is in force on this daemon.

`answers` has the calls that decide, `rgd.views.model` the results of reads.
"""

from collections.abc import Sequence
from typing import Protocol

from rgd.core.buckets.decision import Request
from rgd.core.buckets.throttled import Throttled
from rgd.core.policies.records import Change
from rgd.core.policies.snapshot import PolicySnapshot
from rgd.ports.backlogs import BacklogDoor
from rgd.views.model import BrokerView, ExplainView, GroupView


class Daemon(Protocol):
    """The calls that read and change."""

    #: This broker's name and the cluster's (Pulsar's `cluster` label).
    broker: str
    cluster: str

    @property
    def backlogs(self) -> BacklogDoor:
        """The backlogs of topics: reports in, checks, views."""

    def snapshot(self) -> PolicySnapshot:
        """The policies in force."""

    def group(self, name: str) -> GroupView:
        """One group with its rows.

        Raises:
            UnknownGroup: there is no such group.
        """

    def groups(self, names: Sequence[str]) -> list[GroupView]:
        """Those of some groups that exist, with their rows."""

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
