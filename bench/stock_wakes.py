"""How long pieces of a broker's work beside many stock Pulsar brokers hold the event loop.

    python bench/stock_wakes.py [--json] [--brokers 1000] [--groups 40]

Stock brokers report all groups once a stock period of 5 s, one after the other, for three periods; a piece is one event that the broker handles.
In processor time of the thread, with the daemon's thresholds of the garbage collector, so that other work on the machine counts little.
`--brokers 2 --groups 20000` has the first report of many groups.
"""

import argparse
import gc
import statistics
import time
from typing import Final

from bench.harness import Figures, run
from rgd.app.process import GC_THRESHOLDS
from rgd.core.broker.broker import Broker
from rgd.core.broker.effects import Publish
from rgd.core.broker.events import (
    Event,
    MessageReceived,
    PoliciesChanged,
    Started,
    StockReportReceived,
    Woken,
)
from rgd.core.broker.settings import BrokerSettings
from rgd.core.exchange.messages import Message, Sender
from rgd.core.policies.model import Group, Limit, Rates
from rgd.core.policies.snapshot import PolicySnapshot
from rgd.core.stock.messages import GroupUsage, StockReport
from rgd.core.units import MILLI, NS_PER_MS, NS_PER_S, Kind, Nanos, Pair

PERIOD_NS: Final = 5 * NS_PER_S
PERIODS: Final = 3
QUOTA: Final = Rates(100 * MILLI, None)
#: A daemon rests so long between two wakes that are due.
REST_NS: Final = NS_PER_MS
LONG_MS: Final = 2.0


class Wakes:
    """A broker alone with stock brokers, and how long each piece of its work took."""

    def __init__(self, groups: int) -> None:
        self._broker = Broker(BrokerSettings(Sender("b1", 1), stock_period_ns=PERIOD_NS), Nanos(0))
        self._coming: list[Message] = []
        self.now = 0
        self.pieces_ms: list[float] = []
        names = [f"group-{number}" for number in range(groups)]
        self._groups = {name: Group(name, Limit(QUOTA)) for name in names}
        self._handle(PoliciesChanged(Nanos(0), PolicySnapshot(self._groups)))
        self._handle(Started(Nanos(0)))
        self.run_until(3 * NS_PER_S)
        for group in self._groups.values():
            self._broker.sharing.first_share(group, Kind.PUBLISH, Nanos(self.now))
        self.run_until(5 * NS_PER_S)
        self.pieces_ms.clear()

    def report(self, broker: int, used: int) -> None:
        """A stock broker reports all groups."""
        usage = tuple(GroupUsage(name, Pair(used, 0), Pair()) for name in self._groups)
        report = StockReport(f"pulsar://stock-{broker}:6650", usage)
        self._handle(StockReportReceived(Nanos(self.now), report))

    def run_until(self, until: int) -> None:
        """Do what is due until then; what the broker says comes back at once."""
        while True:
            while self._coming:
                self._handle(MessageReceived(Nanos(self.now), self._coming.pop(0)))
            due_at = self._broker.wake_at
            if due_at is None or due_at > until:
                break
            self.now = max(self.now + REST_NS, due_at)
            self._handle(Woken(Nanos(self.now)))
        self.now = max(self.now, until)

    def _handle(self, event: Event) -> None:
        began_s = time.thread_time()
        effects = self._broker.handle(event)
        self.pieces_ms.append((time.thread_time() - began_s) * 1000)
        self._coming += [effect.message for effect in effects if isinstance(effect, Publish)]


def measure(options: argparse.Namespace) -> Figures:
    """Let all stock brokers report in turn."""
    gc.set_threshold(*GC_THRESHOLDS)
    wakes = Wakes(options.groups)
    gc.freeze()
    figures: dict[str, float] = {"brokers": options.brokers, "groups": options.groups}
    for period in range(PERIODS):
        wakes.pieces_ms.clear()
        for broker in range(options.brokers):
            wakes.report(broker, 50 + broker % 7 + period)
            wakes.run_until(wakes.now + PERIOD_NS // options.brokers)
        pieces = sorted(wakes.pieces_ms)
        figures[f"longest_ms_{period}"] = round(pieces[-1], 2)
        figures[f"p99_ms_{period}"] = round(statistics.quantiles(pieces, n=100)[-1], 2)
        figures[f"above_2_ms_{period}"] = sum(piece > LONG_MS for piece in pieces)
        figures[f"pieces_{period}"] = len(pieces)
    return figures


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declare what only this script has."""
    parser.add_argument("--brokers", type=int, default=1000)
    parser.add_argument("--groups", type=int, default=40)


if __name__ == "__main__":
    run(__doc__, measure, add_options=add_options)
