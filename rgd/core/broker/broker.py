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
from typing import Final

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
from rgd.core.broker.full_state import FullState
from rgd.core.broker.link import Link
from rgd.core.broker.membership import Membership
from rgd.core.broker.rounds import Rounds
from rgd.core.broker.settings import BrokerSettings
from rgd.core.broker.sharing import Mode, Sharing
from rgd.core.broker.slots import Slots
from rgd.core.broker.standing import HELLO_ROUNDS, NAMESAKE_ROUNDS, Standing
from rgd.core.buckets.level import BucketSettings, GroupKey
from rgd.core.buckets.limiter import Limiter
from rgd.core.errors import InvariantBroken
from rgd.core.exchange.columns import NO_USAGE, UsageColumns
from rgd.core.exchange.group_index import NO_PLACE, GroupIndex
from rgd.core.exchange.messages import (
    ALL_ROWS,
    Ask,
    Goodbye,
    Hello,
    Message,
    Report,
    RoundRecord,
    Span,
)
from rgd.core.exchange.peers import Peers
from rgd.core.exchange.report_parts import parts_of_rows
from rgd.core.exchange.usage_map import UsageMap
from rgd.core.policies.model import Rates, SharePolicyName
from rgd.core.units import NS_PER_MS, Nanos

#: How often in a round a broker says that it is there while its own words do not come back.
HOLDING_WORDS: Final = 4


class Broker:
    """The state of one member; see the module for its law."""

    def __init__(self, settings: BrokerSettings, now: Nanos) -> None:
        self.settings = settings
        self.created_at = now
        # The owner of a name answers a namesake's hello first.
        listen_ns = int(NAMESAKE_ROUNDS * settings.round_ns)
        self.peers = Peers(grace_ns=listen_ns + 2 * settings.settle_max_ns)
        self.index = GroupIndex()
        self.usage = UsageMap(self.index)
        self.link = Link(settings.round_ns + settings.settle_max_ns, settings.settle_max_ns)
        self.sharing = Sharing(
            settings,
            self.usage,
            self.peers,
            self.link,
            apply=self._apply_share,
            count_brokers=self._count_brokers,
        )
        buckets = _bucket_settings(settings)
        self._now = now
        self.limiter = Limiter(
            buckets,
            lambda group, kind: self.sharing.share_of(group, kind, self._now),
            topic_split=settings.topic_split,
        )
        self.rounds = Rounds(settings, self.limiter, self.sharing, self.index)
        self.full_state = FullState(self.rounds, self.index)
        self.slots = Slots(self.index, self.usage, self.sharing, self.rounds)
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
        self._round_began = now
        self._reported_at = Nanos(now - settings.min_interval_ns)
        #: When an early report is due.
        self._early_at: Nanos | None = None
        #: When our full state is due, because somebody asked or missed some of it.
        self._answer_at: Nanos | None = None
        #: When a word of ours is due, because somebody takes us for dead.
        self._alive_at: Nanos | None = None
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
            self._now if self._is_behind else self._round_end,
            self._early_at,
            self._answer_at,
            self._alive_at,
            self.membership.check_at,
            self.sharing.due_at,
            self.standing.due_at,
        )
        return min(at for at in due if at is not None)

    @property
    def _is_behind(self) -> bool:
        """Whether there is work that only waits for its turn."""
        is_ending = self.rounds.is_ending or self.full_state.is_pending
        return is_ending or self.limiter.is_behind or self.slots.is_behind

    @property
    def is_past_start(self) -> bool:
        """Whether shares are known, or two rounds have shown that nobody will tell them."""
        return self.standing.is_past_start(self._now)

    def handle(self, event: Event) -> tuple[Effect, ...]:
        """Let an event happen; returns what the world should do, in order."""
        effects = self._notice_gap(max(self._now, event.now))
        self._now = max(self._now, event.now)
        return (*effects, *self._handlers[type(event)](event))

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
            if self.sharing.slot_of(state.key) == NO_PLACE:
                # It is granted its floor, and so does everybody for whom it is one too many.
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
        effects = [*self.standing.check(now), *self.membership.check(now)]
        if now >= self._round_end and not self.rounds.is_ending:
            self._begin_end(now)
        if self.rounds.is_ending:
            # One slice; the next when we are woken again, which is at once.
            effects += self._end_round(now)
        effects += self._say_what_is_due(now)
        if self.mode is Mode.HOLDING and self._alive_at is None:
            # A word may be lost, and the next one long under way: of more of them one comes back,
            # before this broker's time to hold its shares is over.
            self._alive_at = Nanos(self._reported_at + self.settings.round_ns // HOLDING_WORDS)
        is_reading = self.sharing.is_reading
        self.sharing.work(now)
        self.sharing.settle(now)
        if not is_reading:
            # One slice at a time.
            self.limiter.work(now)
            self.slots.work()
        return effects

    def _on_message_received(self, event: MessageReceived) -> list[Effect]:
        message, now = event.message, event.now
        me = self.settings.speaker
        if message.speaker == me:
            return self._read_back(message, now)
        if message.speaker.broker == me.broker:
            return self._meet_namesake(message, now)
        effects = self.membership.hear(message, now)
        if isinstance(message, Hello):
            self._answer_soon(message.speaker.incarnation, now)
        elif isinstance(message, Ask) and message.broker == me.broker:
            if message.full:
                self._answer_soon(message.speaker.incarnation, now)
            else:
                self._alive_at = Nanos(max(now, self._reported_at + self.settings.min_interval_ns))
        return [*effects, *self.standing.maybe_go_live(now)]

    def _on_policies_changed(self, event: PoliciesChanged) -> list[Effect]:
        self.membership.policies_hash = event.policies_hash
        self.slots.set_groups(self.sharing.book.groups, event.book.groups)
        self.membership.policies_changed()
        self.sharing.set_book(event.book, event.now)
        self.limiter.set_book(event.book, event.now)
        return []

    def _on_demand_unreported(self, event: DemandUnreported) -> list[Effect]:
        if not self._is_started:
            return []
        earliest = Nanos(self._reported_at + self.settings.min_interval_ns)
        due = max(event.now, earliest)
        self._early_at = due if self._early_at is None else min(self._early_at, due)
        is_due = event.now >= self._early_at and not self.rounds.is_ending
        return self._report_early(event.now) if is_due else []

    def _on_stopping(self, event: Stopping) -> list[Effect]:
        if not self._is_started:
            return []
        if not self.rounds.is_ending:
            self.rounds.begin()
        while self.rounds.is_ending:
            self.rounds.step(event.now)
        reports, record = self._finish_round(event.now)
        # Nobody needs the report of one that says goodbye.
        self.reports_sent -= len(reports)
        return [Append(record), Publish(Goodbye(self.settings.speaker))]

    # What we say.

    def _say_what_is_due(self, now: Nanos) -> list[Effect]:
        """What cannot wait for the end of the round."""
        effects: list[Effect] = []
        # What was picked in a round that is ending counts as told, and is told in a moment.
        is_between = not self.rounds.is_ending
        if is_between and self._early_at is not None and now >= self._early_at:
            effects += self._report_early(now)
        if (
            self._answer_at is not None
            and now >= self._answer_at
            and not self.full_state.is_pending
        ):
            self._answer_at = None
            self.full_state.begin()
        part = self.full_state.next()
        if part is not None:
            effects.append(self._report(part.rows, now, span=part.span))
        if is_between and self._alive_at is not None and now >= self._alive_at:
            effects.append(self._report(NO_USAGE, now))
        return effects

    def _begin_end(self, now: Nanos) -> None:
        self._early_at = None
        self.rounds.begin()
        # Whole rounds that were missed are not made up for.
        ended = 1 + (now - self._round_end) // self.settings.round_ns
        self._round_end = Nanos(self._round_end + ended * self.settings.round_ns)

    def _end_round(self, now: Nanos) -> list[Effect]:
        self.rounds.step(now)
        if self.rounds.is_ending:
            return []
        self.limiter.end_round(now)
        reports, record = self._finish_round(now)
        effects: list[Effect] = [Append(record)] if len(record.rows) else []
        effects += reports
        if self.link.reached_at is None:
            effects.append(self._hello(now))
        return [*effects, *self.slots.end_round(now)]

    def _finish_round(self, now: Nanos) -> tuple[list[Effect], RoundRecord]:
        rows, shown = self.rounds.finish()
        *parts, last = parts_of_rows(rows)
        reports = [self._report(part, now, more=True) for part in parts]
        reports.append(self._report(last, now))
        record = RoundRecord(
            speaker=self.settings.speaker,
            sequence=self.sequence,
            period_ns=max(1, now - self._round_began),
            rows=shown,
            peers=self.peers.sequences(),
            isolated=self.mode.is_isolated,
            weight=self.settings.weight,
        )
        self._round_began = now
        return reports, record

    def _report_early(self, now: Nanos) -> list[Effect]:
        self._early_at = None
        rows = self.rounds.early(now)
        if self.rounds.follows_up:
            # The first moments of something new are said once more, when more was seen.
            self._early_at = Nanos(now + self.settings.min_interval_ns)
        return [self._report(rows, now)] if len(rows) else []

    def _report(
        self, rows: UsageColumns, now: Nanos, *, span: Span | None = None, more: bool = False
    ) -> Effect:
        """Send rows that changed, or all rows of a span; `more` of the same follow."""
        self.sequence += 1
        self.reports_sent += 1
        self._reported_at = now
        self._alive_at = None
        self.link.said(self.sequence, now)
        return Publish(
            Report(
                speaker=self.settings.speaker,
                sequence=self.sequence,
                period_ns=max(1, now - self._round_began),
                rows=rows,
                full=span is not None,
                rows_hash=self.rounds.told_hash,
                weight=self.settings.weight,
                policies_hash=self.membership.policies_hash,
                members=len(self.sharing.brokers),
                span=span or ALL_ROWS,
                # Nor can anybody hold all of it while a full state is under way.
                more=more or self.full_state.is_pending,
            )
        )

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
        # What a crashed one said last may still be under way: a live one answers our hello later.
        is_answer = (
            isinstance(message, Report)
            and message.full
            and not self._is_young(now, NAMESAKE_ROUNDS)
        )
        if not (is_hello or is_answer):
            return []
        alarm = Alarm(AlarmCode.NAME_CONFLICT, me.broker)
        # Of two that start together the one with the lower incarnation stays.
        came_first = is_answer or message.speaker.incarnation < me.incarnation
        if self._is_young(now, HELLO_ROUNDS) and came_first:
            reason = (
                f"another daemon speaks for broker {me.broker!r}: "
                "give this one another broker.name, or stop the other"
            )
            return [alarm, Halt(reason)]
        if is_hello:
            wait_ns = int(self.settings.round_ns * NAMESAKE_ROUNDS)
            self._answer_at = Nanos(now + wait_ns)
        return [alarm]

    def _is_young(self, now: Nanos, rounds: float) -> bool:
        """Whether this broker started less than so many rounds ago."""
        started_at = self.standing.started_at
        return started_at is None or now - started_at < rounds * self.settings.round_ns

    def _notice_gap(self, now: Nanos) -> list[Effect]:
        """Did we sleep? Whole rounds without a wake mean that the process or the machine stood still."""
        gap_ns = now - self._now
        if not self._is_started or gap_ns <= self.settings.round_ns + self.settings.settle_max_ns:
            return []
        # What the others said meanwhile may wait in our inbox: nobody is silent yet.
        self.membership.forgive(now)
        if gap_ns <= self.settings.expiry_rounds * self.settings.round_ns:
            return []
        # They have forgotten us: our shares are somebody else's now.
        rejoined = self.standing.doubt(now)
        return [*rejoined, self._hello(now)] if rejoined else []

    def _count_brokers(self, count: int) -> None:
        self.limiter.live_brokers = count

    def _apply_share(self, key: GroupKey, share: Rates, now: Nanos) -> None:
        self.limiter.set_share(key, share, now)


def _bucket_settings(settings: BrokerSettings) -> BucketSettings:
    return BucketSettings(
        settings.burst_ns,
        settings.request_max_ms,
        settings.round_ns // NS_PER_MS,
        settings.min_interval_ns // NS_PER_MS,
    )
