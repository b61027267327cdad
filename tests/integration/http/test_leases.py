"""`/v1/leases` over a real socket: amounts, renewals, releases, refusals, faults.

Not covered: faults (test_faults.py), how much a lease gets and what goes back (tests/unit/core/leases).
"""

from typing import Any

from rgd.adapters.http.settings import HttpSettings
from rgd.core.bounds import Bounds, LeaseBounds
from rgd.ports.door import Ungoverned
from tests.integration.http.door import Answer, Door, open_door
from tests.unit.adapters.http.small_daemon import SmallDaemon

LEASES = "/v1/leases"
ORDERS = {"tenant": "acme", "namespace": "orders", "topic": "eu"}
WANTS = {"wants_messages_per_s": 100}


async def opened(door: Door, **fields: object) -> Any:
    answer = await door.call("POST", LEASES, ORDERS | WANTS | fields)
    assert answer.status == 200
    return answer.json


async def renewed(door: Door, lease: Any, **fields: object) -> Answer:
    return await door.call("POST", f"{LEASES}/{lease['lease_id']}/renew", fields)


async def released(door: Door, lease: Any, **fields: object) -> Answer:
    return await door.call("POST", f"{LEASES}/{lease['lease_id']}/release", fields)


async def test_a_lease_is_taken_renewed_and_given_back(door: Door) -> None:
    # 1,000 messages and 5 MB a second.
    lease = await opened(door, wants_bytes_per_s=1e6, ttl_ms=4000)
    assert lease == {
        "lease_id": "lease-1",
        "messages": 100,
        "bytes": 625_000,
        "expires_in_ms": 4000,
        "refresh_in_ms": 312,
        "safe_rate": {"messages": 100.0, "bytes": 1e6},
        "limited_by": "resource_group",
        "group": "gold",
        "dimension": "bytes",
    }
    door.daemon.advance(300)
    again = await renewed(door, lease, messages=60, bytes=400_000)
    assert (again.json["messages"], again.json["bytes"]) == (40, 600_000)
    back = await released(door, lease, messages=90, bytes=10**6)
    assert (back.status, back.json) == (200, {"messages": 90, "bytes": 10**6})
    assert (await released(door, lease, messages=90)).status == 404
    assert (await renewed(door, lease)).status == 404


async def test_a_renewal_may_change_its_terms(door: Door) -> None:
    lease = await opened(door)
    more = await renewed(door, lease, messages=100, wants_messages_per_s=150.5, ttl_ms=1000)
    assert more.json["messages"] == 0
    assert more.json["expires_in_ms"] == 1000
    assert more.json["safe_rate"]["messages"] == 150.5


async def test_a_renewal_without_tokens_says_when_there_are_some(door: Door) -> None:
    lease = await opened(door)
    await door.call("POST", "/v1/acquire", ORDERS | {"messages": 300, "partial": True})
    none = await renewed(door, lease)
    assert none.status == 200
    assert none.json["messages"] == 0
    assert none.json["retry_after_ms"] == none.json["refresh_in_ms"] == 20
    door.daemon.advance(20)
    assert (await renewed(door, lease)).json["messages"] == 10


async def test_without_tokens_there_is_no_lease(door: Door) -> None:
    stopped = {"tenant": "acme", "namespace": "stopped"}
    answer = await door.call("POST", LEASES, stopped | WANTS)
    assert answer.status == 429
    assert answer.json["limited_by"] == "resource_group"
    assert answer.headers["Retry-After"] == "1"
    assert answer.headers["RateLimit"] == '"stopped/publish/messages";r=0;t=1'


async def test_a_dimension_that_nothing_limits_needs_no_tokens(door: Door) -> None:
    # The group trial limits messages only.
    lease = await opened(door, namespace="trial")
    assert lease["bytes"] is None
    free = await opened(door, tenant="nobody")
    assert (free["messages"], free["governed"]) == (None, False)


async def test_a_name_without_limits_is_refused_if_it_has_to_have_one() -> None:
    async with open_door(HttpSettings(port=0, ungoverned=Ungoverned.DENY)) as door:
        answer = await door.call("POST", LEASES, ORDERS | WANTS | {"tenant": "nobody"})
        assert answer.status == 403
        assert len(door.daemon.leases.table) == 0


async def test_too_many_leases_are_503() -> None:
    daemon = SmallDaemon(bounds=Bounds(leases=LeaseBounds(leases_max=1)))
    async with open_door(HttpSettings(port=0), daemon=daemon) as door:
        await opened(door)
        answer = await door.call("POST", LEASES, ORDERS | WANTS)
        assert (answer.status, answer.headers["Retry-After"]) == (503, "1")
        assert answer.reason == "leases: the daemon has 1 already, the most there may be"


async def test_callers_with_tokens_are_told_apart(door: Door) -> None:
    for token in ("one", "two"):
        await door.call("POST", LEASES, ORDERS | WANTS, token=token)
    holders = [request.holder for request in door.daemon.lease_requests]
    assert len(set(holders)) == 2
    assert "one" not in holders[0]


async def test_a_token_is_one_caller_however_it_is_written(door: Door) -> None:
    for said in ("Bearer one", "bearer   one"):
        headers = {"Authorization": said}
        assert (await door.send("POST", LEASES, ORDERS | WANTS, headers=headers)).status == 200
    assert len({request.holder for request in door.daemon.lease_requests}) == 1
