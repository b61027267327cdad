"""How far the exchange is believed: the start, silence, holding, being cut off, coming back.

Each row of "The life of a member" (docs/architecture.md) as one broker lives it. Not covered: several of them
(tests/simulation), what each mode grants (test_sharing.py).
"""

from dataclasses import replace

from rgd.core.broker.effects import Publish
from rgd.core.broker.mode import Mode
from rgd.core.exchange.messages import Hello
from tests.unit.core.broker.conftest import Seat
from tests.unit.core.broker.desk import ME, Desk
from tests.unit.core.values import report, usage

# The start, reached.


def test_a_broker_that_was_suspended_as_it_started_is_not_woken_over_and_over(desk: Desk) -> None:
    desk.start()
    desk.read_back(5)
    desk.wake(1000)
    desk.read_back(1005)
    # Its last message before the start would have ended; it counts on nobody, so it stays on its floor.
    desk.wake(2000)
    for _ in range(20):
        desk.wake(3100)
    assert desk.wake_at is not None
    assert desk.wake_at > 3100
    assert desk.believes() is Mode.STARTING
    desk.read_back(3105)
    desk.wake(3105)
    assert desk.believes() is Mode.LIVE


def test_suspended_as_it_started_a_broker_asks_and_waits_again(desk: Desk) -> None:
    desk.start()
    desk.read_back(5)
    effects = desk.wake(10_000)
    assert desk.believes() is Mode.STARTING
    assert Publish(Hello(ME)) in effects
    desk.run(10_000, 11_999)
    assert desk.believes() is Mode.STARTING
    desk.run(11_999, 12_005)
    assert desk.believes() is Mode.LIVE


def believed_from(desk: Desk, since: float) -> float:
    """When a starting broker believes the map, if it is read back and hears nothing more."""
    now = since
    while desk.believes() is Mode.STARTING:
        assert desk.wake_at is not None
        now = max(now, desk.wake_at)
        desk.wake(now)
        desk.read_back(now)
    return now


def test_peers_are_not_trusted_before_a_duplicate_name_would_have_answered(seat: Seat) -> None:
    desk = seat(expected_brokers=2)
    desk.start()
    desk.read_back(5)
    desk.hear(report("b2", usage(5), full=True), 10)
    # Half a round, and as long as a word may take.
    assert believed_from(desk, 10) == 605


def test_all_that_an_answer_counts_are_waited_for(desk: Desk) -> None:
    desk.start()
    desk.read_back(5)
    desk.hear(replace(report("b2", full=True), members=3), 10)
    desk.run(10, 700)
    assert desk.believes() is Mode.STARTING
    desk.hear(replace(report("b3", full=True), members=3), 710)
    # Nobody else needs to be told of: the start is over before two rounds.
    assert desk.believes() is Mode.LIVE
