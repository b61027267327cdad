"""A policies table that is kept on disk: what a daemon knows that starts while the table is away.

The file and the table in memory are real. Not covered: whole daemons over a broker
(tests/e2e/test_policies_away.py).
"""

import asyncio
import os
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from rgd.adapters.policies.kept import PoliciesFile
from rgd.app.policies import keeping
from rgd.core.policies.model import Group
from rgd.core.policies.snapshot import EMPTY_SNAPSHOT, PolicySnapshot
from tests.support.memory_bus import AwayStore, MemoryBus
from tests.support.policy_tables import GOLD, following, gold, last_record, table, until


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "table-policies.jsonl"


@pytest.fixture
def kept(path: Path) -> PoliciesFile:
    return PoliciesFile(path, "one")


async def ran_once(bus: MemoryBus, kept: PoliciesFile, quota: int = 1000) -> None:
    """A run of a daemon in which a policy was changed."""
    policies = table(bus, "broker-1", None, kept=kept)
    async with following(policies):
        await policies.change(GOLD, lambda _known: gold(quota))
        await policies.change("group:gone", lambda _known: Group("gone"))
        await policies.change("group:gone", lambda _known: None)


async def test_a_start_while_the_table_is_away_holds_to_what_was_known_last(
    kept: PoliciesFile,
) -> None:
    await ran_once(bus := MemoryBus(), kept)
    store = AwayStore(bus)
    policies = table(store, "broker-1", None, kept=kept)
    assert policies.is_known
    assert policies.snapshot().groups == {"gold": gold(1000)}
    told: list[tuple[PolicySnapshot, int]] = []
    following_it = asyncio.create_task(policies.follow(lambda *snapshot: told.append(snapshot)))
    await until(lambda: "refused" in (policies.trouble or ""))
    assert "in force is what an earlier run knew last" in (policies.trouble or "")
    assert policies.figures().is_old
    # The peers are told what it has, so that they can tell whether it is old.
    assert [(snapshot.groups, policies_hash > 0) for snapshot, policies_hash in told] == [
        ({"gold": gold(1000)}, True)
    ]
    store.is_away = False
    await until(lambda: policies.trouble is None)
    assert not policies.figures().is_old
    following_it.cancel()
    await policies.close()


async def test_nothing_is_known_without_a_table_a_file_and_an_earlier_run(
    kept: PoliciesFile,
) -> None:
    assert not table(AwayStore(MemoryBus()), "broker-1", None, kept=kept).is_known
    assert table(AwayStore(MemoryBus()), "broker-1", EMPTY_SNAPSHOT, kept=kept).is_known


async def test_a_damaged_file_is_reported_and_nothing_is_known(
    path: Path, kept: PoliciesFile
) -> None:
    await ran_once(MemoryBus(), kept)
    await asyncio.to_thread(os.truncate, path, path.stat().st_size - 5)  # noqa: ASYNC240 - a test may
    with capture_logs() as logs:
        assert not table(AwayStore(MemoryBus()), "broker-1", None, kept=kept).is_known
    assert [(log["event"], "it is damaged" in log["reason"]) for log in logs] == [
        ("no policies from an earlier run", True)
    ]


async def test_a_full_disk_is_reported_and_harms_nothing(
    kept: PoliciesFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keeping, "KEEP_PAUSES", 0)
    fsync, is_full = os.fsync, True

    def sync(file: int) -> None:
        if is_full:
            raise OSError(28, "No space left on device")
        fsync(file)

    monkeypatch.setattr(os, "fsync", sync)
    policies = table(bus := MemoryBus(), "broker-1", None, kept=kept, keep_s=0.001)
    with capture_logs() as logs:
        async with following(policies):
            await until(lambda: "No space left on device" in (policies.trouble or ""))
            await policies.change(GOLD, lambda _known: gold(1000))
            assert policies.snapshot().groups == {"gold": gold(1000)}
            is_full = False
            await until(lambda: policies.trouble is None)
    assert last_record(bus).value == gold(1000)
    told = [log["event"] for log in logs if "disk" in log["event"]]
    assert told == ["cannot keep the policies on disk", "keeps the policies on disk again"]
    late = table(AwayStore(MemoryBus()), "b", None, kept=kept)
    assert late.snapshot().groups == {"gold": gold(1000)}
