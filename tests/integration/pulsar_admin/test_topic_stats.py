"""`pulsar-admin topics stats` and `brokers backlog-quota-check` against rgd, with pushed backlogs.

The client is Pulsar's own; no Pulsar runs. Not covered: what the figures are
(tests/unit/core/backlog, tests/integration/http/test_backlogs.py).
"""

import asyncio
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from rgd.core.policies.model import BacklogAction, BacklogQuota, BacklogQuotas, Backlogs
from rgd.core.policies.snapshot import PolicySnapshot
from tests.support.pulsar_standalone import pulsar_shell
from tests.support.running_daemon import RunningDaemon, running_daemon

EU = "persistent://acme/orders/eu"
READ_MS = 1_800_000_000_000
QUOTA = BacklogQuota(1000, 600, BacklogAction.EVICT)
POLICIES = PolicySnapshot(backlogs=Backlogs({"acme/orders": BacklogQuotas(QUOTA, QUOTA)}))
LIMITS = {"backlogQuotaLimitSize": 1000, "backlogQuotaLimitTime": 600}
NAME = {"oldestBacklogMessageSubscriptionName": "billing"}
AGE = "oldestBacklogMessageAgeSeconds"
UNITS = ("Msg", "Bytes")
LEVELS = ("Subscription", "Topic", "Broker")


@pytest.fixture
def running(tmp_path: Path) -> Iterator[RunningDaemon]:
    with running_daemon(tmp_path, POLICIES) as daemon:
        yield daemon


async def push(running: RunningDaemon, topic: str, ago_s: int) -> None:
    """Push a topic whose oldest message is so old."""
    oldest = {"ledger": 3, "entry": 2}
    published_ms = READ_MS - ago_s * 1000
    body = {
        "ledgers": [{"id": 3, "entries": 10, "bytes": 100}],
        "subscriptions": [{"name": "billing", "oldest": oldest, "publish_time_ms": published_ms}],
        "read_at_ms": READ_MS,
    }
    url = f"{running.url}/v1/topics/acme/orders/{topic}/backlog"
    async with aiohttp.ClientSession() as session, session.put(url, json=body) as response:
        assert response.status == 200


def shown(printed: str) -> Any:
    return json.loads(printed[printed.index("{") :])


@pytest.mark.pulsar
async def test_pulsar_admin_prints_the_stats_of_topics(running: RunningDaemon) -> None:
    began = time.monotonic()
    await push(running, "eu", 90)
    for number, ago_s in enumerate((30, 90)):
        await push(running, f"us-partition-{number}", ago_s)
    # pulsar-admin asks for a check and does not wait for it.
    check = f"{running.url}/admin/v2/brokers/backlog-quota-check"
    async with aiohttp.ClientSession() as session, session.get(check) as response:
        assert response.status == 204
    us = EU.replace("/eu", "/us")
    checked, one, together, missing = await asyncio.to_thread(
        pulsar_shell,
        [
            "admin brokers backlog-quota-check",
            f"admin topics stats {EU}",
            f"admin topics partitioned-stats {us} --per-partition",
            "admin topics stats persistent://acme/orders/unknown",
        ],
        admin_url=running.url,
    )
    took_s = time.monotonic() - began
    assert checked.strip() in {"", "ok"}
    stats, partitions = shown(one), shown(together)
    for told in (stats, partitions):
        found = {field: told.get(field) for field in (*LIMITS, *NAME)}
        assert found == LIMITS | NAME, json.dumps(told)
        # Of the partitions the oldest message counts.
        assert 90 <= told[AGE] <= 90 + took_s
    billing = stats["subscriptions"]["billing"]
    assert billing["msgBacklog"] == 8
    counters = [f"dispatchThrottled{unit}EventsBy{by}Limit" for unit in UNITS for by in LEVELS]
    assert [billing[counter] for counter in counters] == [0] * 6
    assert partitions["metadata"]["partitions"] == 2
    first = partitions["partitions"][f"{us}-partition-0"]
    assert 30 <= first[AGE] <= 30 + took_s
    assert "not found" in missing
