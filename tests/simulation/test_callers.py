"""What callers do with a refusal, and that they count what they wanted and got, each once.

Not covered: what the core makes of attempts and of work held back (tests/unit/core/demand).
"""

from collections.abc import Callable, Iterator

import pytest

from rgd.core.buckets.decision import Answer, Decision, Request
from rgd.core.units import NS_PER_MS, NS_PER_S, Nanos
from sim.arrivals import Arrival
from sim.caller import (
    Caller,
    HoldingCaller,
    LeasingCaller,
    RetryingCaller,
    RoundCount,
    WaitingCaller,
)
from sim.world import World
from tests.simulation.worlds import SETTINGS, gold_snapshot

#: What a refusal says.
WAIT_MS = 300


class Given:
    """Arrivals as a list."""

    def __init__(self, *arrivals: Arrival) -> None:
        self._arrivals = arrivals

    def stream(self, end_ns: int) -> Iterator[Arrival]:
        return iter(self._arrivals)


class Gate:
    """Grants from a moment on, and notes what was asked."""

    def __init__(self, opens_ms: int) -> None:
        self.opens_ms = opens_ms
        self.asked: list[tuple[int, Request]] = []

    def acquire(self, request: Request, now: Nanos) -> Answer:
        self.asked.append((now // NS_PER_MS, request))
        if now < self.opens_ms * NS_PER_MS:
            return Decision(granted=False, messages=0, bytes=0, retry_after_ms=WAIT_MS)
        return Decision(granted=True, messages=request.messages, bytes=request.bytes)


class Scene:
    """One member whose gate is ours, and rounds of a second."""

    def __init__(
        self, make: Callable[..., Caller], *arrivals: Arrival, opens_ms: int, **options: object
    ) -> None:
        self.world = World()
        self.member = self.world.add(SETTINGS, gold_snapshot(100))
        self.gate = Gate(opens_ms)
        self.member.brain.limiter = self.gate  # type: ignore[misc]
        self.world.start(self.member)
        self.rounds = RoundCount(4, NS_PER_S)
        for number in range(1, 5):
            self.world.at(number * NS_PER_S, setattr, self.rounds, "number", number)
        self.caller = make(self.world, self.member, "gold", self.rounds, **options)
        self.caller.start(Given(*arrivals))

    def run(self) -> "Scene":
        self.world.run_until(4 * NS_PER_S)
        return self

    @property
    def asked_ms(self) -> list[int]:
        return [moment for moment, _ in self.gate.asked]

    @property
    def attempts(self) -> list[int]:
        return [request.attempt for _, request in self.gate.asked]


ONE = (100 * NS_PER_MS, 3, 30)


def test_who_gives_up_asks_once() -> None:
    scene = Scene(Caller, ONE, opens_ms=9999).run()
    assert scene.asked_ms == [100]
    assert scene.caller.wanted_messages == [3, 0, 0, 0]
    assert scene.caller.wanted_bytes == [30, 0, 0, 0]
    assert not any(scene.caller.admitted_messages)


def test_what_is_granted_counts_in_the_round_in_which_it_is() -> None:
    scene = Scene(RetryingCaller, ONE, opens_ms=1200, retries=9, says_attempt=True).run()
    assert scene.asked_ms == [100, 400, 700, 1000, 1300]
    assert scene.attempts == [1, 2, 3, 4, 5]
    assert scene.caller.wanted_messages == [3, 0, 0, 0]
    assert scene.caller.admitted_messages == [0, 3, 0, 0]
    assert scene.caller.admitted_bytes == [0, 30, 0, 0]


def test_a_caller_that_does_not_say_its_attempt_sends_0_with_every_request() -> None:
    scene = Scene(RetryingCaller, ONE, opens_ms=9999, retries=2, says_attempt=False).run()
    assert scene.asked_ms == [100, 400, 700]
    assert scene.attempts == [0, 0, 0]


def test_who_waits_asks_for_the_first_in_line_and_gives_up_at_the_rounds_end() -> None:
    scene = Scene(WaitingCaller, ONE, (200 * NS_PER_MS, 5, 0), opens_ms=600).run()
    # Each once when it comes; then the line, until it is empty.
    assert scene.asked_ms == [100, 200, 400, 700, 700]
    assert scene.attempts == [1, 1, 2, 2, 2]
    assert scene.caller.admitted_messages == [8, 0, 0, 0]
    late = Scene(WaitingCaller, ONE, (1100 * NS_PER_MS, 5, 0), opens_ms=1050).run()
    assert late.asked_ms == [100, 400, 700, 1100]
    assert late.caller.admitted_messages == [0, 5, 0, 0]


def test_who_holds_back_says_how_much_and_asks_for_one_thing_at_a_time() -> None:
    scene = Scene(
        HoldingCaller, ONE, (200 * NS_PER_MS, 5, 7), (250 * NS_PER_MS, 1, 1), opens_ms=600
    ).run()
    assert scene.asked_ms == [100, 400, 700, 700, 700]
    held = [tuple(request.held) for _, request in scene.gate.asked]
    assert held == [(0, 0), (6, 8), (6, 8), (1, 1), (0, 0)]
    assert scene.caller.admitted_messages == [9, 0, 0, 0]


def test_what_was_held_back_for_a_round_is_given_up() -> None:
    scene = Scene(HoldingCaller, ONE, (900 * NS_PER_MS, 5, 0), opens_ms=1150).run()
    assert scene.caller.wanted_messages == [8, 0, 0, 0]
    assert scene.caller.admitted_messages == [0, 5, 0, 0]


def test_who_leases_takes_a_part() -> None:
    scene = Scene(LeasingCaller, ONE, opens_ms=0).run()
    assert scene.gate.asked[0][1].partial


@pytest.mark.parametrize("make", [Caller, WaitingCaller, HoldingCaller])
def test_nobody_asks_a_broker_that_is_down(make: Callable[..., Caller]) -> None:
    scene = Scene(make, ONE, (1100 * NS_PER_MS, 5, 0), opens_ms=9999)
    scene.world.at(NS_PER_S // 5, scene.world.crash, scene.member)
    scene.run()
    assert scene.asked_ms == [100]
    assert scene.caller.wanted_messages == [3, 0, 0, 0]


def test_at_a_frozen_broker_everything_comes_at_once_when_it_thaws() -> None:
    scene = Scene(Caller, ONE, (200 * NS_PER_MS, 5, 0), (900 * NS_PER_MS, 1, 0), opens_ms=0)
    scene.world.freeze(scene.member, 800 * NS_PER_MS)
    scene.run()
    assert scene.asked_ms == [800, 800, 900]
