"""Leases of several clients at a daemon that runs: what they spend is never more than what it counts as granted.

The daemon's own totals are compared with what callers were told, all clients together. Not covered: crashes
of clients (the core's leases have a simulation of their own), what one client does (tests/unit/client/test_leases.py).
"""

import asyncio
import re
import threading
import time
import urllib.request
from collections.abc import Iterator

import pytest

from rgd.client import Answer, BlockingClient, Client, ClientSettings, Name, Source
from tests.support import components
from tests.support.served import served

pytestmark = [pytest.mark.embedded, pytest.mark.slow]

RATE = 20_000
#: `shares.burst_ms` of the rate.
DEPTH = RATE // 4
LARGEST = 50
GROUPS = f"""\
groups:
  gold: {{publish: {{messages: {RATE}}}}}
  open: {{}}
attach:
  namespaces: {{acme/orders: gold, acme/free: open}}
"""
ORDERS = Name("acme", "orders")
ROUNDS = 1500
PATIENT_S = 20.0


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    components.embedded_broker()
    with served(tmp_path_factory.mktemp("daemon"), GROUPS) as address:
        yield address


class Told:
    """What callers were told."""

    def __init__(self) -> None:
        self.messages = 0
        self.by_lease = 0
        self.refused = 0

    def note(self, answer: Answer) -> None:
        assert answer.source is not Source.AWAY
        self.messages += answer.messages
        self.by_lease += answer.messages if answer.source is Source.LEASE else 0
        self.refused += not answer.granted


def total(url: str, name: str) -> float:
    with urllib.request.urlopen(f"{url}/metrics", timeout=PATIENT_S) as answer:
        page = answer.read().decode()
    labels = r'\{dimension="messages",group="gold",kind="publish"\}'
    # A group that nobody asked for has no sample yet.
    found = re.search(rf"^{name}{labels} (\S+)$", page, re.MULTILINE)
    return float(found[1]) if found else 0.0


def settings(url: str) -> ClientSettings:
    return ClientSettings(when_away="closed", url=url, timeout_s=PATIENT_S)


async def load(url: str, told: Told) -> None:
    """Ask for batches of different sizes, as fast as answers come."""
    async with Client(settings(url)) as client:
        orders = client.limiter(ORDERS, leased=True)
        for number in range(ROUNDS):
            asked = 1 + number % LARGEST
            told.note(await orders.acquire(asked))
            if number % 100 == 0:
                await asyncio.sleep(0)


def blocking_load(url: str, tolds: list[Told]) -> None:
    with BlockingClient(settings(url)) as client:

        def ask(told: Told) -> None:
            orders = client.limiter(ORDERS, leased=True)
            for number in range(ROUNDS):
                answer = orders.acquire(1 + number % LARGEST)
                told.note(answer)
                if number % 10 == 0 and answer.granted:
                    # It was for nothing.
                    orders.settle(answer)
                    told.messages -= answer.messages

        asking = [threading.Thread(target=ask, args=(told,)) for told in tolds]
        for thread in asking:
            thread.start()
        for thread in asking:
            thread.join()


async def test_what_clients_spend_is_never_more_than_the_daemon_granted(url: str) -> None:
    tolds = [Told() for _ in range(5)]
    before = total(url, "rgd_admitted_total") - total(url, "rgd_returned_total")
    begun = time.monotonic()
    async with asyncio.TaskGroup() as tasks:
        for told in tolds[:3]:
            tasks.create_task(load(url, told))
        tasks.create_task(asyncio.to_thread(blocking_load, url, tolds[3:]))
    granted = total(url, "rgd_admitted_total") - total(url, "rgd_returned_total") - before
    elapsed_s = time.monotonic() - begun

    spent = sum(told.messages for told in tolds)
    assert 0 < spent <= granted
    assert granted <= DEPTH + RATE * elapsed_s + LARGEST
    assert sum(told.by_lease for told in tolds) > 0
    assert sum(told.refused for told in tolds) > 0
