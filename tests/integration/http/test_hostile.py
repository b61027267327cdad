"""What clients may do to the door: the process lives on, and each error is JSON.

Crowds of connections are in test_connections.py, unread answers in test_unread.py, framing in test_framing.py.
"""

import asyncio
import logging
import random
from collections import Counter
from itertools import product

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.hostile_requests import hostile, send
from rgd.adapters.http.lane_heads import PARAMETERS_MAX
from rgd.adapters.http.settings import HttpSettings
from tests.integration.http.door import Door, Observed, check, open_door, read_answer
from tests.integration.http.test_connections import figure
from tests.support.policy_tables import until

JSON_SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20)
FIELDS = st.sampled_from([
    "tenant", "namespace", "group", "topic", "subscription", "kind", "messages", "bytes",
    "partial", "attempt", "held_messages", "held_bytes", "other",
])  # fmt: skip
NAMES = st.sampled_from(["acme", "orders", "trial", "gold", "eu", "persistent://acme/orders/eu"])
QUESTION = st.dictionaries(
    FIELDS, JSON_SCALARS | NAMES | st.integers(0, 2**64) | st.sampled_from(["publish", "dispatch"])
)
ANYTHING = st.recursive(
    JSON_SCALARS | QUESTION,
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(FIELDS | st.text(), inner, max_size=4)
    ),
    max_leaves=12,
)
FORESEEN = {200, 400, 403, 404, 413, 429}


def in_one_loop(bodies: list[bytes]) -> list[int]:
    """Ask with each body, one after the other, and check every answer."""

    async def ask() -> list[int]:
        async with open_door(HttpSettings(port=0, batch_max=5)) as door:
            return [(await door.call("POST", "/v1/acquire", body)).status for body in bodies]

    with asyncio.Runner() as runner:
        return runner.run(ask())


ENCODED = (ANYTHING | st.lists(QUESTION, max_size=7)).map(msgspec.json.encode)


@pytest.mark.slow
@settings(max_examples=80)
# Nearly all bytes are 400; Hypothesis also takes bodies from the code's own constants.
@given(bodies=st.lists(ENCODED | st.binary(max_size=300), min_size=5, max_size=30))
def test_no_body_makes_the_door_fail(bodies: list[bytes]) -> None:
    assert set(in_one_loop(bodies)) <= FORESEEN


@pytest.mark.parametrize(
    "target",
    [
        pytest.param("/admin/v2/persistent/acme/orders/eu/%ff/dispatchRate", id="subscription"),
        pytest.param("/admin/v2/persistent/acme/orders/%ff/resourcegroup", id="topic"),
        pytest.param("/v1/groups/%C3", id="half a character"),
        pytest.param("/v1/groups/%C0%AF", id="overlong"),
        pytest.param("/v1/groups/%ED%A0%80", id="surrogate"),
        pytest.param("/v1/groups/a%", id="no digits"),
        pytest.param("/v1/groups/a%zz", id="other digits"),
        pytest.param("/v1/explain?tenant=acme&namespace=orders&topic=%ff", id="query"),
        pytest.param("/v1/groups?prefix=%ff", id="list"),
        pytest.param("/nowhere/%ff", id="no such path"),
        pytest.param("/healthz?%ff", id="probe"),
    ],
)
async def test_what_is_no_text_in_a_target_is_400_on_every_route(door: Door, target: str) -> None:
    for method in (b"GET", b"DELETE", b"POST"):
        answer = await door.raw(
            method + b" " + target.encode() + b" HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n"
        )

        assert answer.status == 400
        assert answer.reason.startswith("path and query: expected percent-encoded UTF-8, got ")


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("GET", "/v1/acquire", "POST"),
        ("POST", "/v1/groups/gold", "DELETE, GET, HEAD, PATCH, PUT"),
        ("POST", "/healthz", "GET, HEAD"),
        ("OPTIONS", "/v1/acquire", "POST"),
        ("PROPFIND", "/v1/groups", "GET, HEAD"),
    ],
)
async def test_a_wrong_method_is_405_with_those_allowed(
    door: Door, method: str, path: str, allowed: str
) -> None:
    answer = await door.send(method, path)

    assert (answer.status, answer.headers["Allow"]) == (405, allowed)
    assert answer.reason == "this path has no such method; the header Allow lists them"


@pytest.mark.parametrize("path", ["/healthz", "/v1/groups", "/metrics", "/v1/groups/nobody"])
async def test_head_is_get_without_a_body(door: Door, path: str) -> None:
    head, get = await door.call("HEAD", path), await door.call("GET", path)

    assert (head.status, head.body) == (get.status, b"")
    assert head.headers["Content-Length"] == str(len(get.body))


@pytest.mark.parametrize(
    "sent",
    [
        b"hello\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"BREW /v1/groups HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET / HTTP/1.1\r\nno colon\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
        b"GET /\x00 HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET /v1/groups/\xff HTTP/1.1\r\nHost: x\r\n\r\n",
        *(
            b"GET /healthz HTTP/1.1\r\nHost: %b\r\n\r\n" % host
            for host in (b"a b", b"a/b", b"a, b", b"a?b", b"c@b")
        ),
    ],
)
async def test_what_is_no_http_is_400_in_json_counted_and_not_logged(
    door: Door, sent: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    answer = await door.raw(sent)

    assert answer.status == 400
    assert answer.reason.startswith("malformed request: ")
    assert answer.headers["Content-Type"] == "application/json"
    assert door.observed == [Observed("other", 400)]
    assert caplog.records == []
    assert (await door.call("GET", "/healthz")).status == 200


LONG = "expected request line and headers of at most 8190 bytes each"
MANY_HEADERS = b"".join(b"X-%d: 1\r\n" % number for number in range(1000))
TEA = b"POST /v1/acquire HTTP/1.1\r\nHost: x\r\nExpect: tea\r\nContent-Length: 2\r\n\r\n"


@pytest.mark.parametrize(
    ("sent", "status", "reason"),
    [
        (b"GET /" + b"a" * 9000 + b" HTTP/1.1\r\nHost: x\r\n\r\n", 431, LONG),
        (b"GET / HTTP/1.1\r\nX: " + b"a" * 9000 + b"\r\n\r\n", 431, LONG),
        (b"GET / HTTP/1.1\r\n" + b"a" * 9000 + b": x\r\n\r\n", 431, LONG),
        (b"GET /healthz HTTP/1.1\r\n" + MANY_HEADERS + b"\r\n", 431, ""),
        (TEA, 417, "Expect: expected 100-continue"),
    ],
    ids=lambda one: one[:30] if isinstance(one, bytes) else None,
)
async def test_a_head_that_cannot_be_used_is_refused(
    door: Door, sent: bytes, status: int, reason: str
) -> None:
    answer = await door.raw(sent)

    assert answer.status == status
    assert answer.reason.startswith(reason)


@pytest.mark.parametrize("path", ["/v1/groups", "/v1/check", "/v1/brokers"])
async def test_a_query_of_many_parameters_is_refused(door: Door, path: str) -> None:
    answer = await door.call("GET", f"{path}?{'a&' * PARAMETERS_MAX}")

    assert answer.status == 400
    assert (
        answer.reason == f"path and query: expected at most {PARAMETERS_MAX} parameters, got more"
    )


async def test_a_client_that_asks_first_is_told_to_go_on_or_not(door: Door) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", door.server.port)
    head = b"POST /v1/acquire HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: %d\r\n\r\n"
    body = b'{"group":"gold"}'
    async with asyncio.timeout(60):
        writer.write(head % len(body))
        assert await reader.readuntil(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
        writer.write(body)
        answer = await read_answer(reader)
        check(door.description, "POST", "/v1/acquire", answer)

    writer.close()
    assert answer.json["granted"] is True


async def test_a_bug_is_500_logged_once_and_tells_nothing(
    door: Door, caplog: pytest.LogCaptureFixture
) -> None:
    # A builtin connection error inside is a bug, not a client that left.
    errors = (RuntimeError("the secret inside"), ConnectionResetError("the secret inside"))
    for error, body in product(errors, ({"group": "gold"}, [{"group": "gold"}])):
        caplog.clear()
        door.daemon.broken = error
        answer = await door.call("POST", "/v1/acquire", body)

        assert (answer.status, answer.reason) == (500, "internal error")
        (record,) = caplog.records
        assert record.levelno == logging.ERROR
        assert record.getMessage() == "request failed: POST /v1/acquire"
        assert "the secret inside" in caplog.text

    door.daemon.broken = None
    assert (await door.call("POST", "/v1/acquire", {"group": "gold"})).status == 200


HALF = b"POST /v1/acquire HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{"


@pytest.mark.slow
async def test_a_body_that_does_not_come_is_408() -> None:
    async with open_door(HttpSettings(port=0, request_timeout_s=0.05)) as door:
        answer = await door.raw(HALF)
        check(door.description, "POST", "/v1/acquire", answer)

    assert (answer.status, answer.reason) == (408, "body: expected within 0.05 seconds of its head")


@pytest.mark.parametrize("sent", [b"", b"POST /v1/acquire HTTP/1.1\r\nX-Slow: "])
async def test_a_head_that_does_not_come_closes_the_connection(sent: bytes) -> None:
    async with open_door(HttpSettings(port=0, idle_timeout_s=0.05)) as door:
        reader, writer = await asyncio.open_connection("127.0.0.1", door.server.port)
        writer.write(sent)
        async with asyncio.timeout(60):
            assert await reader.read() == b""
        writer.close()


async def test_malformed_requests_leave_nothing_behind(caplog: pytest.LogCaptureFixture) -> None:
    """The small form of bench/hostile_requests.py, which sends 100,000."""
    dice = random.Random(1)
    answers: Counter[str] = Counter()
    given = HttpSettings(port=0, request_timeout_s=0.05, idle_timeout_s=0.1)
    async with open_door(given) as door:
        for _ in range(8):
            batches = [[hostile(dice) for _ in range(3)] for _ in range(16)]
            await asyncio.gather(*(send(door.server.port, batch, answers) for batch in batches))
        assert (await door.call("POST", "/v1/acquire", {"group": "gold"})).status == 200
        await until(lambda: figure(door, "rgd_http_connections") <= 1)
        assert figure(door, "rgd_http_body_bytes") == figure(door, "rgd_http_unread_bytes") == 0
    assert answers["4xx"] > 100
    assert answers["5xx"] == answers["refused"] == 0
    assert caplog.records == []
