"""The queries of docs/slow-consumers.md in a live Prometheus that scrapes a whole daemon.

Three subscriptions: one with a backlog that a limit holds back, one with a backlog and no limit, one that
limits lower and that has no backlog. The backlogs are pushed to the daemon.
Not covered: what is counted (tests/unit/core/buckets/test_throttled.py).
"""

import asyncio
import json
import os
import re
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from rgd.adapters.http.client import DaemonClient
from tests.support import components
from tests.support.child_processes import end, free_ports, start_dying_with_parent
from tests.support.served import served

pytestmark = [pytest.mark.e2e, pytest.mark.embedded]

PAGE = Path(__file__).parents[3] / "docs" / "slow-consumers.md"
SOON_S = 60.0

#: By topic and subscription.
BACKLOGS = {("held", "audit"): 5000, ("slow", "audit"): 5000, ("small", "audit"): 3}
GROUPS = """
groups:
  gold: {dispatch: {messages: 400}}
attach:
  namespaces: {acme/orders: gold}
limits:
  topics:
    "persistent://acme/orders/held": {dispatch: {messages: 4}}
    "persistent://acme/orders/small": {dispatch: {bytes: 4000}}
"""
#: Reads of each round of load; `slow` reads next to nothing, though nothing limits it to that.
READS = [("held", 1000, 0), ("slow", 1, 0), ("small", 1, 10_000)]


def queries() -> dict[str, str]:
    """The queries of the page, by the name in their first line, over seconds in place of minutes."""
    text = PAGE.read_text()
    found = re.findall(r"^```promql\n# ([a-z ]+)\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    return {name: query.replace("[5m]", "[5s]") for name, query in found}


async def push_backlogs(base: str) -> None:
    """Tell the daemon the backlogs, as a broker does."""
    async with aiohttp.ClientSession() as session:
        for (topic, name), messages in BACKLOGS.items():
            backlog = {
                "ledgers": [{"id": 1, "entries": messages, "bytes": messages * 100}],
                "subscriptions": [{"name": name, "oldest": {"ledger": 1, "entry": 0}}],
            }
            path = f"{base}/v1/topics/acme/orders/{topic}/backlog"
            async with session.put(path, json=backlog) as response:
                assert response.status == 200, await response.text()


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[str]:
    """Its address."""
    components.embedded_broker()
    with served(tmp_path, GROUPS) as url:
        yield url


class Prometheus:
    """Asks a running Prometheus."""

    def __init__(self, session: aiohttp.ClientSession, port: int) -> None:
        self._session = session
        self._base = f"http://127.0.0.1:{port}"

    async def is_ready(self) -> bool:
        try:
            async with self._session.get(f"{self._base}/-/ready") as response:
                return response.status == 200
        except aiohttp.ClientError:
            return False

    async def ask(self, query: str) -> list[dict[str, Any]]:
        """The vector that a query gives."""
        async with self._session.get(f"{self._base}/api/v1/query", params={"query": query}) as got:
            answer = await got.json()
        assert answer["status"] == "success", answer
        result: list[dict[str, Any]] = answer["data"]["result"]
        return result


@asynccontextmanager
async def running_prometheus(folder: Path, base: str) -> AsyncIterator[Prometheus]:
    """A Prometheus that scrapes a daemon."""
    binary = components.prometheus()
    [port] = free_ports(1)
    scrape = {
        "job_name": "all",
        "scrape_interval": "500ms",
        "scrape_timeout": "400ms",
        "static_configs": [{"targets": [base.removeprefix("http://")]}],
    }
    configuration = folder / "prometheus.yml"
    # JSON is YAML.
    configuration.write_text(json.dumps({"scrape_configs": [scrape]}))
    options = {
        "config.file": configuration,
        "storage.tsdb.path": folder / "tsdb",
        "web.listen-address": f"127.0.0.1:{port}",
    }
    process = start_dying_with_parent(
        [binary, *(f"--{name}={value}" for name, value in options.items())],
        environment=os.environ,
        log=folder / "prometheus.log",
    )
    try:
        async with aiohttp.ClientSession() as session:
            prometheus = Prometheus(session, port)
            async with asyncio.timeout(SOON_S):
                while not await prometheus.is_ready():
                    assert process.poll() is None, (folder / "prometheus.log").read_text()
            yield prometheus
    finally:
        end(process, SOON_S)


def found(result: list[dict[str, Any]]) -> set[str]:
    """The topics in a vector, with the reason where there is one."""
    topics = set()
    for series in result:
        labels = series["metric"]
        assert (labels["cluster"], labels["namespace"]) == ("standalone", "acme/orders")
        assert labels["subscription"] == "audit"
        reason = f" by {labels['reason']}" if "reason" in labels else ""
        topics.add(labels["topic"].removeprefix("persistent://acme/orders/") + reason)
    return topics


def linted(page: bytes) -> str:
    """What `promtool check metrics` finds wrong with a page."""
    command = [str(components.promtool()), "check", "metrics"]
    done = subprocess.run(command, input=page, capture_output=True, check=False)
    return (done.stdout + done.stderr).decode() or ("" if done.returncode == 0 else "failed")


EXPECTED = {
    "slow consumers": {"slow"},
    "throttled": {"held"},
    "by which limit": {"held by resource_group", "held by topic", "small by topic"},
    # Its next message is a quarter of a second away, `small`'s next byte a millisecond.
    "waiting": {"held"},
    "not granted": {"held"},
}


async def test_every_query_of_the_page_tells_what_it_says(tmp_path: Path, daemon: str) -> None:
    assert queries().keys() == EXPECTED.keys()
    await push_backlogs(daemon)
    async with running_prometheus(tmp_path, daemon) as prometheus, DaemonClient(daemon) as client:
        told: dict[str, set[str]] = {}
        try:
            async with asyncio.timeout(SOON_S):
                while told != EXPECTED:
                    for topic, messages, size in READS:
                        await client.acquire(
                            {
                                "tenant": "acme",
                                "namespace": "orders",
                                "topic": topic,
                                "subscription": "audit",
                                "kind": "dispatch",
                                "messages": messages,
                                "bytes": size,
                            }
                        )
                    told = {
                        name: found(await prometheus.ask(query))
                        for name, query in queries().items()
                    }
        except TimeoutError:
            assert told == EXPECTED, "Prometheus does not see it"
        async with aiohttp.ClientSession() as session, session.get(f"{daemon}/metrics") as got:
            assert linted(await got.read()) == ""
        # A busy machine may have missed a scrape, but not all.
        assert len(await prometheus.ask("max_over_time(up[1m]) == 1")) == 1
