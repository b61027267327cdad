"""Whether our words come back, and how long they take.

Not covered: what a broker does about silence (test_exchange_state.py).
"""

from rgd.core.broker.link import DELAYS_MAX, UNCONFIRMED_MAX, Link
from tests.unit.core.values import ms


def link() -> Link:
    return Link(patience_ns=ms(1100), damping_max_ns=ms(100))


def test_nothing_is_missing_before_anything_was_said() -> None:
    assert link().silent_at is None
    assert link().reached_at is None


def test_what_was_said_is_missing_after_our_patience() -> None:
    one = link()
    one.sent(0, ms(10))
    one.sent(1, ms(20))
    assert one.silent_at == ms(1110)


def test_what_was_said_is_late_after_the_longest_way_and_silent_after_our_patience() -> None:
    one = link()
    assert not one.is_late(ms(9000))
    assert not one.is_silent(ms(9000))
    one.sent(1, ms(10))
    assert (one.is_late(ms(109)), one.is_late(ms(110))) == (False, True)
    assert (one.is_silent(ms(1109)), one.is_silent(ms(1110))) == (False, True)


def test_what_was_read_back_is_not_missing() -> None:
    one = link()
    one.sent(1, ms(0))
    one.sent(2, ms(50))
    one.received(1, ms(60))
    assert one.silent_at == ms(1150)
    one.received(2, ms(70))
    assert one.silent_at is None


def test_a_later_report_makes_good_for_an_earlier_one() -> None:
    one = link()
    one.sent(1, ms(0))
    one.sent(2, ms(5))
    one.sent(3, ms(10))
    one.received(2, ms(20))
    assert one.silent_at == ms(1110)


def test_a_hello_makes_good_for_no_report() -> None:
    one = link()
    one.sent(0, ms(0))
    one.sent(1, ms(5))
    one.received(0, ms(20))
    assert one.silent_at == ms(1105)


def test_the_exchange_was_reached_when_the_first_word_came_back() -> None:
    one = link()
    one.received(0, ms(20))
    one.received(1, ms(30))
    assert one.reached_at == ms(20)


def test_a_raise_settles_for_the_longest_delay_seen_but_no_longer_than_the_most() -> None:
    one = link()
    assert one.damping_ns == ms(100)
    for sequence, delay in ((1, 30), (2, 20)):
        one.sent(sequence, ms(1000 * sequence))
        one.received(sequence, ms(1000 * sequence + delay))
    assert one.damping_ns == ms(30)
    one.sent(3, ms(3000))
    one.received(3, ms(3500))
    assert one.damping_ns == ms(100)


def test_a_report_that_did_not_come_back_itself_has_no_delay() -> None:
    one = link()
    one.sent(1, ms(0))
    one.sent(2, ms(50))
    one.received(2, ms(60))
    assert one.damping_ns == ms(10)


def test_an_old_delay_is_forgotten() -> None:
    one = link()
    for sequence in range(1, DELAYS_MAX + 2):
        one.sent(sequence, ms(sequence))
        one.received(sequence, ms(sequence + (50 if sequence == 1 else 5)))
    assert one.damping_ns == ms(5)


def test_only_so_much_is_remembered_as_missing() -> None:
    one = link()
    for sequence in range(1, UNCONFIRMED_MAX + 3):
        one.sent(sequence, ms(sequence))
    assert one.silent_at == ms(1100 + 3)


def test_a_new_life_misses_nothing_and_knows_the_delays() -> None:
    one = link()
    one.sent(1, ms(0))
    one.received(1, ms(30))
    one.sent(2, ms(40))
    one.restart(ms(5000))
    assert (one.silent_at, one.reached_at, one.damping_ns) == (None, ms(5000), ms(30))


def test_only_what_was_said_within_our_patience_proves_that_the_exchange_is_in_reach() -> None:
    one = link()
    for sequence, said_at in ((1, 0), (2, 1000), (3, 2000), (4, 3000)):
        one.sent(sequence, ms(said_at))
    # The first that ever comes back does, whatever its age.
    assert one.received(1, ms(3500))
    assert not one.received(2, ms(3501))
    assert not one.received(3, ms(3502))
    assert one.received(4, ms(3503))
    # Receipt twice it is no news.
    assert not one.received(4, ms(3504))
