"""Who else is in the exchange, and whether we hold what each of them told.

Law: the usage map has rows of live brokers only, and whatever changes it (a
report, a newcomer, a goodbye, silence) has the shares recomputed at once.

A report says the hash of everything its sender has told; where what we hold
has another one, something was missed, and that broker is asked to repeat itself.
The hash is compared at every report that follows on a gap, is full, or says and
changes little; else, while the last ones were equal, at one of
`REPORTS_A_COMPARISON`. So what a gap did is repaired at once, and a difference
without one is found that many reports later at the latest.

Our own rows are held as they are read back, so that all brokers'
maps hold the same values. What we say ourselves is `rgd.core.broker.broker`'s business.
"""

from collections import Counter
from typing import Final

from rgd.core.broker.effects import Alarm, AlarmCode, Effect, Publish, Remember
from rgd.core.broker.identity import Identity
from rgd.core.broker.mode import Mode
from rgd.core.broker.settings import BrokerSettings
from rgd.core.broker.sharing import Sharing
from rgd.core.errors import InvariantBroken
from rgd.core.exchange.messages import Ask, Goodbye, Hello, Message, Report
from rgd.core.exchange.peers import Peers, Receipt
from rgd.core.exchange.usage_map import HASHED_ROWS_MAX, UsageMap
from rgd.core.units import Nanos

#: Of so many reports of a broker one is compared with what we hold, however many rows it changes.
REPORTS_A_COMPARISON: Final = 8

#: A broker that sent more rows than are kept is asked again after so many rounds: its state does not fit.
PARTIAL_ROUNDS: Final = 60

#: How often in a round silent peers are looked for.
CHECKS_A_ROUND: Final = 4

#: Changes of the peers' names that are stored at once in a round; what follows is stored together.
REMEMBERS_A_CHECK: Final = 8

#: Why a message of a peer was not taken in, for `rgd_reports_dropped_total`.
_DROPPED: Final = {
    Receipt.BEYOND: ("sequence", AlarmCode.SEQUENCE_REFUSED),
    Receipt.EXCESS: ("brokers", AlarmCode.TOO_MANY_BROKERS),
}


class Membership:
    """The other brokers, as far as we heard them."""

    def __init__(
        self,
        settings: BrokerSettings,
        peers: Peers,
        usage: UsageMap,
        sharing: Sharing,
        identity: Identity,
    ) -> None:
        self._settings = settings
        self._identity = identity
        self._peers = peers
        self._usage = usage
        self._sharing = sharing
        #: Hash of the policies in force here, and the peers that have other ones; 0: not known.
        self.policies_hash = 0
        self.differing: set[str] = set()
        #: Peers with another hash than ours: theirs, and since when.
        self._differing_since: dict[str, tuple[int, Nanos]] = {}
        self.reports_received = 0
        #: Messages of peers that were refused, by reason.
        self.dropped: Counter[str] = Counter()
        #: Reports whose weight was out of bounds.
        self.weights_bounded = 0
        #: Peers whose weight is out of bounds.
        self._overweight: set[str] = set()
        #: How often names may be stored before the next check, and whether some are to be.
        self._remembers_left = REMEMBERS_A_CHECK
        self._is_to_remember = False
        #: The last of our own reports that was read back.
        self._own_sequence = 0
        #: Peers whose full state we count on, and those that we hold it of.
        self._awaited = settings.stored_peers
        self._answered: set[str] = set()
        #: Brokers, this one too, of which we held what they told when it was last compared.
        self._equal: set[str] = set()
        #: Peers that sent more than is kept, and are to be asked again under the policies in force.
        self._incomplete: set[str] = set()
        #: Most brokers that anybody who answered knows of.
        self._members = 1
        #: When to look again for peers that are silent.
        self.check_at = Nanos(0)

    def hear(self, message: Message, now: Nanos) -> list[Effect]:
        """Take in what another broker says."""
        broker = message.sender.broker
        if isinstance(message, Goodbye):
            return self._take_leave(message, now)
        said = message if isinstance(message, Report) else None
        heard = self._peers.hear(message.sender, now, said)
        if heard in _DROPPED:
            reason, code = _DROPPED[heard]
            self.dropped[reason] += 1
            return [Alarm(code, broker)]
        if not heard.is_news:
            return []
        effects = self._welcome(broker, heard, now)
        if isinstance(message, Report):
            effects += self._take_report(message, now)
        elif isinstance(message, Hello) and heard is Receipt.JOINED:
            # Who has just started has no rows: its hello is its full state.
            self._answered.add(broker)
        return effects

    def read_back(self, report: Report, now: Nanos) -> bool:
        """Take in a report of our own; False when an earlier one did not come back to us."""
        steps = report.sequence - self._own_sequence
        if steps <= 0:
            return True
        self._own_sequence = report.sequence
        self._sharing.refresh(self._usage.apply(report), now)
        return not self._is_compared(report, steps) or self._holds(report)

    def check(self, now: Nanos) -> list[Effect]:
        """Ask who has been silent for long whether it lives, and forget who did not say so.

        Asking makes up for heartbeats that were lost: without it three lost in a
        row, one in a thousand at 10 % loss, would take a live broker for dead.
        """
        if now < self.check_at:
            return []
        self.check_at = Nanos(now + self._settings.round_ns // CHECKS_A_ROUND)
        if self._sharing.mode.is_isolated or self._sharing.mode is Mode.YIELDING:
            # It may be we who cannot hear; or we speak for nobody.
            return []
        self._remembers_left = REMEMBERS_A_CHECK
        # The last of the missing heartbeats may still be under way.
        under_way_ns = self._settings.damping_max_ns
        expiry_ns = self._settings.expiry_rounds * self._settings.round_ns + under_way_ns
        effects: list[Effect] = []
        for code, gone in (
            (AlarmCode.PEER_LEFT, self._peers.departed(now)),
            (AlarmCode.PEER_EXPIRED, self._peers.expire(now, expiry_ns)),
        ):
            for broker in gone:
                self._forget(broker, now)
                effects.append(Alarm(code, broker))
            self._is_to_remember |= bool(gone)
        if self._is_to_remember:
            effects += self._remember()
        me = self._identity.sender
        doubtful = self._peers.silent(now, expiry_ns - self._settings.round_ns)
        return effects + [Publish(Ask(me, broker, full=False)) for broker in sorted(doubtful)]

    def policies_changed(self) -> None:
        """Rows that were not kept may be of groups that are known now: they are asked for once."""
        self._incomplete = {name for name in self._peers.names() if self._usage.is_partial(name)}

    def forgive(self, now: Nanos) -> None:
        """Restart the time of everybody's silence: we did not listen."""
        self._peers.forgive(now)

    def await_everybody(self, now: Nanos) -> None:
        """Believe nobody's state until it is told again: we were away."""
        self._peers.forgive(now)
        # Cut off from the start, all that is known of the others is what the last run stored.
        self._awaited = frozenset(self._peers.names()) or self._awaited
        self._answered.clear()
        self._equal.clear()
        self._members = 1

    def recover(self) -> None:
        """Make members and map agree again after a fault, and compare everybody's next report."""
        live = {*self._peers.names(), self._settings.sender.broker}
        for broker in sorted(self._usage.brokers() - live):
            self._usage.remove(broker)
        self._equal.clear()

    @property
    def is_complete(self) -> bool:
        """Whether everybody that we know must be there has told us everything."""
        expected = max(self._settings.expected_brokers, self._members)
        if not self._awaited and expected <= 1:
            # Nobody told us how many there are: only time tells.
            return False
        return (
            self._awaited <= self._answered
            and self._answered >= set(self._peers.names())
            and len(self._answered) + 1 >= expected
        )

    def validate(self) -> None:
        """Check that only live brokers are in the usage map.

        Raises:
            InvariantBroken: it is otherwise; a bug.
        """
        live = set(self._sharing.brokers)
        if not self._usage.brokers() <= live:
            raise InvariantBroken(f"rows of {self._usage.brokers() - live}, which are not live")

    def _take_report(self, report: Report, now: Nanos) -> list[Effect]:
        weight = self._peers.weight_of(report.sender.broker)
        steps = self._peers.advance(report)
        if not steps:
            return []
        self.reports_received += 1
        if self._peers.weight_of(report.sender.broker) != weight:
            self._sharing.refresh_all(now)
        was_partial = self._usage.is_partial(report.sender.broker)
        self._sharing.refresh(self._usage.apply(report), now)
        effects = [*self._compare_policies(report, now), *self._look_at_weight(report)]
        if self._usage.is_partial(report.sender.broker) and not was_partial:
            effects.append(Alarm(AlarmCode.PEER_ROWS_REFUSED, report.sender.broker))
        if self._is_compared(report, steps):
            effects += self._repair(report, now)
        return effects

    def _repair(self, report: Report, now: Nanos) -> list[Effect]:
        """Ask a broker to repeat itself where what it told is not what we hold.

        Absolute rows heal a gap by themselves, unless what was missed is missing
        still; while starting the answers to our hello are under way anyway.
        """
        broker = report.sender.broker
        if self._holds(report):
            self._answered.add(broker)
            if report.full:
                self._members = max(self._members, report.members)
            return []
        if self._sharing.mode is Mode.STARTING:
            return []
        if not self._peers.may_ask(broker, now, self._ask_interval_ns(broker)):
            return []
        self._incomplete.discard(broker)
        ask = Publish(Ask(self._identity.sender, broker))
        return [Alarm(AlarmCode.REPORTS_MISSED, broker), ask]

    def _ask_interval_ns(self, broker: str) -> int:
        is_due = broker in self._incomplete or not self._usage.is_partial(broker)
        return (1 if is_due else PARTIAL_ROUNDS) * self._settings.round_ns

    def _is_compared(self, report: Report, steps: int) -> bool:
        """Whether to compare a report that is `steps` after the one before; see the module's law."""
        broker = report.sender.broker
        if report.more:
            # Nobody can hold yet what the hash is of; after a gap, the last of them is compared.
            if steps > 1:
                self._equal.discard(broker)
            return False
        if steps > 1 or report.full or broker not in self._equal:
            return True
        # A report that could not be read says nothing, too.
        if len(report.rows) <= HASHED_ROWS_MAX or self._usage.is_hashed(broker):
            return True
        # Not everybody's in the same round.
        turn = report.sequence + self._usage.number_of(broker)
        return turn % REPORTS_A_COMPARISON == 0

    def _holds(self, report: Report) -> bool:
        broker = report.sender.broker
        if self._usage.hash_of(broker) == report.rows_hash:
            self._equal.add(broker)
            return True
        self._equal.discard(broker)
        return False

    def _look_at_weight(self, report: Report) -> list[Effect]:
        """Say once that a peer tells a weight out of bounds, for which another counts."""
        broker = report.sender.broker
        counts = self._peers.weight_of(broker)
        if report.weight == counts:
            self._overweight.discard(broker)
            return []
        self.weights_bounded += 1
        if broker in self._overweight:
            return []
        self._overweight.add(broker)
        reason = f"it says {report.weight} thousandths, {counts} count"
        return [Alarm(AlarmCode.WEIGHT_BOUNDED, broker, reason)]

    def _compare_policies(self, report: Report, now: Nanos) -> list[Effect]:
        """Tell of a peer whose policies differ from ours for longer than one that follows needs."""
        broker, told = report.sender.broker, report.policies_hash
        # Who does not say what it has, as an earlier rgd with a table, differs from nobody.
        if told == self.policies_hash or not told or not self.policies_hash:
            self.differing.discard(broker)
            self._differing_since.pop(broker, None)
            return []
        known = self._differing_since.get(broker)
        # Who changes its policies is following.
        since = now if known is None or known[0] != told else known[1]
        self._differing_since[broker] = (told, since)
        if broker in self.differing or now - since < self._settings.policies_patience_ns:
            return []
        self.differing.add(broker)
        return [Alarm(AlarmCode.POLICIES_DIFFER, broker)]

    def _welcome(self, broker: str, heard: Receipt, now: Nanos) -> list[Effect]:
        if heard is Receipt.JOINED:
            self._sharing.refresh_all(now)
            return [Alarm(AlarmCode.PEER_JOINED, broker), *self._remember()]
        if heard is Receipt.RESTARTED:
            self._forget(broker, now)
            return [Alarm(AlarmCode.PEER_RESTARTED, broker)]
        return []

    def _take_leave(self, message: Goodbye, now: Nanos) -> list[Effect]:
        broker = message.sender.broker
        if not self._peers.leave(message.sender, now):
            return []
        self._forget(broker, now)
        return [Alarm(AlarmCode.PEER_LEFT, broker), *self._remember()]

    def _forget(self, broker: str, now: Nanos) -> None:
        self._usage.remove(broker)
        self.differing.discard(broker)
        self._differing_since.pop(broker, None)
        self._answered.discard(broker)
        self._equal.discard(broker)
        self._overweight.discard(broker)
        self._incomplete.discard(broker)
        self._sharing.refresh_all(now)

    def _remember(self) -> list[Effect]:
        """Store the peers' names now, or, after many changes, with the next check."""
        self._is_to_remember = self._remembers_left == 0
        if self._is_to_remember:
            return []
        self._remembers_left -= 1
        return [Remember(tuple(self._peers.names()))]
