"""`POST /v1/acquire` over a real socket: statuses, headers, limits of size.

What names and arrays mean is in tests/unit/adapters/http/test_acquire.py; several brokers are not
covered here.
"""

import pytest

from rgd.adapters.http.settings import HttpSettings
from rgd.ports.door import Ungoverned
from tests.integration.http.door import Door, open_door

ACQUIRE = "/v1/acquire"
TRIAL = {"tenant": "acme", "namespace": "trial"}


async def test_a_refusal_is_429_and_asking_after_the_wait_succeeds(door: Door) -> None:
    # 40 a second: 10 tokens, and 10 of 60 leave a debt of 50.
    await door.call("POST", ACQUIRE, {**TRIAL, "messages": 60})

    refused = await door.call("POST", ACQUIRE, {**TRIAL, "messages": 4})

    assert refused.status == 429
    assert refused.json == {
        "granted": False,
        "messages": 0,
        "bytes": 0,
        "limited_by": "resource_group",
        "group": "trial",
        "dimension": "messages",
        "retry_after_ms": 1350,
    }
    assert refused.headers["Retry-After"] == "2"
    assert refused.headers["RateLimit-Policy"] == '"trial/publish/messages";q=40;qu="requests";w=1'
    assert refused.headers["RateLimit"] == '"trial/publish/messages";r=0;t=2'
    assert refused.headers["RateLimit-Limit"] == "40"
    assert refused.headers["RateLimit-Remaining"] == "0"
    assert refused.headers["RateLimit-Reset"] == "2"

    door.daemon.advance(1349)
    assert (await door.call("POST", ACQUIRE, {**TRIAL, "messages": 4})).status == 429
    door.daemon.advance(1)
    assert (await door.call("POST", ACQUIRE, {**TRIAL, "messages": 4})).status == 200


async def test_more_than_can_ever_be_granted_is_413(door: Door) -> None:
    answer = await door.call("POST", ACQUIRE, {**TRIAL, "messages": 401})

    assert answer.status == 413
    told = answer.json
    assert told.pop("reason").startswith("messages: expected at most 400 at once")
    assert told == {
        "limited_by": "resource_group",
        "group": "trial",
        "dimension": "messages",
        "most": 400,
    }
    assert (await door.call("POST", ACQUIRE, {**TRIAL, "messages": 400})).status == 200


@pytest.mark.parametrize("ungoverned", Ungoverned)
async def test_a_name_that_nobody_attached_is_allowed_or_denied(ungoverned: Ungoverned) -> None:
    async with open_door(HttpSettings(port=0, ungoverned=ungoverned)) as door:
        answer = await door.call("POST", ACQUIRE, {"tenant": "new", "namespace": "orders"})
        (item,) = (await door.call("POST", ACQUIRE, [{"tenant": "new", "namespace": "x"}])).json

    if ungoverned is Ungoverned.ALLOW:
        assert answer.json == {"granted": True, "messages": 1, "bytes": 0, "governed": False}
        assert item == answer.json
    else:
        assert answer.status == item["status"] == 403
        assert answer.reason.startswith(
            "no limit applies to new/orders and http.ungoverned is deny"
        )


# --- limits of size ------------------------------------------------------------------------------------


def padded(size: int) -> bytes:
    """An array of a hundred questions, with white space between them."""
    body = b'{"group":"gold"}'
    gap, rest = divmod(size - 2 - len(body), len(body) + 1 + 10_000)
    if not gap:
        return b"[" + body + b" " * rest + b"]"
    return b"[" + (body + b" " * 10_000 + b",") * gap + b" " * rest + body + b"]"


@pytest.mark.parametrize("body_max_bytes", [100, 1_000_000])
async def test_a_body_may_be_so_large_and_not_a_byte_more(body_max_bytes: int) -> None:
    async with open_door(HttpSettings(port=0, body_max_bytes=body_max_bytes)) as door:
        assert (await door.call("POST", ACQUIRE, padded(body_max_bytes))).status == 200

        answer = await door.call("POST", ACQUIRE, padded(body_max_bytes + 1))

        assert answer.status == 413
        assert answer.reason == (
            f"body: expected at most {body_max_bytes} bytes (http.body_max_bytes)"
        )


@pytest.mark.parametrize("size", [200, 300_000])
async def test_a_chunked_body_has_the_same_limit(size: int) -> None:
    body = padded(size)
    chunks = b"".join(
        b"%x\r\n%s\r\n" % (len(chunk), chunk)
        for chunk in (body[at : at + 1000] for at in range(0, len(body), 1000))
    )
    head = b"POST /v1/acquire HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
    async with open_door(HttpSettings(port=0, body_max_bytes=size)) as door:
        assert (await door.raw(head + chunks + b"0\r\n\r\n")).status == 200
    async with open_door(HttpSettings(port=0, body_max_bytes=size - 1)) as door:
        assert (await door.raw(head + chunks + b"0\r\n\r\n")).status == 413
