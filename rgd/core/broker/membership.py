"""Who else is in the exchange, and whether we hold what each of them told.

Law: the usage map has rows of live brokers only, and whatever changes it (a
report, a newcomer, a goodbye, silence) has the shares reckoned anew at once.

A report says the hash of everything its speaker has told; where what we hold
has another one, something was missed, and that broker is asked to repeat itself.
The hash is compared at every report that follows on a gap, is full, or says and
changes little; else, while the last ones were equal, at one of
`REPORTS_A_COMPARISON`. So what a gap did is repaired at once, and a difference
without one is found that many reports later at the latest.

Our own rows are held as they are read back, so that all maps are made of the
same words. What we say ourselves is `rgd.core.broker.broker`'s business.
"""

from typing import Final

from rgd.core.broker.effects import Alarm, AlarmCode, Effect, Publish, Remember
from rgd.core.broker.settings import BrokerSettings
from rgd.core.broker.sharing import Mode, Sharing
from rgd.core.errors import InvariantBroken
from rgd.core.exchange.messages import Ask, Goodbye, Hello, Message, Report
from rgd.core.exchange.peers import Heard, Peers
from rgd.core.exchange.usage_map import HASHED_ROWS_MAX, UsageMap
from rgd.core.units import Nanos

#: Of so many reports of a broker one is compared with what we hold, however many rows it changes.
REPORTS_A_COMPARISON: Final = 8

#: How often in a round silent peers are looked for.
CHECKS_A_ROUND: Final = 4


class Membership:
    """The other brokers, as far as we heard them."""

    def __init__(
        self, settings: BrokerSettings, peers: Peers, usage: UsageMap, sharing: Sharing
    ) -> None:
        self._settings = settings
        self._peers = peers
        self._usage = usage
        self._sharing = sharing
        #: Hash of the policies in force here, and the peers that have other ones; 0: not known.
        self.policies_hash = 0
        self.differing: set[str] = set()
        #: Peers with another hash than ours: theirs, and since when.
        self._differing_since: dict[str, tuple[int, Nanos]] = {}
        self.reports_received = 0
        #: The last of our own reports that was read back.
        self._own_sequence = 0
        #: Peers whose full state we count on, and those that we hold it of.
        self._awaited = settings.stored_peers
        self._answered: set[str] = set()
        #: Brokers, this one too, of which we held what they told when it was last compared.
        self._equal: set[str] = set()
        #: Most brokers that anybody who answered knows of.
        self._members = 1
        #: When to look again for peers that are silent.
        self.check_at = Nanos(0)

    def hear(self, message: Message, now: Nanos) -> list[Effect]:
        """Take in what another broker says."""
        broker = message.speaker.broker
        if isinstance(message, Goodbye):
            return self._take_leave(message, now)
        heard = self._peers.hear(message.speaker, now)
        if heard in {Heard.STALE, Heard.CLAIMED}:
            return []
        effects = self._welcome(broker, heard, now)
        if isinstance(message, Report):
            effects += self._take_report(message, now)
        elif isinstance(message, Hello) and heard is Heard.JOINED:
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
        if self._sharing.mode.is_isolated:
            # It may be we who cannot hear.
            return []
        # The last of the missing heartbeats may still be under way.
        under_way_ns = self._settings.settle_max_ns
        expiry_ns = self._settings.expiry_rounds * self._settings.round_ns + under_way_ns
        effects: list[Effect] = []
        silent = self._peers.expire(now, expiry_ns)
        for broker in silent:
            self._forget(broker, now)
            effects.append(Alarm(AlarmCode.PEER_EXPIRED, broker))
        if silent:
            effects.append(self._remember())
        me = self._settings.speaker
        doubtful = self._peers.silent(now, expiry_ns - self._settings.round_ns)
        return effects + [Publish(Ask(me, broker, full=False)) for broker in sorted(doubtful)]

    def forgive(self, now: Nanos) -> None:
        """Start everybody's silence anew: we did not listen."""
        self._peers.forgive(now)

    def await_everybody(self, now: Nanos) -> None:
        """Believe nobody's state until it is told again: we were away."""
        self._peers.forgive(now)
        # Cut off from the start, all that is known of the others is what the last run stored.
        self._awaited = frozenset(self._peers.names()) or self._awaited
        self._answered.clear()
        self._equal.clear()
        self._members = 1

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
        weight = self._peers.weight_of(report.speaker.broker)
        steps = self._peers.advance(report)
        if not steps:
            return []
        self.reports_received += 1
        if report.weight != weight:
            self._sharing.refresh_all(now)
        self._sharing.refresh(self._usage.apply(report), now)
        effects = self._compare_policies(report, now)
        if self._is_compared(report, steps):
            effects += self._repair(report, now)
        return effects

    def _repair(self, report: Report, now: Nanos) -> list[Effect]:
        """Ask a broker to repeat itself where what it told is not what we hold.

        Absolute rows heal a gap by themselves, unless what was missed is missing
        still; while starting the answers to our hello are under way anyway.
        """
        broker = report.speaker.broker
        if self._holds(report):
            self._answered.add(broker)
            if report.full:
                self._members = max(self._members, report.members)
            return []
        if self._sharing.mode is Mode.STARTING:
            return []
        if not self._peers.may_ask(broker, now, self._settings.round_ns):
            return []
        ask = Publish(Ask(self._settings.speaker, broker))
        return [Alarm(AlarmCode.REPORTS_MISSED, broker), ask]

    def _is_compared(self, report: Report, steps: int) -> bool:
        """Whether to compare a report that is `steps` after the one before; see the module's law."""
        broker = report.speaker.broker
        if steps > 1 or report.full or broker not in self._equal:
            return True
        # A report that could not be read says nothing, too.
        if len(report.rows) <= HASHED_ROWS_MAX or self._usage.is_hashed(broker):
            return True
        # Not everybody's in the same round.
        turn = report.sequence + self._usage.number_of(broker)
        return turn % REPORTS_A_COMPARISON == 0

    def _holds(self, report: Report) -> bool:
        broker = report.speaker.broker
        if self._usage.hash_of(broker) == report.rows_hash:
            self._equal.add(broker)
            return True
        self._equal.discard(broker)
        return False

    def _compare_policies(self, report: Report, now: Nanos) -> list[Effect]:
        """Tell of a peer whose policies differ from ours for longer than one that follows needs."""
        broker, told = report.speaker.broker, report.policies_hash
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

    def _welcome(self, broker: str, heard: Heard, now: Nanos) -> list[Effect]:
        if heard is Heard.JOINED:
            self._sharing.refresh_all(now)
            return [Alarm(AlarmCode.PEER_JOINED, broker), self._remember()]
        if heard is Heard.RESTARTED:
            self._forget(broker, now)
            return [Alarm(AlarmCode.PEER_RESTARTED, broker)]
        return []

    def _take_leave(self, message: Goodbye, now: Nanos) -> list[Effect]:
        broker = message.speaker.broker
        if not self._peers.leave(message.speaker):
            return []
        self._forget(broker, now)
        return [Alarm(AlarmCode.PEER_LEFT, broker), self._remember()]

    def _forget(self, broker: str, now: Nanos) -> None:
        self._usage.remove(broker)
        self.differing.discard(broker)
        self._differing_since.pop(broker, None)
        self._answered.discard(broker)
        self._equal.discard(broker)
        self._sharing.refresh_all(now)

    def _remember(self) -> Effect:
        return Remember(tuple(self._peers.names()))
