"""`/healthz`, `/readyz`, `/metrics`, and what the observer is told.

Not covered: which metrics there are (tests/unit/adapters/metrics).
"""

import asyncio

import pytest

from rgd.adapters.http.scrapes import SCRAPES_MAX
from rgd.adapters.http.settings import HttpSettings
from rgd.ports.answers import Health
from tests.integration.http.door import METRICS_TYPE, Door, open_door


async def test_the_process_is_alive_even_when_it_is_not_ready(door: Door) -> None:
    door.daemon.state = Health(ready=False)

    assert (await door.call("GET", "/healthz")).json == {"alive": True}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("health", "status", "told"),
    [
        (Health(ready=True), 200, {"ready": True}),
        (
            Health(ready=True, degraded=("the exchange is unreachable",)),
            200,
            {"ready": True, "degraded": ["the exchange is unreachable"]},
        ),
        (Health(ready=False), 503, {"ready": False, "reason": "shares are not known yet"}),
        (
            Health(ready=False, degraded=("waiting for 2 peers",)),
            503,
            {"ready": False, "reason": "waiting for 2 peers", "degraded": ["waiting for 2 peers"]},
        ),
    ],
)
async def test_readiness_says_what_is_degraded(
    door: Door, health: Health, status: int, told: object
) -> None:
    door.daemon.state = health

    answer = await door.call("GET", "/readyz")

    assert (answer.status, answer.json) == (status, told)


async def test_draining_is_not_ready_but_answers_and_sends_clients_elsewhere(door: Door) -> None:
    assert "Connection" not in (await door.call("GET", "/healthz")).headers

    door.server.drain()

    ready = await door.call("GET", "/readyz")
    assert (ready.status, ready.json) == (503, {"ready": False, "reason": "draining"})
    answer = await door.call("POST", "/v1/acquire", {"group": "gold"})
    assert answer.json["granted"] is True
    assert answer.headers["Connection"] == "close"


async def test_metrics_come_as_they_were_asked_for(door: Door) -> None:
    answer = await door.call("GET", "/metrics", headers={"Accept": "application/openmetrics-text"})

    assert answer.headers["Content-Type"] == METRICS_TYPE
    assert answer.body == b"rgd_up 1 # application/openmetrics-text\n"


async def test_only_so_many_scrapes_are_under_way() -> None:
    go_on = asyncio.Event()
    begun = asyncio.Semaphore(0)

    async def slow(accept: str) -> tuple[bytes, str]:
        begun.release()
        await go_on.wait()
        return b"", METRICS_TYPE

    async with (
        open_door(HttpSettings(port=0), page=slow) as door,
        asyncio.timeout(60),
        asyncio.TaskGroup() as tasks,
    ):
        scrapes = [tasks.create_task(door.call("GET", "/metrics")) for _ in range(SCRAPES_MAX)]
        for _ in range(SCRAPES_MAX):
            await begun.acquire()
        refused = await door.call("GET", "/metrics")
        go_on.set()
        served = [(await scrape).status for scrape in scrapes]
        again = await door.call("GET", "/metrics")

    assert (refused.status, refused.headers["Retry-After"]) == (503, "1")
    assert served == [200] * SCRAPES_MAX
    assert again.status == 200


async def test_a_scrape_that_fails_is_500_and_leaves_room_for_the_next() -> None:
    async def broken(accept: str) -> tuple[bytes, str]:
        raise RuntimeError("no page")

    async with open_door(HttpSettings(port=0), page=broken) as door:
        answers = [await door.call("GET", "/metrics") for _ in range(SCRAPES_MAX + 1)]

    assert [answer.status for answer in answers] == [500] * (SCRAPES_MAX + 1)
