"""`rgd.client`: decisions a second in one process, from leases and in batches, against a daemon that runs.

    python bench/client.py [--json]

The daemon is `rgd serve` on an embedded exchange, a process of its own. Leases are large enough that the figures are
the client's own; every answer is checked to be a grant, and what was spent against what the daemon granted.
`leased_figures` is for other benchmarks.
"""

import argparse
import asyncio
import re
import tempfile
import time
import urllib.request
from pathlib import Path
from typing import Final

from bench.harness import Figures, run
from rgd.client import BlockingClient, Client, ClientSettings, Name, Question
from tests.support.served import served

ORDERS: Final = Name("acme", "orders", topic="eu")
GROUPS: Final = """\
groups:
  gold: {publish: {messages: 1000000000}}
attach:
  namespaces: {acme/orders: gold}
"""
#: Of one pass: short, so that the best of many is one that nothing disturbed.
DECISIONS: Final = 10_000
BATCH: Final = 1000
BATCHES: Final = 5
PASSES: Final = 60
BATCH_PASSES: Final = 5
_ADMITTED: Final = re.compile(
    r'^rgd_(admitted|returned)_total\{dimension="messages",group="gold",kind="publish"\} (\S+)$',
    re.MULTILINE,
)


def leased_figures(url: str, token: str | None = None) -> dict[str, float]:
    """Decisions a second from leases, best of several passes.

    Args:
        url: of a daemon that is ready, whose quota for acme/orders is no limit to these figures and which
            nobody else asks for group `gold`.
        token: with the scopes `query` and `read`; None: it needs none.
    """
    settings = ClientSettings(when_away="closed", url=url, token=token, timeout_s=10)
    before = _granted(settings)
    figures = asyncio.run(_leased(settings)) | _leased_blocking(settings)
    spent = figures.pop("spent")
    granted = _granted(settings) - before
    if spent > granted:
        raise SystemExit(f"spent {spent} of {granted} that were granted")
    figures["leased_spent_to_granted"] = round(spent / granted, 3)
    return figures


async def _leased(settings: ClientSettings) -> dict[str, float]:
    """By coroutines: `await acquire`, and the plain `try_acquire`."""
    rates, plain_rates, spent = [], [], 0
    async with Client(settings) as client:
        orders = client.limiter(ORDERS, leased=True)
        for _ in range(PASSES):
            begun = time.perf_counter()
            for _ in range(DECISIONS):
                answer = await orders.acquire()
                if not answer.granted:
                    raise SystemExit(f"not granted: {answer}")
            rates.append(DECISIONS / (time.perf_counter() - begun))
            begun = time.perf_counter()
            granted = sum(orders.try_acquire() for _ in range(DECISIONS))
            if granted == DECISIONS:
                plain_rates.append(DECISIONS / (time.perf_counter() - begun))
            spent += DECISIONS + granted
            await asyncio.sleep(0)
    return {
        "leased_asyncio_per_s": round(max(rates)),
        "leased_try_per_s": round(max(plain_rates, default=0)),
        "spent": spent,
    }


def _leased_blocking(settings: ClientSettings) -> dict[str, float]:
    """By one thread: `acquire`."""
    rates = []
    with BlockingClient(settings) as client:
        orders = client.limiter(ORDERS, leased=True)
        for _ in range(PASSES):
            begun = time.perf_counter()
            for _ in range(DECISIONS):
                if not orders.acquire().granted:
                    raise SystemExit("not granted")
            rates.append(DECISIONS / (time.perf_counter() - begun))
    return {"leased_blocking_per_s": round(max(rates))}


async def _batched(settings: ClientSettings) -> float:
    """Decisions a second where each is asked of the daemon, in batches."""
    rates = []
    async with Client(settings) as client:
        for _ in range(BATCH_PASSES):
            begun = time.perf_counter()
            for _ in range(BATCHES):
                answers = await client.ask_all([Question(ORDERS)] * BATCH)
                if not all(answer.granted for answer in answers):
                    raise SystemExit("not granted")
            rates.append(BATCH * BATCHES / (time.perf_counter() - begun))
    return max(rates)


def _granted(settings: ClientSettings) -> float:
    headers = {"Authorization": f"Bearer {settings.token}"} if settings.token else {}
    asked = urllib.request.Request(f"{settings.url}/metrics", headers=headers)  # noqa: S310 -- our own daemon
    with urllib.request.urlopen(asked) as answer:  # noqa: S310
        totals = dict(_ADMITTED.findall(answer.read().decode()))
    return float(totals.get("admitted", 0)) - float(totals.get("returned", 0))


def measure(_: argparse.Namespace) -> Figures:
    """All figures."""
    with tempfile.TemporaryDirectory() as folder, served(Path(folder), GROUPS) as url:
        figures = leased_figures(url)
        settings = ClientSettings(when_away="closed", url=url, timeout_s=10)
        figures["batched_asyncio_per_s"] = round(asyncio.run(_batched(settings)))
    return figures


if __name__ == "__main__":
    run(__doc__, measure)
