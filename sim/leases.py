"""An hour of callers that lease and crash at random, against the daemon's own core, under a virtual clock.

`python -m sim.leases --callers 1000 --seconds 3600 --seed 1 --json`

Laws, checked after every event:

- What was taken of the group less what was given back is at most its depth + the integral of its share
  + one request.
- The group's counters have what leases took when they took it, and what went back.
- Nothing is granted twice: what callers spent, hold and lost is what was taken less what was given back.

Callers spend at a rate of their own, which is not always what they say they want. They crash (and hold what they
had for ever), lose answers on the way, repeat renewals and releases, and come back later. The share moves all the
time. One caller asks for every message without a lease.
"""

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from heapq import heappop, heappush
from itertools import count
from random import Random
from typing import Final

from rgd.core.buckets.bucket import PICO
from rgd.core.buckets.decision import Decision, Name, Request
from rgd.core.buckets.level import BucketSettings, GroupState
from rgd.core.buckets.limiter import Limiter
from rgd.core.leases.leases import Leases
from rgd.core.leases.model import LeaseAnswer, LeaseRequest, Renewal, UnknownLease
from rgd.core.policies.model import Group, GroupKey, Limit, Rates
from rgd.core.policies.snapshot import PolicySnapshot
from rgd.core.units import MILLI, NS_PER_MS, NS_PER_S, Kind, Nanos, Pair
from sim.exiting import exit_with

BURST_NS: Final = 250 * NS_PER_MS
SETTINGS: Final = BucketSettings(BURST_NS, request_max_ms=10_000, round_ms=1000)
KEY: Final = GroupKey("gold", Kind.PUBLISH)
NAME: Final[Name] = (Kind.PUBLISH, "gold", None, None, None)

#: Parts of renewals after which a caller crashes, or does not get the answer; of releases that are repeated.
CRASH: Final = 0.003
LOST: Final = 0.01
REPEATED: Final = 0.2
#: The part of lives that end by a release.
RELEASED: Final = 0.003
#: The share moves once in so long, between these parts of the quota.
SHARE_EVERY_NS: Final = 7 * NS_PER_S
SHARES: Final = (0.2, 1.0)
TTL_NS: Final = 5 * NS_PER_S


class LawBroken(AssertionError):
    """A law of leases does not hold."""


@dataclass
class Result:
    """What a run counted, in messages."""

    callers: int
    seconds: float
    seed: int
    taken: int = 0
    returned: int = 0
    spent: int = 0
    #: Held by callers that crashed, or in answers that got lost.
    lost: int = 0
    renewals: int = 0
    crashes: int = 0
    #: Leases given, and the most there were at a time.
    leases: int = 0
    leases_most: int = 0
    #: What the share would have given, and what the law left unused at the tightest moment.
    share_total: float = 0.0
    room_least: float = float("inf")

    @property
    def utilisation(self) -> float:
        """The part of the share that was spent."""
        return self.spent / self.share_total if self.share_total else 0.0


class Hour:
    """One run: a group, its leases, and everybody who asks."""

    def __init__(self, callers: int, seconds: float, seed: int) -> None:
        self.result = Result(callers, seconds, seed)
        self.dice = Random(seed)
        self.now = 0
        self._end = round(seconds * NS_PER_S)
        self._things: list[tuple[int, int, Callable[[], None]]] = []
        self._order = count()
        #: Callers have two messages a second each, on average.
        self.quota = 2 * callers * MILLI
        self._share = self.quota
        self.limiter = Limiter(SETTINGS, lambda *_: (0, Rates(self._share)))
        group = Group("gold", Limit(Rates(self.quota)))
        self.limiter.set_policies(PolicySnapshot({"gold": group}), Nanos(0))
        self.leases = Leases(self.limiter)
        # The group is in use from the beginning.
        self.limiter.acquire(Request(group="gold", messages=0), Nanos(0))
        #: Tokens that the law allows, but for one request; and since when the share is as it is.
        self._allowed, self._since = self.quota * BURST_NS, 0
        self.held = 0
        self._callers = [_Caller(self, f"{number}") for number in range(callers)]
        self._ids = count()

    def run(self) -> Result:
        """Run to the end; raises LawBroken."""
        for caller in self._callers:
            self.after(self.dice.randrange(NS_PER_S), caller.begin)
        self.after(0, self._move_share)
        self.after(0, self._ask_plainly)
        while self._things and self._things[0][0] <= self._end:
            self.now, _, thing = heappop(self._things)
            thing()
            self._check()
        self.result.share_total = (self._allowed_now() - self.quota * BURST_NS) / PICO
        return self.result

    def after(self, ns: int, thing: Callable[[], None]) -> None:
        """Have something happen later."""
        heappush(self._things, (self.now + ns, next(self._order), thing))

    def new_id(self) -> str:
        """An id of a lease that nobody had."""
        return f"lease-{next(self._ids)}"

    def state(self) -> GroupState:
        """The group's level."""
        state = self.limiter.state(KEY)
        if state is None:
            raise LawBroken("the group is not in use")
        return state

    def _move_share(self) -> None:
        self._allowed, self._since = self._allowed_now(), self.now
        self._share = round(self.quota * self.dice.uniform(*SHARES))
        self.limiter.set_share(0, Rates(self._share), Nanos(self.now))
        self.after(self.dice.randrange(SHARE_EVERY_NS), self._move_share)

    def _ask_plainly(self) -> None:
        answer = self.limiter.acquire(Request(group="gold"), Nanos(self.now))
        if isinstance(answer, Decision) and answer.granted:
            self.result.taken += 1
            self.result.spent += 1
        self.after(self.dice.randrange(NS_PER_S), self._ask_plainly)

    def _allowed_now(self) -> int:
        return self._allowed + self._share * (self.now - self._since)

    def _check(self) -> None:
        result, counters = self.result, self.state().counters
        net = result.taken - result.returned
        room = self._allowed_now() / PICO + 1 - net
        if room < 0:
            raise LawBroken(f"at {self.now} ns {-room} messages more were taken than flowed")
        if (counters.messages, counters.returned_messages) != (result.taken, result.returned):
            raise LawBroken(f"at {self.now} ns the counters have {counters.admitted}")
        if result.spent + self.held + result.lost != net:
            raise LawBroken(f"at {self.now} ns callers have {self.held}, of {net} net")
        result.room_least = min(result.room_least, room)
        result.leases_most = max(result.leases_most, len(self.leases.table))


class _Caller:
    """One caller; lives many times."""

    def __init__(self, hour: Hour, name: str) -> None:
        self._hour = hour
        self._holder = name
        self._lease_id = ""
        self._left = 0
        self._wants = self._spends = 0.0
        self._spent_at = 0
        #: Work that came and was not a whole message yet.
        self._owed = 0.0

    def begin(self) -> None:
        """Ask for a lease; later again where there is none."""
        hour, dice = self._hour, self._hour.dice
        self._lease_id = hour.new_id()
        self._wants = dice.expovariate(1 / 3)
        self._spends = self._wants * dice.choice((0.0, 0.3, 1.0, 1.0, 1.0, 2.0))
        self._spent_at, self._owed = hour.now, 0.0
        wants = Pair(round(self._wants * MILLI))
        request = LeaseRequest(NAME, wants, TTL_NS, holder=self._holder)
        answer = hour.leases.open(request, self._lease_id, Nanos(hour.now))
        if isinstance(answer, LeaseAnswer):
            hour.result.leases += 1
            self._receive(answer)
        else:
            hour.after(NS_PER_S // 2 + dice.randrange(NS_PER_S), self.begin)

    def renew(self) -> None:
        """Renew; or crash, or release, as the dice say."""
        hour, dice = self._hour, self._hour.dice
        self._spend()
        if dice.random() < CRASH:
            self._crash()
            return
        if dice.random() < RELEASED:
            self._release()
            return
        hour.result.renewals += 1
        try:
            answer = hour.leases.renew(self._lease_id, Renewal(Pair(self._left)), Nanos(hour.now))
        except UnknownLease:
            self._crash()
            return
        if not isinstance(answer, LeaseAnswer):
            raise LawBroken(f"a renewal was answered with {answer}")
        self._receive(answer)

    def _receive(self, answer: LeaseAnswer) -> None:
        hour, messages = self._hour, answer.messages or 0
        hour.result.taken += messages
        if hour.dice.random() < LOST:
            # The caller notices after its timeout, and renews.
            hour.result.lost += messages
        else:
            self._left += messages
            hour.held += messages
        wait_ns = max(1, answer.refresh_in_ms) * NS_PER_MS
        hour.after(wait_ns + hour.dice.randrange(wait_ns // 4 + 1), self.renew)

    def _spend(self) -> None:
        hour = self._hour
        self._owed += self._spends * (hour.now - self._spent_at) / NS_PER_S
        self._spent_at = hour.now
        spent = min(self._left, int(self._owed))
        # What could not be sent in time is given up.
        self._owed = self._owed - spent if spent < self._left else 0.0
        self._left -= spent
        hour.held -= spent
        hour.result.spent += spent

    def _release(self) -> None:
        hour = self._hour
        claimed = self._left
        back = hour.leases.release(self._lease_id, Pair(claimed), Nanos(hour.now))
        if back.messages != claimed:
            raise LawBroken(f"{claimed} were released and {back.messages} went back")
        hour.held -= claimed
        hour.result.returned += back.messages
        self._left = 0
        if hour.dice.random() < REPEATED:
            self._repeat(claimed)
        hour.after(hour.dice.randrange(10 * NS_PER_S), self.begin)

    def _repeat(self, claimed: int) -> None:
        """A release whose answer got lost is sent again; and a renewal that was late."""
        leases, now = self._hour.leases, Nanos(self._hour.now)
        calls: tuple[Callable[[], object], ...] = (
            lambda: leases.release(self._lease_id, Pair(claimed), now),
            lambda: leases.renew(self._lease_id, Renewal(Pair(claimed)), now),
        )
        for call in calls:
            try:
                told = call()
            except UnknownLease:
                continue
            raise LawBroken(f"a lease that had ended answered {told}")

    def _crash(self) -> None:
        hour = self._hour
        hour.result.crashes += 1
        hour.result.lost += self._left
        hour.held -= self._left
        self._left = 0
        hour.after(hour.dice.randrange(20 * NS_PER_S), self.begin)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; the exit code: 0 done, 1 a law was broken, 2 asked wrongly."""
    parser = argparse.ArgumentParser(prog="python -m sim.leases", description=__doc__)
    parser.add_argument("--callers", type=int, default=1000)
    parser.add_argument("--seconds", type=float, default=3600.0, help="of simulated time")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(arguments)
    if options.callers < 1 or options.seconds <= 0:
        parser.error("expected at least one caller and some time")
    try:
        result = Hour(options.callers, options.seconds, options.seed).run()
    except LawBroken as broken:
        print(f"sim: {broken}", file=sys.stderr)
        return 1
    line = asdict(result) | {"utilisation": result.utilisation}
    print(json.dumps(line) if options.json else "\n".join(f"{k}: {v}" for k, v in line.items()))
    return 0


if __name__ == "__main__":
    exit_with(main)
