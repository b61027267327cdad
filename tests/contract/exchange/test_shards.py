"""Shards on every exchange: topics apart from each other, and daemons that meet on several of them.

Not covered: another number of shards by a rolling restart (tests/simulation/test_shards.py).
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest

from rgd.app.policies.file import FilePolicies, GroupsFile
from rgd.app.process import new_incarnation
from rgd.app.telemetry import Telemetry
from rgd.app.wiring import core_settings
from rgd.config.kept_file import KeptFile
from rgd.config.load import load_settings
from rgd.core.broker.shard_shares import Phase
from rgd.core.buckets.decision import Request
from rgd.core.exchange.messages import Sender
from rgd.core.exchange.shards import WHOLE, Shard, shard_of
from tests.contract.exchange.backends import Backend, MakeExchange, hear, open_all
from tests.support.policy_tables import until
from tests.support.whole_daemon import daemon_of

GROUPS = ("gold", "silver", "iron")
SHARDS = 4
POLICIES = (
    "groups:\n"
    + "".join(f"  {name}: {{publish: {{messages: 1000}}}}\n" for name in GROUPS)
    + "attach:\n  namespaces:\n"
    + "".join(f"    acme/{name}: {name}\n" for name in GROUPS)
)


async def test_messages_of_a_shard_reach_those_who_read_it_and_nobody_else(
    backend: Backend, exchange: MakeExchange
) -> None:
    del backend
    shards = (WHOLE, Shard(0, 4), Shard(3, 4), Shard(3, 16))
    members = {shard: [exchange(shard=shard) for _ in range(2)] for shard in shards}
    await open_all([member for both in members.values() for member in both])
    for shard, (sender, _) in members.items():
        for number in range(3):
            await sender.publish(f"{shard} {number}".encode())
    for shard, both in members.items():
        for member in both:
            assert await hear(member, 3) == [f"{shard} {number}".encode() for number in range(3)]
    gone, _ = members[Shard(0, 4)]
    await gone.close()
    await members[WHOLE][0].publish(b"still here")
    for member in members[WHOLE]:
        assert await hear(member, 1) == [b"still here"]


class Member:
    """A daemon on the test's exchange."""

    def __init__(self, ground: Backend, name: str, folder: Path) -> None:
        folder.mkdir(exist_ok=True)
        (folder / "groups.yaml").write_text(POLICIES)
        overrides = {
            "broker.name": name,
            "exchange.round_ms": 200,
            "exchange.min_interval_ms": 20,
            "exchange.settle_max_ms": 20,
            "exchange.shards": SHARDS,
        }
        sender = Sender(name, new_incarnation())
        self.daemon = daemon_of(
            core_settings(load_settings(None, {}, overrides), sender, frozenset()),
            folder,
            ground.exchange(),
            FilePolicies(
                GroupsFile(
                    folder / "groups.yaml", KeptFile(folder / "kept", "", 1000), resumes=False
                )
            ),
            shard_exchange=lambda shard: ground.exchange(shard=shard),
        )
        self.until = asyncio.Event()

    async def run(self) -> None:
        await self.daemon.run(self.until, on_up=lambda: None)
        await self.daemon.close()

    def ask(self, groups: Sequence[str]) -> None:
        """Ask once for each group, so that it is in use and has a row."""
        for group in groups:
            self.daemon.acquire(Request(namespace=f"acme/{group}", messages=5))

    def holds(self, other: "Member", groups: Sequence[str]) -> bool:
        """Whether it has the other's rows of just these groups."""
        rows = self.daemon.core.usage.rows_of(other.daemon.broker)
        return {key.group for key in rows} == set(groups)

    @property
    def is_warm(self) -> bool:
        """Whether it relies on all shards that it reads, of which there is one at least."""
        joined = self.daemon.core.shard_reader.joined.values()
        return bool(joined) and all(one.phase is Phase.WARM for one in joined)


@pytest.fixture
async def members(backend: Backend, tmp_path: Path) -> AsyncIterator[list[Member]]:
    """Two daemons, which leave in the end."""
    members = [Member(backend, name, tmp_path / name) for name in ("first", "second")]
    async with asyncio.TaskGroup() as tasks:
        for member in members:
            tasks.create_task(member.run())
        yield members
        for member in members:
            member.until.set()


async def test_daemons_share_the_rows_of_the_shards_of_their_groups(members: list[Member]) -> None:
    first, second = members
    mine, its = ("gold", "silver"), ("gold", "iron")
    seen = [
        group for group in mine if shard_of(group, SHARDS) in {shard_of(one, SHARDS) for one in its}
    ]

    def is_asked_and(holds: bool) -> bool:
        first.ask(mine)
        second.ask(its)
        return holds

    await until(
        lambda: is_asked_and(first.is_warm and second.is_warm and second.holds(first, seen))
    )
    assert set(first.daemon.core.shard_reader.joined) == {
        shard_of(one, SHARDS).number for one in mine
    }
    samples = {(one.name, one.labels): one.value for one in Telemetry(first.daemon).samples()}
    assert not samples["rgd_reports_dropped_total", ("overflow",)]
    await until(lambda: is_asked_and(first.daemon.health().ready))
