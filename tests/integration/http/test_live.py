"""`/v1/live` of a whole daemon: the snapshot, its streams and their limits, groups and history.

Not covered: several daemons.
"""

import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, closing
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import aiohttp
import msgspec
import pytest

from rgd.adapters.http.live import SUBSCRIBERS_MAX
from rgd.adapters.http.tokens import Tokens
from rgd.core.buckets.decision import Request
from rgd.core.policies.model import Attachments, Group, Limit, Rates, rate_of
from rgd.core.policies.snapshot import PolicySnapshot
from rgd.ports.door import Scope, digest_of
from tests.integration.http.door import call
from tests.support.cases import cases
from tests.support.relayed_server import RelayedServer
from tests.support.running_daemon import RunningDaemon, running_daemon
from tests.support.whole_daemon import HttpServer

#: So many that a snapshot is larger than what may wait unread.
GROUPS = [f"g{number:03}" for number in range(120)]
SNAPSHOT = PolicySnapshot(
    {name: Group(name, Limit(Rates(rate_of(4)))) for name in GROUPS},
    Attachments(namespaces={"acme/orders": "g001"}),
)
ACCEPT = {"Accept": "text/event-stream"}
SOON_S = 60


@pytest.fixture(params=[HttpServer, RelayedServer], ids=["whole", "relayed"])
def running(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[RunningDaemon]:
    with running_daemon(tmp_path, SNAPSHOT, server_type=request.param) as daemon:
        yield daemon


@asynccontextmanager
async def client(**options: Any) -> AsyncIterator[aiohttp.ClientSession]:
    connector = aiohttp.TCPConnector(limit=0)
    timeout = aiohttp.ClientTimeout(total=SOON_S)
    async with aiohttp.ClientSession(
        connector=connector, timeout=timeout, read_bufsize=1 << 20, **options
    ) as session:
        yield session


async def next_view(response: aiohttp.ClientResponse) -> Any:
    """The next snapshot of a stream; None at its end."""
    message = await response.content.readuntil(b"\n\n")
    if not message:
        return None
    head, _, data = message.partition(b"\ndata: ")
    view = msgspec.json.decode(data)
    assert head == b"id: %d" % view["number"]
    return view


async def test_a_snapshot_has_the_cluster_and_the_verdict(running: RunningDaemon) -> None:
    view: Any = {"verdict": {"text": ""}}
    # Its rounds are so short that a look may miss the demand, or see it end between two slices.
    # On a slow machine "Broker broker-1 has 0.00 of its fair part of g001" comes first.
    while "emand is above 1 of 120 quotas, most g001" not in view["verdict"]["text"]:
        running.ask(*[Request(messages=4, namespace="acme/orders")] * 20)
        view = (await call(running, "GET", "/v1/live")).json
    row = view["groups"]["rows"][0]
    assert (row["group"], row["pressure"] > 1) == ("g001", True)
    assert [one["broker"] for one in view["brokers"]["members"]] == ["broker-1"]
    assert (len(view["groups"]["rows"]), view["groups"]["total"]) == (50, 120)


async def test_a_stream_and_an_answer_are_the_same_snapshot(running: RunningDaemon) -> None:
    async with client(headers=ACCEPT) as session, session.get(f"{running.url}/v1/live") as stream:
        assert stream.headers["Content-Type"] == "text/event-stream"
        first = await next_view(stream)
        second = await next_view(stream)
        answer = (await call(running, "GET", "/v1/live")).json
        while second["number"] < answer["number"]:
            second = await next_view(stream)
    assert first["number"] < second["number"]
    # The stream may have missed the answer's number.
    assert second == answer or second["number"] > answer["number"]


@cases(
    "headers",
    {
        "second Accept": (b"Accept: application/json\r\nAccept: Text/Event-Stream\r\n",),
        "a body that comes late": (b"Accept: text/event-stream\r\nContent-Length: 2\r\n",),
    },
)
def test_a_stream_is_for_whoever_accepts_it(running: RunningDaemon, headers: bytes) -> None:
    address = urlsplit(running.url)
    given = address.hostname, address.port
    with socket.create_connection(given, timeout=SOON_S) as client, client.makefile("rb") as got:
        client.sendall(b"GET /v1/live HTTP/1.1\r\nHost: x\r\n" + headers + b"\r\n")
        messages = 0
        while messages < 2:
            line = got.readline()
            assert line, "the stream has ended"
            messages += line.startswith(b"data: ")


async def test_so_many_streams_and_no_more(running: RunningDaemon) -> None:
    async with AsyncExitStack() as stack:
        session = await stack.enter_async_context(client(headers=ACCEPT))
        url = f"{running.url}/v1/live"
        streams = [
            await stack.enter_async_context(session.get(url)) for _ in range(SUBSCRIBERS_MAX)
        ]
        for stream in streams:
            assert (await next_view(stream))["broker"] == "broker-1"
        async with session.get(url) as refused:
            assert (refused.status, refused.headers["Retry-After"]) == (503, "1")
            assert f"{SUBSCRIBERS_MAX} streams are open" in (await refused.json())["reason"]
        # JSON is not limited by it.
        assert (await call(running, "GET", "/v1/live")).status == 200
        streams.pop().close()
        status = 503
        while status == 503:
            async with session.get(url) as again:
                status = again.status
        assert status == 200


async def test_draining_ends_every_stream_at_once(running: RunningDaemon) -> None:
    async with client(headers=ACCEPT) as session, session.get(f"{running.url}/v1/live") as stream:
        await next_view(stream)
        running.loop.call_soon_threadsafe(running.server.drain)
        while await next_view(stream) is not None:
            pass
        async with session.get(f"{running.url}/v1/live") as refused:
            assert (refused.status, "stops" in (await refused.json())["reason"]) == (503, True)


@pytest.mark.slow
@pytest.mark.parametrize("server_type", [HttpServer, RelayedServer])
async def test_a_stream_that_nobody_reads_is_closed_and_others_go_on(
    tmp_path: Path, server_type: type[HttpServer]
) -> None:
    # So long that who reads is not taken for one who does not, if the machine stands still for some seconds.
    http: dict[str, Any] = {"server_type": server_type, "answer_timeout_s": 4}
    with running_daemon(tmp_path, SNAPSHOT, **http) as running, closing(socket.socket()) as silent:
        address = urlsplit(running.url)
        silent.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        silent.connect((address.hostname, address.port))
        silent.sendall(b"GET /v1/live HTTP/1.1\r\nHost: x\r\nAccept: text/event-stream\r\n\r\n")
        async with client(headers=ACCEPT) as session, session.get(f"{running.url}/v1/live") as good:
            closed = 0.0
            while not closed:
                assert await next_view(good) is not None
                closed = next(
                    sample.value
                    for sample in running.server.samples()
                    if sample.labels == ("slow_reader",)
                )
            assert await next_view(good) is not None


async def test_a_stream_ends_when_its_token_no_longer_counts(tmp_path: Path) -> None:
    tokens = Tokens({digest_of("look"): frozenset({Scope.READ})})
    others = Tokens({digest_of("else"): frozenset({Scope.READ})})
    with running_daemon(tmp_path, SNAPSHOT, tokens=tokens) as running:
        url = f"{running.url}/v1/live"
        async with client(headers=ACCEPT | {"Authorization": "Bearer look"}) as session:
            async with session.get(url) as stream:
                assert await next_view(stream) is not None
                running.loop.call_soon_threadsafe(running.server.replace_tokens, others)
                while await next_view(stream) is not None:
                    pass
            async with session.get(url) as refused:
                assert refused.status == 401


async def test_groups_are_found_by_prefix_page_by_page(running: RunningDaemon) -> None:
    found, path = [], "/v1/live/groups?prefix=g00&limit=4"
    while path:
        answer = await call(running, "GET", path)
        found += [row["group"] for row in answer.json]
        path = answer.headers.get("Link", "").partition("<")[2].partition(">")[0]
    assert found == [f"g00{number}" for number in range(10)]


async def test_a_group_has_all_its_brokers_and_its_last_minutes(running: RunningDaemon) -> None:
    group: Any = {"history": []}
    while not group["history"] or len(group["history"][0]["unix_ms"]) < 2:
        group = (await call(running, "GET", "/v1/live/groups/g001")).json
    (row,) = group["rows"]
    # What was refused is known of the rows that each look reads.
    shown = [
        one["group"] for one in (await call(running, "GET", "/v1/live")).json["groups"]["rows"]
    ]
    other = next(name for name in GROUPS if name not in shown)
    of_other = (await call(running, "GET", f"/v1/live/groups/{other}")).json["rows"][0]
    assert (row["refused"], of_other["refused"]) == ({}, None)
    assert [(part["broker"], part["share"]) for part in row["brokers"]] == [("broker-1", 4)]
    (history,) = group["history"]
    assert {len(history[of]) for of in ("unix_ms", "quota", "wanted", "admitted", "lowest")} == {
        len(history["unix_ms"])
    }
    assert set(history["quota"]) == {4}
    assert (await call(running, "GET", "/v1/live/groups/nobody")).status == 404


async def test_the_page_may_load_nothing_from_elsewhere_and_asks_for_a_token_where_one_is_needed(
    tmp_path: Path,
) -> None:
    tokens = Tokens({digest_of("look"): frozenset({Scope.READ})})
    with running_daemon(tmp_path, SNAPSHOT, tokens=tokens) as running:
        async with client() as session:
            texts = []
            for path in ("", "live.js", "live.css", "live.svg", "runbooks.md"):
                async with session.get(f"{running.url}/{path}") as answer:
                    assert answer.status == 200
                    policy = answer.headers["Content-Security-Policy"]
                    assert policy.startswith("default-src 'none'; script-src 'self';")
                    assert "unsafe" not in policy
                    texts.append(await answer.text())
        page = texts[0]
        assert 'data-token="needed"' in page
        running.loop.call_soon_threadsafe(running.server.replace_tokens, Tokens())
        while 'data-token="needed"' in page:
            page = (await call(running, "GET", "/")).body.decode()


async def test_events_are_described(running: RunningDaemon) -> None:
    assert (await call(running, "GET", "/v1/live/events")).json == []
