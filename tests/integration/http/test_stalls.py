"""Long work on a real server: others are answered meanwhile. Judged by counts of answers, never by time."""

import asyncio
import re
from contextlib import aclosing
from typing import Any

import msgspec
import pytest

from rgd.adapters.http.forward import Asked
from rgd.adapters.http.reply import Reply
from rgd.adapters.http.settings import HttpSettings
from rgd.core.policies.model import Attachments, Group
from rgd.core.policies.snapshot import PolicySnapshot
from rgd.ports.door import Scope
from rgd.views.model import GroupView
from tests.integration.http.door import Door, check, open_door, read_answer
from tests.support.cases import cases
from tests.unit.adapters.http.small_daemon import SmallDaemon

pytestmark = pytest.mark.slow

HEALTH = b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"
GROUPS = 5000


async def probes_during(
    door: Door, method: str, path: str, body: bytes | None = None
) -> tuple[Any, int]:
    """Call, and ask for health one after the other until it is answered; how often that was answered."""
    calling = asyncio.ensure_future(door.send(method, path, body))
    reader, writer = await asyncio.open_connection("127.0.0.1", door.server.port)
    begun = len(door.observed)
    async with asyncio.timeout(60):
        while not calling.done():
            writer.write(HEALTH)
            assert (await read_answer(reader)).status == 200
    writer.transport.abort()
    answer = await calling
    part = msgspec.json.encode(answer.json[:20]) if isinstance(answer.json, list) else answer.body
    check(door.description, method, path, answer._replace(body=part))
    position = next(
        number for number, seen in enumerate(door.observed[begun:]) if seen.route != "/healthz"
    )
    return answer, position


#: Each is asked for the first time, so few of them are a slice.
NEW_TOPICS = msgspec.json.encode(
    [{"tenant": "acme", "namespace": "orders", "topic": f"t{n}"} for n in range(1000)]
)


def nested(count: int) -> bytes:
    item = b'{"messages":[' + b"[]," * 300 + b"[]]}"
    return b"[" + b",".join([item] * count) + b"]"


@cases(
    "body, statuses, least",
    {
        "empty objects": (b"[" + b",".join([b"{}"] * 1000) + b"]", {400}, 10),
        "nested faults": (nested(250), {400}, 4),
        "unknown groups": (
            msgspec.json.encode([{"group": f"nobody-{number}"} for number in range(1000)]),
            {404},
            10,
        ),
        "new topics": (NEW_TOPICS, {None}, 10),
    },
)
async def test_others_are_answered_while_a_long_array_is(
    door: Door, body: bytes, statuses: set[int | None], least: int
) -> None:
    answer, probes = await probes_during(door, "POST", "/v1/acquire", body)

    assert answer.status == 200
    assert {item.get("status") for item in answer.json} == statuses
    assert probes >= least


# --- lists ---------------------------------------------------------------------------------------------


class Crowded(SmallDaemon):
    """A daemon of many groups."""

    def __init__(self) -> None:
        names = [f"group-{number:04}" for number in range(GROUPS)]
        super().__init__(
            PolicySnapshot(
                groups={name: Group(name) for name in names},
                attach=Attachments(namespaces={f"acme/ns-{name}": name for name in names}),
            )
        )
        self.looked_at = 0

    def group(self, name: str) -> GroupView:
        self.looked_at += 1
        return super().group(name)


@pytest.fixture(scope="module")
def crowded() -> Crowded:
    return Crowded()


async def test_a_list_of_groups_is_a_page_and_others_are_answered_meanwhile(
    crowded: Crowded,
) -> None:
    async with open_door(HttpSettings(port=0), daemon=crowded) as door:
        crowded.looked_at = 0
        answer = await door.call("GET", "/v1/groups")
        assert [view["group"] for view in answer.json] == [f"group-{n:04}" for n in range(100)]
        # Those that are looked at together.
        assert crowded.looked_at <= 128
        assert answer.headers["Link"] == '</v1/groups?limit=100&after=group-0099>; rel="next"'

        answer, probes = await probes_during(
            door, "GET", "/v1/groups?limit=1000&after=group-1799&prefix=group-1"
        )
        assert [view["group"] for view in answer.json] == [f"group-{n}" for n in range(1800, 2000)]
        assert "Link" not in answer.headers
        # Some groups for each turn of the loop; an answer takes some turns.
        assert probes >= 2


@pytest.mark.parametrize("path", ["resourcegroups", "tenants", "namespaces/acme"])
async def test_pulsars_lists_are_whole_unless_a_page_is_asked_for(
    crowded: Crowded, path: str
) -> None:
    async with open_door(HttpSettings(port=0), daemon=crowded) as door:
        whole = await door.call("GET", f"/admin/v2/{path}")
        page = await door.call("GET", f"/admin/v2/{path}?limit=1")

    assert len(whole.json) == {"resourcegroups": GROUPS, "tenants": 1}.get(path, GROUPS)
    assert whole.json == sorted(whole.json)
    assert page.json == whole.json[:1]
    assert ("Link" in page.headers) == (len(whole.json) > 1)
    assert "Link" not in whole.headers


# --- reads ---------------------------------------------------------------------------------------------


async def test_with_too_many_reads_each_read_route_is_503_and_nothing_else_is() -> None:
    async with open_door(HttpSettings(port=0, reads_max=0)) as door:
        reads = [
            re.sub(r"\{\w+\}", "x", endpoint.path)
            for endpoint in door.server.endpoints
            if endpoint.scope is Scope.READ and not endpoint.is_probe
        ]
        for path in reads:
            answer = await door.send("GET", path)
            assert (path, answer.status) == (path, 503)
            assert answer.headers["Retry-After"] == "1"
        for path in ("/metrics", "/healthz", "/readyz"):
            assert (await door.send("GET", path)).status == 200
        asked = [{"group": "idle"}] * 1000
        answer = await door.send("POST", "/v1/acquire", msgspec.json.encode(asked))
        assert answer.status == 200
    assert "/v1/explain" in reads


async def test_a_read_that_ends_makes_room_for_another() -> None:
    async with open_door(HttpSettings(port=0, reads_max=1)) as door:
        asked = Asked("GET", "/v1/groups", "", {}, "/v1/groups", [], "", b"")

        async def status() -> int:
            async with aclosing(door.server.plane.forward(asked)) as pieces:
                reply = await anext(pieces)
                assert isinstance(reply, Reply)
                return reply.status

        assert [*await asyncio.gather(status(), status())] == [200, 503]
        assert await status() == 200
