"""Makes this broker's messages when they are due: reports, full state, hello and goodbye.

Laws:

- A message that is due is sent before the next slice of work, so peers do not take a busy broker for
  dead. Only early reports wait for the end of a round that is ending, because the hash of every
  report already covers the rows that the round has picked, and these are sent only at its end.
- Every report has its own sequence number and the hash of all rows advertised so far.
- Until the first round of a plane that takes over has ended, its reports say that more follows, and no full state is sent.
- The full state is sent at most `ANSWERS_A_ROUND` times a round, however many peers ask for it.
- A broker that lost its name to another daemon sends no full state, no hello and no goodbye,
  because peers would take them for the other daemon's.

`rgd.core.broker.rounds` picks the rows of a report, and `rgd.core.exchange.report_parts` divides a
large state into parts.
"""

from collections.abc import Iterator
from typing import Final, NamedTuple

from rgd.core.broker.effects import Effect, Publish
from rgd.core.broker.identity import Identity
from rgd.core.broker.link import Link
from rgd.core.broker.membership import Membership
from rgd.core.broker.mode import Mode
from rgd.core.broker.name_claim import NameClaim
from rgd.core.broker.rounds import Rounds
from rgd.core.broker.settings import BrokerSettings
from rgd.core.broker.shard_reader import ShardReader
from rgd.core.broker.shard_sender import ShardSender
from rgd.core.broker.sharing import Sharing
from rgd.core.counts.page import Ungoverned
from rgd.core.exchange.columns import NO_USAGE, UsageColumns
from rgd.core.exchange.messages import ALL_ROWS, Ask, Goodbye, Hello, Report, RoundRecord, Span
from rgd.core.exchange.peers import Peers
from rgd.core.exchange.report_parts import parts_of_rows, parts_of_state
from rgd.core.exchange.shards import WHOLE, Shard
from rgd.core.units import Nanos

#: How many heartbeats a broker sends in a round while its own messages do not come back.
HEARTBEATS_HOLDING: Final = 4

#: A broker that is busy ending a round sends a heartbeat after so many rounds without a message.
HEARTBEAT_ROUNDS_ENDING: Final = 1.5


class Sources(NamedTuple):
    """The parts of a broker that messages are made from."""

    identity: Identity
    name: NameClaim
    link: Link
    peers: Peers
    rounds: Rounds
    sharing: Sharing
    membership: Membership
    shards: ShardSender
    shard_reader: ShardReader


class Publisher:
    """The messages of one broker."""

    def __init__(self, settings: BrokerSettings, sources: Sources, now: Nanos) -> None:
        self._settings = settings
        self._of = sources
        self.reports_sent = 0
        self.is_started = False
        #: When the last round ended.
        self.round_began = now
        self.reported_at = Nanos(now - settings.min_interval_ns)
        #: When an early report is due.
        self.early_at: Nanos | None = None
        #: When any message is due, because a peer may take this broker for dead.
        self.alive_at: Nanos | None = None

    # Due times.

    def report_early_from(self, now: Nanos) -> Nanos:
        """Make an early report due as soon as `min_interval_ns` allows; returns when one is due."""
        due = self._not_before(now)
        self.early_at = due if self.early_at is None else min(self.early_at, due)
        return self.early_at

    def answer_soon(self, asker: int, now: Nanos, shard: Shard = WHOLE) -> None:
        """Make the full state due within half a round, for a peer that asked.

        Args:
            asker: the incarnation of the peer.
            now: the current time.
            shard: the rows that it asked for; where all are sent in shards, a heartbeat is all of `WHOLE`.
        """
        # Both incarnations spread the answers over half a round, without a random number.
        spread = max(1, self._settings.round_ns // 2)
        due = Nanos(now + (asker ^ self._of.identity.sender.incarnation) % spread)
        if shard != WHOLE or self._of.shards.is_whole:
            self._of.shards.answer_from(shard, due)
        elif self.is_started:
            self.alive_at = due if self.alive_at is None else min(self.alive_at, due)

    def show_life(self, now: Nanos) -> None:
        """Make any message due as soon as `min_interval_ns` allows."""
        if self.is_started and self.alive_at is None:
            self.alive_at = self._not_before(now)

    def _not_before(self, now: Nanos) -> Nanos:
        """`now`, or later where `min_interval_ns` since the last report requires it."""
        return Nanos(max(now, self.reported_at + self._settings.min_interval_ns))

    def send_due(self, now: Nanos, *, round_begins_to_end: bool) -> Iterator[Effect]:
        """Send what is due between the reports of rounds.

        Args:
            now: the current time.
            round_begins_to_end: whether a round begins to end in this wake. If its groups are few,
                its report follows in the same wake and serves as the heartbeat.
        """
        if self._of.name.is_lost:
            self._of.shards.abandon()
        self._plan_heartbeat()
        is_early = self.early_at is not None and now >= self.early_at
        if is_early and not (self._of.rounds.is_ending or round_begins_to_end):
            yield from self.report_early(now)
        if (shard := self._of.shards.next_due(now)) is not None:
            yield from self.report_state(shard, now)
        is_doubted = self.alive_at is not None and now >= self.alive_at
        if is_doubted and not round_begins_to_end:
            # No peer can hold the rows yet that an ending round has picked, but the hash covers them.
            yield self.report(NO_USAGE, now, more=self._of.rounds.is_ending)

    def _plan_heartbeat(self) -> None:
        """Schedule a heartbeat where the reports of rounds are too rare."""
        if self.alive_at is not None:
            return
        if self._of.sharing.mode is Mode.HOLDING:
            # Messages may be lost or delayed; one of several comes back during the isolation hold.
            between_ns = self._settings.round_ns // HEARTBEATS_HOLDING
        elif self._of.rounds.is_ending:
            # The end of a round of tens of thousands of groups may take more than a round.
            between_ns = int(self._settings.round_ns * HEARTBEAT_ROUNDS_ENDING)
        else:
            return
        self.alive_at = Nanos(self.reported_at + between_ns)

    # Messages.

    def report_early(self, now: Nanos) -> list[Effect]:
        """Send the rows that have jumped and are worth an early report."""
        self.early_at = None
        rows = self._of.rounds.early(now)
        if self._of.rounds.follows_up:
            # New groups are sent once more, because their first estimates rest on little.
            self.early_at = Nanos(now + self._settings.min_interval_ns)
        return self.changes(rows, now) if len(rows) else []

    def changes(self, rows: UsageColumns, now: Nanos) -> list[Effect]:
        """Send rows that changed, in every layout that is read; the last report is a heartbeat, too."""
        effects: list[Effect] = []
        for shard, of_shard in self._of.shards.divided(rows):
            effects += self._in_parts(of_shard, now, shard)
        # This is last, because it says the sequences of the others.
        return effects + self._in_parts(rows if self._of.shards.is_whole else NO_USAGE, now, WHOLE)

    def _in_parts(self, rows: UsageColumns, now: Nanos, shard: Shard) -> list[Effect]:
        *parts, rest = parts_of_rows(rows, self._settings.bounds.exchange.part_bytes_max)
        effects = [self.report(part, now, more=True, shard=shard) for part in parts]
        return [*effects, self.report(rest, now, shard=shard)]

    def report_state(self, shard: Shard, now: Nanos) -> Iterator[Effect]:
        """Send the full state of a shard: all its parts at once, because the hash is that of all rows."""
        rounds = self._of.rounds
        advertised = rounds.suppression.advertised_slots(shard)
        for slots, span in parts_of_state(rounds.index, advertised):
            is_last = span.end == ALL_ROWS.end
            rows = rounds.suppression.advertised_at(slots)
            yield self.report(rows, now, span=span, more=not is_last, shard=shard)

    def report(
        self,
        rows: UsageColumns,
        now: Nanos,
        *,
        span: Span | None = None,
        more: bool = False,
        shard: Shard = WHOLE,
    ) -> Effect:
        """Make a report.

        Args:
            rows: the rows that changed, or all rows of the span.
            now: the current time.
            span: the span of a full state; None for a report of changes.
            more: whether further reports carry rows that the hash of this one covers.
            shard: the shard that all rows are of.
        """
        self.reports_sent += 1
        is_whole, of = shard == WHOLE, self._of
        if is_whole:
            self.reported_at = now
            self.alive_at = None
        report = Report(
            sender=of.identity.sender,
            sequence=of.identity.next_sequence(shard),
            period_ns=max(1, now - self.round_began),
            rows=rows,
            full=span is not None,
            rows_hash=of.rounds.suppression.hash_of(shard),
            weight=self._settings.weight,
            policies_hash=of.membership.policies_hash,
            members=len(of.peers) + 1,
            span=span or ALL_ROWS,
            more=more or of.rounds.is_resuming,
            claim=of.name.claim(now),
            rival=of.name.rival(now),
            shard=shard,
            shards=self._settings.shards,
            shard_sequences=of.shards.sequences if is_whole else (),
        )
        if is_whole:
            of.link.sent(report.sequence, now)
        else:
            of.shard_reader.sent(report, now)
        return Publish(report)

    def hello(self, now: Nanos) -> Effect:
        """Make a hello, sent at a start or rejoin; every peer answers with its full state."""
        self._of.link.sent(0, now)
        me = self._of.identity.sender
        if self._of.rounds.is_resuming:
            # A hello would say that this broker has no rows.
            return Publish(Ask(me, me.broker))
        return Publish(Hello(me, shards=self._settings.shards))

    def goodbye(self) -> list[Effect]:
        """Make a goodbye, unless another daemon has the name: peers would drop that one."""
        return [] if self._of.name.is_lost else [Publish(Goodbye(self._of.identity.sender))]

    def finish_round(
        self, now: Nanos, ungoverned: Ungoverned, *, last: bool = False
    ) -> tuple[list[Effect], RoundRecord]:
        """The reports and the log record of a round that has ended.

        Args:
            now: the current time.
            ungoverned: the work that was decided without a limit in the round.
            last: whether this broker leaves, so that no record follows.
        """
        rows, shown = self._of.rounds.finish()
        reports = self.changes(rows, now)
        record = RoundRecord(
            sender=self._of.identity.sender,
            sequence=self._of.identity.sequence,
            period_ns=max(1, now - self.round_began),
            rows=shown,
            peers=self._of.peers.sequences(),
            isolated=self._of.sharing.mode.is_isolated,
            ungoverned=ungoverned.granted,
            unknown_granted=ungoverned.unknown_granted,
            unknown_refused=ungoverned.unknown_refused,
            policies_hash=self._of.membership.policies_hash,
            weight=self._settings.weight,
            ended_ns=now,
            last=last,
            peer_incarnations=self._of.peers.incarnations(),
        )
        self.round_began = now
        return reports, record
