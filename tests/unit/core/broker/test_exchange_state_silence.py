"""How far the exchange is believed once it is gone: silence, holding, cut off, coming back, standing still.

Not covered: several brokers (tests/simulation), what each mode grants (test_sharing.py).
"""

from rgd.core.broker.effects import Publish
from rgd.core.broker.mode import Mode
from rgd.core.exchange.messages import Hello
from tests.unit.core.broker.conftest import Seat
from tests.unit.core.broker.desk import ME, Desk, reports
from tests.unit.core.values import report, usage

# Silence.


def test_our_shares_are_held_no_longer_than_until_the_others_give_us_up(seat: Seat) -> None:
    desk = seat(isolation_hold_rounds=10, stored_peers=frozenset({"b2"}))
    desk.go_live()
    desk.wake(3000)
    desk.read_back(3005)
    desk.wake(4000)
    for now in range(4250, 6000, 250):
        desk.wake(now)
    assert desk.believes() is Mode.HOLDING
    # The last word that reached the others is the one of 3005.
    desk.wake(6104)
    assert desk.believes() is Mode.HOLDING
    desk.wake(6105)
    assert desk.believes() is Mode.EQUAL


def test_while_isolated_it_sends_four_times_a_round(live: Desk) -> None:
    live.wake(3000)
    live.wake(4000)
    live.said.clear()
    live.wake(4100)
    assert live.believes() is Mode.HOLDING
    spoken = []
    while live.wake_at is not None and live.wake_at <= 5000:
        now = live.wake_at
        spoken += [now for _ in reports(live.wake(now))]
    assert spoken == [4250, 4500, 4750, 5000]
    live.read_back(5005)
    assert live.believes() is Mode.LIVE
    # The word that was due is said; then it is one a round again.
    live.run(5005, 5999)
    assert live.rests_until(6000)


# Coming back.


def cut_off(desk: Desk, until: float = 6500) -> None:
    """Leave it without a word until it has acted as told, with one word on its way at last."""
    for now in range(3000, int(until), 500):
        desk.wake(now)
    assert desk.believes() is Mode.EQUAL
    desk.said = desk.said[-1:]


def test_back_later_reports_received_before_are_no_answer(live: Desk) -> None:
    live.hear(report("b2", usage(500)), 2100)
    cut_off(live)
    live.read_back(6500)
    live.hear(report("b2", rows_hash=99, sequence=2), 6600)
    assert live.believes() is Mode.REJOINING
    live.hear(report("b2", usage(500), sequence=3, full=True), 6700)
    assert live.believes() is Mode.LIVE


def test_reached_at_last_the_stored_peers_are_waited_for_by_name(seat: Seat) -> None:
    desk = seat(stored_peers=frozenset({"b2", "b3"}))
    desk.start()
    for now in (1000, 2000, 3000):
        desk.wake(now)
    desk.hear(Hello(ME), 3500)
    desk.hear(report("b2"), 3510)
    assert desk.believes() is Mode.REJOINING
    desk.hear(report("b3"), 3520)
    assert desk.believes() is Mode.LIVE


def test_suspended_before_the_peers_answered_it_asks_and_waits_again(live: Desk) -> None:
    live.hear(report("b2", usage(500)), 2100)
    cut_off(live)
    live.read_back(6500)
    live.read_back(6505)
    assert live.believes() is Mode.REJOINING
    effects = live.wake(9000)
    assert live.believes() is Mode.REJOINING
    assert Publish(Hello(ME)) in effects
    live.hear(report("b2", usage(500), sequence=3, full=True), 9300)
    assert live.believes() is Mode.LIVE
