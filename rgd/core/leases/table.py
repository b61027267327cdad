"""Every live lease: who has it, when it ends, and what all leases of a level want and hold.

Laws: there are at most `LeaseBounds.leases_max` leases, and `leases_per_holder_max` of one holder. A lease
ends once: by its release or by its expiry, whichever is first. After its expiry it is unknown and takes
nobody's room, also while it is still in the table.

Expired leases are removed by the calls that follow (`ENDED_PER_CALL`) and at the ends of rounds
(`ENDED_PER_ROUND`): few by each call, because a call must not cost more beside thousands of them.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from rgd.core.bounds import LeaseBounds
from rgd.core.buckets.bucket import NEVER
from rgd.core.buckets.decision import Name
from rgd.core.buckets.level import LevelState
from rgd.core.leases.expiries import Expiries
from rgd.core.leases.model import TooManyLeases, UnknownLease
from rgd.core.units import Nanos, Pair

#: Expired leases that one call removes at most (a call adds one), one that finds the table full, and the
#: end of a round.
ENDED_PER_CALL: Final = 2
ENDED_WHEN_FULL: Final = 32
ENDED_PER_ROUND: Final = 256

_NONE: Final = Pair()


#: Levels, each with the rates (Milli per second) that one lease wants of it.
Counted = tuple[tuple[LevelState, Pair], ...]


#: The levels and groups that tokens were taken from, each with whether it then had no limit of messages and of
#: bytes: a bucket that was made since was never charged for them.
Source = tuple[tuple[LevelState, bool, bool], ...]


@dataclass(slots=True)
class Load:
    """What the leases of one level want (Milli per second) and hold (whole units)."""

    leases: int = 0
    wants: Pair = _NONE
    held: Pair = _NONE

    def add(self, sign: int, wants: Pair, held: Pair) -> None:
        """Add a lease (1), or remove it (-1)."""
        self.leases += sign
        self.wants = _added(self.wants, sign, wants)
        self.held = _added(self.held, sign, held)


@dataclass(slots=True, eq=False)
class Lease:
    """One lease."""

    name: Name
    holder: str
    lease_id: str
    wants: Pair
    ttl_ns: int
    expires_at: Nanos
    asked_at: Nanos
    #: Whole units taken for it, at most, that its caller may still give back.
    held: Pair = _NONE
    #: The levels and groups that `held` was taken from; others get none of it back.
    source: Source = ()
    #: What its levels and groups count as its want.
    counted: Counted = ()


@dataclass(slots=True)
class Holder:
    """The leases of one holder."""

    leases: dict[str, Lease] = field(default_factory=dict)
    #: None of them expires before: there is nothing to look for until then.
    live_until: Nanos = NEVER

    def expired(self, now: Nanos) -> Lease | None:
        """One of the leases that have expired, if there are any: a pass over all, some 0.2 ms for the most."""
        if now < self.live_until:
            return None
        first = min(self.leases.values(), key=_expiry)
        self.live_until = first.expires_at
        return first if first.expires_at <= now else None


def _added(before: Pair, sign: int, more: Pair) -> Pair:
    return Pair(before.messages + sign * more.messages, before.bytes + sign * more.bytes)


def _expiry(lease: Lease) -> Nanos:
    return lease.expires_at


class LeaseTable:
    """The leases of one daemon, by their ids."""

    def __init__(self, bounds: LeaseBounds) -> None:
        self._bounds = bounds
        self._leases: dict[str, Lease] = {}
        self._of_holder: dict[str, Holder] = {}
        #: All leases, at or before their expiry.
        self._expiries = Expiries()
        self.loads: dict[LevelState, Load] = {}
        #: Leases that ended by expiry.
        self.expired_total = 0

    def __len__(self) -> int:
        return len(self._leases)

    def __iter__(self) -> Iterator[Lease]:
        """All leases of the table, also those that have expired and are still to be removed."""
        return iter(self._leases.values())

    def get(self, lease_id: str, now: Nanos) -> Lease:
        """A live lease.

        Raises:
            UnknownLease: there is none of that id.
        """
        lease = self._leases.get(lease_id)
        if lease is None or lease.expires_at <= now:
            raise UnknownLease
        return lease

    def check_room(self, holder: str, now: Nanos) -> None:
        """Check that one more lease fits beside those that have not expired.

        Raises:
            TooManyLeases: a limit is reached.
        """
        most, most_of_holder = self._bounds.leases_max, self._bounds.leases_per_holder_max
        if len(self._leases) >= most:
            self.expire(now, ENDED_WHEN_FULL)
        if len(self._leases) >= most:
            raise TooManyLeases(most, "the daemon")
        held = self._of_holder.get(holder)
        if held is None or not holder or len(held.leases) < most_of_holder:
            return
        expired = held.expired(now)
        if expired is None:
            raise TooManyLeases(most_of_holder, "the caller")
        self._end_expired(expired)

    def add(self, lease: Lease) -> None:
        """Add a lease; its expiry must be set."""
        self._leases[lease.lease_id] = lease
        holder = self._of_holder.get(lease.holder)
        if holder is None:
            holder = self._of_holder[lease.holder] = Holder()
        holder.leases[lease.lease_id] = lease
        holder.live_until = min(holder.live_until, lease.expires_at)
        self._expiries.put(lease.lease_id, lease.expires_at)

    def extend(self, lease: Lease, expires_at: Nanos) -> None:
        """Give a lease, in the table or not yet, another expiry; it may be an earlier one."""
        if expires_at < lease.expires_at and lease.lease_id in self._leases:
            self._expiries.remove(lease.lease_id)
            self._expiries.put(lease.lease_id, expires_at)
            holder = self._of_holder[lease.holder]
            holder.live_until = min(holder.live_until, expires_at)
        lease.expires_at = expires_at

    def end(self, lease: Lease) -> None:
        """Remove a lease."""
        del self._leases[lease.lease_id]
        self.count(lease, (), _NONE)
        self._expiries.remove(lease.lease_id)
        leases = self._of_holder[lease.holder].leases
        del leases[lease.lease_id]
        if not leases:
            del self._of_holder[lease.holder]

    def expire(self, now: Nanos, most: int = ENDED_PER_CALL) -> None:
        """Remove expired leases, and look at renewed ones, at most so many."""
        for _ in range(most):
            lease_id = self._expiries.pop(now)
            if lease_id is None:
                return
            lease = self._leases[lease_id]
            if lease.expires_at > now:
                # It was renewed.
                self._expiries.put(lease_id, lease.expires_at)
            else:
                self._end_expired(lease)

    def _end_expired(self, lease: Lease) -> None:
        self.expired_total += 1
        self.end(lease)

    def count(self, lease: Lease, counted: Counted, held: Pair) -> None:
        """Count a lease at other levels, or with other amounts, than before."""
        for level, want in lease.counted:
            load = self.loads[level]
            load.add(-1, want, lease.held)
            if not load.leases:
                del self.loads[level]
        lease.counted, lease.held = counted, held
        for level, want in counted:
            if level not in self.loads:
                self.loads[level] = Load()
            self.loads[level].add(1, want, held)
