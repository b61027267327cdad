"""The topic of stock brokers in a world: who receives which report, when.

Law: every report travels as bytes of the `pulsar` dialect, its sender's own included. What rgd's
core sends arrives at stock brokers and rgd daemons alike.
"""

from rgd.core.broker.events import StockBrokersListed, StockReportReceived
from rgd.core.stock.messages import StockReport
from rgd.core.units import NS_PER_MS, Nanos
from rgd.wire.pulsar_usage import decode_stock_report, encode_stock_report
from sim.member import Member
from sim.stock.broker import TICK_NS, StockBroker
from sim.world import World


class StockTopic:
    """The stock brokers of a world, their tasks and their topic."""

    def __init__(self, world: World, period_ns: int) -> None:
        self._world = world
        self._period_ns = period_ns
        #: By name; a broker that left or crashed is not in it.
        self.brokers: dict[str, StockBroker] = {}
        #: Reports sent, and their bytes before LZ4.
        self.sent = self.sent_bytes = 0
        world.on_stock_report = self.send

    def add(self, broker: StockBroker) -> None:
        """Let a broker take part: its tasks begin within a period, each at a moment of its own."""
        self.brokers[broker.name] = broker
        world, uniform = self._world, self._world.dice.uniform
        world.at(world.now + TICK_NS, self._tick, broker)
        # Measuring and calculating are begun together; the transport was begun before.
        phase_ns = int(uniform(0, self._period_ns))
        world.at(world.now + phase_ns, self._calculate, broker)
        world.at(world.now + int(uniform(0, self._period_ns)), self._report, broker)

    def remove(self, name: str) -> None:
        """Let a broker go; the admin API lists it no longer."""
        del self.brokers[name]

    def list_brokers(self) -> None:
        """Let every daemon poll the admin API's list."""
        names = frozenset(self.brokers)
        for member in self._world.members.values():
            self._world.tell(member, StockBrokersListed(self._now(member), names))

    def send(self, report: StockReport) -> None:
        """Publish a report."""
        data = encode_stock_report(report)
        self.sent += 1
        self.sent_bytes += len(data)
        network, published_ms = self._world.network, self._world.now // NS_PER_MS
        for name in (*self.brokers, *self._world.members):
            spread = network.delay_max_ns - network.delay_min_ns
            delay_ns = network.delay_min_ns + int(spread * self._world.dice.random())
            self._world.at(self._world.now + delay_ns, self._arrive, name, data, published_ms)

    def _arrive(self, name: str, data: bytes, published_ms: int) -> None:
        report = decode_stock_report(data)
        broker, member = self.brokers.get(name), self._world.members.get(name)
        if broker is not None:
            broker.receive(report)
        elif member is not None:
            self._world.tell(member, StockReportReceived(self._now(member), report, published_ms))

    def _now(self, member: Member) -> Nanos:
        return member.clock.local_time(self._world.now)

    def _tick(self, broker: StockBroker) -> None:
        if self.brokers.get(broker.name) is broker:
            broker.tick(self._world.now, TICK_NS)
            self._world.at(self._world.now + TICK_NS, self._tick, broker)

    def _calculate(self, broker: StockBroker) -> None:
        if self.brokers.get(broker.name) is broker:
            broker.measure()
            broker.calculate()
            self._world.at(self._world.now + self._period_ns, self._calculate, broker)

    def _report(self, broker: StockBroker) -> None:
        if self.brokers.get(broker.name) is broker:
            self.send(broker.report())
            self._world.at(self._world.now + self._period_ns, self._report, broker)
