"""Backlogs at a whole daemon: the real core, its clock, checks among rounds, `rgd why`, /v1/explain."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rgd.core.policies.model import BacklogAction, BacklogQuota, BacklogQuotas, Backlogs
from rgd.core.policies.snapshot import PolicySnapshot
from rgd.views.why_words import details, remarks, verdict
from tests.integration.http.door import call
from tests.support.running_daemon import RunningDaemon, running_daemon

SIZE = BacklogQuotas(BacklogQuota(150, -1, BacklogAction.HOLD))
TIME = BacklogQuotas(age=BacklogQuota(-1, 60, BacklogAction.REFUSE))
EVICTED = BacklogQuotas(BacklogQuota(150, -1, BacklogAction.EVICT))
POLICIES = PolicySnapshot(
    backlogs=Backlogs(
        {"acme/orders": SIZE},
        {
            "persistent://acme/orders/evicted": EVICTED,
            # Its size is unlimited, and goes before its namespace's.
            "persistent://acme/orders/old": BacklogQuotas(BacklogQuota(-1), TIME.age),
        },
    )
)
READ_MS = 1_800_000_000_000
CHECK = "/admin/v2/brokers/backlog-quota-check"
NAMES = {"tenant": "acme", "namespace": "orders"}


def backlog() -> dict[str, Any]:
    closed = {"id": 3, "entries": 10, "bytes": 100, "closed_at_ms": READ_MS - 100_000}
    oldest = {"ledger": 3, "entry": 2}
    return {
        "ledgers": [closed, {"id": 5, "entries": 10, "bytes": 100}],
        "subscriptions": [{"name": "billing", "oldest": oldest}],
        "read_at_ms": READ_MS,
    }


@pytest.fixture
def running(tmp_path: Path) -> Iterator[RunningDaemon]:
    with running_daemon(tmp_path, POLICIES) as daemon:
        yield daemon


async def pushed(running: RunningDaemon, topic: str) -> None:
    """Push a topic, and have it checked."""
    path = f"/v1/topics/acme/orders/{topic}/backlog"
    assert (await call(running, "PUT", path, backlog())).status == 200
    assert (await call(running, "GET", CHECK)).status == 204


async def explained(running: RunningDaemon, topic: str) -> Any:
    path = f"/v1/explain?tenant=acme&namespace=orders&topic={topic}"
    return (await call(running, "GET", path)).json


async def test_a_held_topic_is_explained(running: RunningDaemon) -> None:
    await pushed(running, "eu")
    asked = NAMES | {"topic": "eu", "messages": 3, "bytes": 7}
    refused = await call(running, "POST", "/v1/acquire", asked)
    assert (refused.status, refused.json["quota_type"], refused.json["held"]) == (429, "size", True)
    view = await explained(running, "eu")
    assert view["governed"] is True
    assert view["limited_by"] == {"level": "backlog", "group": None, "dimension": "bytes"}
    assert view["backlog"]["blocked"]["quota_type"] == "size"
    assert verdict(view).startswith(
        "acme/orders/eu publish is held: its backlog exceeds its quota, 200 of 150 (size); "
        "the next check is in "
    )
    [line] = details(view)
    assert line.startswith("the backlog quota refused 1 request, 3 messages on broker-1")
    said = list(remarks(view))
    assert (
        "backlog quota destination_storage 150, producer_request_hold, set for namespace "
        "acme/orders" in said
    )
    # It grows older while the test runs.
    assert re.match("the oldest message is at 3:2 in subscription billing, 1.. s old", said[-1])
    assert "its ledger's time" in said[-1]


async def test_a_refused_topic_is_explained(running: RunningDaemon) -> None:
    await pushed(running, "old")
    view = await explained(running, "old")
    assert view["limited_by"] == {"level": "backlog", "group": None, "dimension": None}
    refused = r"refused: its backlog exceeds its quota, 1.. s of 60 s \(time\)"
    assert re.search(refused, verdict(view))


async def test_an_eviction_is_explained_and_limits_nothing(running: RunningDaemon) -> None:
    await pushed(running, "evicted")
    view = await explained(running, "evicted")
    assert (view["governed"], view["limited_by"]) == (False, None)
    assert list(remarks(view))[-1] == (
        "subscription billing should skip to 5:0 (over its quota of size)"
    )
