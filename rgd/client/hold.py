"""The tokens that a client holds of one name's lease, and how much its callers want.

Laws:
- What is spent never exceeds what was granted: tokens leave the balance before a caller hears of them,
  and are spent only before their lease expires, counted from before the daemon was asked.
- What is given back left the balance before.
- Demand is counted once: a retry is not new work, and what went to `POST /v1/acquire` is counted there.

How it works: `take` is the fast path: two comparisons and two subtractions. Half of what was granted lies
in reserve. The caller who needs the reserve, or comes after the refresh time, takes the slow path,
which opens the reserve and asks for a renewal: so leases are renewed ahead of need, and an idle one is not.
Time is an argument: monotonic nanoseconds.
"""

import math
from collections import deque
from dataclasses import InitVar, dataclass, field
from typing import Final

from rgd.client.answers import AMOUNT_MAX, Answer, LeaseAnswer, Name, Question, Source
from rgd.client.tickets import Ticket

#: The shortest time over which a rate is measured, in seconds: a burst is not taken for a rate.
_WINDOW_S: Final = 0.1

#: How fast the estimate falls once less is asked: to 1/e in so many seconds.
_FALL_S: Final = 1.0

NS_PER_MS: Final = 1_000_000


@dataclass(slots=True, eq=False)
class Demand:
    """What callers want of one dimension, per second: up at once, down slowly.

    A fall is slow because a lease too small costs a call; a rise that is not believed does too.
    """

    since: int
    #: New work since then.
    asked: int = 0
    rate: float = 0.0

    def measure(self, waiting: int, now: int) -> float:
        """The rate, from what was asked since the last measurement and what waits now."""
        elapsed_s = (now - self.since) / 1e9
        measured = (self.asked + waiting) / max(elapsed_s, _WINDOW_S)
        fallen = measured + (self.rate - measured) * math.exp(-max(elapsed_s, 0.0) / _FALL_S)
        # What went back since may be more than was asked since.
        self.rate = max(0.0, measured, fallen)
        if elapsed_s >= _WINDOW_S:
            self.asked, self.since = 0, now
        return self.rate

    def begin(self, now: int) -> None:
        """Measure from now on: what lies before a pause says nothing."""
        self.asked, self.rate, self.since = 0, 0.0, now


@dataclass(slots=True, eq=False)
class Hold:
    """One name's tokens.

    `messages` and `bytes` are spent without looking further until `good_until`; the reserve lies beside them.
    """

    name: Name
    now: InitVar[int]
    messages: int = 0
    bytes: int = 0
    reserve_messages: int = 0
    reserve_bytes: int = 0
    #: The fast path's end: the refresh time, then the expiry.
    good_until: int = field(init=False)
    expires_at: int = field(init=False)
    lease_id: str | None = None
    #: Nothing limits this dimension until the lease expires.
    free_messages: bool = False
    free_bytes: bool = False
    #: The reserve is open: it is time to renew.
    is_low: bool = False
    #: The daemon says that a soft limit is exceeded.
    is_over: bool = False
    wants_messages: Demand = field(init=False)
    wants_bytes: Demand = field(init=False)
    #: The balance when demand was last counted, plus what was granted since.
    _base: tuple[int, int] = (0, 0)
    #: Everything that this lease granted.
    _granted: tuple[int, int] = (0, 0)
    #: Callers that the balance did not suffice for, in the order in which they asked.
    waiting: deque[Ticket] = field(default_factory=deque)
    #: Questions that the lease answered with a grant.
    grants: int = 0
    #: A call about the lease is to be made; is on its way.
    is_due: bool = False
    sent: bool = False
    last_call_at: int = field(init=False)
    grants_at_call: int = 0
    #: When it is renewed if it was used, else given back.
    refresh_at: int = field(init=False)
    #: What was refused, and until when the daemon needs no asking.
    refusal: Answer | LeaseAnswer | None = None
    refused_until: int = field(init=False)
    #: The daemon gives no lease for this name: its questions go one by one.
    no_lease_until: int = field(init=False)

    def __post_init__(self, now: int) -> None:
        self.good_until = self.expires_at = self.last_call_at = now
        self.refresh_at = self.refused_until = self.no_lease_until = now
        self.wants_messages, self.wants_bytes = Demand(now), Demand(now)

    def take(self, messages: int, size: int, now: int) -> bool:
        """Spend tokens if they suffice: the fast path."""
        if 0 <= messages <= self.messages and 0 <= size <= self.bytes and now < self.good_until:
            self.messages -= messages
            self.bytes -= size
            self.grants += 1
            return True
        return False

    def serve(self, question: Question, now: int) -> bool:
        """Spend tokens, those in reserve too where the others do not suffice: the slow path."""
        is_granted = self.take(question.messages, question.bytes, now)
        if not is_granted and now < self.expires_at:
            self._join_reserve()
            self.is_low = True
            self.good_until = self.expires_at
            is_granted = self.take(question.messages, question.bytes, now)
        if is_granted and question.attempt > 1:
            # It was counted as demand when it was new.
            self._base = (self._base[0] - question.messages, self._base[1] - question.bytes)
        return is_granted

    def put_back(self, messages: int, size: int, now: int) -> None:
        """Take back tokens that were spent for nothing: at most what was spent of this lease."""
        if now < self.expires_at:
            left, left_bytes = self.left()
            self.messages += min(messages, self._granted[0] - left)
            self.bytes += min(size, self._granted[1] - left_bytes)

    def fill(
        self, messages: int | None, size: int | None, good_until: int, expires_at: int
    ) -> None:
        """Take what was newly granted into the balance, half of all of it in reserve.

        Args:
            messages: how many; None: nothing limits them until the lease expires.
            size: the same of bytes.
            good_until: when it is to be renewed, monotonic ns.
            expires_at: when nothing of it may be spent any more, monotonic ns.
        """
        self.count_spent()
        self._join_reserve()
        had_messages, had_bytes = self.left()
        self.free_messages, self.free_bytes = messages is None, size is None
        self.messages = AMOUNT_MAX if messages is None else had_messages + messages
        self.bytes = AMOUNT_MAX if size is None else had_bytes + size
        self._granted = (self._granted[0] + (messages or 0), self._granted[1] + (size or 0))
        self._base = (self.messages, self.bytes)
        self.reserve_messages = 0 if self.free_messages else self.messages // 2
        self.reserve_bytes = 0 if self.free_bytes else self.bytes // 2
        self.messages -= self.reserve_messages
        self.bytes -= self.reserve_bytes
        self.is_low = False
        self.good_until = good_until
        self.expires_at = expires_at

    def empty(self, now: int) -> tuple[int, int]:
        """Take everything out of the balance: what is given back, or has expired."""
        self.count_spent()
        self._join_reserve()
        left = self.left() if now < self.expires_at else (0, 0)
        self.messages = self.bytes = 0
        self._base = self._granted = (0, 0)
        self.free_messages = self.free_bytes = False
        self.good_until = self.expires_at = now
        return left

    def left(self) -> tuple[int, int]:
        """What could be given back: everything in the balance that is limited.

        Whole numbers, also after a caller has spent half a message, which `take` does not check for
        speed: the daemon refuses calls with fractions, and the name would lose its lease.
        """
        return (
            0 if self.free_messages else int(self.messages + self.reserve_messages),
            0 if self.free_bytes else int(self.bytes + self.reserve_bytes),
        )

    def count_spent(self) -> None:
        """Add what was spent to what is wanted."""
        messages, size = self.messages + self.reserve_messages, self.bytes + self.reserve_bytes
        self.wants_messages.asked += self._base[0] - messages
        self.wants_bytes.asked += self._base[1] - size
        if self.free_messages:
            self.messages = messages = AMOUNT_MAX
        if self.free_bytes:
            self.bytes = size = AMOUNT_MAX
        self._base = (messages, size)

    def count_refused(self, question: Question) -> None:
        """Count what was refused here as wanted; the daemon does not hear of it otherwise."""
        if question.attempt == 1:
            self.wants_messages.asked += question.messages
            self.wants_bytes.asked += question.bytes

    def rates(self, now: int) -> tuple[float, float]:
        """What is wanted: messages and bytes per second."""
        self.count_spent()
        waits = [ticket.question for ticket in self.waiting if not ticket.is_done]
        new = [question for question in waits if question.attempt == 1]
        return (
            self.wants_messages.measure(sum(question.messages for question in new), now),
            self.wants_bytes.measure(sum(question.bytes for question in new), now),
        )

    def refused(self, now: int) -> Answer:
        """The daemon's last refusal, with what is left of its wait."""
        assert self.refusal is not None
        wait_ms = max(1, -(-(self.refused_until - now) // NS_PER_MS))
        told = self.refusal
        return Answer(
            granted=False,
            limited_by=told.limited_by,
            group=told.group,
            dimension=told.dimension,
            retry_after_ms=wait_ms,
            quota_type=told.quota_type,
            held=told.held,
            source=Source.LEASE,
        )

    def _join_reserve(self) -> None:
        self.messages += self.reserve_messages
        self.bytes += self.reserve_bytes
        self.reserve_messages = self.reserve_bytes = 0
