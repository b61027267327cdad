"""Lets a scenario of stock brokers and rgd daemons happen, and compares it with max-min of the whole.

What is compared is what was admitted in the last `MEASURED` periods of a step. The max-min parts are
those of the true demand of all brokers, by the core's own policy.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from rgd.core.broker.settings import BrokerSettings
from rgd.core.buckets.decision import Request
from rgd.core.exchange.messages import Sender
from rgd.core.policies.model import Attachments, Group, Limit, Rates, SharePolicyName
from rgd.core.policies.snapshot import PolicySnapshot
from rgd.core.shares.model import Row
from rgd.core.shares.registry import allocate
from rgd.core.units import NS_PER_MS, NS_PER_S, Pair, to_milli
from sim.load import Load
from sim.member import Member
from sim.stock.broker import StockBroker
from sim.stock.scenarios import Step, StockScenario, everyone
from sim.stock.topic import StockTopic
from sim.world import World

GROUP: Final = "gold"
NAMESPACE: Final = "acme/orders"

#: Messages of one request: fewer and larger requests than callers make, for speed.
REQUEST: Final = Request(namespace=NAMESPACE, topic=f"persistent://{NAMESPACE}/eu", messages=50)

#: Stock periods of a step, and how many of them at its end are measured.
PERIODS: Final = 24
MEASURED: Final = 6
#: The peak is looked for in the second half.
PERIODS_MIN: Final = 2 * MEASURED

#: Stock brokers begin with so much of their even part, for so many periods: those that begin together
#: with more than they may have trap one another, whatever anybody else reports.
WARM_PART: Final = 0.02
WARM_PERIODS: Final = 4

#: The even part of a broker, messages per second.
EVEN: Final = 1000.0

#: How far from its max-min part rgd and the stock brokers' sum may be.
RGD_TOLERANCE: Final = 0.05
STOCK_TOLERANCE: Final = 0.15


@dataclass(frozen=True, slots=True)
class Size:
    """How many brokers of each kind, and their period."""

    stock: int
    rgd: int
    period_s: int = 5


@dataclass(frozen=True, slots=True)
class Figures:
    """What a step came to; rates in messages per second."""

    rgd: float
    rgd_part: float
    stock: float
    stock_part: float
    quota: float
    #: The least that a broker with demand admitted, by its max-min part.
    least: float
    #: The largest sum over any six periods of the last half of the step, by the quota.
    peak: float

    @property
    def faults(self) -> list[str]:
        """Which bounds do not hold."""
        found = []
        if abs(self.rgd - self.rgd_part) > RGD_TOLERANCE * self.rgd_part:
            found.append(f"rgd {self.rgd:.1f} of {self.rgd_part:.1f}")
        if abs(self.stock - self.stock_part) > STOCK_TOLERANCE * self.stock_part:
            found.append(f"stock {self.stock:.1f} of {self.stock_part:.1f}")
        if self.least <= 0:
            found.append("a broker at 0")
        return found


class StockCluster:
    """Stock brokers and rgd daemons on one quota."""

    def __init__(self, size: Size, *, seed: int = 0) -> None:
        self.size = size
        self.period_ns = size.period_s * NS_PER_S
        self.world = World(seed=seed)
        self.topic = StockTopic(self.world, self.period_ns)
        self.quota = self.base = EVEN * (size.stock + size.rgd)
        self.stock: list[StockBroker] = []
        self.members: list[Member] = []
        self.loads: list[Load] = []
        for _ in range(size.rgd):
            self.add_rgd()
        for _ in range(size.stock):
            self.add_stock()

    def add_rgd(self) -> None:
        """Start one more daemon."""
        sender = Sender(f"rgd-{len(self.members):02}", self.world.dice.getrandbits(62))
        settings = replace(
            BrokerSettings(sender),
            stock_period_ns=self.period_ns,
            # Twice the default, for speed: a daemon under load ticks that often.
            min_interval_ns=200 * NS_PER_MS,
        )
        member = self.world.add(settings, self._snapshot())
        self.members.append(member)
        self.world.start(member)
        self.loads.append(Load(self.world, member, REQUEST, 0.0).start())

    def add_stock(self) -> None:
        """Start one more stock broker."""
        broker = StockBroker(f"pulsar://broker-{len(self.stock):02}:6650")
        broker.set_group(GROUP, to_milli(self.quota))
        self.stock.append(broker)
        self.topic.add(broker)

    def begin(self, step: Step) -> None:
        """Let a step's demand, quota and members hold."""
        if step.rgd_crashes:
            self.loads[-1].set_rate(0)
            self.world.crash(self.members[-1])
        if step.stock_crashes:
            self.stock[-1].groups[GROUP].demand = 0.0
            self.topic.remove(self.stock[-1].name)
        if step.rgd_joins:
            self.add_rgd()
        if step.stock_joins:
            self.add_stock()
        self.quota = self.base * step.quota
        self.world.set_policies(self._snapshot())
        for index, broker in enumerate(self._live_stock()):
            broker.set_group(GROUP, to_milli(self.quota))
            broker.groups[GROUP].demand = EVEN * step.stock(index)
        for index, load in enumerate(self._live_loads()):
            load.set_rate(EVEN * step.rgd(index) / REQUEST.messages)

    def run_periods(self, count: int) -> list[list[float]]:
        """Let time pass; the messages that each live broker admitted by each period's end."""
        totals = [self._admitted()]
        for _ in range(count):
            self.world.run_until(self.world.now + self.period_ns)
            self.topic.list_brokers()
            totals.append(self._admitted())
        return totals

    def parts(self, step: Step) -> tuple[list[float], list[float]]:
        """The max-min parts, stock brokers' and rgd's, that their true demand can use."""
        stock, loads = self._live_stock(), self._live_loads()
        demand = [EVEN * step.stock(index) for index in range(len(stock))]
        demand += [EVEN * step.rgd(index) for index in range(len(loads))]
        rows = [
            Row(f"{index:03}", wanted=Pair(to_milli(one), 0)) for index, one in enumerate(demand)
        ]
        shares = allocate(
            SharePolicyName.MAX_MIN,
            Rates(to_milli(self.quota)),
            rows,
            floor_ppm=BrokerSettings(Sender("", 0)).floor_ppm,
        )
        used = [
            min(one, (share.messages or 0) / 1000)
            for one, share in zip(demand, shares, strict=True)
        ]
        return used[: len(stock)], used[len(stock) :]

    def _live_stock(self) -> list[StockBroker]:
        return [broker for broker in self.stock if broker.name in self.topic.brokers]

    def _live_loads(self) -> list[Load]:
        return [load for load in self.loads if load.member.is_live]

    def _admitted(self) -> list[float]:
        stock = [broker.groups[GROUP].admitted for broker in self._live_stock()]
        return stock + [float(load.admitted) for load in self._live_loads()]

    def _snapshot(self) -> PolicySnapshot:
        group = Group(GROUP, Limit(Rates(to_milli(self.quota))))
        return PolicySnapshot({GROUP: group}, Attachments(namespaces={NAMESPACE: GROUP}))


def run(
    scenario: StockScenario, size: Size, *, seed: int = 0, periods: int = PERIODS
) -> list[Figures]:
    """Run a scenario; the figures of each step."""
    cluster = StockCluster(size, seed=seed)
    first = scenario.steps[0]
    if first.stock(0):
        cluster.begin(replace(first, stock=everyone(WARM_PART)))
        cluster.run_periods(WARM_PERIODS)
    figures = []
    for step in scenario.steps:
        cluster.begin(step)
        totals = cluster.run_periods(periods)
        figures.append(_figures(cluster, step, totals))
    return figures


def highest(sums: Sequence[float]) -> float:
    """The most that a sum grew over any `MEASURED` periods of the last half."""
    last_half = sums[len(sums) // 2 :]
    windows = zip(last_half, last_half[MEASURED:], strict=False)
    return max(end - begin for begin, end in windows)


def _figures(cluster: StockCluster, step: Step, totals: Sequence[Sequence[float]]) -> Figures:
    stock_parts, rgd_parts = cluster.parts(step)
    seconds = MEASURED * cluster.size.period_s
    rates = [
        (end - begin) / seconds
        for begin, end in zip(totals[-1 - MEASURED], totals[-1], strict=True)
    ]
    split = len(stock_parts)
    peak = highest([sum(row) for row in totals]) / seconds / cluster.quota
    least = min(
        (
            rate / part
            for rate, part in zip(rates, stock_parts + rgd_parts, strict=True)
            if part > 0
        ),
        default=1.0,
    )
    return Figures(
        rgd=sum(rates[split:]),
        rgd_part=sum(rgd_parts),
        stock=sum(rates[:split]),
        stock_part=sum(stock_parts),
        quota=cluster.quota,
        least=least,
        peak=peak,
    )
