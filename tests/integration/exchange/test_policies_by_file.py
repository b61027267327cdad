"""Daemons whose groups files differ, as while a new ConfigMap reaches one node after the other.

Three whole daemons in one process, on the exchange in memory, each with a file of its own. Not covered
here: how one daemon follows its file (tests/unit/app/test_policies_file.py).
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from rgd.app.policies.file import FilePolicies
from rgd.app.telemetry import Telemetry
from rgd.app.wiring import core_settings
from rgd.config.load import load_settings
from rgd.core.exchange.messages import Sender
from tests.support.memory_bus import MemoryBus, MemoryExchange
from tests.support.whole_daemon import daemon_of

NAMES = ("broker-1", "broker-2", "broker-3")
TIMEOUT_S = 60


def groups(rate: int) -> str:
    return f"groups: {{gold: {{publish: {{messages: {rate}}}}}}}\n"


class Member:
    """A daemon, its file, and every quota it had in force."""

    def __init__(self, name: str, bus: MemoryBus, folder: Path) -> None:
        folder.mkdir()
        self.file = folder / "groups.yaml"
        self.file.write_text(groups(1))
        overrides = {
            "broker.name": name,
            "exchange.round_ms": 100,
            "exchange.min_interval_ms": 10,
            "exchange.settle_max_ms": 10,
        }
        sender = Sender(name, NAMES.index(name) + 1)
        settings = core_settings(load_settings(None, {}, overrides), sender, frozenset())
        policies = FilePolicies(self.file, poll_s=0.005)
        self.daemon = daemon_of(settings, folder, MemoryExchange(bus), policies)
        self.until = asyncio.Event()

    async def run(self) -> None:
        await self.daemon.run(self.until, on_up=lambda: None)
        await self.daemon.close()

    @property
    def rate(self) -> int:
        return (self.daemon.snapshot().groups["gold"].quota.publish.messages or 0) // 1000

    @property
    def notes(self) -> str:
        health = self.daemon.health()
        return "; ".join(health.degraded) if health.ready else "not ready"

    @property
    def is_in_conflict(self) -> bool:
        samples = {sample.name: sample.value for sample in Telemetry(self.daemon).samples()}
        return bool(samples["rgd_policy_hash_conflict"])


@pytest.fixture
async def members(tmp_path: Path) -> AsyncIterator[list[Member]]:
    """Three daemons that know one another and have the same policies."""
    bus = MemoryBus()
    members = [Member(name, bus, tmp_path / name) for name in NAMES]
    async with asyncio.timeout(TIMEOUT_S), asyncio.TaskGroup() as tasks:
        for member in members:
            tasks.create_task(member.run())
        await until(lambda: all(len(member.daemon.broker_names()) == 3 for member in members))
        await until(lambda: not any(member.notes for member in members))
        yield members
        for member in members:
            member.until.set()


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(TIMEOUT_S):
        while not condition():  # noqa: ASYNC110 - what is waited for tells no event
            await asyncio.sleep(0.005)


async def rounds(members: list[Member], count: int) -> None:
    """Return after so many more rounds of every daemon."""
    wanted = [member.daemon.core.identity.sequence + count for member in members]
    await until(
        lambda: all(
            member.daemon.core.identity.sequence >= sequence
            for member, sequence in zip(members, wanted, strict=True)
        )
    )


async def rates_are(members: list[Member], rates: list[int]) -> None:
    """Return once the daemons have these quotas in force."""
    await until(lambda: [member.rate for member in members] == rates)


@pytest.mark.slow
async def test_a_new_file_that_arrives_here_and_there_flips_nothing_and_is_reported(
    members: list[Member],
) -> None:
    first, *others = members
    first.file.write_text(groups(2))
    await until(lambda: first.rate == 2)
    # Everybody sees that somebody differs, and says so; nobody stops serving.
    await until(lambda: all("policies differ" in member.notes for member in members))
    assert "policies differ from those of broker-1" in others[0].notes
    assert all(member.is_in_conflict for member in members)
    # And stays with its own file.
    await rounds(members, 5)
    assert [member.rate for member in members] == [2, 1, 1]
    for updated, other in enumerate(others, start=2):
        other.file.write_text(groups(2))
        await rates_are(members, [2] * updated + [1] * (3 - updated))
        await rounds(members, 2)
        assert [member.rate for member in members] == [2] * updated + [1] * (3 - updated)
    await until(lambda: not any(member.notes for member in members))
    assert not any(member.is_in_conflict for member in members)


async def test_a_refused_file_is_reported_by_the_daemon_that_refused_it(
    members: list[Member],
) -> None:
    first, *others = members
    first.file.write_text("groups: {gold: {publish: {mesages: 2}}}\n")
    await until(lambda: "policies: the last good ones stay in force" in first.notes)
    assert "groups.gold.publish.mesages" in first.notes
    assert first.rate == 1
    # What is in force is still the same everywhere.
    await rounds(members, 3)
    # (On a busy machine they may lose sight of each other meanwhile, and say that.)
    assert not any("policies" in member.notes for member in others)
    first.file.write_text(groups(1))
    await until(lambda: not first.notes)
