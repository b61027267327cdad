"""The leases that callers take over HTTP: ids, and containment of what goes wrong."""

import secrets
from collections.abc import Callable
from typing import Final

from rgd.app.containment import InternalErrors, contained
from rgd.core.broker.broker import Broker
from rgd.core.buckets.decision import Answer
from rgd.core.leases.model import LeaseAnswer, LeaseRequest, Renewal
from rgd.core.units import Nanos, Pair

#: Random bytes of a lease's id: nobody guesses another caller's.
ID_BYTES: Final = 16


class Leasing:
    """The part of `rgd.ports.daemon.Daemon` that leases."""

    core: Broker
    errors: InternalErrors
    now: Callable[[], Nanos]

    @contained("lease")
    def open_lease(self, request: LeaseRequest) -> LeaseAnswer | Answer:
        """Give a lease."""
        return self.core.leases.open(request, secrets.token_hex(ID_BYTES), self.now())

    @contained("lease")
    def renew_lease(self, lease_id: str, renewal: Renewal) -> LeaseAnswer | Answer:
        """Extend a lease, and take what it lacks."""
        return self.core.leases.renew(lease_id, renewal, self.now())

    @contained("lease")
    def release_lease(self, lease_id: str, left: Pair) -> Pair:
        """End a lease, and give back what its caller has not spent."""
        return self.core.leases.release(lease_id, left, self.now())
