"""Callers: they have work, ask for it, and each has its own way with a refusal.

Law: wanted and admitted are counted here, at the load, by the round of the world in which they
happened; new work is wanted once, however often it is asked for. A broker that is down has callers
that want nothing: nobody can ask it.

`Caller` gives up at once. The others retry, wait, hold work back, or lease. When work comes is the
business of `sim.arrivals`.
"""

from collections import deque
from collections.abc import Iterator

from rgd.core.buckets.decision import Decision, Request
from rgd.core.units import NS_PER_MS, Pair
from sim.arrivals import Arrival, Arrivals
from sim.member import Member
from sim.world import World


class RoundCount:
    """Which round of the world it is, shared by all who count; grown by whoever keeps the rounds."""

    __slots__ = ("number", "round_ns", "rounds")

    def __init__(self, rounds: int, round_ns: int) -> None:
        self.number = 0
        self.rounds = rounds
        self.round_ns = round_ns


class Caller:
    """One load on one group at one broker; a refused request is given up."""

    def __init__(self, world: World, member: Member, group: str, rounds: RoundCount) -> None:
        self.world = world
        self.member = member
        self.rounds = rounds
        #: By (round): new work, and what was granted.
        self.wanted_messages = [0] * rounds.rounds
        self.wanted_bytes = [0] * rounds.rounds
        self.admitted_messages = [0] * rounds.rounds
        self.admitted_bytes = [0] * rounds.rounds
        #: The largest request so far, in messages and bytes.
        self.largest = (0, 0)
        self._group = group
        self._stream: Iterator[Arrival] = iter(())
        self._requests: dict[tuple[int, int], Request] = {}

    def start(self, arrivals: Arrivals) -> None:
        """Begin to ask, until the last counted round ends."""
        self._stream = arrivals.stream(self.rounds.rounds * self.rounds.round_ns)
        self._next()

    def ask(self, request: Request) -> Decision:
        """Ask now, and count what is granted."""
        member = self.member
        answer = member.brain.limiter.acquire(request, member.clock.local_time(self.world.now))
        if not isinstance(answer, Decision):
            raise TypeError(f"a scenario asks for what can be granted, got {answer}")
        if answer.granted:
            number = self.rounds.number
            self.admitted_messages[number] += answer.messages
            self.admitted_bytes[number] += answer.bytes
        return answer

    def take_on(self, request: Request) -> None:
        """Do something about new work."""
        self.ask(request)

    def make_request(self, messages: int, size: int) -> Request:
        """Make a question for new work."""
        return Request(messages=messages, bytes=size, group=self._group)

    def _next(self) -> None:
        arrival = next(self._stream, None)
        if arrival is not None:
            self.world.at(arrival[0], self._arrive, arrival[1], arrival[2])

    def _arrive(self, messages: int, size: int) -> None:
        self._next()
        world, member = self.world, self.member
        if not member.is_up:
            return
        if world.now < member.frozen_until:
            world.at(member.frozen_until, self._come, messages, size)
        else:
            self._come(messages, size)

    def _come(self, messages: int, size: int) -> None:
        if not self.member.is_live:
            return
        number = self.rounds.number
        if number >= self.rounds.rounds:
            return
        self.wanted_messages[number] += messages
        self.wanted_bytes[number] += size
        request = self._requests.get((messages, size))
        if request is None:
            request = self._requests[messages, size] = self.make_request(messages, size)
            self.largest = (max(self.largest[0], messages), max(self.largest[1], size))
        self.take_on(request)

    @property
    def _may_ask(self) -> bool:
        """Whether somebody would answer a question that was put off until now."""
        is_answered = self.member.is_live and self.world.now >= self.member.frozen_until
        return is_answered and self.rounds.number < self.rounds.rounds


class RetryingCaller(Caller):
    """Retries refused work when the answer says so, up to so many times.

    It sends which attempt it is, or 0 with every request: a caller that does not count its attempts
    cannot mark new work either.
    """

    def __init__(
        self,
        world: World,
        member: Member,
        group: str,
        rounds: RoundCount,
        *,
        retries: int,
        says_attempt: bool,
    ) -> None:
        super().__init__(world, member, group, rounds)
        self._retries = retries
        self._says_attempt = says_attempt

    def take_on(self, request: Request) -> None:
        # 0: a caller that does not say which attempt it is.
        self._try(request if self._says_attempt else request._replace(attempt=0), 0)

    def make_request(self, messages: int, size: int) -> Request:
        request = super().make_request(messages, size)
        return request if self._says_attempt else request._replace(attempt=0)

    def _try(self, request: Request, retried: int) -> None:
        if retried and not self._may_ask:
            return
        answer = self.ask(request)
        if answer.granted or retried == self._retries:
            return
        if self._says_attempt:
            request = request._replace(attempt=request.attempt + 1)
        due = self.world.now + answer.retry_after_ms * NS_PER_MS
        self.world.at(due, self._try, request, retried + 1)


class WaitingCaller(Caller):
    """Queues what is refused, asks again at the told time, gives up at the round's end.

    At depth 0 a bucket grants one request on debt: to a caller that gives up at once, whatever comes
    while the debt is paid is lost, though the rate would have served it within the round.
    """

    def __init__(self, world: World, member: Member, group: str, rounds: RoundCount) -> None:
        super().__init__(world, member, group, rounds)
        self._queue: deque[Request] = deque()
        self._queued_in = 0
        self._is_waiting = False

    def take_on(self, request: Request) -> None:
        self._give_up_old()
        answer = self.ask(request)
        if not answer.granted:
            self._queue.append(request._replace(attempt=2))
            self._wait(answer)

    def _again(self) -> None:
        self._is_waiting = False
        self._give_up_old()
        if not self._may_ask:
            return
        while self._queue:
            answer = self.ask(self._queue[0])
            if not answer.granted:
                self._wait(answer)
                return
            self._queue.popleft()

    def _wait(self, answer: Decision) -> None:
        if not self._is_waiting:
            self._is_waiting = True
            self.world.at(self.world.now + answer.retry_after_ms * NS_PER_MS, self._again)

    def _give_up_old(self) -> None:
        if self._queued_in != self.rounds.number:
            self._queued_in = self.rounds.number
            self._queue.clear()


class HoldingCaller(Caller):
    """Asks for one thing at a time and says what it holds back; gives up after a round."""

    def __init__(self, world: World, member: Member, group: str, rounds: RoundCount) -> None:
        super().__init__(world, member, group, rounds)
        #: (since when, request), oldest first; the first is the one asked for.
        self._queue: deque[tuple[int, Request]] = deque()
        self._held = [0, 0]
        self._is_waiting = False

    def take_on(self, request: Request) -> None:
        self._queue.append((self.world.now, request))
        self._held[0] += request.messages
        self._held[1] += request.bytes
        if not self._is_waiting:
            self._serve()

    def _serve(self) -> None:
        self._is_waiting = False
        if not self._may_ask:
            return
        oldest = self.world.now - self.rounds.round_ns
        while self._queue:
            since, request = self._queue[0]
            self._held[0] -= request.messages
            self._held[1] -= request.bytes
            if since >= oldest:
                answer = self.ask(request._replace(held=Pair(*self._held)))
                if not answer.granted:
                    self._held[0] += request.messages
                    self._held[1] += request.bytes
                    self._queue[0] = (since, request._replace(attempt=request.attempt + 1))
                    self._is_waiting = True
                    due = self.world.now + answer.retry_after_ms * NS_PER_MS
                    self.world.at(due, self._serve)
                    return
            self._queue.popleft()


class LeasingCaller(Caller):
    """Takes what it can get of each request, and does without the rest."""

    def make_request(self, messages: int, size: int) -> Request:
        return super().make_request(messages, size)._replace(partial=True)
