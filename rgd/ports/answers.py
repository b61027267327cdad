"""The daemon's interface to connections: decide, and say whether it is healthy.

Law: these are plain calls that never wait. Whoever fulfils them needs nothing of the exchange or of views, so a process that
only answers (docs/decisions/0061-two-planes.md) loads neither.
"""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Protocol

from rgd.core.buckets.decision import Answer, Name, Request, Together
from rgd.core.buckets.headroom import Headroom
from rgd.core.leases.model import LeaseAnswer, LeaseRequest, Renewal
from rgd.core.units import Pair


@dataclass(frozen=True, slots=True)
class Health:
    """`GET /readyz`."""

    ready: bool
    #: What is impaired, as text; the reason when it is not ready.
    degraded: tuple[str, ...] = ()


class Answers(Protocol):
    """The calls that connections answer themselves."""

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

    def health(self) -> Health:
        """Whether shares are known, and what is degraded."""
