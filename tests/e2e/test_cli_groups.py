"""`rgd groups` and `rgd why` as an operator uses them, against daemons that are processes.

Load is refused, and `rgd why` and the door say by what; a group is changed at one daemon from two
shells at once, and both changes are in force at both daemons. On the embedded broker. Not covered:
every word and option (tests/unit/cli).
"""

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from random import Random
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
  tenants: {acme: spare}
  namespaces: {acme/orders: gold}
"""
SEED = 5
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
                async with DaemonClient(daemon.base) as client:
                    while not await client.is_ready():
                        pass
        yield daemons
    finally:
        for daemon in daemons:
            await daemon.stop()
        await broker.stop()


async def load(client: DaemonClient, dice: Random) -> int:
    """Ask for more than there is; how many requests group gold refused."""
    refused = 0
    for _ in range(20):
        # The tenant's group has half the quota, so namespaces beside this one have used none of it.
        batch = [
            {
                "group": "gold",
                "topic": "persistent://acme/orders/eu",
                "messages": dice.randint(1, 9),
            }
            for _ in range(dice.randint(20, 60))
        ]
        refused += sum(answer.get("group") == "gold" for answer in await client.acquire_all(batch))
    return refused


async def test_why_names_the_group_and_the_dimension_that_refused(daemons: list[Daemon]) -> None:
    base = daemons[0].base
    async with DaemonClient(base) as client, asyncio.timeout(SOON_S):
        refused = await load(client, Random(SEED))
        assert refused > 100
        view = await client.explain({"tenant": "acme", "namespace": "orders", "topic": "eu"})
    assert view["limited_by"] == {
        "level": "resource_group",
        "group": "gold",
        "dimension": "messages",
    }
    gold, spare = view["levels"]
    assert gold["refused_last_minute"]["by_messages"]["requests"] == refused
    assert gold["set_at"] == [{"scope": "namespace", "name": "acme/orders"}]
    # Nobody asked for a name in the tenant's group: asking why has not made it one in use.
    assert (spare["group"], spare["in_use"]) == ("spare", False)
    assert spare["set_at"] == [{"scope": "tenant", "name": "acme"}]
    ran = await rgd("why", "acme/orders/eu", "--url", base)
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.startswith(
        "acme/orders/eu publish is limited by group gold (messages): 200/s cluster-wide, share here "
    )
    assert f"refused {refused:,} requests" in ran.out
    as_json = await rgd("why", "acme/orders/eu", "--url", base, "--json")
    assert json.loads(as_json.out)["limited_by"] == view["limited_by"]
    # The other daemon refused nothing.
    other = await rgd("why", "acme/orders/eu", "--url", daemons[1].base)
    assert "is not limited now" in other.out.splitlines()[0]


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


async def test_a_daemon_that_is_gone_is_one_line_with_the_remedy(daemons: list[Daemon]) -> None:
    base = daemons[1].base
    await daemons[1].stop()
    for arguments in (("why", "acme/orders"), ("groups", "list"), ("groups", "set", "gold")):
        ran = await rgd(*arguments, "--url", base)
        assert (ran.code, ran.out) == (1, "")
        assert len(ran.err.splitlines()) == 1
        assert "rgd serve" in ran.err
