"""How far the exchange is believed: the start, silence, holding, being cut off, coming back.

Each row of design 3's last table as one broker lives it. Not covered: several of them
(tests/simulation), what each mode grants (test_sharing.py).
"""

import pytest

from rgd.core.broker.effects import Alarm, AlarmCode, Publish
from rgd.core.broker.settings import OnIsolation
from rgd.core.broker.sharing import Mode
from rgd.core.exchange.messages import Goodbye, Hello, Speaker
from rgd.core.policies.model import Rates
from rgd.core.units import Dimension
from tests.unit.core.broker.conftest import Seat
from tests.unit.core.broker.desk import ME, Desk, gold
from tests.unit.core.values import key, ms, rates, report, usage

ISOLATED = Alarm(AlarmCode.ISOLATED)
REJOINED = Alarm(AlarmCode.REJOINED)


def burst(desk: Desk, at: float) -> int:
    """Messages in the group's bucket."""
    state = desk.broker.limiter.state(key())
    assert state is not None
    return state.remaining(Dimension.MESSAGES, ms(at))


# The start, reached.


def test_starting_the_floor_is_granted_without_a_burst(desk: Desk) -> None:
    desk.change(gold(10_000), at=0)
    assert desk.share() == rates(100)
    desk.start()
    assert desk.believes() is Mode.STARTING
    assert (burst(desk, 0), burst(desk, 900)) == (0, 0)
    assert desk.ask(10, at=900)
    assert not desk.ask(1, at=999)
    assert desk.ask(1, at=1000)


def test_a_broker_that_counts_on_nobody_waits_two_rounds_after_it_reached_the_exchange(
    desk: Desk,
) -> None:
    desk.share()
    desk.start()
    desk.hear(Hello(ME), 300)
    assert not desk.is_past_start()
    desk.run(300, 2299)
    assert (desk.believes(), desk.wake_at) == (Mode.STARTING, 2300)
    assert desk.wake(2300) == ()
    assert desk.believes() is Mode.LIVE
    assert desk.is_past_start()
    # The raise settles, and the bucket, empty now, may fill.
    assert desk.share() == rates(1)
    assert desk.wake_at is not None
    desk.wake(2400)
    assert desk.share() == rates(100)
    assert burst(desk, 3000) == 25


def test_shares_are_believed_when_all_that_are_expected_have_told_everything(seat: Seat) -> None:
    desk = seat(expected_brokers=3)
    desk.start()
    desk.read_back(5)
    desk.hear(report("b2", usage(5), full=True), 10)
    assert desk.believes() is Mode.STARTING
    desk.hear(report("b3", rows_hash=99), 20)
    assert desk.believes() is Mode.STARTING
    desk.hear(report("b3", usage(5), sequence=2, full=True), 30)
    assert desk.believes() is Mode.LIVE


def test_stored_peers_are_waited_for_by_name(seat: Seat) -> None:
    desk = seat(stored_peers=frozenset({"b2", "b3"}))
    desk.start()
    desk.read_back(5)
    desk.hear(report("b2"), 10)
    desk.hear(report("b4"), 20)
    assert desk.believes() is Mode.STARTING
    desk.hear(report("b3"), 30)
    assert desk.believes() is Mode.LIVE


def test_whoever_is_there_is_waited_for_too(seat: Seat) -> None:
    desk = seat(expected_brokers=2)
    desk.start()
    desk.read_back(5)
    desk.hear(report("b3", rows_hash=99), 10)
    desk.hear(report("b2"), 20)
    assert desk.believes() is Mode.STARTING
    desk.hear(Goodbye(Speaker("b3", 1)), 30)
    assert desk.believes() is Mode.LIVE


def test_the_hello_of_one_that_starts_is_all_it_has_to_tell(seat: Seat) -> None:
    desk = seat(expected_brokers=2)
    desk.start()
    desk.read_back(5)
    desk.hear(Hello(Speaker("b2", 1)), 10)
    assert desk.believes() is Mode.LIVE


def test_the_hello_of_one_that_has_told_something_is_not(seat: Seat) -> None:
    desk = seat(expected_brokers=2)
    desk.start()
    desk.read_back(5)
    desk.hear(report("b2", rows_hash=99), 10)
    desk.hear(Hello(Speaker("b2", 1)), 20)
    desk.hear(Hello(Speaker("b2", 2)), 20)
    assert desk.believes() is Mode.STARTING


def test_what_a_restarted_peer_told_before_is_no_answer(seat: Seat) -> None:
    desk = seat(expected_brokers=3)
    desk.start()
    desk.read_back(5)
    desk.hear(report("b2"), 10)
    desk.hear(Hello(Speaker("b2", 2)), 20)
    desk.hear(report("b2", incarnation=2, rows_hash=99), 120)
    desk.hear(report("b3"), 130)
    assert desk.believes() is Mode.STARTING


def test_answers_before_the_exchange_was_reached_both_ways_are_not_enough(seat: Seat) -> None:
    desk = seat(expected_brokers=2)
    desk.start()
    desk.hear(report("b2"), 10)
    assert desk.believes() is Mode.STARTING
    desk.read_back(20)
    desk.hear(report("b2", sequence=2), 30)
    assert desk.believes() is Mode.LIVE


def test_without_all_the_answers_two_rounds_are_enough(seat: Seat) -> None:
    desk = seat(expected_brokers=5)
    desk.start()
    desk.read_back(5)
    desk.run(5, 2005)
    assert desk.believes() is Mode.LIVE


# The start, with the exchange out of reach.


def test_out_of_reach_a_broker_that_counts_on_nobody_stays_on_its_floor(desk: Desk) -> None:
    desk.share()
    desk.start()
    for now in range(1000, 9001, 1000):
        assert ISOLATED not in desk.wake(now)
    assert (desk.believes(), desk.share()) == (Mode.STARTING, rates(1))


def test_out_of_reach_it_counts_as_started_after_two_rounds(desk: Desk) -> None:
    desk.start(at=500)
    desk.wake(2499)
    assert not desk.is_past_start()
    desk.wake(2500)
    assert desk.is_past_start()


@pytest.mark.parametrize(
    "settings",
    [{"expected_brokers": 4}, {"stored_peers": frozenset({"b2", "b3", "b4"})}],
    ids=["expected", "stored"],
)
@pytest.mark.parametrize(
    ("on_isolation", "share"),
    [
        # Nobody was ever heard: what is held is the map of a broker alone.
        (OnIsolation.EQUAL, rates(25)),
        (OnIsolation.HOLD, rates(100)),
        (OnIsolation.OPEN, Rates()),
    ],
)
def test_out_of_reach_a_broker_that_is_not_alone_acts_as_told_after_two_rounds(
    seat: Seat, settings: dict[str, object], on_isolation: OnIsolation, share: Rates
) -> None:
    desk = seat(on_isolation=on_isolation, **settings)
    desk.share()
    desk.start()
    assert ISOLATED not in desk.wake(1000)
    assert desk.wake(2000)[0] == ISOLATED
    assert desk.believes() == Mode(on_isolation)
    assert ISOLATED not in desk.wake(3000)
    desk.wake(3100)
    assert desk.share() == share


def test_reached_once_and_cut_off_before_anybody_answered_it_stays_on_its_floor(
    desk: Desk,
) -> None:
    desk.share()
    desk.start()
    desk.read_back(5)
    for now in (1000, 2000, 2005, 3000, 4000):
        assert ISOLATED not in desk.wake(now)
        assert desk.wake_at is not None
        assert desk.wake_at > now
    assert (desk.believes(), desk.share()) == (Mode.STARTING, rates(1))
    assert desk.is_past_start()
    # Read back at last, the two rounds are long over.
    desk.read_back(4500)
    assert not desk.is_past_start()
    assert desk.wake_at == 2005
    desk.wake(4500)
    assert desk.believes() is Mode.LIVE


def test_reached_once_and_cut_off_one_that_is_not_alone_acts_as_told(desk: Desk) -> None:
    desk.start()
    desk.read_back(5)
    desk.hear(report("b2", rows_hash=99), 10)
    desk.wake(1000)
    desk.wake(2000)
    desk.wake(2005)
    assert desk.believes() is Mode.STARTING
    # Said at 1000, missing from 2100 on.
    assert desk.wake(3000)[0] == ISOLATED
    assert desk.believes() is Mode.EQUAL


# Silence.


def test_when_our_words_do_not_come_back_we_hold_and_then_act_as_told(seat: Seat) -> None:
    desk = seat(stored_peers=frozenset({"b2", "b3", "b4"}))
    desk.go_live()
    assert desk.share() == rates(100)
    desk.wake(3000)
    desk.wake(4000)
    # Said at 3000, missing after a round and the longest settling.
    assert desk.wake_at == 4100
    assert desk.wake(4099) == ()
    assert desk.wake(4100) == (ISOLATED,)
    assert (desk.believes(), desk.share()) == (Mode.HOLDING, rates(100))
    for now in (5000, 6000):
        assert ISOLATED not in desk.wake(now)
    assert desk.wake_at == 6100
    assert desk.wake(6099) == ()
    assert desk.wake(6100) == ()
    assert (desk.believes(), desk.share()) == (Mode.EQUAL, rates(25))
    desk.wake(9000)
    assert desk.believes() is Mode.EQUAL


@pytest.mark.parametrize("on_isolation", OnIsolation)
def test_each_way_to_act_is_reached_after_the_hold(seat: Seat, on_isolation: OnIsolation) -> None:
    desk = seat(on_isolation=on_isolation, isolation_hold_rounds=0)
    desk.go_live()
    desk.wake(3000)
    desk.wake(4100)
    assert desk.believes() is Mode.HOLDING
    desk.wake(4100)
    assert desk.believes() == Mode(on_isolation)


def test_cut_off_nobody_is_thought_dead(live: Desk) -> None:
    live.hear(report("b2", usage(5)), 2100)
    for now in range(3000, 12_000, 1000):
        live.wake(now)
    assert live.broker.peers.names() == ["b2"]


def test_records_of_rounds_cut_off_say_so(live: Desk) -> None:
    live.ask(5, at=2900)
    live.wake(3000)
    live.ask(5, at=3900)
    live.wake(4100)
    live.ask(5, at=4200)
    (append, *_) = live.wake(5000)
    assert append.record.isolated  # type: ignore[union-attr]


# Coming back.


def test_back_while_holding_the_map_is_believed_again_at_once(live: Desk) -> None:
    live.hear(report("b2", usage(500)), 2100)
    live.share()
    live.wake(3000)
    live.wake(4100)
    assert live.believes() is Mode.HOLDING
    first, second, *_ = live.read_back(4200)
    assert (first, second) == (REJOINED, Publish(Hello(ME)))
    assert live.believes() is Mode.LIVE
    # It was we who could not hear: b2 has all the time again.
    live.run(4200, 7000)
    assert live.broker.peers.names() == ["b2"]
    live.run(7000, 8005)
    assert live.broker.peers.names() == []


def test_back_later_the_peers_are_asked_first(live: Desk) -> None:
    live.hear(report("b2", usage(500)), 2100)
    live.share()
    for now in (3000, 4100, 5000, 6100, 6200):
        live.wake(now)
    assert (live.believes(), live.share()) == (Mode.EQUAL, rates(50))
    live.said = live.said[-1:]
    assert live.read_back(6500) == (REJOINED, Publish(Hello(ME)))
    assert (live.believes(), live.share()) == (Mode.STARTING, rates(0.5))
    live.hear(report("b2", usage(500), sequence=2), 6600)
    assert live.believes() is Mode.LIVE


def test_back_later_and_never_answered_two_rounds_are_enough(live: Desk) -> None:
    live.hear(report("b2", usage(500)), 2100)
    for now in (3000, 4100, 5000, 6100):
        live.wake(now)
    live.read_back(6500)
    assert live.believes() is Mode.STARTING
    live.run(6500, 8499)
    assert live.believes() is Mode.STARTING
    live.run(8499, 8500)
    assert live.believes() is Mode.LIVE


def test_reached_at_last_a_broker_cut_off_from_the_start_starts_over(seat: Seat) -> None:
    desk = seat(stored_peers=frozenset({"b2"}))
    desk.start()
    for now in (1000, 2000, 3000):
        desk.wake(now)
    assert desk.believes() is Mode.EQUAL
    assert desk.hear(Hello(ME), 3500) == (REJOINED, Publish(Hello(ME)))
    assert desk.believes() is Mode.STARTING
    # What was lost before is not held against the exchange.
    desk.run(3500, 5500)
    assert desk.believes() is Mode.LIVE


def test_reached_at_last_the_stored_peers_are_waited_for_by_name(seat: Seat) -> None:
    desk = seat(stored_peers=frozenset({"b2", "b3"}))
    desk.start()
    for now in (1000, 2000, 3000):
        desk.wake(now)
    desk.hear(Hello(ME), 3500)
    desk.hear(report("b2"), 3510)
    assert desk.believes() is Mode.STARTING
    desk.hear(report("b3"), 3520)
    assert desk.believes() is Mode.LIVE


def test_to_be_read_back_changes_nothing_for_one_that_was_not_cut_off(live: Desk) -> None:
    live.wake(3000)
    assert live.read_back(3005) == ()
    assert live.believes() is Mode.LIVE


def test_a_goodbye_of_our_own_that_comes_back_is_no_word_of_the_living(live: Desk) -> None:
    live.wake(3000)
    live.said.clear()
    live.stop(3010)
    assert live.read_back(3020) == ()
    assert live.wake_at == 4000


def test_a_quota_changed_while_cut_off_is_in_force_there_too(seat: Seat) -> None:
    desk = seat(expected_brokers=4)
    desk.share()
    desk.start()
    desk.wake(1000)
    desk.wake(2000)
    assert desk.believes() is Mode.EQUAL
    desk.change(gold(40), at=2200)
    assert desk.share() == rates(10)
