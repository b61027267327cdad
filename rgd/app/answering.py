"""The answers of the daemon: decisions, settling, leases. Plain calls that never wait.

Law: what is raised unforeseen is noted and costs its caller an answer, nobody else anything.
"""

import secrets
from collections.abc import Callable, Collection
from typing import Final

from rgd.app.containment import InternalErrors, contained, is_answer
from rgd.core.buckets.decision import Answer, Name, Request, Together
from rgd.core.buckets.headroom import Headroom
from rgd.core.buckets.limiter import Limiter
from rgd.core.leases.leases import Leases
from rgd.core.leases.model import LeaseAnswer, LeaseRequest, Renewal
from rgd.core.units import Nanos, Pair
from rgd.errors import InternalError

#: Random bytes of a lease's id: nobody guesses another caller's.
ID_BYTES: Final = 16


class Answering:
    """What answers; fulfils `rgd.ports.answers.Answers`."""

    limiter: Limiter
    leases: Leases
    errors: InternalErrors
    now: Callable[[], Nanos]

    def acquire(self, request: Request) -> Answer:
        """Decide one request now (the fast path)."""
        try:
            return self.limiter.decide(*request, self.now())
        except Exception as error:
            if is_answer(error):
                raise
            self.errors.note("acquire", error, may_end=False)
            raise InternalError from error

    def acquire_together(self, asked: Collection[Together]) -> bool:
        """Grant all of these questions now, or do nothing."""
        try:
            return self.limiter.grant_together(asked, self.now())
        except Exception as error:  # noqa: BLE001 -- nothing was taken; each is decided by itself
            self.errors.note("acquire", error, may_end=False)
            return False

    @contained("settle")
    def settle(self, name: Name, unused: Pair) -> Pair:
        """Give back what a name did not use of its grants, or charge what it used beyond them."""
        return self.limiter.settle(name, unused, self.now())

    def names_resolved(self) -> int:
        """How many questions so far were the first of their name."""
        return self.limiter.resolved_total

    @contained("view")
    def nearest(self, name: Name) -> Headroom | None:
        """The limit nearest to refusing a name that was just granted."""
        return self.limiter.nearest(name, self.now())

    @contained("lease")
    def open_lease(self, request: LeaseRequest) -> LeaseAnswer | Answer:
        """Give a lease."""
        return self.leases.open(request, secrets.token_hex(ID_BYTES), self.now())

    @contained("lease")
    def renew_lease(self, lease_id: str, renewal: Renewal) -> LeaseAnswer | Answer:
        """Extend a lease, and take what it lacks."""
        return self.leases.renew(lease_id, renewal, self.now())

    @contained("lease")
    def release_lease(self, lease_id: str, left: Pair) -> Pair:
        """End a lease, and give back what its caller has not spent."""
        return self.leases.release(lease_id, left, self.now())
