"""A stock Pulsar 4.0.8 broker: its limiter, its measuring, its reports and its formula.

As shipped (`ResourceGroupService`, `ResourceQuotaCalculatorImpl`, `AsyncTokenBucket`) and measured:

- the limit of the next period is `local_quota` over the last report of each broker, its own as read
  back; until the first calculation it is the whole quota;
- every calculation makes new, full buckets of one second's depth, and forgives their debt; a
  producer that was paused for its debt stays paused for as long as was computed then;
- a producer is paused after the fact, when a bucket is empty;
- usage is reported per period, unless it changed by at most 5 %, and a drop to 0 is no change; after
  5 periods it is reported in any case;
- nothing that another broker reported is ever forgotten.

Its three tasks have the same period and phases of their own. Demand is a flow that is cut into
`TICK_NS`; callers do not wait, so what is not admitted is lost.
"""

from dataclasses import dataclass, field
from typing import Final

from rgd.core.policies.model import Rate
from rgd.core.stock.messages import GroupUsage, StockReport
from rgd.core.units import MILLI, NS_PER_MS, NS_PER_S, Pair
from sim.rivals.pulsar_shipped import SUPPRESS_ROUNDS_MAX, TOLERANCE_PERCENT, local_quota

#: How long demand is taken as one piece.
TICK_NS: Final = 20 * NS_PER_MS


@dataclass(slots=True)
class _Bucket:
    """One dimension's bucket; no rate is unlimited."""

    rate: float | None = None
    tokens: float = 0.0

    def refill(self, rate: float | None) -> None:
        """Make a new, full bucket: what every calculation does."""
        self.rate = rate
        self.tokens = rate or 0.0

    def flow(self, duration_ns: int) -> None:
        """Let time pass."""
        if self.rate is not None:
            self.tokens = min(self.rate, self.tokens + self.rate * duration_ns / NS_PER_S)

    def take(self, amount: float) -> int:
        """Take an amount after the fact; returns for how many ns to pause."""
        if self.rate is None:
            return 0
        self.tokens -= amount
        if self.tokens > 0:
            return 0
        # To a hundredth of the capacity.
        return int((self.rate / 100 - self.tokens) / self.rate * NS_PER_S)


@dataclass(slots=True)
class _Group:
    """A resource group on one broker: publishing only, because Pulsar limits nothing else."""

    #: Units per second in messages and bytes, -1 for unlimited, as configured.
    quota: tuple[int, int]
    message_bytes: int = 0
    #: Messages per second.
    demand: float = 0.0
    buckets: tuple[_Bucket, _Bucket] = field(default_factory=lambda: (_Bucket(), _Bucket()))
    paused_until: int = 0
    #: Messages admitted since the start, in the period that was measured last, and as last told.
    admitted: float = 0.0
    measured_to: float = 0.0
    used: Pair = field(default_factory=Pair)
    told: Pair = field(default_factory=Pair)
    silent: int = SUPPRESS_ROUNDS_MAX
    #: By broker, as last received; never forgotten.
    usage: dict[str, Pair] = field(default_factory=dict)


class StockBroker:
    """One stock broker; whoever runs it calls its tasks."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.groups: dict[str, _Group] = {}

    def set_group(self, name: str, messages: Rate, size: Rate = None) -> None:
        """Configure a resource group, in Milli per second; a new one has the whole quota."""
        quota = (_configured(messages), _configured(size))
        group = self.groups.get(name)
        if group is not None:
            group.quota = quota
            return
        group = self.groups[name] = _Group(quota)
        for bucket, limit in zip(group.buckets, quota, strict=True):
            bucket.refill(None if limit < 0 else float(limit))

    def tick(self, now: int, duration_ns: int) -> None:
        """Let demand flow."""
        for group in self.groups.values():
            for bucket in group.buckets:
                bucket.flow(duration_ns)
            if now < group.paused_until or not group.demand:
                continue
            amount = group.demand * duration_ns / NS_PER_S
            group.admitted += amount
            pauses = (
                group.buckets[0].take(amount),
                group.buckets[1].take(amount * group.message_bytes),
            )
            group.paused_until = now + max(pauses)

    def measure(self) -> None:
        """End a period of measuring: `aggregateResourceGroupLocalUsages`."""
        for group in self.groups.values():
            whole = int(group.admitted)
            used = whole - int(group.measured_to)
            group.measured_to = group.admitted
            group.used = Pair(used, used * group.message_bytes)

    def report(self) -> StockReport:
        """The report of a period: groups without news name their owner only."""
        return StockReport(
            self.name, tuple(_entry(name, group) for name, group in self.groups.items())
        )

    def receive(self, report: StockReport) -> None:
        """Take in a report of anybody, this broker too."""
        for entry in report.usage:
            group = self.groups.get(entry.group)
            if group is not None and entry.publish is not None:
                group.usage[report.broker] = entry.publish

    def calculate(self) -> None:
        """Compute the limits, and make new buckets: `calculateQuotaForAllResourceGroups`."""
        for group in self.groups.values():
            own = group.usage.get(self.name, Pair())
            for k, bucket in enumerate(group.buckets):
                total = sum(pair[k] for pair in group.usage.values())
                limit = local_quota(group.quota[k], own[k], total)
                bucket.refill(None if limit < 0 else float(limit))


def _entry(name: str, group: _Group) -> GroupUsage:
    group.silent += 1
    if group.silent < SUPPRESS_ROUNDS_MAX and not _is_news(group.used, group.told):
        return GroupUsage(name)
    group.told, group.silent = group.used, 0
    return GroupUsage(name, group.used, Pair())


def _is_news(used: Pair, told: Pair) -> bool:
    return any(
        now > 0 and (was == 0 or abs(now - was) * 100 / was > TOLERANCE_PERCENT)
        for now, was in zip(used, told, strict=True)
    )


def _configured(rate: Rate) -> int:
    return -1 if rate is None else rate // MILLI
