"""Backlogs: the check of 100,000 topics, what callers notice of it, and scrapes.

    python bench/backlog.py [--json] [--topics 100000]

The check alone is the core's: `BacklogStore.work` until the check has ended, every topic with 3
subscriptions and 4 ledgers, a third of them over a quota that evicts. Then a whole daemon
(`bench.http_stalls`) in a process of its own is pushed as many topics, and checks them while a caller
asks single questions; and another one is scraped that has 10,000 subscriptions. Stalls are the longest
that the event loop was held, in processor time.
"""

import argparse
import contextlib
import gc
import http.client
import json
import subprocess
import threading
import time
from collections.abc import Iterator
from itertools import islice
from typing import Final

import uvloop

from bench.harness import Figures, run
from bench.http_stalls import Daemon, daemon, name, serve
from bench.reads import pin, quantiles
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
GROUPS: Final = 100
PUSHED_AT_ONCE: Final = 1_000
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


def push(running: Daemon, topics: int) -> float:
    """Push topics in arrays; topics a second."""
    left = items(topics)
    bodies = []
    while part := list(islice(left, PUSHED_AT_ONCE)):
        bodies.append(json.dumps(part).encode())
    begun = time.perf_counter()
    for body in bodies:
        running.call("POST", "/v1/backlog", body)
    return topics / (time.perf_counter() - begun)


class Caller:
    """Asks single questions all the time, and measures."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._is_over = threading.Event()
        self.took_ns: list[int] = []
        self._thread = threading.Thread(target=self._ask, daemon=True)
        self._thread.start()

    def _ask(self) -> None:
        client = http.client.HTTPConnection("127.0.0.1", self._port, timeout=60)
        with contextlib.closing(client):
            while not self._is_over.wait(0.001):
                begun = time.perf_counter_ns()
                client.request("POST", "/v1/acquire", b'{"group":"%s"}' % name(1).encode())
                client.getresponse().read()
                self.took_ns.append(time.perf_counter_ns() - begun)

    def end(self) -> None:
        """Stop."""
        self._is_over.set()
        self._thread.join()


def beside_checks(topics: int) -> dict[str, float]:
    """Checks of a whole daemon, and what a caller notices."""
    with daemon(__file__, stderr=subprocess.DEVNULL) as running:
        time.sleep(1)
        figures: dict[str, float] = {"push_topics_per_s": round(push(running, topics))}
        caller = Caller(running.port)
        time.sleep(2)
        caller.took_ns.clear()
        running.longest_ms()
        time.sleep(3)
        figures |= quantiles("alone", caller.took_ns)
        figures["stall_alone_ms"] = running.longest_ms()
        caller.took_ns.clear()
        begun = time.perf_counter()
        for _ in range(CHECKS):
            running.call("GET", CHECK)
        figures["check_wall_s"] = round((time.perf_counter() - begun) / CHECKS, 2)
        figures |= quantiles("checked", caller.took_ns)
        figures["stall_checked_ms"] = running.longest_ms()
        caller.end()
    return figures


def scraped() -> dict[str, float]:
    """Scrapes of a whole daemon with 10,000 subscriptions."""
    with daemon(__file__, stderr=subprocess.DEVNULL) as running:
        time.sleep(1)
        push(running, SCRAPED_TOPICS)
        running.call("GET", CHECK)
        running.call("GET", METRICS)
        took_s, stalls_ms = [], []
        for _ in range(CHECKS):
            begun = time.perf_counter()
            stalls_ms.append(running.held_by("GET", METRICS))
            took_s.append(time.perf_counter() - begun)
        with contextlib.closing(http.client.HTTPConnection("127.0.0.1", running.port)) as client:
            client.request("GET", METRICS)
            page = client.getresponse().read()
    return {
        "scraped_subscriptions": page.count(b"\npulsar_subscription_back_log_no_delayed{"),
        "scraped_series": page.count(b"\n") - page.count(b"\n#"),
        "scrape_s": round(min(took_s), 3),
        "scrape_stall_ms": max(stalls_ms),
    }


def measure(options: argparse.Namespace) -> Figures:
    """All figures."""
    if options.serve:
        pin(0)
        uvloop.run(
            serve(
                GROUPS,
                backlog__backlogQuotaDefaultLimitBytes=LIMIT_BYTES,
                backlog__backlogQuotaDefaultRetentionPolicy=BacklogAction.EVICT,
                # Pushed once, and kept while checks are measured.
                backlog__stale_after_s=86_400,
            )
        )
        raise SystemExit(0)
    pin(-1)
    gc.set_threshold(*GC_THRESHOLDS)
    return check_alone(options.topics) | beside_checks(options.topics) | scraped()


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declare what only this script has."""
    parser.add_argument("--topics", type=int, default=100_000, help="topics that are checked")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)


if __name__ == "__main__":
    run(__doc__, measure, add_options=add_options)
