"""Who else is in the exchange, how far we heard each, and who has gone silent.

Law: staleness is judged by arrival on this daemon's own monotonic clock, never
by anybody's wall clock (Pulsar's wall-clock test switches coordination off
under skew, pulsar-facts 1.2).

A restart shows as a new incarnation; late words of the incarnation before are
ignored, and so is a sequence that was already heard.
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


class Heard(Enum):
    """What hearing a speaker meant."""

    KNOWN = auto()
    JOINED = auto()
    RESTARTED = auto()
    #: Said by an incarnation that is gone.
    STALE = auto()


class Peers:
    """Every other live broker, by name."""

    def __init__(self) -> None:
        self._peers: dict[str, Peer] = {}

    def hear(self, speaker: Speaker, now: Nanos) -> Heard:
        """Note that a speaker is alive."""
        peer = self._peers.get(speaker.broker)
        if peer is None:
            self._peers[speaker.broker] = Peer(speaker.incarnation, now, now)
            return Heard.JOINED
        if speaker.incarnation == peer.former:
            return Heard.STALE
        if speaker.incarnation != peer.incarnation:
            self._peers[speaker.broker] = Peer(
                speaker.incarnation, now, now, former=peer.incarnation
            )
            return Heard.RESTARTED
        peer.heard_at = now
        return Heard.KNOWN

    def advance(self, report: Report) -> bool:
        """Move on to a report of a live speaker; False when it was heard before."""
        peer = self._peers[report.speaker.broker]
        if report.sequence <= peer.sequence:
            return False
        peer.sequence = report.sequence
        peer.weight = report.weight
        peer.policies_hash = report.policies_hash
        return True

    def may_ask(self, broker: str, now: Nanos, interval_ns: int) -> bool:
        """Whether to ask a broker to repeat itself, at most once an interval."""
        peer = self._peers[broker]
        if peer.asked_at is not None and now - peer.asked_at < interval_ns:
            return False
        peer.asked_at = now
        return True

    def leave(self, speaker: Speaker) -> bool:
        """Forget a peer that said goodbye; False when that incarnation is not known."""
        peer = self._peers.get(speaker.broker)
        if peer is None or peer.incarnation != speaker.incarnation:
            return False
        del self._peers[speaker.broker]
        return True

    def expire(self, now: Nanos, expiry_ns: int) -> list[str]:
        """Forget the peers that were silent for longer; returns their names."""
        silent = [name for name, peer in self._peers.items() if now - peer.heard_at > expiry_ns]
        for name in silent:
            del self._peers[name]
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

    def __len__(self) -> int:
        return len(self._peers)
