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


def test_only_so_much_is_remembered_as_missing() -> None:
    one = link()
    for sequence in range(1, UNCONFIRMED_MAX + 3):
        one.sent(sequence, ms(sequence))
    assert one.silent_at == ms(1100 + 3)
