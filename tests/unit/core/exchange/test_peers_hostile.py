"""Peers under absurd messages: goodbyes, sequences, names, weights, claims.

Not covered: what the broker does about each (tests/unit/core/broker/test_membership_hostile.py).
"""

from dataclasses import replace

from rgd.core.exchange.messages import Claim, Sender
from rgd.core.exchange.peers import REACH_A_MS, REACH_SLACK, Peers, Receipt
from rgd.core.units import Nanos
from tests.unit.core.values import ms, report

ONE, TWO, THREE = (Sender("b", incarnation) for incarnation in (1, 2, 3))
GRACE_NS, EXPIRY_NS = ms(100), ms(3000)


def heard(sequence: int = 5) -> Peers:
    """Peers that heard so many reports of ONE."""
    peers = Peers(GRACE_NS)
    say(peers, ONE, sequence, 0)
    return peers


def say(peers: Peers, sender: Sender, sequence: int, at: float, **changes: object) -> Receipt:
    """Let a report arrive."""
    said = replace(report("b", sequence=sequence), sender=sender, **changes)  # type: ignore[arg-type]
    how = peers.receive(sender, ms(at), said)
    if how.is_news:
        peers.advance(said)
    return how


# Goodbyes.


def test_one_that_speaks_on_after_its_goodbye_is_back_once_it_would_have_expired() -> None:
    peers = heard()
    assert peers.leave(ONE, ms(100))
    assert say(peers, ONE, 6, 101) is Receipt.STALE
    assert peers.expire(ms(3100), EXPIRY_NS) == []
    assert say(peers, ONE, 7, 3100) is Receipt.STALE
    assert peers.expire(ms(3101), EXPIRY_NS) == []
    assert say(peers, ONE, 8, 3101) is Receipt.JOINED
    assert say(peers, ONE, 9, 3102) is Receipt.KNOWN


# Sequences.


def test_a_sequence_beyond_reach_is_refused_and_the_ones_after_the_last_go_on() -> None:
    peers = heard()
    assert say(peers, ONE, (1 << 63) - 1, 1000) is Receipt.BEYOND
    assert say(peers, ONE, 6 + REACH_SLACK + 1000 * REACH_A_MS, 1000) is Receipt.BEYOND
    assert say(peers, ONE, 6, 1001) is Receipt.KNOWN


def test_what_may_be_sent_in_a_long_silence_is_taken() -> None:
    peers = heard()
    assert say(peers, ONE, 5 + REACH_SLACK + 1000 * REACH_A_MS, 1000) is Receipt.KNOWN


def test_refused_for_its_sequence_a_peer_expires_and_joins_with_any() -> None:
    peers = heard()
    for at in range(100, 3001, 100):
        assert say(peers, ONE, 10**12, at) is Receipt.BEYOND
    assert peers.expire(ms(3001), EXPIRY_NS) == ["b"]
    assert say(peers, ONE, 10**12, 3002) is Receipt.JOINED
    assert say(peers, ONE, 10**12 + 1, 3003) is Receipt.KNOWN


def test_the_first_report_after_a_hello_may_have_any_sequence() -> None:
    peers = Peers(GRACE_NS)
    peers.receive(ONE, ms(0))
    assert say(peers, ONE, 10**12, 10) is Receipt.KNOWN


# Names.


def test_of_names_that_come_and_go_no_table_keeps_more_than_the_most() -> None:
    peers = Peers(GRACE_NS, peers_max=10)
    for place in range(100):
        now = Nanos(place * EXPIRY_NS)
        for sender in (Sender(f"b{place}", 1), Sender(f"b{place}", 2)):
            assert peers.receive(sender, now) is Receipt.JOINED
            assert peers.leave(sender, now)
        assert len(peers) == 0
        assert len(peers._left) == min(1 + place, 10)  # noqa: SLF001 -- what bounds memory


# Claims.


def test_reports_of_one_that_yields_do_not_count_but_its_slot_is_kept() -> None:
    peers = heard()
    assert say(peers, ONE, 6, 10, claim=Claim.YIELDED) is Receipt.YIELDED
    assert peers.names() == ["b"]
    # The other one need not wait.
    assert say(peers, TWO, 1, 20) is Receipt.RESTARTED
    assert say(peers, ONE, 7, 30, claim=Claim.YIELDED) is Receipt.CLAIMED


def test_a_name_that_only_a_yielding_broker_reports_expires() -> None:
    peers = heard()
    for at in range(10, 3001, 10):
        say(peers, ONE, 6 + at, at, claim=Claim.YIELDED)
    assert peers.expire(ms(3001), EXPIRY_NS) == ["b"]
    assert say(peers, ONE, 9999, 3010, claim=Claim.YIELDED) is Receipt.CLAIMED
    assert peers.names() == []


def test_a_former_owner_that_lives_on_may_claim_the_name_again() -> None:
    peers = heard()
    say(peers, TWO, 1, 10)
    assert say(peers, TWO, 2, 110) is Receipt.RESTARTED
    assert say(peers, ONE, 7, 111) is Receipt.CLAIMED
    assert say(peers, TWO, 3, 200) is Receipt.KNOWN
    # The other one fell silent.
    assert say(peers, ONE, 8, 211) is Receipt.CLAIMED
    assert say(peers, ONE, 9, 311) is Receipt.RESTARTED
