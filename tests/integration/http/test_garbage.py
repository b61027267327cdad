"""Connections and malformed requests leave no reference cycles: those are collected rarely (`rgd.app.process.GC_THRESHOLDS`)."""

import asyncio
import gc
import random
from collections import Counter

import pytest

from bench.hostile_requests import hostile, send
from rgd.adapters.http.settings import HttpSettings
from tests.integration.http.door import open_door
from tests.integration.http.test_connections import figure
from tests.integration.http.test_lane import BODY, LAST, post
from tests.support.policy_tables import until

#: Objects a connection; before cycles were broken there were some 30, and each frame keeps what it refers to.
LEFT_MAX = 1.0


@pytest.mark.slow
@pytest.mark.parametrize("what", ["sound", "hostile"])
async def test_what_a_connection_leaves_is_freed_without_the_collector(what: str) -> None:
    dice = random.Random(1)
    count = 60
    given = HttpSettings(port=0, request_timeout_s=0.02, idle_timeout_s=0.05)
    async with open_door(given) as door:

        async def attack(times: int) -> None:
            for _ in range(times):
                sent = hostile(dice) if what == "hostile" else post(BODY) + LAST
                await send(door.server.port, [sent], Counter())
            await until(lambda: figure(door, "rgd_http_connections") == 0)

        await attack(10)
        gc.collect()
        gc.disable()
        try:
            before = alive()
            await attack(count)
            ours = alive() - before
            left = gc.collect()
        finally:
            gc.enable()
    assert ours.total() <= 10, ours
    # The transports of asyncio itself are reference cycles; a daemon has those of uvloop.
    if type(asyncio.get_running_loop()).__module__.startswith("uvloop"):
        assert left / count <= LEFT_MAX


def alive() -> Counter[str]:
    """The parts of connections that exist now, those that other tests left behind too."""
    parts = {"Lane", "Admission", "_ErrInfo"}
    return Counter(type(one).__name__ for one in gc.get_objects() if type(one).__name__ in parts)
