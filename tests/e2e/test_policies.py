"""Policies that are changed at one of several real daemons, each a process, over a real exchange.

On the embedded broker and on Apache Pulsar alike. Not covered: what a quota does to load
(test_three_daemons.py, test_demo.py), and every way in which writers may meet
(tests/unit/app/test_policies_table.py).
"""

import asyncio
import json
import urllib.request
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from rgd.adapters.http.client import DaemonClient
from rgd.app.demo.cluster import Daemon
from tests.contract.exchange.backends import ApacheBackend, EmbeddedBackend, PulsarBackend

pytestmark = pytest.mark.e2e

GROUPS = """\
groups:
  gold: {publish: {messages: 300}}
"""
NAMES = ("broker-1", "broker-2", "broker-3")
SOON_S = 300.0
PUTS = 15


@pytest.fixture(
    params=[
        pytest.param("embedded", marks=pytest.mark.embedded),
        pytest.param("pulsar", marks=pytest.mark.pulsar),
    ]
)
async def backend(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[PulsarBackend]:
    if request.param == "pulsar":
        apache = request.getfixturevalue("apache_pulsar")
        yield await ApacheBackend.start(apache, tmp_path.name)
        if apache.pid is None:  # a test failed while the broker was away
            apache.restart()
        return
    async with EmbeddedBackend.running(tmp_path / "exchange", tmp_path.name) as embedded:
        yield embedded


@pytest.fixture
async def daemons(backend: PulsarBackend, tmp_path: Path) -> AsyncIterator[list[Daemon]]:
    """Three daemons that were not started."""
    # The topics are this test's own: the Pulsar is everybody's, and policies stay in their table.
    environ = {
        "RGD_EXCHANGE__TOPIC": f"non-persistent://public/rgd/usage-{tmp_path.name}",
        "RGD_POLICIES__TOPIC": f"persistent://public/rgd/policies-{tmp_path.name}",
        "RGD_EXCHANGE__ROUND_MS": "1000",
    }
    if isinstance(backend, ApacheBackend):
        environ["RGD_EXCHANGE__ADMIN_URL"] = backend.apache.admin_url
    write_groups(tmp_path, GROUPS)
    daemons = [Daemon(name, tmp_path, backend.url, environ) for name in NAMES]
    yield daemons
    for daemon in daemons:
        await daemon.stop()


def write_groups(folder: Path, text: str) -> None:
    (folder / "groups.yaml").write_text(text)


async def start(daemons: Sequence[Daemon], stack: AsyncExitStack) -> list[DaemonClient]:
    """Start daemons; clients of them, once all know their shares and have read the table."""
    async with asyncio.TaskGroup() as tasks:
        for daemon in daemons:
            tasks.create_task(daemon.start())
    clients = [await stack.enter_async_context(DaemonClient(daemon.base)) for daemon in daemons]
    for client in clients:
        while not is_well(await client.readiness()):  # noqa: ASYNC110 - another process gets ready
            await asyncio.sleep(0.05)
    return clients


def is_well(readiness: dict[str, Any]) -> bool:
    return readiness["ready"] and not readiness.get("degraded")


async def quota(client: DaemonClient, kind: str = "publish") -> float | None:
    """The messages of a kind that gold may have, at one daemon."""
    messages: float | None = (await client.group("gold"))[kind]["quota"]["messages"]
    return messages


async def merge(daemon: Daemon, fields: dict[str, int]) -> None:
    """What pulsar-admin does to change some fields of a group."""
    url = f"{daemon.base}/admin/v2/resourcegroups/gold"
    headers = {"Content-Type": "application/json"}
    request = urllib.request.Request(url, json.dumps(fields).encode(), headers, method="PUT")

    def put() -> None:
        with urllib.request.urlopen(request, timeout=SOON_S) as response:
            assert response.status in {200, 204}

    await asyncio.to_thread(put)


async def test_changes_at_each_of_them_are_in_force_at_all(daemons: list[Daemon]) -> None:
    async with AsyncExitStack() as stack, asyncio.timeout(SOON_S):
        clients = await start(daemons[:2], stack)
        # As fast as may be, at both at once, each a field of its own.
        for number in range(1, PUTS + 1):
            await asyncio.gather(
                merge(daemons[0], {"publishRateInMsgs": number}),
                merge(daemons[1], {"dispatchRateInMsgs": 1000 + number}),
            )
            for client in clients:
                while await quota(client) != number:
                    pass
                while await quota(client, "dispatch") != 1000 + number:
                    pass
        # One that starts later; its groups file still says 300.
        (late,) = await start(daemons[2:], stack)
        assert await quota(late) == PUTS
        await late.put_group("gold", {"publish": {"messages": 150}})
        assert await quota(late) == 150
        for client in clients:
            while await quota(client) != 150:
                pass


async def test_what_was_changed_survives_the_death_of_all_daemons_and_the_broker(
    daemons: list[Daemon], backend: PulsarBackend, tmp_path: Path
) -> None:
    async with AsyncExitStack() as stack, asyncio.timeout(SOON_S):
        first, *_ = await start(daemons, stack)
        await first.put_group("gold", {"publish": {"messages": 150}})
        await first.put_group("silver", {"publish": {"messages": 7}})
        for daemon in daemons:
            await daemon.kill()
    await backend.kill()
    await backend.restart()
    write_groups(tmp_path, "{}\n")
    async with AsyncExitStack() as stack, asyncio.timeout(SOON_S):
        for client in await start(daemons, stack):
            assert await quota(client) == 150
            assert (await client.group("silver"))["publish"]["quota"]["messages"] == 7
