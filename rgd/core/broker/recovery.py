"""Puts a broker right after something in it raised, and checks that it is right.

Why: an exception leaves half-done work behind that shows nowhere, such as a share that was computed
and never told to its bucket. So after a fault nothing is trusted that can be made again: the parts are
made to agree with one another, and all shares are computed and applied again, in the usual slices.

Law: what must always hold is checked after each fault. `Broker.validate` computes every group's shares
one by one, which takes seconds for thousands of groups. So what costs little is checked at once
(`validate`), and the shares of many groups together (`Sharing.check`), a slice at a time with a rest
between (`audit`), so that no request waits for it.
"""

from collections.abc import Iterator
from typing import Final

from rgd.core.broker.exchange_state import ExchangeState
from rgd.core.broker.membership import Membership
from rgd.core.broker.policy_change import PolicyChange
from rgd.core.broker.rounds import Rounds
from rgd.core.broker.sharing import Sharing
from rgd.core.exchange.usage_map import UsageMap
from rgd.core.jobs import Job
from rgd.core.units import NS_PER_MS, Nanos

#: Rest between two slices of an audit.
REST_NS: Final = 10 * NS_PER_MS


class Recovery:
    """What is done after a fault, with all parts of one broker."""

    def __init__(
        self,
        *,
        rounds: Rounds,
        exchange_state: ExchangeState,
        membership: Membership,
        sharing: Sharing,
        usage: UsageMap,
        policy_change: PolicyChange,
    ) -> None:
        self._rounds = rounds
        self._exchange_state = exchange_state
        self._membership = membership
        self._sharing = sharing
        self._usage = usage
        self._book_change = policy_change
        self._audit = Job(self._check_shares)
        #: When `audit` has something to do.
        self.audit_due_at: Nanos | None = None

    def recover(self, now: Nanos, *, only_advertised: bool) -> None:
        """Put right what a fault may have left behind, and begin to check it.

        Args:
            now: the moment.
            only_advertised: what raised changes nothing but what is told.

        Raises:
            InvariantBroken: something is wrong that cannot be put right; a bug.
        """
        self._rounds.recover()
        if not only_advertised:
            self._exchange_state.recover(now)
            self._membership.recover()
            self._sharing.recover()
        self.validate()
        self._audit.begin()
        self.audit_due_at = Nanos(now + REST_NS)

    def validate(self) -> None:
        """Check what costs little, however many groups there are.

        Raises:
            InvariantBroken: it does not hold; a bug.
        """
        self._usage.validate()
        self._membership.validate()
        self._book_change.validate()

    def audit(self, now: Nanos) -> None:
        """Check the shares of some groups, if that is due.

        Raises:
            InvariantBroken: a share is not what it should be; a bug.
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
