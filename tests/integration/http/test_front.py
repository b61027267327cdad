"""The front alone, as a process has it that only answers.

Not covered: what hot calls answer (test_acquire.py and others).
"""

import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import aiohttp
import pytest

from rgd.adapters.http.forward import Asked, Pieces
from rgd.adapters.http.front import Front
from rgd.adapters.http.reply import Reply
from rgd.adapters.http.route_table import Route
from rgd.adapters.http.settings import HttpSettings
from rgd.ports.door import Scope
from tests.support.whole_daemon import observe_nothing
from tests.unit.adapters.http.small_daemon import SmallDaemon

#: Roots of what must not be loaded where only questions are answered.
HEAVY = (
    "aiohttp",
    "google",
    "numpy",
    "prometheus_client",
    "pulsar",
    "rgd.core.broker",
    "rgd.core.exchange",
    "rgd.views",
)
LOADED = f"""
import sys
import rgd.adapters.http.front
import rgd.adapters.http.relay
import rgd.adapters.metrics.answer_times
print(*(name for name in sys.modules if (name + ".").startswith({tuple(f"{name}." for name in HEAVY)})))
"""

THINGS = Route("GET", "/things", Scope.READ, is_probe=False, takes_body=False, takes_query=False)


async def forward(asked: Asked) -> Pieces:
    """Answers with what was asked for."""
    yield Reply(body=f"{asked.method} {asked.route}".encode())


@asynccontextmanager
async def asking(front: Front) -> AsyncIterator[aiohttp.ClientSession]:
    """A client with one connection."""
    async with (
        front,
        aiohttp.ClientSession(
            f"http://127.0.0.1:{front.port}", connector=aiohttp.TCPConnector(limit=1)
        ) as session,
    ):
        yield session


def test_it_loads_nothing_of_the_plane() -> None:
    loaded = subprocess.run([sys.executable, "-c", LOADED], check=True, capture_output=True)
    assert loaded.stdout.split() == []


@pytest.mark.parametrize(
    ("method", "path"), [("GET", "/things"), ("GET", "/nothing"), ("GET", "/v1/acquire")]
)
async def test_until_the_calls_are_known_what_is_not_hot_is_503(method: str, path: str) -> None:
    front = Front(SmallDaemon(), HttpSettings(port=0), forward, observe=observe_nothing)
    async with asking(front) as session:
        async with session.request(method, path) as answer:
            assert (answer.status, answer.headers["Retry-After"]) == (503, "1")
        async with session.post("/v1/acquire", json={"group": "idle"}) as answer:
            assert answer.status == 200
        async with session.get("/readyz") as answer:
            assert answer.status == 200


async def test_a_list_of_calls_counts_on_open_connections_from_the_next_request_on() -> None:
    front = Front(SmallDaemon(), HttpSettings(port=0), forward, observe=observe_nothing)
    async with asking(front) as session:
        answers: list[tuple[int, bytes]] = []

        async def ask() -> None:
            async with session.get("/things") as answer:
                answers.append((answer.status, await answer.read()))

        await ask()
        front.serve([THINGS])
        await ask()
        front.serve([])
        await ask()
    assert [status for status, _ in answers] == [503, 200, 404]
    assert answers[1][1] == b"GET /things"
