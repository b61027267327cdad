"""Flow Proportional Share: Raghavan et al., "Cloud Control with Distributed Rate
Limiting", SIGCOMM 2007, with one flow a broker.

Each round a broker turns its demand into a weight: 1 (its one flow is held at
its limit), or, where its demand is below its limit, the weight that would give
it exactly its demand. The weight is smoothed (EWMA, 0.1 in the paper) and told
to all; a limit is quota * own weight / sum of weights.

Kinder than the paper: everybody hears everybody (the paper gossips to a few),
limits are recomputed whenever a weight is heard, and a broker that is silent
for `expiry_rounds` is forgotten. Weights travel in a row's `wanted`, in
`WEIGHT_UNIT` to a flow; messages and bytes are two independent limits.
"""

from dataclasses import dataclass, field
from typing import Final

from rgd.core.broker.settings import BrokerSettings
from rgd.core.buckets.level import GroupState
from rgd.core.exchange.messages import Goodbye, Message, Report
from rgd.core.exchange.rows import UsageRow
from rgd.core.policies.model import GroupKey, Rate, Rates
from rgd.core.units import Dimension, Nanos, Pair
from sim.rivals.rival import Rival, row_of

#: The paper's smoothing, and a quicker one.
PAPER_ALPHA: Final = 0.1
QUICK_ALPHA: Final = 0.5

#: Fixed point of weights on the wire; the smallest weight is one of these.
WEIGHT_UNIT: Final = 1 << 40


def ideal_weight(demand: float, limit: float, *, quota: float, remote: float) -> float:
    """FPS-ESTIMATE of the paper, with one flow a broker.

    Args:
        demand: what was offered here in the last round, per second.
        limit: this broker's limit in that round, per second.
        quota: the limit of all together, per second.
        remote: sum of the other brokers' weights.
    """
    if demand >= limit or demand >= quota:
        # limit / largest flow: the only flow there is gets the whole limit.
        return 1.0
    return demand * remote / (quota - demand)


def smoothed(weight: float, ideal: float, alpha: float) -> float:
    """The next weight; never 0, from which nothing could grow back."""
    return max(1 / WEIGHT_UNIT, weight + alpha * (ideal - weight))


def local_limit(quota: float, weight: float, remote: float) -> float:
    """The part of the quota that a weight gives."""
    return quota * weight / (weight + remote)


@dataclass(slots=True)
class _Weights:
    """Both dimensions of one broker's weight in one group."""

    messages: float = 1.0
    bytes: float = 1.0

    def of(self, dimension: Dimension) -> float:
        return self.messages if dimension is Dimension.MESSAGES else self.bytes


@dataclass(slots=True)
class _Peer:
    """One other member."""

    received_at: Nanos
    sequence: int = 0
    weights: dict[GroupKey, _Weights] = field(default_factory=dict)


class FlowShare(Rival):
    """A member that shares by Flow Proportional Share."""

    def __init__(self, settings: BrokerSettings, now: Nanos, *, alpha: float = PAPER_ALPHA) -> None:
        super().__init__(settings, now)
        self._alpha = alpha
        self._own: dict[GroupKey, _Weights] = {}
        self._peers: dict[str, _Peer] = {}

    def _end_round(self, now: Nanos) -> list[UsageRow]:
        expiry_ns = self.settings.expiry_rounds * self.settings.round_ns
        self._peers = {
            name: peer for name, peer in self._peers.items() if now - peer.received_at <= expiry_ns
        }
        rows = [self._estimate(state, now) for state in self.limiter.states()]
        self._refresh(self._keys(), now)
        return rows

    def _estimate(self, state: GroupState, now: Nanos) -> UsageRow:
        key = state.key
        admitted, wanted = self.counted(state, now)
        quota = self._quota(key)
        own = self._own.setdefault(key, _Weights())
        own.messages = self._next(key, Dimension.MESSAGES, wanted.messages, state, quota.messages)
        own.bytes = self._next(key, Dimension.BYTES, wanted.bytes, state, quota.bytes)
        return row_of(
            key,
            admitted=admitted,
            wanted=Pair(round(own.messages * WEIGHT_UNIT), round(own.bytes * WEIGHT_UNIT)),
        )

    def _next(
        self, key: GroupKey, dimension: Dimension, wanted: int, state: GroupState, quota: Rate
    ) -> float:
        weight, limit = self._own[key].of(dimension), state.share.of(dimension)
        if not quota or limit is None:
            return weight
        ideal = ideal_weight(wanted, limit, quota=quota, remote=self._remote(key, dimension))
        return smoothed(weight, ideal, self._alpha)

    def _hear(self, message: Message) -> None:
        name = message.sender.broker
        if name == self.settings.sender.broker:
            return
        if isinstance(message, Goodbye):
            self._peers.pop(name, None)
            self._refresh(self._keys(), self._now)
        elif isinstance(message, Report):
            self._take(message)

    def _take(self, report: Report) -> None:
        now = self._now
        peer = self._peers.setdefault(report.sender.broker, _Peer(now))
        peer.received_at = now
        if report.sequence <= peer.sequence:
            return
        peer.sequence = report.sequence
        told = {
            GroupKey(row.group, row.kind): _Weights(
                row.wanted.messages / WEIGHT_UNIT, row.wanted.bytes / WEIGHT_UNIT
            )
            for row in report.rows
        }
        peer.weights.update(told)
        self._refresh([key for key in told if self.limiter.state(key) is not None], now)

    def _compute(self, key: GroupKey, quota: Rates) -> Rates:
        return Rates(
            self._rate(key, Dimension.MESSAGES, quota.messages),
            self._rate(key, Dimension.BYTES, quota.bytes),
        )

    def _rate(self, key: GroupKey, dimension: Dimension, quota: Rate) -> Rate:
        if not quota:
            return quota
        own = self._own.get(key)
        weight = 1.0 if own is None else own.of(dimension)
        return int(local_limit(quota, weight, self._remote(key, dimension)))

    def _remote(self, key: GroupKey, dimension: Dimension) -> float:
        return sum(
            peer.weights[key].of(dimension) for peer in self._peers.values() if key in peer.weights
        )
