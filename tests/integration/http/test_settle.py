"""`POST /v1/settle` over a real socket: names, amounts, arrays and their faults.

Not covered: what may go back (tests/unit/core/buckets/test_settle.py).
"""

import asyncio

from rgd.adapters.http.settings import HttpSettings
from tests.integration.http.door import Door, open_door

ACQUIRE, SETTLE = "/v1/acquire", "/v1/settle"
READ = {
    "tenant": "acme",
    "namespace": "orders",
    "topic": "eu",
    "subscription": "audit",
    "kind": "dispatch",
}
NOTHING = {"messages": 0, "bytes": 0}


async def test_what_was_not_read_is_granted_again(door: Door) -> None:
    # 2,000 a second: a full bucket has 500.
    first = await door.call("POST", ACQUIRE, {**READ, "messages": 600})
    assert first.json["messages"] == 500
    settled = await door.call("POST", SETTLE, {**READ, "messages": 450})
    assert (settled.status, settled.json) == (200, {"messages": 450, "bytes": 0})
    again = await door.call("POST", ACQUIRE, {**READ, "messages": 600})
    assert again.json["messages"] == 450


async def test_what_was_read_beyond_the_grant_is_below_zero(door: Door) -> None:
    await door.call("POST", ACQUIRE, {**READ, "messages": 500})
    charged = await door.call("POST", SETTLE, {**READ, "messages": -100, "bytes": -5})
    assert charged.json == {"messages": -100, "bytes": -5}
    refused = await door.call("POST", ACQUIRE, {**READ, "messages": 1})
    assert (refused.status, refused.json["retry_after_ms"]) == (429, 51)


async def test_a_name_that_nothing_limits_settles_nothing(door: Door) -> None:
    assert (
        await door.call("POST", SETTLE, {**READ, "tenant": "nobody", "bytes": 5})
    ).json == NOTHING


async def test_an_array_is_answered_in_order_with_each_fault_in_its_place(door: Door) -> None:
    await door.call("POST", ACQUIRE, {**READ, "messages": 100})
    items = [
        {**READ, "messages": 30},
        {"group": "nobody"},
        {**READ, "messages": "many"},
        {**READ, "messages": 1000},
    ]
    twice = b'[{"group":"gold","messages":1,"messages":2}]'
    answer = await door.call("POST", SETTLE, items)
    assert answer.status == 200
    first, missing, malformed, last = answer.json
    assert (first["messages"], last["messages"]) == (30, 70)
    assert (missing["status"], malformed["status"]) == (404, 400)
    assert malformed["reason"].startswith("messages: expected an integer from -")
    assert (await door.call("POST", SETTLE, [])).json == []
    [repeated] = (await door.call("POST", SETTLE, twice)).json
    assert (repeated["status"], repeated["reason"]) == (
        400,
        "messages: expected once, got it twice",
    )


async def test_others_are_served_while_a_long_array_is_settled(door: Door) -> None:
    await door.call("POST", ACQUIRE, {**READ, "messages": 500})
    long = asyncio.create_task(door.call("POST", SETTLE, [READ | {"messages": 1}] * 1000))
    served = 0
    while not long.done():
        assert (await door.call("GET", "/healthz")).status == 200
        served += 1
    settled = (await long).json
    assert sum(item["messages"] for item in settled) == 500
    assert served > 1


async def test_an_array_above_the_limit_is_413() -> None:
    async with open_door(HttpSettings(port=0, batch_max=3)) as door:
        for path in (ACQUIRE, SETTLE):
            assert (await door.call("POST", path, [READ] * 3)).status == 200
            answer = await door.call("POST", path, [READ] * 4)
            reason = "body: expected an array of at most 3 items (http.batch_max)"
            assert (answer.status, answer.reason) == (413, reason)
