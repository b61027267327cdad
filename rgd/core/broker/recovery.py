"""Repairs the state of a broker after a fault, and checks it.

An exception may leave half-done work that nothing else detects, such as a share that was computed
and never applied to its bucket. So after a fault the parts are made to agree with one another, and
all shares are computed and applied again, in the usual slices.

Law: the invariants are checked after each fault. `Broker.validate` checks the shares of all groups,
which takes seconds for thousands of them. So only the cheap checks run at once (`validate`). The
shares are checked in slices (`Sharing.check`) with a rest between them (`audit`), so that no
request waits.
"""

from collections.abc import Iterator
from typing import Final

from rgd.core.broker.publisher import Sources
from rgd.core.exchange.usage_map import UsageMap
from rgd.core.jobs import Job
from rgd.core.units import NS_PER_MS, Nanos

#: Rest between two slices of an audit, in nanoseconds.
REST_NS: Final = 10 * NS_PER_MS


class Recovery:
    """Recovery of one broker."""

    def __init__(
        self,
        sources: Sources,
        usage: UsageMap,
    ) -> None:
        self._rounds = sources.rounds
        self._membership = sources.membership
        self._sharing = sources.sharing
        self._usage = usage
        self._audit = Job(self._check_shares)
        #: When `audit` has work; None: none.
        self.audit_due_at: Nanos | None = None

    def recover(self, now: Nanos, *, only_advertised: bool) -> None:
        """Repair the state after a fault, and begin to check it.

        Args:
            now: the current time.
            only_advertised: whether the parts that raised change only what is advertised.

        Raises:
            InvariantBroken: the state is wrong even after the repair; a bug.
        """
        self._rounds.recover()
        if not only_advertised:
            self._membership.recover()
            self._sharing.recover(now)
        self.validate()
        self._audit.begin()
        self.audit_due_at = Nanos(now + REST_NS)

    def validate(self) -> None:
        """Check the invariants that cost little, however many groups there are.

        Raises:
            InvariantBroken: one does not hold; a bug.
        """
        self._usage.validate()
        self._membership.validate()

    def audit(self, now: Nanos) -> None:
        """Check the shares of some groups, if that is due.

        Raises:
            InvariantBroken: a share is wrong; a bug.
        """
        if self.audit_due_at is None or now < self.audit_due_at:
            return
        self._audit.step()
        self.audit_due_at = Nanos(now + REST_NS) if self._audit.is_pending else None

    def _check_shares(self) -> Iterator[None]:
        slot = 0
        while len(slots := self._sharing.next_in_use(slot)):
            self._sharing.check(slots)
            slot = int(slots[-1]) + 1
            yield
