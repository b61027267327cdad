"""What real daemons know of policies while the exchange is away, from their first answer on.

Over the embedded broker, which the test runs, kills and wipes. Not covered: every way in which a table is
lost (tests/contract/exchange, tests/unit/app/test_policies_replaced.py).
"""

import asyncio
import json
import sys
import time
import urllib.error
import urllib.request
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from rgd.app.demo.cluster import Daemon
from tests.contract.exchange.backends import EmbeddedBackend

pytestmark = [pytest.mark.e2e, pytest.mark.embedded]

SOON_S = 300.0
QUOTA = 100
#: The depth of a bucket, `shares.burst_ms`.
BURST_S = 0.25
ASKED = [{"tenant": "acme", "namespace": "orders"}] * 50
ROUND_MS = 200


class Said(NamedTuple):
    status: int
    retry_after: str | None
    body: Any


def call(base: str, path: str, body: object = None, method: str | None = None) -> Said:
    data = None if body is None else json.dumps(body).encode()
    headers = {"Content-Type": "application/json"}
    request = urllib.request.Request(f"{base}{path}", data, headers, method=method)
    try:
        with urllib.request.urlopen(request, timeout=SOON_S) as response:
            return Said(response.status, None, json.loads(response.read() or b"null"))
    except urllib.error.HTTPError as error:
        return Said(error.code, error.headers["Retry-After"], json.loads(error.read()))


async def until(condition: Callable[[], bool]) -> None:
    """Return once another process says so."""
    async with asyncio.timeout(SOON_S):
        while not await asyncio.to_thread(condition):  # noqa: ASYNC110 - another process tells no event
            await asyncio.sleep(0.02)


@pytest.fixture
async def exchange(tmp_path: Path) -> AsyncIterator[EmbeddedBackend]:
    async with EmbeddedBackend.running(tmp_path / "exchange", "any") as backend:
        yield backend


@pytest.fixture
async def make_daemon(
    exchange: EmbeddedBackend, tmp_path: Path
) -> AsyncIterator[Callable[..., Daemon]]:
    """Makes daemons without a groups file, not started."""
    made: list[Daemon] = []

    def make(name: str, **environ: str) -> Daemon:
        settings = {"RGD_EXCHANGE__ROUND_MS": str(ROUND_MS), **environ}
        made.append(Daemon(name, tmp_path, exchange.url, settings))
        return made[-1]

    yield make
    for daemon in made:
        await daemon.stop()


def is_well(daemon: Daemon) -> bool:
    said = call(daemon.base, "/readyz")
    return said.status == 200 and "degraded" not in said.body


def limit(daemon: Daemon) -> None:
    """Have the namespace limited, at one daemon."""
    group = {"publish": {"messages": QUOTA}}
    assert call(daemon.base, "/v1/groups/gold", group, "PUT").status == 200
    path = "/admin/v2/namespaces/acme/orders/resourcegroup/gold"
    assert call(daemon.base, path, method="POST").status in {200, 204}


def hammer(daemon: Daemon, seconds: float) -> tuple[int, float]:
    """Ask as fast as may be; what was granted, and in what time. Nothing is ever ungoverned."""
    granted, began = 0, time.monotonic()
    while time.monotonic() < began + seconds:
        for answer in call(daemon.base, "/v1/acquire", ASKED).body:
            assert answer.get("governed", True), answer
            granted += answer["messages"]
    return granted, time.monotonic() - began


async def test_a_daemon_that_starts_while_the_exchange_is_away_never_grants_above_its_quota(
    exchange: EmbeddedBackend, make_daemon: Callable[..., Daemon]
) -> None:
    daemon = make_daemon("broker-1")
    await daemon.start()
    await until(lambda: is_well(daemon))
    await asyncio.to_thread(limit, daemon)
    assert await daemon.stop() == 0

    await exchange.kill()
    await daemon.start()
    # From the first answer on.
    granted, seconds = await asyncio.to_thread(hammer, daemon, 2.0)
    assert granted <= QUOTA * (seconds + BURST_S) + 1
    await until(lambda: call(daemon.base, "/readyz").status == 200)
    notes = "; ".join(call(daemon.base, "/readyz").body["degraded"])
    assert "policies: the table" in notes
    assert "in force is what an earlier run knew last" in notes
    said = call(daemon.base, "/v1/groups/gold", {"publish": {"messages": 1}}, "PUT")
    assert (said.status, said.retry_after) == (503, "1")

    await exchange.restart()
    await until(lambda: is_well(daemon))
    granted, seconds = await asyncio.to_thread(hammer, daemon, 0.5)
    assert granted <= QUOTA * (seconds + BURST_S) + 1


async def test_a_daemon_that_never_knew_any_policies_refuses_until_it_has_read_them(
    exchange: EmbeddedBackend, make_daemon: Callable[..., Daemon]
) -> None:
    knowing, new = make_daemon("broker-1"), make_daemon("broker-2")
    await knowing.start()
    await until(lambda: is_well(knowing))
    await asyncio.to_thread(limit, knowing)
    await exchange.kill()
    await new.start()
    said = call(new.base, "/v1/acquire", ASKED[0])
    assert (said.status, said.retry_after) == (503, "1")
    assert said.body["granted"] is False
    assert said.body["retry_after_ms"] == 1000
    assert {answer["status"] for answer in call(new.base, "/v1/acquire", ASKED).body} == {503}
    # What the gate says of itself comes before what its plane says.
    await until(lambda: "no policies are known" in call(new.base, "/readyz").body["reason"])
    assert call(new.base, "/readyz").status == 503
    await exchange.restart()
    await until(lambda: is_well(new))
    granted, seconds = await asyncio.to_thread(hammer, new, 0.5)
    assert granted <= QUOTA * (seconds + BURST_S) + 1


async def test_allowed_it_grants_and_says_in_metrics_and_log_that_nothing_was_known(
    exchange: EmbeddedBackend, make_daemon: Callable[..., Daemon], tmp_path: Path
) -> None:
    await exchange.kill()
    daemon = make_daemon("broker-1", RGD_POLICIES__UNKNOWN="allow")
    await daemon.start()
    said = call(daemon.base, "/v1/acquire", ASKED[0])
    assert said.status == 200
    assert said.body["governed"] is False
    await until(lambda: call(daemon.base, "/readyz").status == 200)
    assert "no policies are known" in "; ".join(call(daemon.base, "/readyz").body["degraded"])
    assert await daemon.stop() == 0
    rgd = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "rgd", "log", "cat", "--json", str(tmp_path / "log")),
        stdout=asyncio.subprocess.PIPE,
    )
    printed, _ = await rgd.communicate()
    reports = [json.loads(line)["report"] for line in printed.splitlines()]
    # Others are the policies in force.
    rounds = [report for report in reports if "unknown_granted" in report]
    assert sum(report["unknown_granted"] for report in rounds) == 1
    assert sum(report["ungoverned"] for report in rounds) == 1
