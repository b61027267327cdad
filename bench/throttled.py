"""Throttled dispatch: what counting it costs a read, and a scrape of every subscription's series.

    python bench/throttled.py [--json] [--subscriptions 10000]

A read is one that three levels lower, of a topic with a broker's, a topic's and a subscription's limit; beside
it the same without a subscription, which counts nothing. The scrape is rendered by the daemon's own code, in
process. Then another process fetches it from the daemon's HTTP server on uvloop: the longest turn of the loop, in processor time.
"""

import argparse
import asyncio
import gc
import sys
import time
from collections.abc import Iterable
from typing import Final, cast

import uvloop

from bench.harness import Figures, best_s, run
from rgd.adapters.http.settings import HttpSettings
from rgd.adapters.metrics.exposition import Exposition
from rgd.app.throttled_samples import throttled_samples
from rgd.core.buckets.decision import Request
from rgd.core.buckets.level import BucketSettings
from rgd.core.buckets.limiter import Limiter
from rgd.core.buckets.throttled import ThrottledTable
from rgd.core.counts.counters import NO_SLOT
from rgd.core.gate.local import LocalGate
from rgd.core.policies.model import Limits, LocalLimit, Rates
from rgd.core.policies.snapshot import PolicySnapshot
from rgd.core.units import MILLI, NS_PER_MS, Kind, Nanos
from rgd.ports.metrics import Sample
from tests.support.whole_daemon import HttpServer, WholeDaemon

READS: Final = 2_000
#: Scrapes; a scraper comes again and again.
SCRAPES: Final = 5
SETTINGS: Final = BucketSettings(burst_ns=250 * NS_PER_MS, request_max_ms=10_000, round_ms=1000)
NAMESPACE: Final = "acme/orders"
TOPIC: Final = "persistent://acme/orders/eu"


def read_us(subscription: str | None) -> float:
    """Microseconds of a read that several levels lower to nothing."""
    limiter = Limiter(SETTINGS, lambda group, kind, _: (NO_SLOT, group.rates(kind)))
    limits = [LocalLimit(dispatch=Rates(rate * MILLI, rate * MILLI)) for rate in (240, 200, 160)]
    limiter.set_policies(
        PolicySnapshot(
            limits=Limits(
                broker=limits[0],
                topics={TOPIC: limits[1]},
                topic_subscriptions={TOPIC: limits[2]},
            )
        ),
        Nanos(0),
    )
    request = Request(
        Kind.DISPATCH,
        100,
        100,
        namespace=NAMESPACE,
        topic=TOPIC,
        subscription=subscription,
        partial=True,
    )

    def read() -> None:
        for at in range(READS):
            limiter.acquire(request, Nanos(at))

    return best_s(read) / READS * 1e6


def filled(subscriptions: int) -> ThrottledTable:
    """A table of so many subscriptions, ten of each topic."""
    table = ThrottledTable()
    for number in range(subscriptions):
        name = (f"persistent://acme/orders-{number % 100}/topic-{number // 10}", f"s-{number % 10}")
        table.count(name, 0b1000_0011, 50, 1000, 5, Nanos(number))
    return table


class Shown:
    """Shows a table's samples."""

    def __init__(self, table: ThrottledTable) -> None:
        self._gate = LocalGate(BucketSettings(0, 0, 0))
        self._gate.throttled = table

    def samples(self) -> Iterable[Sample]:
        """Every subscription's, lazily."""
        return throttled_samples(self._gate, (), "standalone", Nanos(NS_PER_MS))


async def scrape(exposition: Exposition) -> tuple[float, int]:
    """Processor seconds, and how many lines there are."""
    began = time.thread_time()
    body, _ = await exposition.render("")
    return time.thread_time() - began, body.count(b"\npulsar_sub")


class Nobody:
    """No daemon: nothing but `/metrics` is asked for."""

    def __getattr__(self, name: str) -> None:
        return None


async def serve(exposition: Exposition) -> float:
    """Processor seconds of the longest turn of the loop while the page is fetched."""
    server = HttpServer(
        cast("WholeDaemon", Nobody()), HttpSettings(port=0), metrics=exposition.render
    )
    longest = 0.0
    async with server:
        url = f"http://127.0.0.1:{server.port}/metrics"
        code = f"import urllib.request; urllib.request.urlopen({url!r}).read()"
        fetching = await asyncio.create_subprocess_exec(sys.executable, "-c", code)
        fetched = asyncio.ensure_future(fetching.wait())
        # Begun after the other process, whose start holds the loop.
        last = time.thread_time()
        while not fetched.done():
            await asyncio.sleep(0)
            now = time.thread_time()
            longest, last = max(longest, now - last), now
    return longest


def measure(options: argparse.Namespace) -> Figures:
    """All figures."""
    table = filled(options.subscriptions)
    # As in the daemon, no collection looks at what was there before.
    gc.freeze()
    exposition = Exposition(Shown(table))
    scrapes = [asyncio.run(scrape(exposition)) for _ in range(SCRAPES)]
    counted, uncounted = read_us("audit"), read_us(None)
    return {
        "subscriptions": len(table),
        "read_lowered_us": round(counted, 2),
        "read_not_counted_us": round(uncounted, 2),
        "scrape_s": round(max(took for took, _ in scrapes), 3),
        "scrape_lines": scrapes[0][1],
        "http_turn_ms": round(max(uvloop.run(serve(exposition)) for _ in range(SCRAPES)) * 1000, 2),
    }


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options that only this script has."""
    parser.add_argument("--subscriptions", type=int, default=10_000)


if __name__ == "__main__":
    run(__doc__, measure, add_options=add_options)
