"""Backlogs: the check of 100,000 topics, what callers notice of it, and scrapes.

    python bench/backlog.py [--json] [--topics 100000]

The check alone is the core's: `BacklogStore.work` until the check has ended, every topic with 3
subscriptions and 4 ledgers, a third of them over a quota that evicts. Then a whole daemon (`rgd serve` on the
embedded broker, on a core of its own where there are two) is pushed as many topics, and checks them while a caller
asks single questions; and another one is scraped that has 10,000 subscriptions.
"""

import argparse
import asyncio
import contextlib
import gc
import http.client
import json
import os
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from itertools import islice
from pathlib import Path
from typing import Final

from bench.harness import Figures, groups_file, run
from bench.rounds_http import OTHER_CORES, Callers, daemon
from rgd.adapters.exchange.embedded import EmbeddedBroker
from rgd.app.process import GC_THRESHOLDS
from rgd.core.backlog.model import Ledger, Position, Source, SubscriptionBacklog, TopicBacklog
from rgd.core.backlog.settings import BacklogSettings
from rgd.core.backlog.store import BacklogStore
from rgd.core.policies.model import BacklogAction, BacklogQuota
from rgd.core.units import NS_PER_S, Nanos

READ_MS: Final = 1_800_000_000_000
#: Four ledgers of 100 bytes are over it, which a third of the topics have; others have three less.
LIMIT_BYTES: Final = 350
LEDGERS: Final = tuple(
    Ledger(number, 100, 100, None if number == 4 else READ_MS - 60_000) for number in (1, 2, 3, 4)
)
GROUPS: Final = tuple(f"group-{number:03}" for number in range(100))
#: 200 kB, within `http.body_max_bytes`.
PUSHED_AT_ONCE: Final = 400
SCRAPED_TOPICS: Final = 3_334
CHECKS: Final = 5
CHECK: Final = "/admin/v2/brokers/backlog-quota-check"
METRICS: Final = "/metrics"


def topic(number: int) -> str:
    """A topic's full name, of one of 100 namespaces."""
    return f"persistent://acme/n{number % 100}/topic-{number}"


def report(number: int) -> TopicBacklog:
    """A topic of three subscriptions; of every third the oldest is far behind."""
    behind = 1 if number % 3 == 0 else 4
    subscriptions = (
        SubscriptionBacklog("a", Position(behind, 5), None, READ_MS - 90_000),
        SubscriptionBacklog("b", Position(4, 5)),
        SubscriptionBacklog("c", Position(4, 50)),
    )
    return TopicBacklog(topic(number), LEDGERS, subscriptions, Source.PUSHED, READ_MS)


def check_alone(topics: int) -> dict[str, float]:
    """The core's work for reports and for one check, in processor time."""
    default = BacklogQuota(LIMIT_BYTES, -1, BacklogAction.EVICT)
    settings = BacklogSettings(is_precise=True, default=default)
    store = BacklogStore(settings, lambda _topic, _blocked: None)
    reports = [report(number) for number in range(topics)]
    begun = time.process_time()
    for one in reports:
        store.report(one, Nanos(0))
    reported_s = time.process_time() - begun
    totals, slices = [], list[float]()
    for number in range(1, CHECKS + 1):
        store.ask()
        slices.clear()
        while store.checks < number:
            begun = time.process_time()
            store.work(Nanos(number * NS_PER_S))
            slices.append(time.process_time() - begun)
        totals.append(sum(slices))
    return {
        "topics": topics,
        "evictions": len(store.evicting()),
        "report_us": round(reported_s / topics * 1e6, 2),
        "check_first_s": round(totals[0], 3),
        "check_s": round(min(totals), 3),
        "check_slice_ms": round(max(slices) * 1000, 2),
    }


def items(topics: int) -> Iterator[dict[str, object]]:
    """The same topics as items of `POST /v1/backlog`."""
    for number in range(topics):
        one = report(number)
        yield {
            "tenant": "acme",
            "namespace": f"n{number % 100}",
            "topic": one.topic,
            "ledgers": [
                {key: value for key, value in ledger._asdict().items() if value is not None}
                for ledger in one.ledgers
            ],
            "subscriptions": [
                {"name": each.name, "oldest": each.oldest._asdict()}
                for each in one.subscriptions
                if each.oldest is not None
            ],
        }


def call(port: int, method: str, path: str, body: bytes | None = None) -> bytes:
    """Call; what was answered."""
    with contextlib.closing(http.client.HTTPConnection("127.0.0.1", port, timeout=60)) as client:
        client.request(method, path, body)
        response = client.getresponse()
        if response.status >= 400:
            raise SystemExit(f"{path}: {response.status}")
        return response.read()


def push(port: int, topics: int) -> float:
    """Push topics in arrays; topics a second."""
    left = items(topics)
    bodies = []
    while part := list(islice(left, PUSHED_AT_ONCE)):
        bodies.append(json.dumps(part).encode())
    begun = time.perf_counter()
    for body in bodies:
        call(port, "POST", "/v1/backlog", body)
    return topics / (time.perf_counter() - begun)


@contextlib.asynccontextmanager
async def running() -> AsyncIterator[int]:
    """The port of a daemon that evicts."""
    settings = {
        "RGD_BACKLOG__BACKLOGQUOTADEFAULTLIMITBYTES": str(LIMIT_BYTES),
        "RGD_BACKLOG__BACKLOGQUOTADEFAULTRETENTIONPOLICY": str(BacklogAction.EVICT),
        # Pushed once, and kept while checks are measured.
        "RGD_BACKLOG__STALE_AFTER_S": "86400",
    }
    with tempfile.TemporaryDirectory() as kept:
        folder = Path(kept)
        broker = EmbeddedBroker(folder / "broker")
        url = await broker.ensure()
        try:
            with daemon(folder, url, groups_file(folder, GROUPS), settings=settings) as (port, _):
                await asyncio.sleep(1)
                yield port
        finally:
            await broker.stop()


def beside_checks(port: int, topics: int) -> dict[str, float]:
    """Checks of a whole daemon, and what a caller notices."""
    figures: dict[str, float] = {"push_topics_per_s": round(push(port, topics))}
    callers = Callers(port, [b'{"group":"%s"}' % group.encode() for group in GROUPS])
    time.sleep(2)
    callers.begin()
    time.sleep(3)
    figures |= callers.figures("alone")
    callers.begin()
    begun = time.perf_counter()
    for _ in range(CHECKS):
        call(port, "GET", CHECK)
    figures["check_wall_s"] = round((time.perf_counter() - begun) / CHECKS, 2)
    figures |= callers.figures("checked")
    callers.end()
    return figures


def scraped(port: int) -> dict[str, float]:
    """Scrapes of a whole daemon with 10,000 subscriptions."""
    push(port, SCRAPED_TOPICS)
    call(port, "GET", CHECK)
    call(port, "GET", METRICS)
    took_s, page = [], b""
    for _ in range(CHECKS):
        begun = time.perf_counter()
        page = call(port, "GET", METRICS)
        took_s.append(time.perf_counter() - begun)
    return {
        "scraped_subscriptions": page.count(b"\npulsar_subscription_back_log_no_delayed{"),
        "scraped_series": page.count(b"\n") - page.count(b"\n#"),
        "scrape_s": round(min(took_s), 3),
    }


async def of_daemons(topics: int) -> dict[str, float]:
    """What only whole daemons show."""
    async with running() as port:
        figures = await asyncio.to_thread(beside_checks, port, topics)
    async with running() as port:
        return figures | await asyncio.to_thread(scraped, port)


def measure(options: argparse.Namespace) -> Figures:
    """All figures."""
    os.sched_setaffinity(0, OTHER_CORES)  # what is started from here inherits it
    gc.set_threshold(*GC_THRESHOLDS)
    return check_alone(options.topics) | asyncio.run(of_daemons(options.topics))


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declare what only this script has."""
    parser.add_argument("--topics", type=int, default=100_000, help="topics that are checked")


if __name__ == "__main__":
    run(__doc__, measure, add_options=add_options)
