"""The shards whose rows this broker reads, and how far it can rely on each.

Laws:

- A broker reads the shards of its groups in use. Shares of a group are computed from the usage map only while its
  shard is `WARM`.
- A shard is warm once this broker's own report of it has come back and the rows of all peers are held, or
  `WARMING_ROUNDS` later. It is cut off while this broker's own reports of it do not come back. A shard that is not warm
  begins again after a stand-still of the process, because answers may be lost.
- A report of a shard counts only from the incarnation that is a member. It is no sign of life.
- Each heartbeat says the last sequence of each shard. One that has not been received `damping_max_ns` after it was
  first said is missing, because topics are not ordered among each other; it is asked for.

Phases are changed here alone, in `work`. docs/decisions/0041 has the reasons.
"""

from dataclasses import dataclass, field
from typing import Final

from rgd.core.broker.effects import Alarm, AlarmCode, Effect, Listen, Publish
from rgd.core.broker.link import Link
from rgd.core.broker.shard_sender import ShardSender
from rgd.core.broker.shard_shares import Phase
from rgd.core.broker.sharing import Sharing
from rgd.core.exchange.messages import Ask, Report
from rgd.core.exchange.peers import REACH_SLACK, Peers
from rgd.core.exchange.shards import Shard
from rgd.core.exchange.usage_map import UsageMap
from rgd.core.units import Nanos

#: Rounds for which a broker waits for its own report of a shard, and then for its peers' rows.
WARMING_ROUNDS: Final = 2

#: Rounds before a broker that sent more rows than are kept is asked again: its state does not fit.
PARTIAL_ROUNDS: Final = 60

#: Rounds for which a shard without groups in use is still read, because they may come back.
UNUSED_ROUNDS: Final = 60


@dataclass(slots=True)
class Joined:
    """One shard that is read."""

    shard: Shard
    link: Link
    #: When it was joined or asked for again.
    since: Nanos
    phase: Phase = Phase.COLD
    is_open: bool = False
    #: By broker: the sequence of its last report; this broker is one of them.
    sequences: dict[str, int] = field(default_factory=dict)
    #: Brokers whose rows are held, by the last comparison of hashes, or which have none.
    equal: set[str] = field(default_factory=set)
    #: By broker: a sequence that a heartbeat contained and that was not received yet, and since when.
    missing: dict[str, tuple[int, Nanos]] = field(default_factory=dict)
    asked_at: dict[str, Nanos] = field(default_factory=dict)
    #: Whether all peers were asked since the shard was joined or cut off.
    is_asked: bool = False

    def forget(self, broker: str) -> None:
        """Forget a broker that left or restarted."""
        self.sequences.pop(broker, None)
        self.equal.discard(broker)
        self.missing.pop(broker, None)
        self.asked_at.pop(broker, None)


class ShardReader:
    """The shards of this broker's own layout; with one shard, none at all."""

    def __init__(
        self, peers: Peers, usage: UsageMap, sharing: Sharing, sender: ShardSender
    ) -> None:
        self._settings = sender.settings
        self._identity = sender.identity
        self._peers = peers
        self._usage = usage
        self._sender = sender
        self._sharing = sharing
        self._shards = sharing.shards
        self.joined: dict[int, Joined] = {}
        self._next_at: Nanos | None = None
        self.reports_received = 0

    @property
    def is_used(self) -> bool:
        """Whether this broker reads shards."""
        return self._settings.shards > 1

    @property
    def due_at(self) -> Nanos | None:
        """When `work` is due."""
        return Nanos(0) if self._is_to_listen else self._next_at

    @property
    def _is_to_listen(self) -> bool:
        """Whether groups of other shards are in use than those that are read."""
        return self.joined.keys() != self._shards.used_at.keys()

    # Joining and leaving.

    def _follow_use(self, now: Nanos) -> Listen:
        """Join the shards of groups in use, and leave the others."""
        used = self._shards.used_at
        for number in used.keys() - self.joined.keys():
            shard = Shard(number, self._settings.shards)
            self.joined[number] = Joined(shard, self._new_link(), now)
        for number in self.joined.keys() - used.keys():
            shard = self.joined.pop(number).shard
            self._shards.phases[number] = Phase.COLD
            for broker in (*self._peers.names(), self._settings.sender.broker):
                self._usage.remove_shard(broker, shard)
        return Listen(frozenset(one.shard for one in self.joined.values()))

    def opened(self, shard: Shard, now: Nanos) -> list[Effect]:
        """A shard can be read from now on: ask all peers for their rows, and send the own ones."""
        one = self._of(shard)
        if one is None:
            return []
        one.is_open = True
        self._next_at = now
        return self._ask_all(one, now)

    def rejoin(self, now: Nanos, *, asks_warm: bool = True) -> list[Effect]:
        """Ask for the rows of all shards again, because reports may have been missed; of warm ones only if `asks_warm`."""
        effects: list[Effect] = []
        for one in self.joined.values():
            if one.phase is not Phase.WARM or not self._sharing.mode.believes_map:
                self._begin_again(one, now)
            elif not asks_warm:
                continue
            # Else the rows are still good within the shard's own isolation hold, which goes on.
            if one.is_open:
                effects += self._ask_all(one, now)
        return effects

    def forget(self, broker: str) -> None:
        """Forget a broker that left or restarted; its rows are removed by the caller."""
        for one in self.joined.values():
            one.forget(broker)

    # Messages.

    def sent(self, report: Report, now: Nanos) -> None:
        """Note a report of a shard that was sent."""
        one = self._of(report.shard)
        if one is not None and one.is_open:
            one.link.sent(report.sequence, now)

    def read_back(self, report: Report, now: Nanos) -> None:
        """Apply an own report; if an earlier one did not come back, send the whole state again."""
        one = self._of(report.shard)
        if one is None:
            return
        one.link.received(report.sequence, now)
        self._next_at = now
        if self._take(one, report, now) is False and not report.full:
            self._sender.answer_from(one.shard, now)

    def receive(self, report: Report, now: Nanos) -> list[Effect]:
        """Apply a peer's report of a shard."""
        one, broker = self._of(report.shard), report.sender.broker
        peer = self._peers.get(broker)
        if one is None or peer is None or peer.incarnation != report.sender.incarnation:
            return []
        was_partial = self._usage.is_partial(broker, one.shard)
        is_held = self._take(one, report, now)
        if is_held is not None:
            self.reports_received += 1
            self._next_at = now
        effects = self._ask(one, broker, now) if is_held is False else []
        if self._usage.is_partial(broker, one.shard) and not was_partial:
            effects.append(Alarm(AlarmCode.PEER_ROWS_REFUSED, broker))
        return effects

    def heartbeat(self, report: Report, now: Nanos) -> list[Effect]:
        """Compare what a member, this broker too, says that it sent with what was received."""
        broker, layout = report.sender.broker, self._settings.shards
        said = next((each for each in report.shard_sequences if len(each) == layout), None)
        if said is None:
            return []
        effects: list[Effect] = []
        for number, one in self.joined.items():
            if one.is_open and self._lacks(one, broker, said[number], now):
                effects += self._ask(one, broker, now)
        return effects

    def policies_changed(self) -> None:
        """Ask once more for rows that were not kept, as `Membership` does."""
        for one in self.joined.values():
            for broker in list(one.asked_at):
                if self._usage.is_partial(broker, one.shard):
                    del one.asked_at[broker]

    # Time.

    def work(self, now: Nanos) -> list[Effect]:
        """Join and leave what is due, and change the phases."""
        if not self.is_used:
            return []
        effects: list[Effect] = []
        if self._is_to_listen:
            effects.append(self._follow_use(now))
        self._next_at = None
        for one in self.joined.values():
            effects += self._advance(one, now)
            due_at = self._changes_at(one)
            if due_at is not None:
                self._next_at = due_at if self._next_at is None else min(self._next_at, due_at)
        return effects

    def end_round(self, now: Nanos) -> None:
        """Send the own rows of shards that are cut off, so that one may come back; leave those unused for `UNUSED_ROUNDS`."""
        unused_ns = UNUSED_ROUNDS * self._settings.round_ns
        for number, used_at in list(self._shards.used_at.items()):
            if now - used_at > unused_ns:
                del self._shards.used_at[number]
        for one in self.joined.values():
            if one.phase is Phase.CUT_OFF and one.is_open:
                self._sender.answer_from(one.shard, now)

    # Details.

    def _of(self, shard: Shard) -> Joined | None:
        return self.joined.get(shard.number) if shard.of == self._settings.shards else None

    def _new_link(self) -> Link:
        settings = self._settings
        return Link(settings.patience_ns, settings.damping_max_ns)

    def _take(self, one: Joined, report: Report, now: Nanos) -> bool | None:
        """Apply a report; whether the sender's rows are held, None where that is not known."""
        broker = report.sender.broker
        before = one.sequences.get(broker, 0)
        steps = report.sequence - before
        if steps <= 0 or (before and steps > REACH_SLACK):
            return None
        one.sequences[broker] = report.sequence
        missing = one.missing.get(broker)
        if missing is not None and missing[0] <= report.sequence:
            del one.missing[broker]
        self._sharing.refresh(self._usage.apply(report), now)
        if report.more:
            if steps > 1:
                one.equal.discard(broker)
            return None
        is_held = self._usage.hash_of(broker, one.shard) == report.rows_hash
        (one.equal.add if is_held else one.equal.discard)(broker)
        return is_held

    def _lacks(self, one: Joined, broker: str, said: int, now: Nanos) -> bool:
        """Whether reports that a heartbeat says were sent are missing for too long."""
        received = one.sequences.get(broker, 0)
        if said < received:
            # Topics are not ordered among each other.
            return False
        if said == received:
            one.missing.pop(broker, None)
            if said == 0:
                one.equal.add(broker)
                self._next_at = now
            return broker not in one.equal
        sequence, since = one.missing.setdefault(broker, (said, now))
        if sequence <= received:
            one.missing[broker] = (said, now)
            return False
        if now - since < self._settings.damping_max_ns:
            return False
        # The heartbeat vouches for a sequence that would be too far ahead by itself.
        one.sequences[broker] = max(received, said - REACH_SLACK)
        return True

    def _ask(self, one: Joined, broker: str, now: Nanos) -> list[Effect]:
        """Ask one broker for its rows of a shard, at most once a round; itself by sending them."""
        me = self._identity.sender
        if broker == me.broker:
            self._sender.answer_from(one.shard, now)
            return []
        asked_at = one.asked_at.get(broker)
        rounds = PARTIAL_ROUNDS if self._usage.is_partial(broker, one.shard) else 1
        is_due = asked_at is None or now - asked_at >= rounds * self._settings.round_ns
        if not is_due:
            return []
        one.asked_at[broker] = now
        return [
            Alarm(AlarmCode.REPORTS_MISSED, broker),
            Publish(Ask(me, broker, shard=one.shard)),
        ]

    def _ask_all(self, one: Joined, now: Nanos) -> list[Effect]:
        me = self._identity.sender
        one.asked_at = dict.fromkeys(self._peers.names(), now)
        one.is_asked = True
        self._sender.answer_from(one.shard, now)
        return [Publish(Ask(me, me.broker, shard=one.shard))]

    def _begin_again(self, one: Joined, now: Nanos) -> None:
        """Rely on a shard no longer until its rows are held again."""
        one.since = now
        one.link = self._new_link()
        one.equal.clear()
        one.is_asked = False
        if one.phase is Phase.WARM:
            self._become(one, Phase.CUT_OFF, now)

    def _advance(self, one: Joined, now: Nanos) -> list[Effect]:
        """Change the phase of a shard where that is due."""
        changes_at, was = self._changes_at(one), one.phase
        is_due = changes_at is not None and now >= changes_at
        if was is Phase.WARM or one.link.reached_at is None:
            if not is_due:
                return []
            if was is Phase.WARM:
                self._begin_again(one, now)
            else:
                one.is_asked = False
                self._become(one, Phase.CUT_OFF, now)
            return [Alarm(AlarmCode.SHARD_CUT_OFF, reason=_named(one.shard))]
        effects = [] if one.is_asked else self._ask_all(one, now)
        if is_due or one.equal.issuperset(self._peers.names()):
            self._become(one, Phase.WARM, now)
            if was is Phase.CUT_OFF:
                effects.append(Alarm(AlarmCode.SHARD_BACK, reason=_named(one.shard)))
        return effects

    def _changes_at(self, one: Joined) -> Nanos | None:
        """When the phase of a shard changes if nothing is received until then."""
        round_ns, link = self._settings.round_ns, one.link
        if one.phase is Phase.WARM:
            hold_ns = self._settings.isolation_hold_rounds * round_ns
            return None if link.silent_at is None else Nanos(link.silent_at + hold_ns)
        if link.reached_at is None and one.phase is Phase.CUT_OFF:
            return None
        begun_at = one.since if link.reached_at is None else link.reached_at
        return Nanos(begun_at + WARMING_ROUNDS * round_ns)

    def _become(self, one: Joined, phase: Phase, now: Nanos) -> None:
        one.phase = phase
        self._shards.phases[one.shard.number] = phase
        slots = self._sharing.slots_in_use
        self._sharing.refresh(slots[self._usage.index.are_of(slots, one.shard)], now)


def _named(shard: Shard) -> str:
    return f"shard {shard.number} of {shard.of}"
