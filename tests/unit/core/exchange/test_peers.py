"""Who is there: arrivals, restarts, namesakes, goodbyes and silence.

Not covered: what the broker does about each (tests/unit/core/broker/test_membership.py).
"""

from rgd.core.exchange.messages import Sender
from rgd.core.exchange.peers import Peers, Receipt
from tests.unit.core.values import ms, report

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


def test_who_speaks_first_has_joined_and_then_is_known() -> None:
    peers = Peers(GRACE_NS)
    assert peers.receive(ONE, ms(1)) is Receipt.JOINED
    assert peers.receive(ONE, ms(2)) is Receipt.KNOWN
    peer = peers.get("b")
    assert peer is not None
    assert (peer.since, peer.received_at) == (ms(1), ms(2))
    assert (len(peers), peers.get("c")) == (1, None)


def test_names_and_sequences_are_in_order() -> None:
    peers = heard(Sender("c", 1 << 40 | 5), Sender("a", 1))
    peers.advance(report("c", incarnation=1 << 40 | 5, sequence=7))
    assert peers.names() == ["a", "c"]
    assert peers.sequences() == (("a", 0), ("c", 7))
    assert peers.incarnations() == (1, 5)


def test_another_incarnation_claims_the_name_and_has_it_after_the_grace() -> None:
    peers = heard(ONE)
    peers.advance(report("b", sequence=9, weight=500))
    assert peers.receive(TWO, ms(5)) is Receipt.CLAIMED
    assert peers.receive(TWO, ms(104)) is Receipt.CLAIMED
    peer = peers.get("b")
    assert peer is not None
    assert (peer.incarnation, peer.sequence, peer.received_at) == (1, 9, ms(0))
    assert peers.receive(TWO, ms(105)) is Receipt.RESTARTED
    peer = peers.get("b")
    assert peer is not None
    assert (peer.incarnation, peer.sequence, peer.weight, peer.since) == (2, 0, 1000, ms(105))
    assert peers.receive(TWO, ms(106)) is Receipt.KNOWN


def test_an_owner_that_speaks_after_the_claim_keeps_its_name() -> None:
    peers = heard(ONE)
    peers.receive(TWO, ms(5))
    assert peers.receive(ONE, ms(6)) is Receipt.KNOWN
    assert peers.receive(TWO, ms(105)) is Receipt.CLAIMED
    # The late words of a crashed one count as its own, too; then the grace begins again.
    assert peers.receive(TWO, ms(204)) is Receipt.CLAIMED
    assert peers.receive(TWO, ms(205)) is Receipt.RESTARTED


def test_a_claim_does_not_keep_the_owner_alive() -> None:
    peers = heard(ONE)
    peers.receive(TWO, ms(3000))
    assert peers.expire(ms(3001), EXPIRY_NS) == ["b"]


def test_late_words_of_the_incarnation_before_are_stale() -> None:
    peers = restarted()
    assert peers.receive(ONE, ms(101)) is Receipt.STALE
    assert peers.receive(ONE, ms(1000)) is Receipt.STALE
    assert peers.receive(TWO, ms(1001)) is Receipt.KNOWN


def test_a_report_moves_on_by_the_reports_since_the_one_before_and_is_heard_once() -> None:
    peers = heard(ONE)
    assert peers.advance(report("b", sequence=1)) == 1
    assert peers.advance(report("b", sequence=3, weight=500, policies_hash=7)) == 2
    peer = peers.get("b")
    assert peer is not None
    assert (peer.sequence, peer.weight, peer.policies_hash) == (3, 500, 7)
    assert peers.advance(report("b", sequence=3, weight=600)) == 0
    assert peers.advance(report("b", sequence=2)) == 0
    assert peer.weight == 500
    assert peers.advance(report("b", sequence=4)) == 1


def test_a_goodbye_counts_for_its_own_incarnation_alone() -> None:
    peers = heard(ONE)
    assert not peers.leave(TWO, ms(10))
    assert not peers.leave(Sender("nobody", 1), ms(10))
    assert peers.leave(ONE, ms(10))
    assert not peers.leave(ONE, ms(10))
    assert peers.names() == []


def test_what_arrives_after_a_goodbye_is_stale_and_a_new_incarnation_joins() -> None:
    peers = restarted()
    peers.leave(TWO, ms(101))
    assert peers.receive(TWO, ms(101)) is Receipt.STALE
    assert peers.receive(ONE, ms(101)) is Receipt.STALE
    assert peers.receive(THREE, ms(102)) is Receipt.JOINED
    assert peers.receive(TWO, ms(500)) is Receipt.STALE


def test_a_goodbye_is_forgotten_when_its_speaker_would_have_expired() -> None:
    peers = heard(ONE)
    peers.receive(ONE, ms(500))
    peers.leave(ONE, ms(500))
    peers.expire(ms(3500), EXPIRY_NS)
    assert peers.receive(ONE, ms(3500)) is Receipt.STALE
    peers.expire(ms(3501), EXPIRY_NS)
    assert peers.receive(ONE, ms(3502)) is Receipt.JOINED


def test_silence_is_told_by_our_own_clock_since_the_last_word() -> None:
    peers = heard(ONE, Sender("c", 1))
    peers.receive(ONE, ms(500))
    assert peers.expire(ms(3000), EXPIRY_NS) == []
    assert peers.expire(ms(3001), EXPIRY_NS) == ["c"]
    assert peers.names() == ["b"]
    # An expired one that was only cut off comes back as itself.
    assert peers.receive(Sender("c", 1), ms(3002)) is Receipt.JOINED


def test_forgiven_everybody_has_all_the_time_again() -> None:
    peers = heard(ONE)
    peers.forgive(ms(2000))
    assert peers.expire(ms(5000), EXPIRY_NS) == []
    assert peers.expire(ms(5001), EXPIRY_NS) == ["b"]


def test_a_broker_is_asked_once_an_interval() -> None:
    peers = heard(ONE, Sender("c", 1))
    assert peers.is_ask_due("b", ms(500), ms(1000))
    peers.asked("b", ms(500))
    assert not peers.is_ask_due("b", ms(1499), ms(1000))
    assert peers.is_ask_due("c", ms(1499), ms(1000))
    assert peers.is_ask_due("b", ms(1500), ms(1000))
