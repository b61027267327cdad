"""`rgd groups` as an operator uses it, against two daemons that are processes.

A group is changed at one daemon from two shells at once, and both changes are in force at both daemons. On the embedded
broker. Not covered: every word and option (tests/unit/cli).
"""

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from rgd.adapters.exchange.embedded import EmbeddedBroker
from rgd.adapters.http.client import DaemonClient
from rgd.app.demo.cluster import Daemon
from tests.support import components

pytestmark = pytest.mark.e2e

GROUPS = """\
groups:
  gold: {publish: {messages: 200, bytes: 1e9}}
  spare: {publish: {messages: 100}}
attach:
  namespaces: {acme/orders: gold}
"""
SOON_S = 120.0


class Ran(NamedTuple):
    """What a command left."""

    code: int | None
    out: str
    err: str


async def rgd(*arguments: str) -> Ran:
    """Run `rgd` as a process of its own."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "rgd", *arguments),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, err = await process.communicate()
    return Ran(process.returncode, out.decode(), err.decode())


@pytest.fixture
async def daemons(tmp_path: Path) -> AsyncIterator[list[Daemon]]:
    """Two daemons that know their shares."""
    components.embedded_broker()
    (tmp_path / "groups.yaml").write_text(GROUPS)
    broker = EmbeddedBroker(tmp_path / "exchange")
    daemons: list[Daemon] = []
    try:
        url = await broker.ensure()
        daemons += [Daemon(name, tmp_path, url) for name in ("broker-1", "broker-2")]
        async with asyncio.timeout(SOON_S):
            for daemon in daemons:
                await daemon.start()
            for daemon in daemons:
                async with DaemonClient(daemon.base) as client:
                    while not await client.is_ready():
                        pass
        yield daemons
    finally:
        for daemon in daemons:
            await daemon.stop()
        await broker.stop()


async def test_two_shells_that_change_one_group_at_once_lose_nothing(
    daemons: list[Daemon],
) -> None:
    first, second = (daemon.base for daemon in daemons)
    changes = await asyncio.gather(
        rgd("groups", "set", "gold", "--publish-messages", "300", "--url", first),
        rgd("groups", "set", "gold", "--dispatch-bytes", "5Mi", "--shadow", "--url", first),
    )
    assert [(ran.code, ran.err) for ran in changes] == [(0, ""), (0, "")]
    async with asyncio.timeout(SOON_S):
        for base in (first, second):
            while not is_changed(await shown(base)):
                pass
    attached = await rgd("groups", "attach", "spare", "acme/orders", "acme/new", "--url", second)
    assert attached.out == "acme/orders: attached to spare\nacme/new: attached to spare\n"
    deleted = await rgd("groups", "delete", "gold", "--url", second)
    assert (deleted.code, deleted.out) == (0, "gold: deleted\n")
    async with asyncio.timeout(SOON_S):
        while "gold" in (await rgd("groups", "list", "--url", first)).out:
            pass


async def shown(base: str) -> dict[str, Any]:
    """The group as `rgd groups get --json` has it."""
    view: dict[str, Any] = json.loads(
        (await rgd("groups", "get", "gold", "--json", "--url", base)).out
    )
    return view


def is_changed(view: dict[str, Any]) -> bool:
    """Whether both changes are in force, and what nobody changed still is."""
    return (
        view["publish"]["quota"] == {"messages": 300, "bytes": 1e9}
        and view["dispatch"]["quota"] == {"messages": None, "bytes": 5 * 2**20}
        and view["shadow"] is True
    )
