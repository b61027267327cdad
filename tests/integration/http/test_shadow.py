"""`http.shadow`: the daemon decides and counts, and refuses nothing.

Not covered: shadow groups, which are part of the decision (tests/unit/core/buckets).
"""

from collections.abc import AsyncIterator

import pytest

from rgd.adapters.http.settings import HttpSettings
from rgd.core.policies.model import OnUnknown
from rgd.core.units import Kind, Pair
from rgd.ports.door import Ungoverned
from tests.integration.http.door import Answer, Door, open_door
from tests.unit.core.values import key

ACQUIRE = "/v1/acquire"
#: 40 messages a second: a full bucket has 10.
TRIAL = {"tenant": "acme", "namespace": "trial"}
HEADER = "X-Rgd-Shadow"


@pytest.fixture
async def shadow() -> AsyncIterator[Door]:
    async with open_door(HttpSettings(port=0, shadow=True, ungoverned=Ungoverned.DENY)) as opened:
        yield opened


async def ask(door: Door, **fields: object) -> Answer:
    return await door.call("POST", ACQUIRE, TRIAL | fields)


def counts(door: Door) -> dict[str, float]:
    return {
        sample.labels[0]: sample.value
        for sample in door.server.samples()
        if sample.name == "rgd_http_shadow_total" and sample.value
    }


async def test_a_refusal_is_granted_and_says_what_it_would_have_been(shadow: Door) -> None:
    await ask(shadow, messages=10)
    answer = await ask(shadow, messages=5, bytes=7, attempt=1)
    assert (answer.status, answer.headers[HEADER]) == (200, "refused")
    assert answer.json == {
        "granted": True,
        "messages": 5,
        "bytes": 7,
        "limited_by": "resource_group",
        "group": "trial",
        "dimension": "messages",
        "retry_after_ms": 125,
        "shadow": "refused",
    }
    assert counts(shadow) == {"refused": 1}
    # It was decided and counted all the same.
    state = shadow.daemon.limiter.state(key("trial", Kind.PUBLISH))
    assert state is not None
    assert state.counters.admitted == Pair(10)
    assert state.counters.refused_new_messages == 5


async def test_everything_else_is_granted_too(shadow: Door) -> None:
    part = await ask(shadow, messages=15, partial=True)
    assert (part.json["messages"], part.json["shadow"]) == (15, "partial")
    large = await ask(shadow, messages=401)
    assert (large.json["messages"], large.headers[HEADER]) == (401, "too_large")
    free = await shadow.call("POST", ACQUIRE, {"tenant": "nobody", "namespace": "x"})
    assert (free.status, free.json["shadow"]) == (200, "ungoverned")
    shadow.daemon.limiter.unknown = OnUnknown.DENY
    assert (await ask(shadow)).json["shadow"] == "unknown"
    assert counts(shadow) == {"partial": 1, "too_large": 1, "ungoverned": 1, "unknown": 1}


async def test_items_of_an_array_are_granted(shadow: Door) -> None:
    answer = await shadow.call("POST", ACQUIRE, [TRIAL | {"messages": 10}, TRIAL, {"messages": 1}])
    first, second, faulty = answer.json
    assert "shadow" not in first
    assert (second["granted"], second["messages"], second["shadow"]) == (True, 1, "refused")
    assert faulty["status"] == 400


async def test_a_gateway_lets_all_pass(shadow: Door) -> None:
    check = "/v1/check?tenant=acme&namespace=trial&messages=10&deny=403"
    assert (await shadow.call("GET", check)).status == 200
    second = await shadow.call("GET", check)
    assert (second.status, second.headers[HEADER]) == (200, "refused")


async def test_leases_have_no_bounds(shadow: Door) -> None:
    said = TRIAL | {"wants_messages_per_s": 1000, "wants_bytes_per_s": 10}
    lease = await shadow.call("POST", "/v1/leases", said)
    assert (lease.json["messages"], lease.json["bytes"]) == (None, None)
    assert lease.headers[HEADER] == "partial"
    # What it took is taken, and wanted.
    path = f"/v1/leases/{lease.json['lease_id']}/renew"
    shadow.daemon.advance(100)
    assert (await shadow.call("POST", path, {})).json["messages"] is None
    state = shadow.daemon.limiter.state(key("trial", Kind.PUBLISH))
    assert state is not None
    assert state.counters.admitted.messages > 0
    assert state.counters.refused_new_messages > 0


async def test_a_lease_that_cannot_be_made_has_no_bounds(shadow: Door) -> None:
    stopped = {"tenant": "acme", "namespace": "stopped", "wants_messages_per_s": 1}
    none = await shadow.call("POST", "/v1/leases", stopped)
    assert (none.status, none.json["messages"], none.json["shadow"]) == (200, None, "refused")
    # Its renewal is unknown, so its caller asks for another one.
    path = f"/v1/leases/{none.json['lease_id']}/renew"
    assert (await shadow.call("POST", path, {})).status == 404


async def test_what_is_at_fault_stays_at_fault(shadow: Door) -> None:
    assert (await ask(shadow, messages=-1)).status == 400
    assert (await shadow.call("POST", ACQUIRE, {"group": "nobody"})).status == 404
