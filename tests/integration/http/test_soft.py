"""Soft limits over HTTP: how they are set and shown, and how a caller is told.

Not covered: groups that are divided over topics.
"""

from tests.integration.http.door import Door

GROUP = "/v1/groups/gold"
ORDERS = {"tenant": "acme", "namespace": "orders"}


async def test_it_is_set_shown_changed_and_removed(door: Door) -> None:
    assert (await door.call("GET", GROUP)).json["soft"] is None
    assert (await door.call("PATCH", GROUP, {"soft": 0.8})).json["soft"] == 0.8
    assert (await door.call("PATCH", GROUP, {"shadow": False})).json["soft"] == 0.8
    assert (await door.call("PATCH", GROUP, {"soft": None})).json["soft"] is None
    body = {"publish": {"messages": 1000}, "soft": 0.5}
    assert (await door.call("PUT", GROUP, body)).json["soft"] == 0.5


async def test_callers_are_told(door: Door) -> None:
    await door.call("PATCH", GROUP, {"soft": 0.8})
    within = await door.call("POST", "/v1/acquire", ORDERS | {"messages": 200})
    assert within.json == {"granted": True, "messages": 200, "bytes": 0}
    beyond = await door.call("POST", "/v1/acquire", ORDERS | {"messages": 10})
    assert beyond.json == {
        "granted": True,
        "messages": 10,
        "bytes": 0,
        "group": "gold",
        "over": True,
    }
    assert (beyond.status, beyond.headers["X-Rgd-Over"]) == (200, "gold")
    items = await door.call("POST", "/v1/acquire", [ORDERS, ORDERS | {"tenant": "nobody"}])
    assert [item.get("over", False) for item in items.json] == [True, False]
    check = await door.call("GET", "/v1/check?tenant=acme&namespace=orders")
    assert (check.status, check.headers["X-Rgd-Over"]) == (200, "gold")
    lease = await door.call("POST", "/v1/leases", ORDERS | {"wants_messages_per_s": 9})
    assert (lease.json["over"], lease.headers["X-Rgd-Over"]) == (True, "gold")
