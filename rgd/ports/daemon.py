"""The daemon as its HTTP doors see it: decide, look, change policies, health.

Law: `acquire` is the fast path: a plain call that never waits. Every look at the daemon is a bounded
slice of work: whoever wants more looks again, and lets others in between. Everything
that changes policies is awaited until it is in force on this daemon.

What a look shows is `rgd.core.views.model`'s business.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from rgd.core.buckets.decision import Answer, Request
from rgd.core.policies.book import PolicyBook
from rgd.core.policies.records import Change
from rgd.core.views.model import BrokerView, ExplainView, GroupSlice, GroupView


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
            InternalError: a bug; nothing was taken from any bucket.
        """

    def names_resolved(self) -> int:
        """How many questions so far were the first of their name: these are much more work than others."""

    def book(self) -> PolicyBook:
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
