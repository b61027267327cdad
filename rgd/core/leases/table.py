"""Every live lease: who has it, when it ends, and what all leases of a level want and hold.

Laws: there are at most `LEASES_MAX` leases, and `LEASES_PER_HOLDER_MAX` of one holder. A lease ends
once: by its release or by its expiry, whichever is first. After its expiry it is unknown, also while
it is still in the table.

Expired leases are removed by the calls that follow (`ENDED_PER_CALL`) and at the ends of rounds
(`ENDED_PER_ROUND`).
"""

from heapq import heapify, heappop, heappush, heapreplace
from typing import Final

from rgd.core.buckets.decision import Name
from rgd.core.buckets.level import GroupState, LevelState
from rgd.core.leases.model import (
    LEASES_MAX,
    LEASES_PER_HOLDER_MAX,
    LeaseRequest,
    TooManyLeases,
    UnknownLease,
)
from rgd.core.units import Nanos, Pair

#: Expired leases that one call removes at most, and the end of a round.
ENDED_PER_CALL: Final = 32
ENDED_PER_ROUND: Final = 256

#: Entries of released leases that the queue of expiries keeps, beside one for each live lease.
_STALE_MAX: Final = 1_024

_NONE: Final = Pair()


#: Levels, each with the rates (Milli per second) that one lease wants of it.
Counted = tuple[tuple[LevelState, Pair], ...]


#: The levels and groups that tokens were taken from, each with whether it then had no limit of messages and of
#: bytes: a bucket that was made since was never charged for them.
Source = tuple[tuple[LevelState, bool, bool], ...]


class Load:
    """What the leases of one level want (Milli per second) and hold (whole units)."""

    __slots__ = ("held_bytes", "held_messages", "leases", "wants_bytes", "wants_messages")

    def __init__(self) -> None:
        self.leases = 0
        self.wants_messages = self.wants_bytes = 0
        self.held_messages = self.held_bytes = 0

    def add(self, sign: int, wants: Pair, held: Pair) -> None:
        """Add a lease (1), or remove it (-1)."""
        self.leases += sign
        self.wants_messages += sign * wants.messages
        self.wants_bytes += sign * wants.bytes
        self.held_messages += sign * held.messages
        self.held_bytes += sign * held.bytes


class Lease:
    """One lease."""

    __slots__ = (
        "asked_at",
        "counted",
        "expires_at",
        "held",
        "holder",
        "lease_id",
        "name",
        "source",
        "ttl_ns",
        "wants",
    )

    def __init__(self, request: LeaseRequest, lease_id: str, now: Nanos) -> None:
        self.name: Name = request.name
        self.holder = request.holder
        self.lease_id = lease_id
        self.wants = request.wants
        self.ttl_ns = request.ttl_ns
        self.expires_at = self.asked_at = now
        #: Whole units taken for it, at most, that its caller may still give back.
        self.held = _NONE
        #: The levels and groups that `held` was taken from; others get none of it back.
        self.source: Source = ()
        #: What its levels and groups count as its want.
        self.counted: Counted = ()


class LeaseTable:
    """The leases of one daemon, by their ids."""

    def __init__(self) -> None:
        self._leases: dict[str, Lease] = {}
        self._of_holder: dict[str, int] = {}
        #: (expiry, id): one entry for each lease, at or before its expiry, and stale ones.
        self._ends: list[tuple[Nanos, str]] = []
        self.loads: dict[LevelState, Load] = {}
        #: Those of them that are groups, for views.
        self.groups: dict[GroupState, Load] = {}
        #: Leases that ended by expiry.
        self.expired_total = 0

    def __len__(self) -> int:
        return len(self._leases)

    def get(self, lease_id: str, now: Nanos) -> Lease:
        """A live lease.

        Raises:
            UnknownLease: there is none of that id.
        """
        lease = self._leases.get(lease_id)
        if lease is None or lease.expires_at <= now:
            raise UnknownLease
        return lease

    def check_room(self, holder: str) -> None:
        """Check that one more lease fits.

        Raises:
            TooManyLeases: a limit is reached.
        """
        if len(self._leases) >= LEASES_MAX:
            raise TooManyLeases(LEASES_MAX, "the daemon")
        if holder and self._of_holder.get(holder, 0) >= LEASES_PER_HOLDER_MAX:
            raise TooManyLeases(LEASES_PER_HOLDER_MAX, "the caller")

    def add(self, lease: Lease) -> None:
        """Add a lease; its expiry must be set."""
        self._leases[lease.lease_id] = lease
        self._of_holder[lease.holder] = self._of_holder.get(lease.holder, 0) + 1
        heappush(self._ends, (lease.expires_at, lease.lease_id))

    def end(self, lease: Lease) -> None:
        """Remove a lease."""
        del self._leases[lease.lease_id]
        self.count(lease, (), _NONE)
        left = self._of_holder[lease.holder] - 1
        if left:
            self._of_holder[lease.holder] = left
        else:
            del self._of_holder[lease.holder]
        if len(self._ends) > 2 * len(self._leases) + _STALE_MAX:
            self._ends = [(one.expires_at, one.lease_id) for one in self._leases.values()]
            heapify(self._ends)

    def expire(self, now: Nanos, most: int = ENDED_PER_CALL) -> None:
        """Remove expired leases, at most so many."""
        ends = self._ends
        for _ in range(most):
            if not ends or ends[0][0] > now:
                return
            lease = self._leases.get(ends[0][1])
            if lease is None:
                heappop(ends)
            elif lease.expires_at > now:
                # It was renewed.
                heapreplace(ends, (lease.expires_at, lease.lease_id))
            else:
                heappop(ends)
                self.expired_total += 1
                self.end(lease)
                ends = self._ends

    def count(self, lease: Lease, counted: Counted, held: Pair) -> None:
        """Count a lease at other levels, or with other amounts, than before."""
        for level, want in lease.counted:
            load = self.loads[level]
            load.add(-1, want, lease.held)
            if not load.leases:
                del self.loads[level]
                if isinstance(level, GroupState):
                    del self.groups[level]
        lease.counted, lease.held = counted, held
        for level, want in counted:
            if level not in self.loads:
                self.loads[level] = Load()
                if isinstance(level, GroupState):
                    self.groups[level] = self.loads[level]
            self.loads[level].add(1, want, held)
