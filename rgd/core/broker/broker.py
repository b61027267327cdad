"""One member of the exchange: events in, effects out, and nothing else.

Law: `Broker.handle` is the only door through which this state changes (but for
requests, which take the short road through `Broker.limiter`); the same events
in the same order give the same effects, in the daemon and in the simulator. What
a handler raises is a `Fault` among them, never an exception (`boundary`).

Here is what a broker says and when: a hello at its start; each round what
changed; at once what the peers know nothing of; everything when somebody asks;
a goodbye. Behind the door: who is there (`membership`), how far to believe them
(`standing`), what a share is (`sharing`), what a round says (`rounds`).
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Final

from rgd.core.broker.book_change import BookChange
from rgd.core.broker.boundary import EVENT_PARTS, TELLING_PARTS, Boundary, Part
from rgd.core.broker.effects import Alarm, AlarmCode, Append, Effect, Fault, Halt, Publish
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
from rgd.core.broker.recovery import Recovery
from rgd.core.broker.rounds import Rounds
from rgd.core.broker.settings import BrokerSettings
from rgd.core.broker.sharing import Mode, Sharing
from rgd.core.broker.standing import HELLO_ROUNDS, NAMESAKE_ROUNDS, Standing
from rgd.core.buckets.level import BucketSettings, GroupKey
from rgd.core.buckets.limiter import Limiter
from rgd.core.errors import InvariantBroken
from rgd.core.exchange.columns import NO_USAGE, UsageColumns
from rgd.core.exchange.group_index import GroupIndex
from rgd.core.exchange.messages import Ask, Goodbye, Hello, Message, Report, RoundRecord
from rgd.core.exchange.peers import Peers
from rgd.core.exchange.usage_map import UsageMap
from rgd.core.policies.model import Rates
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
        self._now = now
        self.limiter = Limiter(
            _buckets_of(settings),
            lambda group, kind: self.sharing.share_of(group, kind, self._now),
            topic_split=settings.topic_split,
        )
        self.rounds = Rounds(settings, self.limiter, self.sharing, self.index)
        self.membership = Membership(settings, self.peers, self.usage, self.sharing)
        self.standing = Standing(
            settings,
            self.link,
            self.membership,
            sharing=self.sharing,
            limiter=self.limiter,
            now=now,
        )
        # A part that raised waits for a round.
        self._boundary = Boundary(settings.round_ns)
        self.book_change = BookChange(self.sharing, self.limiter, self._boundary)
        self._recovery = Recovery(
            rounds=self.rounds,
            standing=self.standing,
            membership=self.membership,
            sharing=self.sharing,
            usage=self.usage,
            book_change=self.book_change,
        )
        #: Parts that raised since what they left behind was put right.
        self._faulty: set[str] = set()
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
        self._handlers = self._handlers_by_event()

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
            self._now if self.rounds.is_ending else self._round_end,
            self._early_at,
            self._answer_at,
            self._alive_at,
            self.membership.check_at,
            self.sharing.due_at,
            self.standing.due_at,
            self._now if self.limiter.is_behind else None,
            None if self._faulty else self._recovery.audit_due_at,
            self._now if self._faulty else None,
            self._now if self.book_change.is_waiting else None,
        )
        if self._boundary.is_holding:
            return min(self._boundary.put_off(due))
        return min(at for at in due if at is not None)

    @property
    def is_past_start(self) -> bool:
        """Whether shares are known, or two rounds have shown that nobody will tell them."""
        return self.standing.is_past_start(self._now)

    def handle(self, event: Event) -> tuple[Effect, ...]:
        """Let an event happen; returns what the world should do, in order.

        Raises:
            InvariantBroken: the state is wrong, and nothing that comes of it can be trusted; a bug.
        """
        if event.now < self._now:
            event = replace(event, now=self._now)
        effects = self._run(Part.GAP, self._notice_gap, event.now)
        self._now = event.now
        try:
            effects += self._handlers[type(event)](event)
        except InvariantBroken:
            raise
        except Exception as error:  # noqa: BLE001 -- the door's boundary (docs/decisions/0023)
            effects += self._contain(event, error)
        if self._faulty:
            effects += self._boundary.run(Part.RECOVERY, self._recover, event.now)
        return tuple(effects)

    def shares(self, key: GroupKey) -> dict[str, Rates]:
        """Every live broker's share of a group, as this broker reckons it."""
        return self.sharing.shares(key)

    def validate(self) -> None:
        """Check what must always hold.

        Raises:
            InvariantBroken: it does not; a bug.
        """
        self._recovery.validate()
        self.sharing.validate()

    # Handlers, one for each event.

    def _handlers_by_event(self) -> Mapping[type[Event], Callable[..., list[Effect]]]:
        return {
            Started: self._on_started,
            Woken: self._on_woken,
            MessageReceived: self._on_message_received,
            PoliciesChanged: self._on_policies_changed,
            DemandUnreported: self._on_demand_unreported,
            Stopping: self._on_stopping,
        }

    def _on_started(self, event: Started) -> list[Effect]:
        self._is_started = True
        self.standing.start(event.now)
        self._round_end = Nanos(event.now + self.settings.round_ns)
        return [self._hello(event.now)]

    def _on_woken(self, event: Woken) -> list[Effect]:
        now = event.now
        if not self._is_started:
            return []
        effects = self._run(Part.STANDING, self.standing.check, now)
        effects += self._run(Part.MEMBERSHIP, self.membership.check, now)
        if now >= self._round_end and not self.rounds.is_ending:
            effects += self._step_round(self._begin_end, now)
        if self.rounds.is_ending:
            # One slice; the next when we are woken again, which is at once.
            effects += self._end_round(now)
        effects += self._say_what_is_due(now)
        if self.mode is Mode.HOLDING and self._alive_at is None:
            # A word may be lost, and the next one long under way: of more of them one comes back,
            # before this broker's time to hold its shares is over.
            self._alive_at = Nanos(self._reported_at + self.settings.round_ns // HOLDING_WORDS)
        if self.book_change.is_waiting:
            effects += self._run(Part.POLICIES, self.book_change.retry, now)
        is_reading = self.sharing.is_reading and not self._boundary.waits(Part.SHARING, now)
        effects += self._run(Part.SHARING, self._share_out, now)
        if not is_reading:
            # One slice at a time.
            effects += self._run(Part.LIMITS, self.limiter.work, now)
        if not self._faulty:
            effects += self._run(Part.AUDIT, self._recovery.audit, now)
        return effects

    def _share_out(self, now: Nanos) -> None:
        self.sharing.work(now)
        self.sharing.settle(now)

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
        return self._noted(self.book_change.put(event.book, event.now))

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
        effects: list[Effect] = []
        if not self.rounds.is_ending:
            effects += self._step_round(self._begin_end, event.now)
        while self.rounds.is_ending:
            effects += self._step_round(self.rounds.step, event.now)
        _, record = self._finish_round(event.now)
        # Nobody needs the report of one that says goodbye.
        self.reports_sent -= 1
        return [*effects, Append(record), Publish(Goodbye(self.settings.speaker))]

    # What we say.

    def _say_what_is_due(self, now: Nanos) -> list[Effect]:
        """What cannot wait for the end of the round."""
        effects: list[Effect] = []
        if self._answer_at is not None and now >= self._answer_at:
            effects += self._run(Part.REPORTS, self._report_all, now)
        if self.rounds.is_ending:
            # What was picked so far counts as told, and is told in a moment.
            return effects
        if self._early_at is not None and now >= self._early_at:
            effects += self._run(Part.REPORTS, self._report_early, now)
        if self._alive_at is not None and now >= self._alive_at:
            effects += self._run(Part.REPORTS, self._report_nothing, now)
        return effects

    def _begin_end(self, now: Nanos) -> None:
        self._early_at = None
        # Whole rounds that were missed are not made up for.
        ended = 1 + (now - self._round_end) // self.settings.round_ns
        self._round_end = Nanos(self._round_end + ended * self.settings.round_ns)
        self.rounds.begin()

    def _step_round(self, step: Callable[[Nanos], None], now: Nanos) -> list[Effect]:
        """Do a step of a round's end; what is at hand when it raises is lost, and the rest goes on."""
        faults = self._run(Part.ROUND, step, now, pauses=False)
        if faults:
            self.rounds.skip()
        return faults

    def _end_round(self, now: Nanos) -> list[Effect]:
        effects = self._step_round(self.rounds.step, now)
        if self.rounds.is_ending:
            return effects
        effects += self._run(Part.LIMITS, self.limiter.end_round, now)
        said = self._run(Part.ROUND, self._say_round, now, pauses=False)
        effects += said
        if not any(isinstance(effect, Publish) for effect in said):
            # Whatever became of the rows, the others hear that we are there.
            effects += self._report_nothing(now)
        if self.link.reached_at is None:
            effects.append(self._hello(now))
        return effects

    def _say_round(self, now: Nanos) -> list[Effect]:
        report, record = self._finish_round(now)
        return [Append(record), report] if len(record.rows) else [report]

    def _finish_round(self, now: Nanos) -> tuple[Effect, RoundRecord]:
        rows, shown = self.rounds.finish()
        report = self._report(rows, now)
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
        return report, record

    def _report_early(self, now: Nanos) -> list[Effect]:
        self._early_at = None
        rows = self.rounds.early(now)
        if self.rounds.follows_up:
            # The first moments of something new are said once more, when more was seen.
            self._early_at = Nanos(now + self.settings.min_interval_ns)
        return [self._report(rows, now)] if len(rows) else []

    def _report_all(self, now: Nanos) -> list[Effect]:
        return [self._report(self.rounds.told(), now, full=True)]

    def _report_nothing(self, now: Nanos) -> list[Effect]:
        return [self._report(NO_USAGE, now)]

    def _report(self, rows: UsageColumns, now: Nanos, *, full: bool = False) -> Effect:
        self.sequence += 1
        self.reports_sent += 1
        self._reported_at = now
        self._alive_at = None
        if full:
            self._answer_at = None
        self.link.said(self.sequence, now)
        return Publish(
            Report(
                speaker=self.settings.speaker,
                sequence=self.sequence,
                period_ns=max(1, now - self._round_began),
                rows=rows,
                full=full,
                rows_hash=self.rounds.told_hash,
                weight=self.settings.weight,
                policies_hash=self.membership.policies_hash,
                members=len(self.sharing.brokers),
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

    # What raised, and what it left behind.

    def _run(
        self,
        part: Part,
        work: Callable[[Nanos], Iterable[Effect] | None],
        now: Nanos,
        *,
        pauses: bool = True,
    ) -> list[Effect]:
        return self._noted(self._boundary.run(part, work, now, pauses=pauses))

    def _noted(self, effects: list[Effect]) -> list[Effect]:
        """Take note of the faults among effects."""
        self._faulty.update(effect.where for effect in effects if isinstance(effect, Fault))
        return effects

    def _contain(self, event: Event, error: Exception) -> list[Effect]:
        """Go on after an event's handler raised; a start that fails is the end, for nothing began."""
        if isinstance(event, Started):
            raise error
        effects: list[Effect] = [self._boundary.fault(EVENT_PARTS[type(event)], error, event.now)]
        if isinstance(event, Stopping):
            effects.append(Publish(Goodbye(self.settings.speaker)))
        return self._noted(effects)

    def _recover(self, now: Nanos) -> None:
        """Put right what faults left behind, and tell the peers everything again."""
        self._recovery.recover(now, only_told=not self._faulty - TELLING_PARTS)
        if self._is_started:
            self._answer_soon(0, now)
        self._faulty.clear()

    def _count_brokers(self, count: int) -> None:
        self.limiter.live_brokers = count

    def _apply_share(self, key: GroupKey, share: Rates, now: Nanos) -> None:
        self.limiter.set_share(key, share, now)


def _buckets_of(settings: BrokerSettings) -> BucketSettings:
    return BucketSettings(
        settings.burst_ns,
        settings.request_max_ms,
        settings.round_ns // NS_PER_MS,
        settings.min_interval_ns // NS_PER_MS,
    )
