"""Who is there: arrivals, restarts, namesakes, goodbyes and silence.

Not covered: what the broker does about each (tests/unit/core/broker/test_membership.py).
"""

from rgd.core.exchange.messages import Sender
from rgd.core.exchange.peers import Peers, Receipt
from tests.unit.core.values import ms

ONE, TWO, THREE = (Sender("b", incarnation) for incarnation in (1, 2, 3))
EXPIRY_NS = ms(3000)
GRACE_NS = ms(100)


def heard(*senders: Sender) -> Peers:
    """Peers that heard these at the start."""
    peers = Peers(GRACE_NS)
    for sender in senders:
        peers.receive(sender, ms(0))
    return peers


def restarted() -> Peers:
    """Peers for which TWO has taken the name of ONE."""
    peers = heard(ONE, TWO)
    peers.receive(TWO, ms(100))
    return peers


def test_what_arrives_after_a_goodbye_is_stale_and_a_new_incarnation_joins() -> None:
    peers = restarted()
    peers.leave(TWO, ms(101))
    assert peers.receive(TWO, ms(101)) is Receipt.STALE
    assert peers.receive(THREE, ms(102)) is Receipt.JOINED
    assert peers.receive(TWO, ms(500)) is Receipt.CLAIMED


def test_forgiven_everybody_has_all_the_time_again() -> None:
    peers = heard(ONE)
    peers.forgive(ms(2000))
    assert peers.expire(ms(5000), EXPIRY_NS) == []
    assert peers.expire(ms(5001), EXPIRY_NS) == ["b"]
