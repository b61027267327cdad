"""Leases: a caller takes tokens in advance, spends them by itself, and gives back the rest.

Laws:

- What a lease holds was taken from every level of its name, and counts as taken until it is given
  back. So what is taken less what is given back keeps every bound of a bucket, whatever callers do.
- Nothing is given back twice: a lease ends once, and gives back at most what it took and its caller
  has not reported as spent. Tokens of an expired lease stay taken, because its caller may have spent
  them. What leases take cannot be given back by settling.
- Tokens go back only to the levels that they were taken from. If the levels of the name have changed
  meanwhile, or one of them has a limit that it had not, nothing goes back.
- A renewal only adds. So a caller may spend while its renewal travels, and a lost answer wastes
  tokens but grants none twice.
- Demand: a lease that has spent all it had wants `wants` for the time since it asked last. One that
  holds something wants what it takes, whatever it says: it would have spent it.

`sizing` decides how much a lease may have, `table` which leases there are.
"""

from collections import Counter
from enum import StrEnum

from rgd.core.bounds import BOUNDS, LeaseBounds
from rgd.core.buckets.bucket import PICO
from rgd.core.buckets.chain import Chain
from rgd.core.buckets.charge import put_back
from rgd.core.buckets.decision import NOTHING, Answer, Decision, Request
from rgd.core.buckets.limiter import Limiter
from rgd.core.buckets.refusal import Asked, grant_lease
from rgd.core.errors import UnknownGroup
from rgd.core.leases.model import (
    HORIZON_NS,
    REFRESH_MIN_NS,
    RENEWALS_PER_S_MAX,
    TTL_MAX_NS,
    TTL_MIN_NS,
    LeaseAnswer,
    LeaseRequest,
    Renewal,
)
from rgd.core.leases.sizing import Fair, counted_at, fair_part, lasts_ns, part_for
from rgd.core.leases.table import ENDED_PER_ROUND, Lease, LeaseTable, Source
from rgd.core.units import COUNT_MAX, NS_PER_MS, NS_PER_S, Nanos, Pair


class LeaseEvent(StrEnum):
    """What happened to leases, as `rgd_lease_events_total{event}` counts it."""

    GRANTED = "granted"
    RENEWED = "renewed"
    #: Asked for and not made.
    REFUSED = "refused"
    RELEASED = "released"
    EXPIRED = "expired"


class Leases:
    """The leases that one limiter has granted."""

    def __init__(self, limiter: Limiter, bounds: LeaseBounds = BOUNDS.leases) -> None:
        self._limiter = limiter
        self.table = LeaseTable(bounds)
        self._events: Counter[LeaseEvent] = Counter()

    def open(self, request: LeaseRequest, lease_id: str, now: Nanos) -> LeaseAnswer | Answer:
        """Give a lease.

        Args:
            request: what is wanted.
            lease_id: unused and not to be guessed.
            now: the current time.

        Returns:
            The lease; or why there is none: an answer that grants nothing.

        Raises:
            UnknownGroup: the name is of a group that does not exist.
            TooManyLeases: a limit is reached.
        """
        self.table.expire(now)
        self.table.check_room(request.holder, now)
        # The work of its first moments is wanted already.
        asked_at = Nanos(now - self._floor_ns())
        lease = Lease(
            request.name, request.holder, lease_id, request.wants, request.ttl_ns, now, asked_at
        )
        try:
            answer = self._take(lease, NOTHING, request.attempt, now)
        except Exception:
            self.table.count(lease, (), NOTHING)
            raise
        if isinstance(answer, LeaseAnswer) and answer.decision.granted:
            self.table.add(lease)
            self._events[LeaseEvent.GRANTED] += 1
            return answer
        self.table.count(lease, (), NOTHING)
        self._events[LeaseEvent.REFUSED] += 1
        return answer.decision if isinstance(answer, LeaseAnswer) else answer

    def renew(self, lease_id: str, renewal: Renewal, now: Nanos) -> LeaseAnswer | Answer:
        """Extend a lease, and take what it lacks.

        Returns:
            What was added, perhaps nothing; or an answer that grants nothing and leaves the lease
            as it was: publishing is blocked, or no policies are known.

        Raises:
            UnknownLease: there is no such lease.
            UnknownGroup: its group was deleted.
        """
        self.table.expire(now)
        lease = self.table.get(lease_id, now)
        if renewal.wants is not None:
            lease.wants = renewal.wants
        if renewal.ttl_ns is not None:
            lease.ttl_ns = renewal.ttl_ns
        left = Pair(*map(min, renewal.left, lease.held))
        answer = self._take(lease, left, 1, now)
        self._events[LeaseEvent.RENEWED] += 1
        return answer

    def release(self, lease_id: str, left: Pair, now: Nanos) -> Pair:
        """End a lease, and give back what its caller has not spent.

        Returns:
            What was given back: at most what the lease holds.

        Raises:
            UnknownLease: there is no such lease; nothing was given back.
        """
        self.table.expire(now)
        lease = self.table.get(lease_id, now)
        source = lease.source
        back = Pair(*map(min, left, lease.held))
        self.table.end(lease)
        self._events[LeaseEvent.RELEASED] += 1
        if not any(back):
            return NOTHING
        try:
            chain = self._limiter.chain_of(lease.name, now)
        except UnknownGroup:
            return NOTHING
        if _source_of(chain) != source:
            return NOTHING
        put_back(chain, back, now)
        return back

    def end_round(self, now: Nanos) -> None:
        """Remove leases that expired while nobody leased."""
        self.table.expire(now, ENDED_PER_ROUND)

    def events(self) -> dict[LeaseEvent, int]:
        """How often each event happened since the start."""
        return {event: self._events[event] for event in LeaseEvent} | {
            LeaseEvent.EXPIRED: self.table.expired_total
        }

    # Internals.

    def _take(self, lease: Lease, left: Pair, attempt: int, now: Nanos) -> LeaseAnswer | Answer:
        """Take for a lease what it may have beyond what is left of it, and count it again."""
        limiter, floor_ns = self._limiter, self._floor_ns()
        chain = None if limiter.unknown is not None else limiter.chain_of(lease.name, now, attempt)
        if chain is None or not chain.levels:
            return self._take_apart(lease, attempt, now)
        source = _source_of(chain)
        carried = left if source == lease.source else NOTHING
        lease.source = source
        self.table.count(lease, counted_at(chain, lease.wants), carried)
        horizon_ns = max(2 * floor_ns, min(HORIZON_NS, lease.ttl_ns // 2))
        fair = fair_part(chain, lease.wants, self.table.loads, horizon_ns)
        part, least = part_for(chain, lease.wants, left, fair, now)
        wanted = _wanted(lease, left, now)
        asked = Asked(*least, lease.name[3], attempt)
        decision = grant_lease(limiter, chain, part, wanted, asked, now)
        lease.asked_at = now
        held = Pair(carried.messages + part.messages, carried.bytes + part.bytes)
        self.table.count(lease, lease.counted, held)
        self._extend(lease, floor_ns, now)
        if decision.granted or least == NOTHING:
            decision = decision._replace(granted=True, retry_after_ms=0)
            has = Pair(left.messages + part.messages, left.bytes + part.bytes)
            refresh_ns = max(floor_ns, lasts_ns(fair, lease.wants, has) // 2)
        else:
            refresh_ns = max(floor_ns, decision.retry_after_ms * NS_PER_MS)
            decision = decision._replace(retry_after_ms=refresh_ns // NS_PER_MS)
        return _answer(lease, decision, fair, refresh_ns, now)

    def _take_apart(self, lease: Lease, attempt: int, now: Nanos) -> LeaseAnswer | Answer:
        """The answer for a name without levels: ungoverned, blocked, or of unknown policies."""
        kind, group, namespace, topic, subscription = lease.name
        messages, size = _wanted(lease, NOTHING, now)
        names = group, namespace, topic, subscription
        request = Request(kind, messages, size, *names, attempt=attempt)
        decision = self._limiter.acquire(request, now)
        if not isinstance(decision, Decision):
            return decision
        lease.source, lease.asked_at = (), now
        self.table.count(lease, (), NOTHING)
        self._extend(lease, 0, now)
        ms = (lease.expires_at - now) // NS_PER_MS
        return LeaseAnswer(lease.lease_id, None, None, ms, ms // 2, None, None, decision)

    def _floor_ns(self) -> int:
        """The shortest time between two renewals of a lease."""
        return max(REFRESH_MIN_NS, len(self.table) * NS_PER_S // RENEWALS_PER_S_MAX)

    def _extend(self, lease: Lease, floor_ns: int, now: Nanos) -> None:
        ttl_ns = min(max(lease.ttl_ns, TTL_MIN_NS), TTL_MAX_NS)
        self.table.extend(lease, Nanos(now + max(ttl_ns, 2 * floor_ns)))


def _source_of(chain: Chain) -> Source:
    """Where a lease of this chain takes its tokens from."""
    return tuple(
        (level, level.messages_rate is None, level.bytes_rate is None)
        for level in (*chain.deciding, *chain.groups)
    )


def _wanted(lease: Lease, left: Pair, now: Nanos) -> Pair:
    """Whole units that a lease wanted since it asked last, of what it has spent all it had."""
    elapsed_ns = now - lease.asked_at
    messages, size = (
        0 if has else min(want * elapsed_ns // PICO, COUNT_MAX)
        for want, has in zip(lease.wants, left, strict=True)
    )
    return Pair(messages, size)


def _answer(
    lease: Lease, decision: Decision, fair: Fair, refresh_ns: int, now: Nanos
) -> LeaseAnswer:
    ends_ns = lease.expires_at - now
    wants = lease.wants
    is_free = fair.safe_messages is None and not wants.messages and not decision.messages
    return LeaseAnswer(
        lease.lease_id,
        None if is_free else decision.messages,
        None if fair.safe_bytes is None and not wants.bytes else decision.bytes,
        ends_ns // NS_PER_MS,
        min(refresh_ns, ends_ns // 2) // NS_PER_MS,
        fair.safe_messages,
        fair.safe_bytes,
        decision,
    )
