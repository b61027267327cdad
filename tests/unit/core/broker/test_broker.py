"""What a broker says and when: its start, rounds, early reports, answers, its goodbye.

Each handler's effects exactly. Not covered: who is there (test_membership.py), how far the exchange
is believed (test_exchange_state.py), what is in a round's rows (test_rounds.py).
"""

import pytest

from rgd.core.bounds import BOUNDS
from rgd.core.broker.effects import Append
from rgd.core.buckets.decision import Request
from rgd.core.exchange.columns import NO_USAGE
from rgd.core.exchange.messages import Ask, Hello, Sender
from rgd.core.policies.model import Group, Limit
from rgd.core.policies.snapshot import PolicySnapshot
from tests.support.columns import advertised_hash
from tests.unit.core.broker.desk import ME, Desk, Effects, reports
from tests.unit.core.values import advertised, ms, rates, report, usage

#: Peers whose questions are answered 200 and 300 ms later, and at once.
LATER, LATEST, NOW = (Sender(f"b{when}", ms(when) ^ ME.incarnation) for when in (200, 300, 0))


# Before the start.


def test_before_its_start_a_broker_sends_nothing_and_needs_no_wake(desk: Desk) -> None:
    assert desk.wake_at is None
    assert desk.wake(5000) == ()
    desk.ask(1, at=5000)
    assert not desk.ask(1, at=5000)
    assert desk.wake(5000) == ()
    assert desk.stop(5000) == ()


# Rounds of many groups.


def ask_of_many(
    desk: Desk, at: float, *, count: int = 2 * BOUNDS.rounds.piece_rows + 1
) -> list[str]:
    """Have a message of each of so many groups granted."""
    names = [f"g{place:04}" for place in range(count)]
    desk.change(PolicySnapshot({name: Group(name, Limit(rates(100))) for name in names}), at)
    for name in names:
        desk.broker.limiter.acquire(Request(messages=1, group=name), ms(at))
    return names


@pytest.mark.slow
def test_thousands_of_groups_end_a_round_in_pieces_of_bounded_work(live: Desk) -> None:
    live.run(2005, 2499)
    names = ask_of_many(live, 2500, count=5000)
    live.run(2500, 2999)
    said: Effects = ()
    wakes = 0
    while not reports(said):
        assert live.wake_at is not None
        assert live.wake_at <= 3000
        said = live.wake(3000)
        wakes += 1
    assert wakes == -(-5000 // BOUNDS.rounds.piece_rows)
    record = said[0]
    assert isinstance(record, Append)
    assert list(record.record.rows.usage.groups) == names


@pytest.mark.slow
def test_messages_between_the_pieces_are_applied_at_once(live: Desk) -> None:
    live.run(2005, 2499)
    ask_of_many(live, 2500)
    live.run(2500, 2999)
    live.wake(3000)
    live.hear(report("b2", usage(5, group="g0000")), 3001)
    live.hear(Ask(NOW, "b1"), 3001)
    # The answer is whole by itself, and the round's report goes on where it was.
    (answer,) = reports(live.wake(3002))
    assert answer.full
    assert answer.rows_hash == advertised_hash(answer.rows)
    (rest,) = reports(live.wake(3003))
    assert rest.rows_hash == advertised_hash(advertised(live.broker.rounds))
    assert len(rest.rows) == 2 * BOUNDS.rounds.piece_rows + 1


# Answers.


def test_a_hello_and_an_ask_are_answered_with_everything_advertised(live: Desk) -> None:
    live.ask(20, at=2100)
    live.run(2100, 3000)
    for message, at in ((Hello(LATER), 3100), (Ask(LATER, "b1"), 3400)):
        live.hear(message, at)
        assert live.rests_until(at + 200)
        assert live.wake(at + 199) == ()
        (answer,) = reports(live.wake(at + 200))
        assert answer.full
        assert answer.rows == advertised(live.broker.rounds) != NO_USAGE
        assert answer.rows_hash == advertised_hash(answer.rows)
        live.read_back(at + 205)
    assert live.rests_until(4000)


def test_whoever_asks_whether_we_live_waits_for_the_least_interval_and_any_word_will_do(
    live: Desk,
) -> None:
    live.run(2005, 3005)
    live.hear(Ask(LATER, "b1", full=False), 3020)
    assert live.rests_until(3100)
    live.hear(Hello(NOW), 3050)
    assert len(reports(live.wake(3050))) == 1
    live.read_back(3055)
    assert live.rests_until(4000)


def test_several_asks_get_one_answer_when_the_first_is_due(live: Desk) -> None:
    for asker in (LATEST, LATER, LATEST):
        live.hear(Hello(asker), 2100)
    assert live.rests_until(2300)
    assert len(reports(live.wake(2300))) == 1
    assert live.wake(2400) == ()
