"""The demo's loads after a standstill, and its verdict over what they counted: parts, the first fair round, rounds that say nothing.

Not covered: real loads and daemons (tests/e2e/test_demo.py).
"""

from typing import cast

from rgd.adapters.http.client import DaemonClient
from rgd.app.demo.load import ASKED_MAX, Load
from rgd.app.demo.verdict import Tally, judge

QUOTA = 900.0
WANTED = 900
ROUNDS = 8
BEGIN_MS = 60_000


def tallies(admitted: list[int], late: dict[int, int] | None = None) -> dict[str, Tally]:
    """Three loads of which each wants the quota; one was admitted so much, by round, and its ticks were late.

    Args:
        admitted: of the first load in each round; the others have their third.
        late: when a tick of it was due, in milliseconds of the phase, and when it began.
    """
    first, *others = (Tally() for _ in range(3))
    first.late += [(BEGIN_MS + due, BEGIN_MS + began) for due, began in (late or {}).items()]
    for number, count in enumerate(admitted):
        at_ms = BEGIN_MS + number * 1000
        first.add(at_ms, at_ms, WANTED, count)
        for other in others:
            other.add(at_ms, at_ms, WANTED, 300)
    return {str(place): tally for place, tally in enumerate((first, *others))}


def test_what_it_catches_up_on_in_the_next_round_is_not_judged_either() -> None:
    admitted = [300, 300, 300, 150, 400, 300, 300, 300]
    late = tallies(admitted, {3400: 3900})
    verdict = judge("any", QUOTA, late, begin_ms=BEGIN_MS, rounds=ROUNDS)
    assert (verdict.rounds, verdict.ok, verdict.unjudged) == (0, True, 2)


def test_a_load_that_is_late_at_first_is_judged_all_the_same() -> None:
    late = tallies([200] * 8, {100: 300})
    verdict = judge("any", QUOTA, late, begin_ms=BEGIN_MS, rounds=ROUNDS)
    assert (verdict.rounds, verdict.ok, verdict.unjudged) == (None, False, 0)


async def test_after_a_standstill_a_load_asks_for_as_much_as_one_array_may_have() -> None:
    asked: list[int] = []

    class Client:
        async def acquire_all(self, requests: list[object]) -> list[dict[str, object]]:
            asked.append(len(requests))
            return [{"granted": True} for _ in requests]

    load = Load(seed=1)
    load.wanted_per_s = 1000.0
    await load._tick(cast("DaemonClient", Client()), now_s=60.0, elapsed_s=60.0)
    assert asked == [ASKED_MAX]
