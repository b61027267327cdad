"""One member of the exchange: events in, effects out, and nothing else.

Law: `Broker.handle` is the only door through which this state changes (but for
requests, which take the short road through `Broker.limiter`); the same events
in the same order give the same effects, in the daemon and in the simulator.

The life of a broker: it says hello and grants from its floor until the peers
have answered or two rounds are over; then each round it tells what changed and
reckons its shares whenever a report arrives; if its own words stop coming back
it holds its shares, then acts as `exchange.on_isolation` says, until they do.

Elsewhere: what a share is (`sharing`), what a round says (`rounds`), whether
the exchange works (`link`), who is there (`rgd.core.exchange.peers`).
"""

from collections.abc import Callable, Mapping
from typing import Final

from rgd.core.broker.effects import Alarm, AlarmCode, Append, Effect, Halt, Publish, Remember
from rgd.core.broker.events import (
    DemandUnreported,
    Event,
    MessageReceived,
    PoliciesChanged,
    Started,
    Stopping,
    Woken,
)
from rgd.core.broker.link import Link
from rgd.core.broker.rounds import Rounds
from rgd.core.broker.settings import BrokerSettings
from rgd.core.broker.sharing import Mode, Sharing
from rgd.core.buckets.level import BucketSettings, GroupKey
from rgd.core.buckets.limiter import Limiter
from rgd.core.errors import InvariantBroken
from rgd.core.exchange.messages import (
    Ask,
    Goodbye,
    Hello,
    Message,
    Report,
    RoundRecord,
    UsageRow,
)
from rgd.core.exchange.peers import Heard, Peers
from rgd.core.exchange.usage_map import UsageMap, told_hash
from rgd.core.policies.model import Rates, SharePolicyName
from rgd.core.units import NS_PER_MS, Nanos

#: Rounds that a starting broker waits for answers to its hello (design 3).
HELLO_ROUNDS: Final = 2


class Broker:
    """The state of one member; see the module for its law."""

    def __init__(self, settings: BrokerSettings, now: Nanos) -> None:
        self.settings = settings
        self.created_at = now
        self.peers = Peers()
        self.usage = UsageMap()
        self.sharing = Sharing(settings, self.usage, self.peers, self._apply_share)
        buckets = BucketSettings(
            settings.burst_ns, settings.request_max_ms, settings.round_ns // NS_PER_MS
        )
        self._now = now
        self.limiter = Limiter(
            buckets, lambda group, kind: self.sharing.first_share(group, kind, self._now)
        )
        # A daemon that knows of nobody yet grants no bursts: N of them might.
        self.limiter.set_group_burst(0, now)
        self.rounds = Rounds(settings, self.limiter, self.sharing)
        self.link = Link(settings.round_ns + settings.settle_max_ns, settings.settle_max_ns)
        self.sequence = 0
        self.reports_sent = 0
        self.reports_received = 0
        #: Peers whose policies file differs from ours (`rgd_policy_hash_conflict`).
        self.differing: set[str] = set()
        self._policies_hash = 0
        self._started_at: Nanos | None = None
        self._round_end = now
        self._reported_at = Nanos(now - settings.min_interval_ns)
        #: When an early report is due, and the groups it follows up.
        self._early_at: Nanos | None = None
        self._follow_up: list[GroupKey] = []
        #: When our full state is due, because somebody asked.
        self._answer_at: Nanos | None = None
        #: Since when we hold our shares, cut off.
        self._silent_since: Nanos | None = None
        #: Peers whose answer to our hello we count on, and those whose full state we hold.
        self._awaited = settings.stored_peers
        self._answered: set[str] = set()
        self._handlers: Mapping[type[Event], Callable[..., list[Effect]]] = {
            Started: self._on_started,
            Woken: self._on_woken,
            MessageReceived: self._on_message_received,
            PoliciesChanged: self._on_policies_changed,
            DemandUnreported: self._on_demand_unreported,
            Stopping: self._on_stopping,
        }

    @property
    def mode(self) -> Mode:
        """What this broker believes of the others."""
        return self.sharing.mode

    @property
    def wake_at(self) -> Nanos | None:
        """When `Woken` is due next; None before the start."""
        if self._started_at is None:
            return None
        settles_at = self.sharing.settles_at(self.link.settle_ns)
        due = (self._round_end, self._early_at, self._answer_at, settles_at, self._live_at)
        return min(at for at in due if at is not None)

    @property
    def is_past_start(self) -> bool:
        """Whether shares are known, or two rounds have shown that nobody will tell them."""
        if self.mode is not Mode.STARTING:
            return True
        waited_ns = self._now - (self._now if self._started_at is None else self._started_at)
        return self.link.reached_at is None and waited_ns >= HELLO_ROUNDS * self.settings.round_ns

    def handle(self, event: Event) -> tuple[Effect, ...]:
        """Let an event happen; returns what the world should do, in order."""
        self._now = max(self._now, event.now)
        return tuple(self._handlers[type(event)](event))

    def shares(self, key: GroupKey) -> dict[str, Rates]:
        """Every live broker's share of a group, as this broker reckons it."""
        return self.sharing.shares(key)

    def validate(self) -> None:
        """Check what must always hold.

        Raises:
            InvariantBroken: it does not; a bug.
        """
        live = set(self.sharing.brokers)
        for key in list(self.rounds.told):
            if not set(self.usage.rows(key)) <= live:
                raise InvariantBroken(f"{key}: rows of brokers that are not live: {live}")
        for state in self.limiter.states():
            group = self.sharing.book.groups[state.key.group]
            if (group.policy or self.settings.policy) is not SharePolicyName.MAX_MIN:
                continue
            shares = list(self.shares(state.key).values())
            for name in ("messages", "bytes"):
                quota = getattr(self.sharing.quota(state.key), name)
                total = sum(getattr(share, name) or 0 for share in shares)
                if quota is not None and total != quota:
                    raise InvariantBroken(f"{state.key} {name}: {shares} do not sum to {quota}")

    # Handlers, one for each event.

    def _on_started(self, event: Started) -> list[Effect]:
        self._started_at = event.now
        self._round_end = Nanos(event.now + self.settings.round_ns)
        return [self._hello(event.now)]

    def _on_woken(self, event: Woken) -> list[Effect]:
        now = event.now
        if self._started_at is None:
            return []
        effects: list[Effect] = []
        if now >= self._round_end:
            effects += self._end_round(now)
        if self._early_at is not None and now >= self._early_at:
            effects += self._report_early(now)
        if self._answer_at is not None and now >= self._answer_at:
            effects.append(self._report((), now, full=True))
        self.sharing.settle(self.link.settle_ns, now)
        return [*effects, *self._maybe_go_live(now)]

    def _on_message_received(self, event: MessageReceived) -> list[Effect]:
        message, now = event.message, event.now
        me = self.settings.speaker
        if message.speaker == me:
            return self._read_back(message, now)
        if message.speaker.broker == me.broker:
            return self._meet_namesake(message, now)
        if isinstance(message, Goodbye):
            return self._on_goodbye(message, now)
        heard = self.peers.hear(message.speaker, now)
        if heard is Heard.STALE:
            return []
        effects = self._welcome(message.speaker.broker, heard, now)
        if isinstance(message, Report):
            effects += self._on_report(message, now)
            return effects
        if isinstance(message, Hello) and heard is not Heard.KNOWN:
            # Who has just started has no rows: its hello is its full state.
            self._answered.add(message.speaker.broker)
        if isinstance(message, Hello) or message.broker == me.broker:
            self._answer_soon(message.speaker.incarnation, now)
        return [*effects, *self._maybe_go_live(now)]

    def _on_policies_changed(self, event: PoliciesChanged) -> list[Effect]:
        self.sharing.book = event.book
        self._policies_hash = event.policies_hash
        self.limiter.set_book(event.book, event.now)
        self.sharing.refresh_all(self.link.settle_ns, event.now)
        return []

    def _on_demand_unreported(self, event: DemandUnreported) -> list[Effect]:
        if self._started_at is None:
            return []
        earliest = Nanos(self._reported_at + self.settings.min_interval_ns)
        due = max(event.now, earliest)
        self._early_at = due if self._early_at is None else min(self._early_at, due)
        return self._report_early(event.now) if event.now >= self._early_at else []

    def _on_stopping(self, event: Stopping) -> list[Effect]:
        if self._started_at is None:
            return []
        self.rounds.end(event.now)
        effects: list[Effect] = [Append(self._record(event.now))]
        return [*effects, Publish(Goodbye(self.settings.speaker))]

    # Rounds.

    def _end_round(self, now: Nanos) -> list[Effect]:
        effects = self._check_link(now)
        effects += self._expire(now)
        rows = self.rounds.end(now)
        self._early_at, self._follow_up = None, []
        record = self._record(now)
        if record.rows:
            effects.append(Append(record))
        effects.append(self._report(tuple(rows), now))
        if self.link.reached_at is None:
            effects.append(self._hello(now))
        self._round_end = Nanos(max(self._round_end, now - self.settings.round_ns))
        self._round_end = Nanos(self._round_end + self.settings.round_ns)
        return effects

    def _report_early(self, now: Nanos) -> list[Effect]:
        urgent = self.rounds.unreported()
        rows = self.rounds.early(dict.fromkeys([*urgent, *self._follow_up]), now)
        # The first report of a fresh group has seen only its first moments: say it once more.
        self._follow_up = urgent
        self._early_at = Nanos(now + self.settings.min_interval_ns) if urgent else None
        return [self._report(tuple(rows), now)] if rows else []

    def _report(self, rows: tuple[UsageRow, ...], now: Nanos, *, full: bool = False) -> Effect:
        self.sequence += 1
        self.reports_sent += 1
        told = self.rounds.told.values()
        period_ns = max(1, now - self._reported_at)
        self._reported_at = now
        if full:
            self._answer_at = None
        self.link.said(self.sequence, now)
        return Publish(
            Report(
                speaker=self.settings.speaker,
                sequence=self.sequence,
                period_ns=period_ns,
                rows=tuple(told) if full else rows,
                full=full,
                rows_hash=told_hash(told),
                weight=self.settings.weight,
                policies_hash=self._policies_hash,
            )
        )

    def _record(self, now: Nanos) -> RoundRecord:
        return self.rounds.record(self.sequence, self.peers.sequences(), now)

    # The others.

    def _on_report(self, report: Report, now: Nanos) -> list[Effect]:
        broker = report.speaker.broker
        if not self.peers.advance(report):
            return []
        self.reports_received += 1
        changed = self.usage.apply(report)
        self.sharing.refresh(changed, self.link.settle_ns, now)
        effects = self._compare_policies(report)
        return [*effects, *self._repair(broker, report, now), *self._maybe_go_live(now)]

    def _repair(self, broker: str, report: Report, now: Nanos) -> list[Effect]:
        """Ask a broker to repeat itself where what it told is not what we hold.

        Absolute rows heal a gap by themselves, unless what was missed is missing
        still; while starting the answers to our hello are under way anyway.
        """
        if told_hash(self.usage.rows_of(broker).values()) == report.rows_hash:
            self._answered.add(broker)
            return []
        if self.mode is Mode.STARTING:
            return []
        if not self.peers.may_ask(broker, now, self.settings.round_ns):
            return []
        ask = Publish(Ask(self.settings.speaker, broker))
        return [Alarm(AlarmCode.REPORTS_MISSED, broker), ask]

    def _on_goodbye(self, message: Goodbye, now: Nanos) -> list[Effect]:
        broker = message.speaker.broker
        if not self.peers.leave(message.speaker):
            return []
        self._forget(broker, now)
        return [Alarm(AlarmCode.PEER_LEFT, broker), self._remember()]

    def _welcome(self, broker: str, heard: Heard, now: Nanos) -> list[Effect]:
        if heard is Heard.KNOWN:
            return []
        if heard is Heard.RESTARTED:
            self.usage.remove(broker)
        self.sharing.refresh_all(self.link.settle_ns, now)
        if heard is Heard.RESTARTED:
            return [Alarm(AlarmCode.PEER_RESTARTED, broker)]
        return [Alarm(AlarmCode.PEER_JOINED, broker), self._remember()]

    def _expire(self, now: Nanos) -> list[Effect]:
        if self.mode.is_isolated:
            return []
        effects: list[Effect] = []
        for broker in self.peers.expire(now, self.settings.expiry_rounds * self.settings.round_ns):
            self._forget(broker, now)
            effects.append(Alarm(AlarmCode.PEER_EXPIRED, broker))
        return [*effects, self._remember()] if effects else []

    def _forget(self, broker: str, now: Nanos) -> None:
        self.usage.remove(broker)
        self.differing.discard(broker)
        self._answered.discard(broker)
        self.sharing.refresh_all(self.link.settle_ns, now)

    def _remember(self) -> Effect:
        return Remember(tuple(self.peers.names()))

    def _compare_policies(self, report: Report) -> list[Effect]:
        broker = report.speaker.broker
        if report.policies_hash == self._policies_hash:
            self.differing.discard(broker)
            return []
        if broker in self.differing:
            return []
        self.differing.add(broker)
        return [Alarm(AlarmCode.POLICIES_DIFFER, broker)]

    def _answer_soon(self, asker: int, now: Nanos) -> None:
        # Spread over half a round by who asks and who answers, so that no dice is needed.
        spread = max(1, self.settings.round_ns // 2)
        due = Nanos(now + (asker ^ self.settings.speaker.incarnation) % spread)
        self._answer_at = due if self._answer_at is None else min(self._answer_at, due)

    def _meet_namesake(self, message: Message, now: Nanos) -> list[Effect]:
        """Another daemon speaks for our name: the one that came later has to go."""
        me = self.settings.speaker
        is_hello = isinstance(message, Hello)
        is_answer = isinstance(message, Report) and message.full
        if not (is_hello or is_answer):
            # Not an answer to our hello: what a crashed one said last may still be under way.
            return []
        alarm = Alarm(AlarmCode.NAME_CONFLICT, me.broker)
        # Of two that start together the one with the lower incarnation stays.
        came_first = is_answer or message.speaker.incarnation < me.incarnation
        if self.mode is Mode.STARTING and came_first:
            reason = (
                f"another daemon speaks for broker {me.broker!r}: "
                "give this one another broker.name, or stop the other"
            )
            return [alarm, Halt(reason)]
        return [alarm, self._report((), now, full=True)] if is_hello else [alarm]

    # The exchange itself.

    def _hello(self, now: Nanos) -> Effect:
        self.link.said(0, now)
        return Publish(Hello(self.settings.speaker))

    def _read_back(self, message: Message, now: Nanos) -> list[Effect]:
        if isinstance(message, Report):
            self.link.heard(message.sequence, now)
            changed = self.usage.apply(message)
            self.sharing.refresh(changed, self.link.settle_ns, now)
        elif isinstance(message, Hello):
            self.link.heard(0, now)
        return self._rejoin(now) if self.mode.is_isolated else []

    def _check_link(self, now: Nanos) -> list[Effect]:
        if self.mode is Mode.LIVE and self.link.is_silent(now):
            self._silent_since = now
            self.sharing.mode = Mode.HOLDING
            return [Alarm(AlarmCode.ISOLATED)]
        hold_ns = self.settings.isolation_hold_rounds * self.settings.round_ns
        if (
            self.mode is Mode.HOLDING
            and self._silent_since is not None
            and now - self._silent_since >= hold_ns
        ):
            self._become(Mode(self.settings.on_isolation), now)
        return []

    def _rejoin(self, now: Nanos) -> list[Effect]:
        """Our words come back: believe the map again, or first ask if we were away for long."""
        self.peers.forgive(now)
        if self.mode is Mode.HOLDING:
            self._become(Mode.LIVE, now)
        else:
            self._awaited, self._answered = frozenset(self.peers.names()), set()
            self.link.restart()
            self.link.reached_at = now
            self._become(Mode.STARTING, now)
        return [Alarm(AlarmCode.REJOINED), self._hello(now)]

    @property
    def _live_at(self) -> Nanos | None:
        """When waiting for answers to our hello ends."""
        if self.mode is not Mode.STARTING or self.link.reached_at is None:
            return None
        return Nanos(self.link.reached_at + HELLO_ROUNDS * self.settings.round_ns)

    def _maybe_go_live(self, now: Nanos) -> list[Effect]:
        if self.mode is not Mode.STARTING or self._started_at is None:
            return []
        if self._live_at is not None:
            if self._all_answered() or now >= self._live_at:
                self._become(Mode.LIVE, now)
            return []
        alone = not self.settings.stored_peers and self.settings.expected_brokers <= 1
        if alone or now - self._started_at < HELLO_ROUNDS * self.settings.round_ns:
            return []
        self._become(Mode(self.settings.on_isolation), now)
        return [Alarm(AlarmCode.ISOLATED)]

    def _all_answered(self) -> bool:
        """Whether everybody that we know must be there has told us everything."""
        expected = self.settings.expected_brokers
        if not self._awaited and expected <= 1:
            # Nobody told us how many there are: only time tells.
            return False
        return (
            self._awaited <= self._answered
            and self._answered >= set(self.peers.names())
            and len(self._answered) + 1 >= expected
        )

    def _become(self, mode: Mode, now: Nanos) -> None:
        self.sharing.mode = mode
        self._silent_since = None
        self.limiter.set_group_burst(0 if mode is Mode.STARTING else self.settings.burst_ns, now)
        self.sharing.refresh_all(self.link.settle_ns, now)

    def _apply_share(self, key: GroupKey, share: Rates, now: Nanos) -> None:
        self.limiter.set_share(key, share, now)
