"""Leases of a whole daemon: over HTTP, in its metrics, in `/v1/explain`.

Not covered: single calls and their faults (test_leases.py).
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from rgd.app.telemetry import Telemetry
from rgd.core.buckets.decision import Request
from rgd.core.policies.model import Attachments, Group, Limit, Rates, rate_of
from rgd.core.policies.snapshot import PolicySnapshot
from tests.integration.http.door import call
from tests.support.running_daemon import RunningDaemon, running_daemon

POLICIES = PolicySnapshot(
    {"gold": Group("gold", Limit(Rates(rate_of(1000))))},
    Attachments(namespaces={"acme/orders": "gold"}),
)
NAME = {"tenant": "acme", "namespace": "orders"}


@pytest.fixture
def running(tmp_path: Path) -> Iterator[RunningDaemon]:
    with running_daemon(tmp_path, POLICIES) as one:
        yield one


def samples(running: RunningDaemon) -> dict[tuple[str, ...], float]:
    found = running._call(lambda: list(Telemetry(running.daemon).samples()))
    return {
        (sample.name, *sample.labels): sample.value
        for sample in found
        if "lease" in sample.name or sample.name == "rgd_returned_total"
    }


async def test_leases_are_seen_while_they_live_and_when_they_end(running: RunningDaemon) -> None:
    lease = await call(running, "POST", "/v1/leases", NAME | {"wants_messages_per_s": 50})
    assert lease.json["messages"] == 50
    seen = samples(running)
    assert seen["rgd_leases",] == 1
    assert seen["rgd_lease_events_total", "granted"] == 1
    assert seen["rgd_leased", "gold", "publish", "messages"] == 50
    [level] = running.explain(Request(namespace="acme/orders")).levels
    assert level.leases is not None
    assert (level.leases.leases, level.leases.held_messages) == (1, 50)
    assert level.leases.wants.messages == 50

    path = f"/v1/leases/{lease.json['lease_id']}"
    assert (await call(running, "POST", f"{path}/renew", {"messages": 20})).json["messages"] == 30
    assert (await call(running, "POST", f"{path}/release", {"messages": 45})).json["messages"] == 45
    assert (await call(running, "POST", f"{path}/release", {"messages": 45})).status == 404
    seen = samples(running)
    assert seen["rgd_leases",] == 0
    assert ("rgd_leased", "gold", "publish", "messages") not in seen
    assert seen["rgd_returned_total", "gold", "publish", "messages"] == 45
    assert seen["rgd_lease_events_total", "renewed"] == 1
    assert seen["rgd_lease_events_total", "released"] == 1
    [level] = running.explain(Request(namespace="acme/orders")).levels
    assert level.leases is None
