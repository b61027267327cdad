"""The logic of a client, without I/O: questions in, calls out; what came of the calls in, answers out.

Laws:
- A question is answered exactly once, at its deadline at the latest (`ClientSettings.timeout_s` after it was asked).
- A grant that reached nobody (its caller was told "refused" at its deadline, or left) is given back.
- While the daemon is away nobody waits: `ClientSettings.when_away` answers at once.

How it works: questions queue; `calls` puts all that queue into as few calls as possible, so questions
asked at the same moment travel together. The driver (`pump`) sends the calls and says what came of each.
Time is an argument: monotonic nanoseconds. It is not thread-safe: the blocking client holds a lock.
Leases are `leases`' part.
"""

import random
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, replace
from heapq import heapify, heappop, heappush
from typing import Final, NamedTuple

from rgd.client.answers import (
    Answer,
    Name,
    Question,
    Source,
    acquire_body,
    answers_of,
    check_name,
    reason_of,
    settle_body,
)
from rgd.client.hold import NS_PER_MS, Hold
from rgd.client.leases import LeaseCall, Leases, Served
from rgd.client.link import Link
from rgd.client.settings import ClientSettings, WhenAway
from rgd.client.tickets import OnAnswer, Ticket

ACQUIRE: Final = "/v1/acquire"
SETTLE: Final = "/v1/settle"

#: How often a question is sent, if its call brings no answer and it has time left.
_SENDS_MAX: Final = 2

#: Shortest wait that is advised where no daemon answers.
_AWAY_WAIT_MS: Final = 10

#: Asks for nothing and takes nothing: an array of no questions.
_PROBE: Final = b"[]"


class Call(NamedTuple):
    """A call that the driver is to make; it says what came of it with the same `id`."""

    id: int
    path: str
    body: bytes


@dataclass(slots=True)
class Counts:
    """What a client did so far."""

    #: Questions, and who answered them.
    asked: int = 0
    by_daemon: int = 0
    by_lease: int = 0
    by_away: int = 0
    #: Of those answered by `when_away`: the ones for which there was no room to wait.
    overflowed: int = 0
    #: Calls made.
    calls: int = 0
    #: Amounts given back by `POST /v1/settle`.
    settled_messages: int = 0
    settled_bytes: int = 0


#: Amounts that go back, by name: messages and bytes.
_Unused = dict[Name, tuple[int, int]]

#: What a call is about: questions, a lease, what goes back; None: a probe.
_About = list[Ticket] | LeaseCall | _Unused | None


class ClientCore:
    """What one client knows.

    Args:
        settings: its limits, and what to answer while the daemon is away.
        dice: jitters the pauses between probes.
    """

    def __init__(self, settings: ClientSettings, dice: random.Random) -> None:
        self.settings = settings
        self.counts = Counts()
        self.link = Link(settings.retry_first_s, settings.retry_max_s, dice)
        self.leases = Leases(settings)
        self._timeout_ns = int(settings.timeout_s * 1e9)
        self._is_open = settings.when_away == WhenAway.OPEN
        self._batch_max = settings.batch_max
        self._waiting: deque[Ticket] = deque()
        self._unanswered = 0
        #: Deadlines of waiting questions, twice `waiting_max` at most: those of answered ones are removed as they come
        #: up, or all at once where there is no room.
        self._deadlines: list[tuple[int, int, Ticket]] = []
        self._unused: _Unused = {}
        #: Calls in progress: when each was sent, and what it is about.
        self._sent: dict[int, tuple[int, _About]] = {}
        self._lease_calls = 0
        self._slow_grants = 0
        self._last_id = 0

    # Questions.

    def ask(
        self,
        question: Question,
        now: int,
        on_answer: OnAnswer,
        within_ns: int | None = None,
        hold: Hold | None = None,
    ) -> Ticket | Answer:
        """Ask; the answer where it is known at once, else what is waited for.

        Args:
            question: what is asked.
            now: monotonic ns.
            on_answer: told of a later answer, from within `answered` or `expire`.
            within_ns: the longest wait, where it is shorter than the client's timeout.
            hold: of the name's lease, after its fast path (`Hold.take`) did not suffice; None: ask without one.

        Raises:
            BadSetting: no JSON can say the name.
        """
        if hold is None or not self.leases.keeps(hold):
            hold = None
            check_name(question.name)
        self.counts.asked += 1
        if hold is not None:
            told = self.leases.try_answer(hold, question, now)
            if told is not None:
                self._count_lease(told)
                return told
        ticket = self._ticket(question, now, on_answer, within_ns)
        if not isinstance(ticket, Ticket):
            return ticket
        is_partial = question.partial
        if is_partial is None:
            is_partial = question.name.kind == "dispatch"
        if hold is None or is_partial or now < hold.no_lease_until:
            self._waiting.append(ticket)
        else:
            self.leases.wait(hold, ticket, now)
        return ticket

    def abandon(self, ticket: Ticket) -> None:
        """Nobody waits for this answer any longer; a grant goes back when it comes."""
        if not ticket.is_done:
            ticket.is_done = True
            self._unanswered -= 1

    def give_up(self, ticket: Ticket, now: int) -> Answer:
        """End a wait whose time is up; the answer in place of the daemon's."""
        self.abandon(ticket)
        answer = self._without_daemon(ticket.question, now)
        ticket.was_granted = answer.granted
        return answer

    def settle(self, name: Name, messages: int, size: int) -> None:
        """Give back what was granted and not used; it goes with the next call."""
        check_name(name)
        if name not in self._unused and len(self._unused) >= self.settings.names_max:
            return
        before = self._unused.get(name, (0, 0))
        self._unused[name] = (before[0] + messages, before[1] + size)

    def expire(self, now: int) -> None:
        """Answer the questions whose time is up, and renew the leases whose time has come."""
        while self._deadlines and (self._deadlines[0][0] <= now or self._deadlines[0][2].is_done):
            ticket = heappop(self._deadlines)[2]
            if not ticket.is_done:
                self._finish(ticket, self._without_daemon(ticket.question, now))
        self.leases.refresh(now)

    def wake_at(self) -> int | None:
        """When something is due by itself, monotonic ns: a deadline, a probe or a lease's refresh."""
        while self._deadlines and self._deadlines[0][2].is_done:
            heappop(self._deadlines)
        moments = [self._deadlines[0][0]] if self._deadlines else []
        if not self.link.is_up and not self.link.is_probing:
            moments.append(self.link.probe_at)
        refresh_at = self.leases.refresh_at()
        if refresh_at is not None:
            moments.append(refresh_at)
        return min(moments, default=None)

    def count(self) -> Counts:
        """What was done so far, the fast path of leases included."""
        fast = self.leases.grants() - self._slow_grants
        counts = self.counts
        return replace(counts, asked=counts.asked + fast, by_lease=counts.by_lease + fast)

    # Calls.

    def calls(self, now: int) -> list[Call]:
        """What is to be sent now."""
        if self.link.probe_due(now):
            return [self._send(ACQUIRE, _PROBE, None, now)]
        calls: list[Call] = []
        while self._may_send() and (batch := self._next_batch()):
            body = acquire_body([ticket.question for ticket in batch])
            calls.append(self._send(ACQUIRE, body, batch, now))
        if self._unused and self._may_send():
            calls.append(self._settle_call(now))
        while self.link.is_up and self._lease_calls < self.settings.calls_max:
            lease = self.leases.next_call(now)
            if lease is None:
                break
            self._lease_calls += 1
            calls.append(self._send(lease.path, lease.body, lease, now))
        return calls

    def answered(self, call_id: int, status: int, body: bytes, now: int) -> None:
        """A call was answered over HTTP; a status of 0: no answer came, and none will."""
        sent_at, about = self._sent.pop(call_id)
        if isinstance(about, LeaseCall):
            self._lease_calls -= 1
            if _is_no_answer(status) and status != 503:
                self.link.failed(sent_at, now)
                self.leases.failed(about)
                return
            self.link.succeeded(now)
            self._serve(self.leases.answered(about, status, body, now))
        elif _is_no_answer(status):
            self._no_answer(about if isinstance(about, list) else [], sent_at, now)
        elif not isinstance(about, list):
            self.link.succeeded(now)
            self._settled(about or {}, status)
        else:
            self._batch_answered(about, status, body, sent_at, now)

    def give_back(self, now: int) -> list[Call]:
        """What a client that closes sends at last: leases and unused grants go back."""
        if not self.link.is_up:
            return []
        calls = []
        for lease in self.leases.release_all(now):
            self._lease_calls += 1
            calls.append(self._send(lease.path, lease.body, lease, now))
        while self._unused:
            calls.append(self._settle_call(now))
        return calls

    # What follows is one step each.

    def _may_send(self) -> bool:
        return self.link.is_up and len(self._sent) - self._lease_calls < self.settings.calls_max

    def _ticket(
        self, question: Question, now: int, on_answer: OnAnswer, within_ns: int | None
    ) -> Ticket | Answer:
        """A question that may wait; or its answer, where it may not."""
        if not self.link.is_up:
            return self._without_daemon(question, now)
        if self._unanswered >= self.settings.waiting_max:
            self.counts.overflowed += 1
            return self._without_daemon(question, now)
        timeout_ns = self._timeout_ns if within_ns is None else min(self._timeout_ns, within_ns)
        ticket = Ticket(question, now + max(0, timeout_ns), on_answer)
        self._unanswered += 1
        if len(self._deadlines) >= 2 * self.settings.waiting_max:
            self._deadlines = [one for one in self._deadlines if not one[2].is_done]
            heapify(self._deadlines)
        heappush(self._deadlines, (ticket.deadline, self.counts.asked, ticket))
        return ticket

    def _next_batch(self) -> list[Ticket]:
        tickets: list[Ticket] = []
        while self._waiting and len(tickets) < self._batch_max:
            ticket = self._waiting.popleft()
            if not ticket.is_done:
                ticket.sends += 1
                tickets.append(ticket)
        return tickets

    def _batch_answered(
        self, batch: list[Ticket], status: int, body: bytes, sent_at: int, now: int
    ) -> None:
        questions = [ticket.question for ticket in batch]
        answers = answers_of(body, questions) if status == 200 else None
        if status == 200 and answers is None:
            # Something else listens there.
            self._no_answer(batch, sent_at, now)
            return
        self.link.succeeded(now)
        if answers is not None:
            for ticket, answer in zip(batch, answers, strict=True):
                if ticket.is_leased and not answer.granted and answer.status == 200:
                    self.leases.refused(ticket.question.name, answer, now)
                self._deliver(ticket, answer)
        elif status == 413 and len(batch) > 1:
            # Longer than the daemon's http.batch_max.
            self._batch_max = len(batch) // 2
            self._waiting.extendleft(reversed(batch))
        else:
            # The 403 of a whole call is the token's, which lacks the scope; that of an item is its name's.
            fault = 401 if status == 403 else status
            refused = Answer(granted=False, status=fault, reason=reason_of(body))
            for ticket in batch:
                self._deliver(ticket, refused)

    def _settle_call(self, now: int) -> Call:
        names = list(self._unused)[: self._batch_max]
        unused = {name: self._unused.pop(name) for name in names}
        return self._send(SETTLE, settle_body(unused), unused, now)

    def _settled(self, unused: _Unused, status: int) -> None:
        if status == 413 and len(unused) > 1:
            # More names than the daemon's http.batch_max, or more bytes than its http.body_max_bytes.
            self._batch_max = len(unused) // 2
            for name, (messages, size) in unused.items():
                self.settle(name, messages, size)
        elif status == 200:
            self.counts.settled_messages += sum(messages for messages, _ in unused.values())
            self.counts.settled_bytes += sum(size for _, size in unused.values())

    def _send(self, path: str, body: bytes, about: _About, now: int) -> Call:
        self._last_id += 1
        self._sent[self._last_id] = (now, about)
        self.counts.calls += 1
        return Call(self._last_id, path, body)

    def _serve(self, served: Iterable[Served]) -> None:
        for ticket, answer in served:
            if answer is None:
                ticket.sends = 0
                self._waiting.append(ticket)
            else:
                self._count_lease(answer)
                self._finish(ticket, answer)

    def _count_lease(self, answer: Answer) -> None:
        """Count an answer of a lease that was not given on the fast path."""
        self.counts.by_lease += 1
        self._slow_grants += answer.granted

    def _deliver(self, ticket: Ticket, answer: Answer) -> None:
        if not ticket.is_done:
            self.counts.by_daemon += 1
            self._finish(ticket, answer)
        elif answer.granted and not ticket.was_granted:
            self.settle(ticket.question.name, answer.messages, answer.bytes)

    def _finish(self, ticket: Ticket, answer: Answer) -> None:
        self._unanswered -= 1
        ticket.answer(answer)

    def _no_answer(self, batch: list[Ticket], sent_at: int, now: int) -> None:
        """Ask again, before all others, those that were not asked too often."""
        self.link.failed(sent_at, now)
        for ticket in reversed(batch):
            if ticket.is_done:
                continue
            if ticket.sends < _SENDS_MAX:
                self._waiting.appendleft(ticket)
            else:
                self._finish(ticket, self._without_daemon(ticket.question, now))

    def answer_all(self, now: int) -> None:
        """Let nobody wait any longer: the client closes."""
        for _, _, ticket in self._deadlines:
            if not ticket.is_done:
                self._finish(ticket, self._without_daemon(ticket.question, now))
        self._deadlines.clear()
        self._waiting.clear()

    def _without_daemon(self, question: Question, now: int) -> Answer:
        """What is answered where no daemon answers."""
        self.counts.by_away += 1
        if not self._is_open:
            wait_ms = max(_AWAY_WAIT_MS, -(-(self.link.probe_at - now) // NS_PER_MS))
            return Answer(granted=False, retry_after_ms=wait_ms, source=Source.AWAY)
        messages, size = question.messages, question.bytes
        return Answer(granted=True, messages=messages, bytes=size, source=Source.AWAY)


def _is_no_answer(status: int) -> bool:
    """Whether the daemon is down or too slow, or something else (a redirect, a proxy) answered instead."""
    return status >= 500 or status == 408 or (status < 400 and status != 200)
