"""The leases of a client: when each is taken, renewed and given back, and who is served from it.

Laws: one call about a lease at a time; a name that is not used is given back, not renewed; a name that
the daemon gives no lease for is asked for one question at a time, so a lease never costs an answer.

How it works: a caller whom the balance does not suffice waits, and the lease is renewed. The answer
serves who waits, in order. Who is left over waits for one further renewal, if a limit lowered the lease and it
still grows; then he asks `POST /v1/acquire` by himself, as does who wants more than a lease may hold. So he hears
of the limit and its wait. Until that wait is over callers are refused here: their demand travels in
`wants_..._per_s` of the next call.
`POST /v1/leases` is described in docs/http.md; the balance is `hold`.
"""

from collections import deque
from collections.abc import Iterable
from heapq import heappop, heappush
from typing import Final, NamedTuple

import msgspec

from rgd.client.answers import Answer, LeaseAnswer, Name, Question, Source, check_name, decoded
from rgd.client.hold import NS_PER_MS, Hold
from rgd.client.settings import ClientSettings
from rgd.client.tickets import Ticket

LEASES: Final = "/v1/leases"

#: How long a name goes without a lease after the daemon gave none.
_NO_LEASE_NS: Final = 1000 * NS_PER_MS

#: Longest that a refusal is repeated without asking again: quotas change meanwhile.
_REFUSAL_NS_MAX: Final = 1000 * NS_PER_MS

#: Renewals that a caller waits for, beside the first, before he asks by himself.
_RENEWALS_MAX: Final = 1

#: Answers that are kept; they start afresh when there are more.
GRANTS_MAX: Final = 4096

#: A name that was not asked for in so long is forgotten when room is needed; its demand is measured afresh.
IDLE_NS: Final = 1000 * NS_PER_MS


class LeaseCall(NamedTuple):
    """A call about a lease that is on its way."""

    hold: Hold
    path: str
    body: bytes
    #: The expiry of what it grants counts from here, monotonic ns.
    sent_at: int
    #: What was in the balance, and so given back, if it ends the lease.
    is_release: bool


#: What an answer did for one who waited: its own answer; None: it asks by itself.
Served = tuple[Ticket, Answer | None]


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(LeaseAnswer).decode


class Leases:
    """Every lease of a client."""

    def __init__(self, settings: ClientSettings) -> None:
        self._names_max = settings.names_max
        self._ttl_ms = int(settings.lease_ttl_s * 1000)
        self._holds: dict[Name, Hold] = {}
        self._due: deque[Hold] = deque()
        #: (when, tie-break, hold): refresh times.
        self._refreshes: list[tuple[int, int, Hold]] = []
        self._count = 0
        #: Grants of the names that were forgotten.
        self._forgotten = 0

    def grants(self) -> int:
        """Questions that leases answered with a grant."""
        return self._forgotten + sum(hold.grants for hold in self._holds.values())

    def hold_of(self, name: Name, now: int) -> Hold | None:
        """The balance of a name; None where there is no room for one more."""
        hold = self._holds.get(name)
        if hold is None:
            check_name(name)
            if len(self._holds) >= self._names_max:
                self._forget_idle(now)
            if len(self._holds) >= self._names_max:
                return None
            hold = self._holds[name] = Hold(name, now)
        return hold

    def keeps(self, hold: Hold) -> bool:
        """Whether the balance is in the table: one that was idle may have been forgotten."""
        if hold.name not in self._holds and len(self._holds) >= self._names_max:
            return False
        return self._holds.setdefault(hold.name, hold) is hold

    def disown(self, now: int) -> None:
        """Forget all balances: another process has them."""
        for hold in self._holds.values():
            hold.empty(now)
            hold.lease_id = None

    def try_answer(self, hold: Hold, question: Question, now: int) -> Answer | None:
        """An answer from the balance, its reserve, or the last refusal; None: wait for the lease."""
        if hold.serve(question, now):
            if hold.is_low and now >= hold.refused_until:
                self.renew(hold)
            return grants[question.messages, question.bytes, hold.is_over]
        if now < hold.refused_until and hold.refusal is not None:
            hold.count_refused(question)
            return hold.refused(now)
        return None

    def wait(self, hold: Hold, ticket: Ticket, now: int) -> None:
        """Let a question wait for the lease."""
        if hold.lease_id is None and now - hold.last_call_at > IDLE_NS:
            hold.wants_messages.begin(now)
            hold.wants_bytes.begin(now)
        ticket.is_leased = True
        hold.waiting.append(ticket)
        self.renew(hold)

    def refused(self, name: Name, answer: Answer, now: int) -> None:
        """A question that its lease did not cover was refused: so are those after it."""
        hold = self._holds.get(name)
        if hold is not None and answer.retry_after_ms is not None:
            self._keep_refusal(hold, answer, now)

    def renew(self, hold: Hold) -> None:
        """A call about the lease is due."""
        if not hold.is_due:
            hold.is_due = True
            if not hold.sent:
                self._due.append(hold)

    def refresh_at(self) -> int | None:
        """When the next lease is to be renewed or given back, monotonic ns."""
        return self._refreshes[0][0] if self._refreshes else None

    def refresh(self, now: int) -> None:
        """Let the leases whose refresh time has come be renewed if they were used, else given back."""
        while self._refreshes and self._refreshes[0][0] <= now:
            moment, _, hold = heappop(self._refreshes)
            # It may have been renewed since, or given back.
            if hold.lease_id is not None and hold.refresh_at == moment:
                self.renew(hold)

    def next_call(self, now: int) -> LeaseCall | None:
        """The next call that is due; the lease is then on its way."""
        while self._due:
            hold = self._due.popleft()
            hold.is_due = False
            is_used = hold.grants > hold.grants_at_call or bool(hold.waiting)
            hold.grants_at_call = hold.grants
            wanted = hold.rates(now)
            hold.last_call_at = now
            if is_used:
                hold.sent = True
                if hold.lease_id is None:
                    return self._create(hold, wanted, now)
                return self._renew(hold, wanted, now)
            if hold.lease_id is not None:
                hold.sent = True
                return self._release(hold, now)
        return None

    def release_all(self, now: int) -> Iterable[LeaseCall]:
        """Give every lease back; a client that closes does so."""
        for hold in self._holds.values():
            if hold.lease_id is not None:
                hold.sent = True
                yield self._release(hold, now)

    def answered(self, call: LeaseCall, status: int, body: bytes, now: int) -> list[Served]:
        """A call about a lease was answered over HTTP."""
        hold = call.hold
        self._arrived(hold)
        told = decoded(_decode, body)
        if call.is_release:
            self._go_on(hold)
            return []
        if status == 200 and told is not None:
            self._fill(hold, told, call.sent_at)
            return self._serve(hold, told, now)
        if status == 429 and told is not None:
            return self._serve(hold, told, now)
        if status == 404 and hold.lease_id is not None:
            # Expired, or the daemon was restarted: what is left of it is not certain any more.
            hold.lease_id = None
            hold.empty(now)
            self._go_on(hold)
            return []
        hold.no_lease_until = now + _NO_LEASE_NS
        return [(ticket, None) for ticket in _take_waiting(hold)]

    def failed(self, call: LeaseCall) -> None:
        """A call about a lease brought no answer; who waits does so until its deadline."""
        self._arrived(call.hold)
        self._go_on(call.hold)

    def _create(self, hold: Hold, wanted: tuple[float, float], now: int) -> LeaseCall:
        name = {key: value for key, value in hold.name._asdict().items() if value is not None}
        wants = _wants(wanted)
        body = _encode({**name, "attempt": 1, **wants, "ttl_ms": self._ttl_ms})
        return LeaseCall(hold, LEASES, body, now, is_release=False)

    def _renew(self, hold: Hold, wanted: tuple[float, float], now: int) -> LeaseCall:
        messages, size = hold.left()
        body = _encode(
            {"messages": messages, "bytes": size, **_wants(wanted), "ttl_ms": self._ttl_ms}
        )
        return LeaseCall(hold, f"{LEASES}/{hold.lease_id}/renew", body, now, is_release=False)

    def _release(self, hold: Hold, now: int) -> LeaseCall:
        path = f"{LEASES}/{hold.lease_id}/release"
        hold.lease_id = None
        messages, size = hold.empty(now)
        return LeaseCall(
            hold, path, _encode({"messages": messages, "bytes": size}), now, is_release=True
        )

    def _arrived(self, hold: Hold) -> None:
        hold.sent = False
        if hold.is_due:
            self._due.append(hold)

    def _fill(self, hold: Hold, told: LeaseAnswer, sent_at: int) -> None:
        hold.lease_id = told.lease_id or hold.lease_id
        hold.is_over = told.over
        expires_at = sent_at + told.expires_in_ms * NS_PER_MS
        refresh_at = min(sent_at + told.refresh_in_ms * NS_PER_MS, expires_at)
        if sent_at >= hold.expires_at:
            hold.empty(sent_at)
        hold.fill(told.messages, told.bytes, refresh_at, expires_at)
        hold.refresh_at = refresh_at
        if hold.lease_id is not None:
            self._count += 1
            heappush(self._refreshes, (refresh_at, self._count, hold))

    def _serve(self, hold: Hold, told: LeaseAnswer, now: int) -> list[Served]:
        """Serve who waits, in order. Who is left over waits once more, if a limited lease still grows."""
        served: list[Served] = []
        is_refused = told.retry_after_ms is not None
        if told.retry_after_ms is not None:
            self._keep_refusal(hold, told, now)
        is_growing = told.limited_by is not None and bool(told.messages or told.bytes)
        for ticket in _take_waiting(hold):
            question = ticket.question
            if hold.serve(question, now):
                answer = grants[question.messages, question.bytes, hold.is_over]
                served.append((ticket, answer))
            elif is_refused:
                hold.count_refused(question)
                served.append((ticket, hold.refused(now)))
            elif is_growing and ticket.sends < _RENEWALS_MAX:
                ticket.sends += 1
                hold.waiting.append(ticket)
            else:
                served.append((ticket, None))
        if (hold.is_low or hold.waiting) and not is_refused:
            self.renew(hold)
        return served

    def _keep_refusal(self, hold: Hold, answer: Answer | LeaseAnswer, now: int) -> None:
        wait_ns = max(answer.retry_after_ms or 0, 1) * NS_PER_MS
        hold.refused_until = now + min(wait_ns, _REFUSAL_NS_MAX)
        hold.refusal = answer

    def _go_on(self, hold: Hold) -> None:
        """Who waits wants a lease again."""
        if hold.waiting:
            self.renew(hold)

    def _forget_idle(self, now: int) -> None:
        idle = [
            name
            for name, hold in self._holds.items()
            if (hold.lease_id is None or hold.expires_at <= now)
            and not (hold.waiting or hold.sent or hold.is_due)
            and now - hold.last_call_at > IDLE_NS
        ]
        for name in idle:
            hold = self._holds.pop(name)
            self._forgotten += hold.grants
            hold.grants = hold.grants_at_call = 0


class _Grants(dict[tuple[int, int, bool], Answer]):
    """Answers of leases, made once for each amount: making one takes longer than the decision."""

    def __missing__(self, said: tuple[int, int, bool]) -> Answer:
        messages, size, is_over = said
        if len(self) >= GRANTS_MAX:
            self.clear()
        self[said] = answer = Answer(
            granted=True, messages=messages, bytes=size, over=is_over, source=Source.LEASE
        )
        return answer


#: The grant of these messages and bytes, by a lease that is above a soft limit or not.
grants: Final = _Grants()


def _wants(wanted: tuple[float, float]) -> dict[str, float]:
    messages, size = wanted
    return {"wants_messages_per_s": round(messages, 3), "wants_bytes_per_s": round(size, 3)}


def _take_waiting(hold: Hold) -> list[Ticket]:
    waiting = [ticket for ticket in hold.waiting if not ticket.is_done]
    hold.waiting.clear()
    return waiting
