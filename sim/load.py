"""Callers that ask for so much a second, evenly spaced, and count what they got.

A refused request is given up unless `retries` says otherwise; a retry waits as
long as it was told and says which attempt it is.
"""

from dataclasses import dataclass, field

from rgd.core.buckets.decision import Request
from rgd.core.units import NS_PER_MS, NS_PER_S
from sim.member import Member
from sim.world import World


@dataclass(slots=True)
class Load:
    """One stream of requests to one member."""

    world: World
    member: Member
    request: Request
    rate_per_s: float
    retries: int = 0
    #: Messages asked for (each once) and granted, and when each grant was.
    wanted: int = 0
    admitted: int = 0
    grants: list[tuple[int, int]] = field(default_factory=list)
    _is_waiting: bool = False

    def start(self) -> "Load":
        """Begin to ask."""
        self._next()
        return self

    def set_rate(self, rate_per_s: float) -> None:
        """Ask for another rate from now on."""
        self.rate_per_s = rate_per_s
        self._next()

    def admitted_between(self, begin_ns: int, end_ns: int) -> int:
        """Messages granted from `begin_ns` up to but not at `end_ns`."""
        return sum(count for at, count in self.grants if begin_ns <= at < end_ns)

    def _next(self) -> None:
        if self.rate_per_s > 0 and not self._is_waiting:
            self._is_waiting = True
            gap_ns = round(NS_PER_S / self.rate_per_s)
            self.world.at(self.world.now + gap_ns, self._ask_new)

    def _ask_new(self) -> None:
        self._is_waiting = False
        if self.rate_per_s == 0:
            return
        self.wanted += self.request.messages
        self._ask(self.request)
        self._next()

    def _ask(self, request: Request) -> None:
        if self.member.halted is not None or self.world.now < self.member.frozen_until:
            # Nobody answers, and the caller gives up.
            return
        answer = self.world.acquire(self.member, request)
        if answer.granted:
            self.admitted += answer.messages
            self.grants.append((self.world.now, answer.messages))
        elif request.attempt <= self.retries:
            again = request._replace(attempt=request.attempt + 1)
            due = self.world.now + answer.retry_after_ms * NS_PER_MS
            self.world.at(due, lambda: self._ask(again))
