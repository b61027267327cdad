"""Who else is in the exchange, how far we heard each, and who has gone silent.

Law: staleness is judged by arrival on this daemon's own monotonic clock, never
by anybody's wall clock (Pulsar's wall-clock test switches coordination off
under skew, pulsar-facts 1.2).

A restart shows as a new incarnation. At first it only claims the name: a live
owner of it would answer at once, and the claimant (a namesake, configured
wrongly) would have to go. What it says after `grace_ns` without a word of the
owner makes the name its own. Late words of one that is gone, so or by goodbye,
are ignored, and so is a sequence that was heard already.
"""

from dataclasses import dataclass
from enum import Enum, auto

from rgd.core.exchange.messages import Report, Speaker
from rgd.core.shares.model import WEIGHT_ONE
from rgd.core.units import Nanos


@dataclass(slots=True)
class Peer:
    """One other member."""

    incarnation: int
    since: Nanos
    heard_at: Nanos
    #: Last report heard; 0: only a hello so far.
    sequence: int = 0
    weight: int = WEIGHT_ONE
    #: 0: its policies come from a table.
    policies_hash: int = 0
    #: Incarnation before this one, whose late words are ignored.
    former: int | None = None
    #: When it was last asked to repeat itself.
    asked_at: Nanos | None = None
    #: When another incarnation began to claim the name.
    claimed_at: Nanos | None = None


class Heard(Enum):
    """What hearing a speaker meant."""

    KNOWN = auto()
    JOINED = auto()
    RESTARTED = auto()
    #: Said under the name of another incarnation, which may be live.
    CLAIMED = auto()
    #: Said by an incarnation that is gone.
    STALE = auto()


class Peers:
    """Every other live broker, by name."""

    def __init__(self, grace_ns: int) -> None:
        self._grace_ns = grace_ns
        self._peers: dict[str, Peer] = {}
        #: Who said goodbye, until it would have expired.
        self._left: dict[str, Peer] = {}

    def hear(self, speaker: Speaker, now: Nanos) -> Heard:
        """Note that a speaker is alive."""
        peer = self._peers.get(speaker.broker)
        before = self._left.get(speaker.broker) if peer is None else peer
        if peer is not None and speaker.incarnation == peer.incarnation:
            peer.heard_at = now
            return Heard.KNOWN
        if before is not None and speaker.incarnation in (before.former, before.incarnation):
            return Heard.STALE
        if peer is not None and not self._has_won(peer, now):
            return Heard.CLAIMED
        former = None if before is None else before.incarnation
        self._peers[speaker.broker] = Peer(speaker.incarnation, now, now, former=former)
        return Heard.JOINED if peer is None else Heard.RESTARTED

    def advance(self, report: Report) -> int:
        """Move on to a report of a live speaker.

        Returns:
            By how many reports: 0 when it was heard before, more than 1 when some were missed.
        """
        peer = self._peers[report.speaker.broker]
        if report.sequence <= peer.sequence:
            return 0
        steps = report.sequence - peer.sequence
        peer.sequence = report.sequence
        peer.weight = report.weight
        peer.policies_hash = report.policies_hash
        return steps

    def weight_of(self, broker: str) -> int:
        """The weight of a live peer."""
        return self._peers[broker].weight

    def may_ask(self, broker: str, now: Nanos, interval_ns: int) -> bool:
        """Whether to ask a broker to repeat itself, at most once an interval."""
        peer = self._peers[broker]
        if peer.asked_at is not None and now - peer.asked_at < interval_ns:
            return False
        peer.asked_at = now
        return True

    def silent(self, now: Nanos, after_ns: int) -> list[str]:
        """Peers that were silent for longer than `after_ns`."""
        return [name for name, peer in self._peers.items() if now - peer.heard_at > after_ns]

    def leave(self, speaker: Speaker) -> bool:
        """Forget a peer that said goodbye; False when that incarnation is not known."""
        peer = self._peers.get(speaker.broker)
        if peer is None or peer.incarnation != speaker.incarnation:
            return False
        self._left[speaker.broker] = self._peers.pop(speaker.broker)
        return True

    def expire(self, now: Nanos, expiry_ns: int) -> list[str]:
        """Forget the peers that were silent for longer; returns their names."""
        silent = self.silent(now, expiry_ns)
        for name in silent:
            del self._peers[name]
        self._left = {
            name: peer for name, peer in self._left.items() if now - peer.heard_at <= expiry_ns
        }
        return silent

    def forgive(self, now: Nanos) -> None:
        """Start everybody's silence anew: it was we who could not hear."""
        for peer in self._peers.values():
            peer.heard_at = now

    def names(self) -> list[str]:
        """Every peer, in the order of names."""
        return sorted(self._peers)

    def get(self, broker: str) -> Peer | None:
        """One peer, if it is live."""
        return self._peers.get(broker)

    def sequences(self) -> tuple[tuple[str, int], ...]:
        """Last report heard of each, for the usage log."""
        return tuple((name, self._peers[name].sequence) for name in self.names())

    def incarnations(self) -> tuple[int, ...]:
        """Lower 32 bits of the incarnation of each, in the order of `sequences`."""
        return tuple(self._peers[name].incarnation & 0xFFFF_FFFF for name in self.names())

    def __len__(self) -> int:
        return len(self._peers)

    def _has_won(self, peer: Peer, now: Nanos) -> bool:
        """Whether another incarnation may take the name that it claims."""
        if peer.claimed_at is None or peer.heard_at > peer.claimed_at:
            peer.claimed_at = now
        return now - peer.claimed_at >= self._grace_ns
