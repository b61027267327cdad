"""What Apache Pulsar 4.0.8 ships: quota * own / sum, over what was admitted.

The rule is `rgd.core.shares.pulsar_shipped`.

Kept as shipped: own usage is what came back over the exchange; a report says
nothing new unless usage changed by more than 5 % or 5 periods have passed, and
a drop to zero is not told before that; messages and bytes are computed apart;
until the first calculation each broker grants the whole quota; a broker that
is gone is never forgotten.

Kinder than shipped: quotas are calculated half a period after the reports (the
three tasks of Pulsar are independent: 1 to 3 periods), the buckets are rgd's
(Pulsar refills them at each calculation and forgives all debt), and dispatch is
limited too.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np

from rgd.core.broker.effects import Effect
from rgd.core.broker.settings import BrokerSettings
from rgd.core.exchange.messages import Message, Report
from rgd.core.exchange.rows import UsageRow
from rgd.core.policies.model import GroupKey, Rate, Rates
from rgd.core.shares.pulsar_shipped import local_quotas
from rgd.core.units import MILLI, Nanos, Pair
from sim.rivals.rival import Rival, row_of

#: `UsageReportSuppressionTolerancePercentage` and `MaxUsageReportSuppressRounds`.
TOLERANCE_PERCENT: Final = 5
SUPPRESS_ROUNDS_MAX: Final = 5


def local_quota(quota: int, own: int, total: int) -> int:
    """One broker's quota by `local_quotas`, in units per second."""
    return int(local_quotas(*map(np.asarray, (quota, own, total))))


@dataclass(slots=True)
class _Own:
    """What this broker counted of one group."""

    #: Totals at the end of the last period, and usage as last told.
    total: Pair = Pair()
    told: Pair = Pair()
    #: Periods since it was told.
    silent: int = SUPPRESS_ROUNDS_MAX


class PulsarShipped(Rival):
    """A member that shares as a stock broker does."""

    def __init__(self, settings: BrokerSettings, now: Nanos) -> None:
        super().__init__(settings, now)
        self._own: dict[GroupKey, _Own] = {}
        #: Usage per period by broker; nobody is ever removed.
        self._usage: dict[GroupKey, dict[str, Pair]] = {}
        self._calculate_at: Nanos | None = None
        self._has_calculated = False

    @property
    def wake_at(self) -> Nanos | None:
        """The end of the period, or the calculation between."""
        due = [at for at in (self._round_end, self._calculate_at) if at is not None]
        return min(due, default=None)

    def usage(self, key: GroupKey) -> dict[str, Pair]:
        """Whole units in a period that each broker is believed to use."""
        return self._usage.get(key, {})

    def _on_woken(self, now: Nanos) -> list[Effect]:
        if self._calculate_at is not None and now >= self._calculate_at:
            self._calculate_at = None
            self._has_calculated = True
            self._refresh(self._keys(), now)
        effects = super()._on_woken(now)
        if effects:
            self._calculate_at = Nanos(now + self.settings.round_ns // 2)
        return effects

    def _end_round(self, now: Nanos) -> list[UsageRow]:  # noqa: ARG002 -- as every rival's
        rows = []
        for state in self.limiter.states():
            own = self._own.setdefault(state.key, _Own())
            total = state.counters.admitted
            used = Pair(total.messages - own.total.messages, total.bytes - own.total.bytes)
            own.total = total
            own.silent += 1
            if own.silent >= SUPPRESS_ROUNDS_MAX or _is_news(used, own.told):
                own.told, own.silent = used, 0
                per_period = Pair(used.messages * MILLI, used.bytes * MILLI)
                rows.append(row_of(state.key, admitted=per_period, wanted=per_period))
        return rows

    def _hear(self, message: Message) -> None:
        if isinstance(message, Report):
            for row in message.rows:
                known = self._usage.setdefault(GroupKey(row.group, row.kind), {})
                admitted = row.admitted
                known[message.sender.broker] = Pair(
                    admitted.messages // MILLI, admitted.bytes // MILLI
                )

    def _compute(self, key: GroupKey, quota: Rates) -> Rates:
        if not self._has_calculated:
            return quota
        usage = self.usage(key)
        own = usage.get(self.settings.sender.broker, Pair())
        everybody = usage.values()
        return Rates(
            _rate(quota.messages, own.messages, sum(pair.messages for pair in everybody)),
            _rate(quota.bytes, own.bytes, sum(pair.bytes for pair in everybody)),
        )


def _rate(quota: Rate, own: int, total: int) -> Rate:
    # 0 is rgd's "blocked", which Pulsar cannot say.
    if quota is None or quota == 0:
        return quota
    return local_quota(quota // MILLI, own, total) * MILLI


def _is_news(used: Pair, told: Pair) -> bool:
    """`needToReportLocalUsage`, without its interval: a drop to exactly 0 is no news."""
    return any(
        now > 0 and (was == 0 or abs(now - was) * 100 / was > TOLERANCE_PERCENT)
        for now, was in zip(used, told, strict=True)
    )
