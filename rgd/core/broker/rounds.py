"""What a round of this broker says: rows out of the meters, picked for the peers.

Law: each window of each group is counted once. An early report closes only the
windows of the groups that are urgent (a refusal of something the peers know
nothing of); the others go on to the end of the round.

Pure bookkeeping between `rgd.core.demand` and `rgd.core.exchange`; when a round
ends is `rgd.core.broker.broker`'s business.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from rgd.core.broker.settings import BrokerSettings
from rgd.core.broker.sharing import Sharing
from rgd.core.buckets.level import GroupKey, GroupState
from rgd.core.buckets.limiter import Limiter
from rgd.core.exchange.messages import RoundRecord, ShareRow, UsageRow
from rgd.core.exchange.suppression import Suppression, SuppressionSettings
from rgd.core.units import Nanos, Pair


class Rounds:
    """Turns what the meters counted into reports and log records."""

    def __init__(self, settings: BrokerSettings, limiter: Limiter, sharing: Sharing) -> None:
        self._settings = settings
        self._limiter = limiter
        self._sharing = sharing
        self._suppression = Suppression(
            SuppressionSettings(settings.tolerance_ppm, settings.full_every_rounds),
            sharing.quota,
            sharing.shares_if,
        )
        #: What the open round has shown of each group so far, for the log.
        self._shown: dict[GroupKey, ShareRow] = {}
        self._began: Nanos | None = None
        self.rows_suppressed = 0

    @property
    def told(self) -> Mapping[GroupKey, UsageRow]:
        """What the peers were told and was not taken back."""
        return self._suppression.told

    def unreported(self) -> list[GroupKey]:
        """Groups that refused work while the peers know nothing of them."""
        return [
            state.key
            for state in self._limiter.states()
            if state.reported and state.key not in self.told
        ]

    def early(self, keys: Iterable[GroupKey], now: Nanos) -> list[UsageRow]:
        """Close the windows of urgent groups; the rows to tell at once."""
        rows = []
        for key in keys:
            state = self._limiter.state(key)
            row = None if state is None else self._drain(state, now)
            if row is not None and not row.is_idle:
                rows.append(row)
        self._suppression.note(rows)
        self._note_sent(rows)
        return rows

    def end(self, now: Nanos, *, is_last: bool = False) -> list[UsageRow]:
        """Close every window that is long enough (all, if it is the last time); the rows to tell."""
        rows: dict[GroupKey, UsageRow] = {}
        for state in self._limiter.states():
            told = self.told.get(state.key)
            is_short = now - state.meter.opened_at < self._settings.min_interval_ns
            if is_short and not is_last:
                # An early report has just closed the window before: it says enough.
                if told is not None:
                    rows[state.key] = told
                continue
            row = self._drain(state, now)
            if row is None and told is not None:
                row = self._idle(state, told)
            if row is not None:
                rows[state.key] = row
        picked = self._suppression.pick(rows)
        for state in self._limiter.states():
            state.reported = state.key in self.told
        self._note_sent(picked)
        self.rows_suppressed += sum(not shown.sent for shown in self._shown.values())
        return picked

    def record(self, sequence: int, peers: tuple[tuple[str, int], ...], now: Nanos) -> RoundRecord:
        """Make the log record of the round that ended, and begin the next."""
        rows = tuple(self._shown[key] for key in sorted(self._shown))
        self._shown = {}
        began, self._began = self._began, now
        return RoundRecord(
            speaker=self._settings.speaker,
            sequence=sequence,
            period_ns=self._settings.round_ns if began is None else now - began,
            rows=rows,
            peers=peers,
            isolated=self._sharing.mode.is_isolated,
        )

    def _drain(self, state: GroupState, now: Nanos) -> UsageRow | None:
        demand = state.meter.drain(
            now,
            fresh=state.key not in self.told,
            period_min_ns=self._settings.min_interval_ns,
        )
        if demand is None:
            return None
        usage = UsageRow(
            group=state.key.group,
            kind=state.key.kind,
            topics=demand.topics,
            admitted=demand.admitted,
            wanted=demand.wanted,
            admitted_total=demand.admitted_total,
            wanted_total=demand.wanted_total,
        )
        self._show(state, usage, demand.refused)
        return usage

    def _idle(self, state: GroupState, told: UsageRow) -> UsageRow:
        """What to tell of a group that nothing was asked of in a whole window."""
        admitted_total, wanted_total = state.meter.totals()
        usage = replace(told.as_idle(), admitted_total=admitted_total, wanted_total=wanted_total)
        self._show(state, usage, Pair())
        return usage

    def _show(self, state: GroupState, usage: UsageRow, refused: Pair) -> None:
        before = self._shown.get(state.key)
        if before is not None:
            refused = Pair(
                refused.messages + before.refused.messages, refused.bytes + before.refused.bytes
            )
        group = self._sharing.book.groups.get(state.key.group)
        policy = group.policy if group is not None else None
        self._shown[state.key] = ShareRow(
            usage=usage,
            share=(state.share.messages, state.share.bytes),
            quota=(state.quota.messages, state.quota.bytes),
            policy=policy or self._settings.policy,
            refused=refused,
            sent=before is not None and before.sent,
        )

    def _note_sent(self, rows: list[UsageRow]) -> None:
        for usage in rows:
            key = GroupKey(usage.group, usage.kind)
            if key in self._shown:
                self._shown[key] = replace(self._shown[key], sent=True)
