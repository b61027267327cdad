"""`GET /v1/explain` and `PATCH /v1/groups/{g}` at the door of a whole daemon.

Every answer is held against the daemon's own /openapi.json. Not covered: what the levels say
(tests/unit/views/test_explain.py).
"""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from rgd.core.buckets.decision import Request
from rgd.core.policies.model import Attachments, Group, Limit, Rates, SharePolicyName, rate_of
from rgd.core.policies.snapshot import PolicySnapshot
from tests.integration.http.door import call
from tests.support.running_daemon import RunningDaemon, running_daemon

GOLD = Group("gold", Limit(Rates(rate_of(8), rate_of(5000))), policy=SharePolicyName.STEAL)
SNAPSHOT = PolicySnapshot({"gold": GOLD}, Attachments(namespaces={"acme/orders": "gold"}))
NAMES = "tenant=acme&namespace=orders"


@pytest.fixture
def running(tmp_path: Path) -> Iterator[RunningDaemon]:
    with running_daemon(tmp_path, SNAPSHOT) as daemon:
        yield daemon


async def test_it_names_the_group_and_the_dimension_that_cut(running: RunningDaemon) -> None:
    asked = Request(messages=60, bytes=7, namespace="acme/orders")
    await asyncio.to_thread(running.ask, *[asked] * 4)
    told = (await call(running, "GET", f"/v1/explain?{NAMES}")).json
    assert (told["broker"], told["kind"], told["namespace"]) == (
        "broker-1",
        "publish",
        "acme/orders",
    )
    assert told["limited_by"] == {
        "level": "resource_group",
        "group": "gold",
        "dimension": "messages",
    }
    [level] = told["levels"]
    assert level["set_at"] == [{"scope": "namespace", "name": "acme/orders"}]
    assert level["refused_last_minute"]["by_messages"]["requests"] == 3
    assert level["messages"]["quota"] == 8
    assert level["messages"]["tokens"] < 0
