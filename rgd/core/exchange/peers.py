"""The other members of the exchange, the last sequence received of each, and who is silent.

Law: staleness is measured by arrival time on this daemon's own monotonic clock, never
by any wall clock (Pulsar's wall-clock test switches coordination off
under skew, pulsar-facts 1.2). One name is one member, whichever daemon sends under it.

A restart shows as a new incarnation, which at first only claims the name. A live
owner would answer at once, and the claimant (a duplicate, configured wrongly)
would have to leave. The claimant gets the name when it sends something after
`grace_ns` without a message of the owner. It gets the name at once if the owner has
yielded it or sent a goodbye. Reports whose sequence was already received are ignored.

A goodbye counts at once, and what its sender sends does not until it would have expired. Sequences that are too far ahead
(`REACH_A_MS`) and names beyond `peers_max` are refused, so that a member's fault stays small.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum, auto
from typing import Final

from rgd.core.exchange.limits import PEERS_MAX
from rgd.core.exchange.messages import Claim, Report, Sender
from rgd.core.shares.model import WEIGHT_ONE, bounded_weight
from rgd.core.units import NS_PER_MS, Nanos

#: How far a sequence may be ahead of the last one received: per millisecond, twice what the
#: shortest allowed `exchange.min_interval_ms` permits, plus as much at once as 10 s of that.
REACH_A_MS: Final = 2
REACH_SLACK: Final = 10_000


@dataclass(slots=True)
class Peer:
    """One other member of the exchange."""

    incarnation: int
    since: Nanos
    received_at: Nanos
    #: Sequence of the last report received; 0: only a hello so far.
    sequence: int = 0
    weight: int = WEIGHT_ONE
    #: Its policy hash if it is another than this broker's, since when, and whether for too long.
    policies_hash: int = 0
    differs_since: Nanos | None = None
    differs: bool = False
    #: Whether its weight is out of bounds.
    is_overweight: bool = False
    #: Whether its full state is held.
    has_answered: bool = False
    #: The number of shards that it reads, as far as it announced it.
    shards: int = 1
    #: When it was last asked for its full state.
    asked_at: Nanos | None = None
    #: When another incarnation began to claim the name.
    claimed_at: Nanos | None = None
    #: The claim to its name in its last report.
    claim: Claim = Claim.HELD


class Receipt(Enum):
    """The effect of a message on the sender's membership."""

    KNOWN = auto()
    JOINED = auto()
    RESTARTED = auto()
    #: Sent under the name of another incarnation, which may be live.
    CLAIMED = auto()
    #: Sent by one that said goodbye.
    STALE = auto()
    #: The sender yields the name to another daemon; its rows count until that daemon sends.
    YIELDED = auto()
    #: The sender cannot have reached this sequence.
    BEYOND = auto()
    #: A new name beyond `peers_max`.
    EXCESS = auto()

    @property
    def is_news(self) -> bool:
        """Whether the message is to be processed."""
        return self in (Receipt.KNOWN, Receipt.JOINED, Receipt.RESTARTED)


class Peers:
    """Every other live broker, by name."""

    def __init__(self, grace_ns: int, *, peers_max: int = PEERS_MAX) -> None:
        self._grace_ns = grace_ns
        self._peers_max = peers_max
        self._peers: dict[str, Peer] = {}
        #: Peers that sent a goodbye, kept until they would have expired; at most `peers_max`.
        self._left: dict[str, Peer] = {}

    def receive(self, sender: Sender, now: Nanos, report: Report | None = None) -> Receipt:
        """Record a message of a sender.

        Args:
            sender: the sender of the message.
            now: its arrival time.
            report: the message, if it was a report.
        """
        peer = self._peers.get(sender.broker)
        if peer is not None and sender.incarnation == peer.incarnation:
            return self._receive_again(peer, report, now)
        if report is not None and report.claim is Claim.YIELDED:
            return Receipt.CLAIMED
        if peer is None:
            return self._receive_new(sender, now)
        if peer.claim is not Claim.YIELDED and not self._has_won(peer, now):
            return Receipt.CLAIMED
        self._peers[sender.broker] = Peer(sender.incarnation, now, now)
        return Receipt.RESTARTED

    def advance(self, report: Report) -> bool:
        """Advance to the sequence of a live sender's report; False for a repeated one."""
        peer = self._peers[report.sender.broker]
        if report.sequence <= peer.sequence:
            return False
        peer.sequence = report.sequence
        peer.weight = bounded_weight(report.weight)
        peer.claim = report.claim
        return True

    def readers(self) -> dict[int, int]:
        """How many peers read each number of shards."""
        return Counter(peer.shards for peer in self._peers.values())

    def member(self, broker: str) -> Peer:
        """A live peer."""
        return self._peers[broker]

    def all(self) -> Iterable[tuple[str, Peer]]:
        """All peers by name."""
        return self._peers.items()

    def silent(self, now: Nanos, after_ns: int) -> list[str]:
        """Names of peers that have been silent for longer than `after_ns`."""
        return [name for name, peer in self._peers.items() if now - peer.received_at > after_ns]

    def leave(self, sender: Sender, now: Nanos) -> bool:
        """Remove a peer that sent a goodbye.

        Returns:
            False if that incarnation is unknown.
        """
        peer = self._peers.get(sender.broker)
        if peer is None or peer.incarnation != sender.incarnation:
            return False
        if len(self._left) >= self._peers_max:
            del self._left[next(iter(self._left))]
        self._left[sender.broker] = self._peers.pop(sender.broker)
        peer.received_at = now
        return True

    def expire(self, now: Nanos, expiry_ns: int) -> list[str]:
        """Remove the peers that were silent for longer than `expiry_ns`; returns their names."""
        silent = self.silent(now, expiry_ns)
        for name in silent:
            del self._peers[name]
        self._left = {
            name: peer for name, peer in self._left.items() if now - peer.received_at <= expiry_ns
        }
        return silent

    def forgive(self, now: Nanos) -> None:
        """Restart every peer's silence at `now`, because this daemon could not receive."""
        for peer in self._peers.values():
            peer.received_at = now

    def names(self) -> list[str]:
        """The names of all peers, sorted."""
        return sorted(self._peers)

    def get(self, broker: str) -> Peer | None:
        """One peer, if it is a member."""
        return self._peers.get(broker)

    def sequences(self) -> tuple[tuple[str, int], ...]:
        """Sequence of the last report received from each peer, for the usage log."""
        return tuple((name, self._peers[name].sequence) for name in self.names())

    def incarnations(self) -> tuple[int, ...]:
        """Lower 32 bits of each peer's incarnation, in the order of `sequences`."""
        return tuple(self._peers[name].incarnation & 0xFFFF_FFFF for name in self.names())

    def __len__(self) -> int:
        return len(self._peers)

    def _receive_again(self, peer: Peer, report: Report | None, now: Nanos) -> Receipt:
        if report is not None and self._is_beyond(peer, report, now):
            # Its silence continues. A sender that really is so far expires, and rejoins with any sequence.
            return Receipt.BEYOND
        if report is not None and report.claim is Claim.YIELDED:
            peer.claim = Claim.YIELDED
            return Receipt.YIELDED
        peer.received_at = now
        return Receipt.KNOWN

    def _receive_new(self, sender: Sender, now: Nanos) -> Receipt:
        """Process a message of a name that no member has at present."""
        left = self._left.get(sender.broker)
        if left is not None and sender.incarnation == left.incarnation:
            return Receipt.STALE
        if len(self._peers) >= self._peers_max:
            return Receipt.EXCESS
        self._left.pop(sender.broker, None)
        self._peers[sender.broker] = Peer(sender.incarnation, now, now)
        return Receipt.JOINED

    def _is_beyond(self, peer: Peer, report: Report, now: Nanos) -> bool:
        if peer.sequence == 0:
            return False
        reach = REACH_SLACK + (now - peer.received_at) // NS_PER_MS * REACH_A_MS
        return report.sequence - peer.sequence > reach

    def _has_won(self, peer: Peer, now: Nanos) -> bool:
        """Whether another incarnation may take the name that it claims."""
        if peer.claimed_at is None or peer.received_at > peer.claimed_at:
            peer.claimed_at = now
        return now - peer.claimed_at >= self._grace_ns
