"""Whether our words come back, and how long they take.

Not covered: what a broker does about silence (test_exchange_state.py).
"""

from rgd.core.broker.link import UNCONFIRMED_MAX, Link
from tests.unit.core.values import ms


def link() -> Link:
    return Link(patience_ns=ms(1100), damping_max_ns=ms(100))


def test_an_increase_is_delayed_by_the_longest_delay_seen_up_to_the_most() -> None:
    one = link()
    assert one.damping_ns == ms(100)
    for sequence, delay in ((1, 30), (2, 20)):
        one.sent(sequence, ms(1000 * sequence))
        one.received(sequence, ms(1000 * sequence + delay))
    assert one.damping_ns == ms(30)
    one.sent(3, ms(3000))
    one.received(3, ms(3500))
    assert one.damping_ns == ms(100)


def test_with_many_messages_on_their_way_the_oldest_still_counts_as_missing() -> None:
    one = link()
    newest = 10 * UNCONFIRMED_MAX
    one.received(0, ms(0))
    for sequence in range(1, newest + 1):
        one.sent(sequence, ms(sequence))
    assert one.silent_at == ms(1100 + 1)
    assert one.is_silent(ms(1101))
    # Memory is bounded, but the newest message proves that the exchange is reachable.
    assert not one.received(newest - 1, ms(newest))
    assert one.received(newest, ms(newest + 5))
    assert one.silent_at is None
