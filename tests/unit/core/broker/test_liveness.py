"""A busy broker sends what is due before it goes on working, so that peers do not take it for dead.

Work is counted in pieces. Not covered: what a heartbeat or an answer says (test_broker.py), what peers
do about one that is silent (test_membership.py).
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest

from rgd.core.bounds import BOUNDS, Bounds
from rgd.core.broker.effects import Effect
from rgd.core.broker.publisher import HEARTBEAT_ROUNDS_ENDING
from rgd.core.exchange.messages import Ask, Sender
from rgd.core.units import Nanos
from tests.unit.core.broker.desk import ME, Desk, reports
from tests.unit.core.broker.test_broker import ask_of_many
from tests.unit.core.values import ms

#: Most rows of a piece here.
PIECE = 64

#: A peer whose questions are answered at once.
PEER = Sender("b0", ms(0) ^ ME.incarnation)


@pytest.fixture
def live(seat: Callable[..., Desk]) -> Desk:
    """A live broker of small pieces."""
    made = seat(bounds=Bounds(rounds=replace(BOUNDS.rounds, piece_rows=PIECE)))
    made.go_live()
    return made


def counting(done: Counter[str], work: Callable[[Nanos], None]) -> Callable[[Nanos], None]:
    def counted(now: Nanos) -> None:
        done["pieces"] += 1
        work(now)

    return counted


def work_done(live: Desk) -> Counter[str]:
    """Counts the pieces of work that the broker does from now on."""
    done = Counter[str]()
    broker = live.broker
    for owner, method in (
        (broker.rounds, "step"),
        (broker.sharing, "work"),
        (broker.limiter, "work"),
    ):
        setattr(owner, method, counting(done, getattr(owner, method)))
    return done


def test_a_message_that_is_due_is_sent_before_the_next_piece_of_work(
    live: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    live.run(2005, 2499)
    ask_of_many(live, 2500, count=20 * PIECE)
    live.run(2500, 2999)
    live.wake(3000)
    done, sent_after = work_done(live), []
    report = live.broker.publisher.report

    def counted(*args: Any, **changes: Any) -> Effect:
        sent_after.append(done["pieces"])
        return report(*args, **changes)

    monkeypatch.setattr(live.broker.publisher, "report", counted)
    live.hear(Ask(PEER, "b1", full=False), 3001)
    before = done["pieces"]
    (heartbeat,) = reports(live.wake(3110))
    # Its hash is of what is still to be sent, so nobody compares it.
    assert (len(heartbeat.rows), heartbeat.more) == (0, True)
    assert sent_after == [before]
    assert live.broker.rounds.is_ending
    assert done["pieces"] > before


def test_a_broker_whose_rounds_end_slowly_reports_in_time(live: Desk) -> None:
    live.run(2005, 2499)
    ask_of_many(live, 2500, count=20 * PIECE)
    live.run(2500, 2999)
    # A machine that takes a fifth of a round for a piece.
    sent = [at for at in range(3000, 20_000, 200) if reports(live.wake(at))]
    gaps = [later - at for at, later in pairwise([2999, *sent, 20_000])]
    assert max(gaps) <= 1000 * HEARTBEAT_ROUNDS_ENDING + 200
