"""`/v1/check` over a real socket: who is asked about, what a gateway is told, what its caller cannot do.

Not covered: a real gateway (test_check_nginx.py); the decision (tests/unit/core/buckets).
"""

import asyncio
from pathlib import Path

import pytest

from rgd.adapters.http.settings import HttpSettings
from rgd.core.policies.model import Attachments, Group, Limit, Rates, rate_of
from rgd.core.policies.snapshot import PolicySnapshot
from rgd.core.units import Kind, Pair
from rgd.ports.door import Ungoverned
from tests.integration.http.door import Answer, Door, call, open_door, read_answer
from tests.support.running_daemon import running_daemon

CHECK = "/v1/check"
TRIAL = "tenant=acme&namespace=trial"
HEADERS = {"X-Rgd-Tenant": "acme", "X-Rgd-Namespace": "trial"}
#: The group trial has 40 a second: a full bucket has 10.
BURST = 10


@pytest.mark.slow
async def test_a_query_says_it_all(door: Door) -> None:
    said = f"{TRIAL}&topic=eu&subscription=s&kind=dispatch&messages=3&bytes=7&attempt=2"
    answer = await door.call("GET", f"{CHECK}?{said}")
    assert answer.json == {"granted": True, "messages": 3, "bytes": 7}
    request = door.daemon.asked[-1]
    assert request.kind is Kind.DISPATCH
    assert Pair(request.messages, request.bytes) == Pair(3, 7)
    assert (request.namespace, request.attempt) == ("acme/trial", 2)
    assert request.topic == "persistent://acme/trial/eu"
    assert not request.partial


@pytest.mark.parametrize("deny", ["403", "429", "503"])
async def test_a_gateway_chooses_the_status_of_refusals(door: Door, deny: str) -> None:
    await door.call("GET", f"{CHECK}?{TRIAL}&messages={BURST}&deny={deny}")
    answer = await door.call("GET", f"{CHECK}?{TRIAL}&deny={deny}")
    assert (answer.status, answer.headers["Retry-After"]) == (int(deny), "1")
    # Also of what can never pass.
    never = await door.call("GET", f"{CHECK}?{TRIAL}&messages=1000&deny={deny}")
    assert never.status == int(deny)
    said = HEADERS | {"X-Rgd-Deny": deny}
    assert (await door.call("GET", f"{CHECK}/x", headers=said)).status == int(deny)


async def test_a_caller_cannot_ask_beside_its_gateway(door: Door) -> None:
    await door.call("GET", f"{CHECK}?{TRIAL}&messages={BURST}")
    # The gateway sets the query, and passes its caller's headers on.
    free = {"X-Rgd-Messages": "0", "X-Rgd-Tenant": "nobody", "X-Rgd-Deny": "503"}
    assert (await door.call("GET", f"{CHECK}?{TRIAL}", headers=free)).status == 429
    # The gateway sets the headers, and appends its caller's path and query.
    below = f"{CHECK}/orders?tenant=nobody&namespace=x&messages=0"
    assert (await door.call("GET", below, headers=HEADERS)).status == 429


def limits_of(answer: Answer) -> dict[str, str]:
    return {name: text for name, text in answer.headers.items() if "Rate" in name}


async def test_a_grant_has_the_headers_of_the_limit_nearest_to_refusing(tmp_path: Path) -> None:
    # Of 10,000 bytes in the bucket a tenth is left, of 1,000 messages nearly all.
    limit = Limit(Rates(rate_of(4000), rate_of(40_000)))
    attached = Attachments(namespaces={"acme/orders": "gold"})
    policies = PolicySnapshot({"gold": Group("gold", limit)}, attached)
    with running_daemon(tmp_path, policies) as daemon:
        path = f"{CHECK}?tenant=acme&headers=1&namespace"
        granted = await call(daemon, "GET", f"{path}=orders&messages=10&bytes=9000")
        nobodys = await call(daemon, "GET", f"{path}=nobodys")
    left = granted.headers["RateLimit-Remaining"]
    assert (granted.status, limits_of(granted)) == (
        200,
        {
            "RateLimit-Policy": '"gold/publish/bytes";q=40000;qu="content-bytes";w=1',
            "RateLimit": f'"gold/publish/bytes";r={left};t=1',
            "RateLimit-Limit": "40000",
            "RateLimit-Remaining": left,
            "RateLimit-Reset": "1",
        },
    )
    assert 1000 <= int(left) < 10_000
    assert (nobodys.status, limits_of(nobodys)) == (200, {})


async def test_a_name_without_limits_is_refused_if_it_has_to_have_one() -> None:
    async with open_door(HttpSettings(port=0, ungoverned=Ungoverned.DENY)) as door:
        for deny, status in (("", 403), ("&deny=429", 429)):
            answer = await door.call("GET", f"{CHECK}?tenant=nobody&namespace=x{deny}")
            assert (answer.status, "http.ungoverned" in answer.reason) == (status, True)


async def test_neighbouring_paths_are_no_check(door: Door) -> None:
    assert (await door.send("GET", f"{CHECK}s?{TRIAL}")).status == 404


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        # A gateway that adds its header beside its caller's.
        (b"X-Rgd-Messages: 0\r\nx-rgd-messages: 5", "X-Rgd-Messages: expected once, got it twice"),
        (
            b"X-Rgd-Messages: \xff",
            f"messages: expected an integer from 0 to {(1 << 63) - 1}, got other bytes",
        ),
        (
            b"X-Rgd-Topic: persistent://acme/trial/\xff",
            r"topic: expected 1 to 512 printable characters, got '\udcff'",
        ),
    ],
)
async def test_a_header_that_makes_no_sense_is_400(door: Door, said: bytes, reason: str) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", door.server.port)
    path = CHECK.encode()
    writer.write(b"GET %b HTTP/1.1\r\nHost: x\r\nX-Rgd-Group: trial\r\n%b\r\n\r\n" % (path, said))
    async with asyncio.timeout(60):
        answer = await read_answer(reader)
    assert (answer.status, answer.reason) == (400, reason)
    assert not door.daemon.asked
    writer.close()
