"""Peers that flood or send what is absurd: what the broker does, and what stays bounded.

Not covered: how names, sequences and goodbyes are kept (tests/unit/core/exchange/test_peers_hostile.py),
messages in our own name (test_own_name.py).
"""

from rgd.core.broker.effects import Alarm, AlarmCode
from rgd.core.broker.shard_sender import ANSWERS_A_ROUND
from rgd.core.exchange.messages import Ask, Hello, Report, Sender
from tests.unit.core.broker.conftest import Seat
from tests.unit.core.broker.desk import Desk, codes
from tests.unit.core.values import key, rates, report, usage

B2, B2_AGAIN = Sender("b2", 1), Sender("b2", 2)


# Hellos.


def test_a_flood_of_hellos_is_answered_with_everything_four_times_a_round_at_most(
    live: Desk,
) -> None:
    live.run(2005, 3005)
    live.said.clear()
    for at in range(3010, 5010, 10):
        live.hear(Hello(Sender(f"b{at}", at)), at)
        live.hear(Ask(B2, "b1"), at)
        live.wake(at)
    answers = [one for one in live.said if isinstance(one, Report) and one.full]
    assert len(answers) <= 2 * ANSWERS_A_ROUND + 1


# Names.


def test_invented_names_are_refused_beyond_the_most_and_the_known_ones_go_on(seat: Seat) -> None:
    desk = seat(peers_max=10)
    desk.go_live()
    desk.want_all()
    desk.hear(report("b2", usage(500)), 2100)
    effects = [desk.hear(Hello(Sender(f"invented-{place}", 1)), 2200) for place in range(1000)]
    assert len(desk.broker.peers) == 10
    assert codes(effects[-1]) == [AlarmCode.TOO_MANY_BROKERS]
    assert desk.broker.membership.dropped["brokers"] == 1000 - 9
    # The floor is not zero, and those who want get the rest as before.
    desk.hear(report("b2", usage(500), sequence=2), 2300)
    assert desk.broker.shares(key())["b1"].messages == 49_591


# Sequences.


def test_a_sequence_beyond_reach_is_counted_and_changes_nothing(live: Desk) -> None:
    live.hear(report("b2", usage(30)), 2100)
    forged = report("b2", usage(0), sequence=(1 << 63) - 1)
    refused = (Alarm(AlarmCode.SEQUENCE_REFUSED, "b2"),)
    assert live.hear(forged, 2200) == refused
    assert live.broker.usage.rows(key())["b2"] == usage(30)
    assert live.broker.membership.dropped["sequence"] == 1
    assert live.hear(report("b2", usage(40), sequence=2), 2300) == ()
    assert live.broker.usage.rows(key())["b2"] == usage(40)


# Weights.


def test_a_weight_beyond_bounds_counts_as_the_bound_and_is_reported_once(live: Desk) -> None:
    live.want_all()
    (alarm,) = [
        effect
        for effect in live.hear(report("b2", usage(500), weight=10**9), 2100)
        if isinstance(effect, Alarm) and effect.code is AlarmCode.WEIGHT_BOUNDED
    ]
    assert str(10**9) in alarm.reason
    assert live.hear(report("b2", usage(500), weight=10**9, sequence=2), 2200) == ()
    assert live.broker.membership.weights_bounded == 2
    # Floors apart, one part of eleven: not one in a million.
    assert live.share().messages == 9_500
    assert live.hear(report("b2", usage(500), weight=1000, sequence=3), 2300) == ()
    assert live.broker.shares(key())["b1"] == rates(50)
