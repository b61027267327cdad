"""One member of the exchange: events in, effects out, and nothing else.

Law: `Broker.handle` is the only door through which this state changes (but for
requests, which take the short road through `Broker.limiter`); the same events
in the same order give the same effects, in the daemon and in the simulator.

Here is what a broker says and when: a hello at its start; each round what
changed; at once what the peers know nothing of; everything when somebody asks;
a goodbye. Behind the door: who is there (`membership`), how far to believe them
(`standing`), what a share is (`sharing`), what a round says (`rounds`).
"""

from collections.abc import Callable, Mapping

from rgd.core.broker.effects import Alarm, AlarmCode, Append, Effect, Halt, Publish
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
from rgd.core.broker.membership import Membership
from rgd.core.broker.rounds import Rounds
from rgd.core.broker.settings import BrokerSettings
from rgd.core.broker.sharing import Mode, Sharing
from rgd.core.broker.standing import Standing
from rgd.core.buckets.level import BucketSettings, GroupKey
from rgd.core.buckets.limiter import Limiter
from rgd.core.errors import InvariantBroken
from rgd.core.exchange.messages import Ask, Goodbye, Hello, Message, Report, RoundRecord, UsageRow
from rgd.core.exchange.peers import Peers
from rgd.core.exchange.usage_map import UsageMap, told_hash
from rgd.core.policies.model import Rates, SharePolicyName
from rgd.core.units import NS_PER_MS, Nanos


class Broker:
    """The state of one member; see the module for its law."""

    def __init__(self, settings: BrokerSettings, now: Nanos) -> None:
        self.settings = settings
        self.created_at = now
        self.peers = Peers(grace_ns=settings.settle_max_ns)
        self.usage = UsageMap()
        self.link = Link(settings.round_ns + settings.settle_max_ns, settings.settle_max_ns)
        self.sharing = Sharing(settings, self.usage, self.peers, self.link, apply=self._apply_share)
        buckets = BucketSettings(
            settings.burst_ns, settings.request_max_ms, settings.round_ns // NS_PER_MS
        )
        self._now = now
        self.limiter = Limiter(
            buckets, lambda group, kind: self.sharing.share_of(group, kind, self._now)
        )
        self.rounds = Rounds(settings, self.limiter, self.sharing)
        self.membership = Membership(settings, self.peers, self.usage, self.sharing)
        self.standing = Standing(
            settings,
            self.link,
            self.membership,
            sharing=self.sharing,
            limiter=self.limiter,
            now=now,
        )
        self.sequence = 0
        self.reports_sent = 0
        self._is_started = False
        self._round_end = now
        self._reported_at = Nanos(now - settings.min_interval_ns)
        #: When an early report is due, and the groups it follows up.
        self._early_at: Nanos | None = None
        self._follow_up: list[GroupKey] = []
        #: When our full state is due, because somebody asked or missed some of it.
        self._answer_at: Nanos | None = None
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
    def differing(self) -> set[str]:
        """Peers whose policies file differs from ours (`rgd_policy_hash_conflict`)."""
        return self.membership.differing

    @property
    def reports_received(self) -> int:
        """Reports of peers that were news."""
        return self.membership.reports_received

    @property
    def wake_at(self) -> Nanos | None:
        """When `Woken` is due next; None before the start."""
        if not self._is_started:
            return None
        due = (
            self._round_end,
            self._early_at,
            self._answer_at,
            self.sharing.settles_at,
            self.standing.due_at,
        )
        return min(at for at in due if at is not None)

    @property
    def is_past_start(self) -> bool:
        """Whether shares are known, or two rounds have shown that nobody will tell them."""
        return self.standing.is_past_start(self._now)

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
        self.membership.validate()
        self.sharing.validate()
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
        self._is_started = True
        self.standing.start(event.now)
        self._round_end = Nanos(event.now + self.settings.round_ns)
        return [self._hello(event.now)]

    def _on_woken(self, event: Woken) -> list[Effect]:
        now = event.now
        if not self._is_started:
            return []
        effects = self.standing.check(now)
        if now >= self._round_end:
            effects += self._end_round(now)
        if self._early_at is not None and now >= self._early_at:
            effects += self._report_early(now)
        if self._answer_at is not None and now >= self._answer_at:
            effects.append(self._report((), now, full=True))
        self.sharing.settle(now)
        return effects

    def _on_message_received(self, event: MessageReceived) -> list[Effect]:
        message, now = event.message, event.now
        me = self.settings.speaker
        if message.speaker == me:
            return self._read_back(message, now)
        if message.speaker.broker == me.broker:
            return self._meet_namesake(message, now)
        effects = self.membership.hear(message, now)
        is_for_us = isinstance(message, Ask) and message.broker == me.broker
        if isinstance(message, Hello) or is_for_us:
            self._answer_soon(message.speaker.incarnation, now)
        return [*effects, *self.standing.maybe_go_live(now)]

    def _on_policies_changed(self, event: PoliciesChanged) -> list[Effect]:
        self.sharing.book = event.book
        self.membership.policies_hash = event.policies_hash
        self.limiter.set_book(event.book, event.now)
        self.sharing.refresh_all(event.now)
        return []

    def _on_demand_unreported(self, event: DemandUnreported) -> list[Effect]:
        if not self._is_started:
            return []
        earliest = Nanos(self._reported_at + self.settings.min_interval_ns)
        due = max(event.now, earliest)
        self._early_at = due if self._early_at is None else min(self._early_at, due)
        return self._report_early(event.now) if event.now >= self._early_at else []

    def _on_stopping(self, event: Stopping) -> list[Effect]:
        if not self._is_started:
            return []
        self.rounds.end(event.now, is_last=True)
        effects: list[Effect] = [Append(self._record(event.now))]
        return [*effects, Publish(Goodbye(self.settings.speaker))]

    # What we say.

    def _end_round(self, now: Nanos) -> list[Effect]:
        effects = self.membership.expire(now)
        rows = self.rounds.end(now)
        self._early_at, self._follow_up = None, []
        record = self._record(now)
        if record.rows:
            effects.append(Append(record))
        effects.append(self._report(tuple(rows), now))
        if self.link.reached_at is None:
            effects.append(self._hello(now))
        # Whole rounds that were missed are not made up for.
        ended = 1 + (now - self._round_end) // self.settings.round_ns
        self._round_end = Nanos(self._round_end + ended * self.settings.round_ns)
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
                policies_hash=self.membership.policies_hash,
            )
        )

    def _record(self, now: Nanos) -> RoundRecord:
        return self.rounds.record(self.sequence, self.peers.sequences(), now)

    def _hello(self, now: Nanos) -> Effect:
        self.link.said(0, now)
        return Publish(Hello(self.settings.speaker))

    def _answer_soon(self, asker: int, now: Nanos) -> None:
        # Spread over half a round by who asks and who answers, so that no dice is needed.
        spread = max(1, self.settings.round_ns // 2)
        due = Nanos(now + (asker ^ self.settings.speaker.incarnation) % spread)
        self._answer_at = due if self._answer_at is None else min(self._answer_at, due)

    # What we hear under our own name.

    def _read_back(self, message: Message, now: Nanos) -> list[Effect]:
        if isinstance(message, Report):
            self.link.heard(message.sequence, now)
            if not self.membership.read_back(message, now) and not message.full:
                # The peers may know more of us than we do ourselves: tell all of us once more.
                self._answer_at = now
        elif isinstance(message, Hello):
            self.link.heard(0, now)
        rejoined = self.standing.rejoin(now)
        return [*rejoined, self._hello(now)] if rejoined else []

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

    def _apply_share(self, key: GroupKey, share: Rates, now: Nanos) -> None:
        self.limiter.set_share(key, share, now)
