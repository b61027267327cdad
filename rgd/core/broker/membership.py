"""The peers in the exchange, and whether this broker holds what each of them advertised.

Law: the usage map has rows of live brokers only. Every change of it (a report, a new broker, a
goodbye, an expired broker) marks the shares concerned, which are then recomputed.

A report carries the hash of all rows that its sender has advertised. If the rows held here have
another hash, a report was missed, and the sender is asked for its full state. The hash is compared
at every report but those that say that more follow, because it covers the rows of these, too.

This broker's own rows are applied as they are read back, so that all brokers' maps hold the same
values. `rgd.core.broker.publisher` sends this broker's messages.
"""

from collections import Counter
from typing import Final

from rgd.core.broker.effects import Alarm, AlarmCode, Effect, Publish, Remember
from rgd.core.broker.mode import Mode
from rgd.core.broker.shard_reader import PARTIAL_ROUNDS, ShardReader
from rgd.core.broker.shard_sender import ShardSender
from rgd.core.broker.sharing import Sharing
from rgd.core.errors import InvariantBroken
from rgd.core.exchange.messages import Ask, Goodbye, Hello, Message, Report
from rgd.core.exchange.peers import Peers, Receipt
from rgd.core.exchange.shards import WHOLE
from rgd.core.exchange.usage_map import UsageMap
from rgd.core.units import Nanos

#: How often in a round silent peers are searched for.
CHECKS_A_ROUND: Final = 4
#: Most silent peers that a check asks for a heartbeat: the asks must not push reports out of the outbox.
ASKS_A_CHECK: Final = 32

#: Why a message of a peer was dropped, for `rgd_reports_dropped_total`.
_DROPPED: Final = {
    Receipt.BEYOND: ("sequence", AlarmCode.SEQUENCE_REFUSED),
    Receipt.EXCESS: ("brokers", AlarmCode.TOO_MANY_BROKERS),
}


class Membership:
    """The peers that this broker has received messages from."""

    def __init__(
        self,
        peers: Peers,
        usage: UsageMap,
        sharing: Sharing,
        *,
        sender: ShardSender,
        reader: ShardReader,
    ) -> None:
        self._settings = settings = sender.settings
        self._shard_reader = reader
        self._identity = sender.identity
        self._peers = peers
        self._usage = usage
        self._sharing = sharing
        #: Hash of the policies in force here; 0: not known.
        self.policies_hash = 0
        self.reports_received = 0
        #: How many messages of peers were dropped, by reason.
        self.dropped: Counter[str] = Counter()
        #: How many reports had a weight out of bounds.
        self.weights_bounded = 0
        #: The peers' names that were stored last.
        self._remembered: tuple[str, ...] = ()
        #: The sequence number of this broker's last report that was read back.
        self._own_sequence = 0
        #: Whether the peers may hold rows of this broker that are not in the usage map here, because another plane sent them.
        self.awaits_own_state = False
        #: Peers whose full state is expected.
        self._awaited = settings.stored_peers
        #: The largest number of brokers that an answering peer knows of.
        self._members = 1
        #: When to search again for silent peers.
        self.check_at = Nanos(0)

    @property
    def differing(self) -> set[str]:
        """Peers whose policies have differed for longer than `policies_patience_ns`."""
        return {name for name, peer in self._peers.all() if peer.differs}

    def receive(self, message: Message, now: Nanos) -> list[Effect]:
        """Apply a message of another broker."""
        broker = message.sender.broker
        if isinstance(message, Goodbye):
            return self._take_leave(message, now)
        report = message if isinstance(message, Report) else None
        if report is not None and report.shard != WHOLE:
            return self._shard_reader.receive(report, now)
        receipt = self._peers.receive(message.sender, now, report)
        if receipt in _DROPPED:
            reason, code = _DROPPED[receipt]
            self.dropped[reason] += 1
            return [Alarm(code, broker)]
        if not receipt.is_news:
            return []
        effects = self._welcome(broker, receipt, now)
        self._note_layout(message)
        if report is not None:
            effects += self._take_report(report, now)
        elif isinstance(message, Hello) and receipt is Receipt.JOINED:
            # A broker that has just started has no rows, so its hello is its full state.
            self._peers.member(broker).has_answered = True
        return effects

    def read_back(self, report: Report, now: Nanos) -> bool:
        """Apply a report of this broker's own; False where an earlier one did not come back."""
        if report.sequence <= self._own_sequence:
            return True
        self._own_sequence = report.sequence
        if self._shard_reader.is_used:
            self._shard_reader.heartbeat(report, now)
            return True
        self._sharing.refresh(self._usage.apply(report), now)
        self.awaits_own_state &= not report.full or report.more
        return report.more or self._holds(report)

    def check(self, now: Nanos) -> list[Effect]:
        """Ask silent peers for a heartbeat, and remove the peers that stayed silent.

        Asking makes up for lost heartbeats. Without it, a live broker would expire after three lost
        heartbeats in a row, which is one case in a thousand at 10 % loss.
        """
        if now < self.check_at:
            return []
        self.check_at = Nanos(now + self._settings.round_ns // CHECKS_A_ROUND)
        if self._sharing.mode.is_isolated or self._sharing.mode is Mode.YIELDING:
            # This broker may be the one that receives nothing, or it has no name to ask in.
            return self._names_to_remember()
        expiry_ns = self._settings.expiry_ns
        effects: list[Effect] = []
        for broker in self._peers.expire(now, expiry_ns):
            self._forget(broker)
            effects.append(Alarm(AlarmCode.PEER_EXPIRED, broker))
        if effects:
            self._sharing.refresh_all(now)
        effects += self._names_to_remember()
        me = self._identity.sender
        doubtful = self._peers.silent(now, expiry_ns - self._settings.round_ns)
        asked = sorted(doubtful)[:ASKS_A_CHECK]
        return effects + [Publish(Ask(me, name, full=False)) for name in asked]

    def policies_changed(self) -> None:
        """Ask once more for rows that were not kept: their groups may have policies now."""
        for name, peer in self._peers.all():
            if self._usage.is_partial(name):
                peer.asked_at = None
        self._shard_reader.policies_changed()

    def await_everybody(self, now: Nanos) -> None:
        """Expect the full state of all peers again after an isolation or suspension."""
        self._peers.forgive(now)
        # A broker that was isolated from its start knows only the peers that the last run stored.
        self._awaited = frozenset(self._peers.names()) or self._awaited
        for _, peer in self._peers.all():
            peer.has_answered = False
        self._members = 1

    @property
    def is_complete(self) -> bool:
        """Whether all brokers that are known or expected have sent their full state."""
        expected = max(self._settings.expected_brokers, self._members)
        if self.awaits_own_state:
            return False
        if not self._awaited and expected <= 1:
            # The number of brokers is unknown, so the wait ends by time.
            return False
        answered = {name for name, peer in self._peers.all() if peer.has_answered}
        return (
            answered >= self._awaited.union(self._peers.names()) and len(answered) + 1 >= expected
        )

    def validate(self) -> None:
        """Check that only live brokers are in the usage map.

        Raises:
            InvariantBroken: it has rows of another broker; a bug.
        """
        live = set(self._sharing.brokers)
        if not self._usage.brokers() <= live:
            raise InvariantBroken(f"rows of {self._usage.brokers() - live}, which are not live")

    def _take_report(self, report: Report, now: Nanos) -> list[Effect]:
        peer = self._peers.member(report.sender.broker)
        weight = peer.weight
        if not self._peers.advance(report):
            return []
        self.reports_received += 1
        if peer.weight != weight:
            self._sharing.refresh_all(now)
        if self._shard_reader.is_used:
            return self._take_heartbeat(report, now)
        was_partial = self._usage.is_partial(report.sender.broker)
        self._sharing.refresh(self._usage.apply(report), now)
        effects = [*self._compare_policies(report, now), *self._look_at_weight(report)]
        if self._usage.is_partial(report.sender.broker) and not was_partial:
            effects.append(Alarm(AlarmCode.PEER_ROWS_REFUSED, report.sender.broker))
        if not report.more:
            effects += self._repair(report, now)
        return effects

    def _take_heartbeat(self, report: Report, now: Nanos) -> list[Effect]:
        """Take a report of a peer whose rows are read in shards."""
        self._peers.member(report.sender.broker).has_answered = True
        self._members = max(self._members, report.members)
        return [
            *self._compare_policies(report, now),
            *self._look_at_weight(report),
            *self._shard_reader.heartbeat(report, now),
        ]

    def _note_layout(self, message: Message) -> None:
        """Note which layout a member reads."""
        peer = self._peers.get(message.sender.broker)
        if peer is None or peer.incarnation != message.sender.incarnation:
            return
        if isinstance(message, Report | Hello):
            peer.shards = message.shards
        elif isinstance(message, Ask):
            peer.shards = max(peer.shards, message.shard.of)

    def _repair(self, report: Report, now: Nanos) -> list[Effect]:
        """Ask a broker for its full state if its hash differs from that of the rows held here.

        Rows are absolute, so later reports may already have repaired a gap. A starting broker does
        not ask, because the answers to its hello are on their way.
        """
        broker = report.sender.broker
        peer = self._peers.member(broker)
        if self._holds(report):
            peer.has_answered = True
            if report.full:
                self._members = max(self._members, report.members)
            return []
        if self._sharing.mode is Mode.STARTING:
            return []
        rounds = PARTIAL_ROUNDS if self._usage.is_partial(broker) else 1
        if peer.asked_at is not None and now - peer.asked_at < rounds * self._settings.round_ns:
            return []
        peer.asked_at = now
        ask = Publish(Ask(self._identity.sender, broker))
        return [Alarm(AlarmCode.REPORTS_MISSED, broker), ask]

    def _holds(self, report: Report) -> bool:
        return self._usage.hash_of(report.sender.broker) == report.rows_hash

    def _look_at_weight(self, report: Report) -> list[Effect]:
        """Alert once when a peer's weight is out of bounds; the bounded weight counts."""
        broker = report.sender.broker
        peer = self._peers.member(broker)
        was_overweight, peer.is_overweight = peer.is_overweight, report.weight != peer.weight
        self.weights_bounded += peer.is_overweight
        if was_overweight or not peer.is_overweight:
            return []
        reason = f"it says {report.weight} thousandths, {peer.weight} count"
        return [Alarm(AlarmCode.WEIGHT_BOUNDED, broker, reason)]

    def _compare_policies(self, report: Report, now: Nanos) -> list[Effect]:
        """Alert when a peer's policies have differed for `policies_patience_ns`."""
        peer, its_hash = self._peers.member(report.sender.broker), report.policies_hash
        # A peer without a policy hash, such as an earlier rgd with a table, counts as equal.
        if its_hash == self.policies_hash or not its_hash or not self.policies_hash:
            peer.differs, peer.differs_since = False, None
            return []
        if peer.differs_since is None or peer.policies_hash != its_hash:
            # A peer whose hash changes is loading new policies, so its time starts again.
            peer.policies_hash, peer.differs_since = its_hash, now
        if peer.differs or now - peer.differs_since < self._settings.policies_patience_ns:
            return []
        peer.differs = True
        return [Alarm(AlarmCode.POLICIES_DIFFER, report.sender.broker)]

    def _welcome(self, broker: str, receipt: Receipt, now: Nanos) -> list[Effect]:
        if receipt is Receipt.JOINED:
            self._sharing.refresh_all(now)
            return [Alarm(AlarmCode.PEER_JOINED, broker)]
        if receipt is Receipt.RESTARTED:
            self._forget(broker)
            self._sharing.refresh_all(now)
            return [Alarm(AlarmCode.PEER_RESTARTED, broker)]
        return []

    def _take_leave(self, message: Goodbye, now: Nanos) -> list[Effect]:
        broker = message.sender.broker
        if not self._peers.leave(message.sender, now):
            return []
        self._forget(broker)
        self._sharing.refresh_all(now)
        return [Alarm(AlarmCode.PEER_LEFT, broker)]

    def _names_to_remember(self) -> list[Effect]:
        """Store the peers' names, if they are others."""
        names = tuple(self._peers.names())
        if names == self._remembered:
            return []
        self._remembered = names
        return [Remember(names)]

    def _forget(self, broker: str) -> None:
        self._usage.remove(broker)
        self._shard_reader.forget(broker)
