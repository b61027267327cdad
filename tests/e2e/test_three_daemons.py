"""Three real daemons, each a process, over a real exchange: the same shares everywhere.

On the embedded broker and on Apache Pulsar alike. Not covered: whether load
gets what the shares say, which the demo judges (test_demo.py).
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from rgd.adapters.http.client import DaemonClient
from rgd.app.demo.cluster import Daemon
from tests.support.exchanges import embedded_exchange

pytestmark = pytest.mark.e2e

GROUPS = """\
groups:
  gold: {publish: {messages: 300}}
attach:
  namespaces: {acme/orders: gold}
"""
NAMES = ("broker-1", "broker-2", "broker-3")
#: What each broker's callers ask for in one go, many times a second: far above the quota.
ASK = {"tenant": "acme", "namespace": "orders", "topic": "eu", "messages": 5}
SOON_S = 300.0


@pytest.fixture(params=["embedded", pytest.param("pulsar", marks=pytest.mark.pulsar)])
async def exchange(
    request: pytest.FixtureRequest, tmp_path: Path
) -> AsyncIterator[tuple[str, dict[str, str]]]:
    """An exchange's URL, and the settings that go with it."""
    if request.param == "pulsar":
        pulsar = request.getfixturevalue("apache_pulsar")
        # The topics are this test's own: the Pulsar is everybody's, and policies stay in their table.
        environ = {
            "RGD_EXCHANGE__ADMIN_URL": pulsar.admin_url,
            "RGD_EXCHANGE__TOPIC": f"non-persistent://public/rgd/usage-{tmp_path.name}",
            "RGD_POLICIES__TOPIC": f"persistent://public/rgd/policies-{tmp_path.name}",
        }
        yield pulsar.service_url, environ
        return
    async with embedded_exchange(tmp_path / "exchange") as broker:
        yield broker.url, {}


@pytest.fixture
async def daemons(
    exchange: tuple[str, dict[str, str]], tmp_path: Path
) -> AsyncIterator[list[Daemon]]:
    """Three daemons that listen."""
    url, environ = exchange
    (tmp_path / "groups.yaml").write_text(GROUPS)
    daemons = [Daemon(name, tmp_path, url, environ) for name in NAMES]
    try:
        async with asyncio.TaskGroup() as tasks:
            for daemon in daemons:
                tasks.create_task(daemon.start())
        yield daemons
    finally:
        for daemon in daemons:
            await daemon.stop()


async def test_they_agree_follow_a_change_and_notice_who_leaves(daemons: list[Daemon]) -> None:
    async with AsyncExitStack() as stack, asyncio.timeout(SOON_S):
        clients = [await stack.enter_async_context(DaemonClient(d.base)) for d in daemons]
        while not agrees_on_thirds([await ask_and_look(client) for client in clients], quota=300):
            pass
        assert [view["broker"] for view in await clients[0].brokers()] == list(NAMES)

        # Shares may be known before the policies table is read, and until then a change is refused.
        while "degraded" in await clients[0].readiness():
            pass
        await clients[0].put_group("gold", {"publish": {"messages": 150}})
        while not agrees_on_thirds([await ask_and_look(client) for client in clients], quota=150):
            pass

        assert await daemons[2].stop() == 0
        # A goodbye is heard at once; silence would take three rounds.
        while len(await clients[0].brokers()) > 2:
            await ask_and_look(clients[0])


async def ask_and_look(client: DaemonClient) -> dict[str, Any]:
    """Load a daemon a little, and see what it makes of the group."""
    await client.acquire_all([ASK] * 20)
    view = await client.group("gold")
    kind: dict[str, Any] = view["publish"]
    return kind


def agrees_on_thirds(views: list[dict[str, Any]], quota: float) -> bool:
    """Whether all three see the same rows' shares, a third each, and each has its own in force."""
    expected = {name: pytest.approx(quota / 3, abs=0.01) for name in NAMES}
    return all(
        {row["broker"]: row["share"]["messages"] for row in view["rows"]} == expected
        and view["share"]["messages"] == pytest.approx(quota / 3, abs=0.01)
        for view in views
    )
