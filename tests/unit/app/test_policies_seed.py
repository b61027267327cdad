"""A groups file that seeds a policies table: what it writes, what it leaves, and how fast.

Not covered here: what a groups file may say (rgd.config), and a seed over a broker
(tests/integration/exchange/test_policies_over_a_broker.py).
"""

import random
from collections.abc import MutableMapping
from dataclasses import replace
from typing import Any

import pytest
from structlog.testing import capture_logs

from rgd.core.policies.model import Attachments, Group
from rgd.core.policies.records import PolicyRecord
from rgd.core.policies.snapshot import PolicySnapshot
from rgd.ports.exchange import ExchangeDown
from rgd.wire.policies import decode_policy
from tests.support.memory_bus import MemoryBus, MemoryPolicyStore
from tests.support.policy_tables import (
    GOLD,
    TardyStore,
    following,
    gold,
    last_record,
    table,
    until,
    write,
)

#: As many as one groups file must be able to name.
MANY = 100_000


def named(count: int) -> PolicySnapshot:
    attached = {f"tenant-{n % 100}/namespace-{n}": "gold" for n in range(count)}
    return PolicySnapshot({"gold": gold(1000)}, Attachments(namespaces=attached))


async def test_a_groups_file_seeds_only_what_the_table_lacks() -> None:
    bus = MemoryBus()
    await write(bus, PolicyRecord(GOLD, 7, "other", gold(2000)))
    seeding = table(bus, "broker-2", PolicySnapshot({"gold": gold(1000), "trial": Group("trial")}))
    async with following(seeding):
        await until(lambda: "group:trial" in bus.table)
        assert seeding.snapshot().groups == {"gold": gold(2000), "trial": Group("trial")}
    assert last_record(bus).revision == 7


async def test_of_different_files_the_first_to_arrive_wins_and_the_other_reports_it() -> None:
    bus, dice = MemoryBus(), random.Random(4)
    tables = [
        table(TardyStore(bus, dice), name, PolicySnapshot({"gold": gold(rate)}))
        for name, rate in (("a", 1000), ("b", 2000))
    ]
    with capture_logs() as logs:
        async with following(*tables):
            await until(lambda: bool(logs_of("differs", logs)))
            first = decode_policy(*bus.records[0]).value
            await until(lambda: all(each.snapshot().groups == {"gold": first} for each in tables))
            await until(lambda: last_record(bus).value == first)
    assert [(log["policies"], log["such_as"]) for log in logs_of("differs", logs)] == [(1, [GOLD])]


def logs_of(word: str, logs: list[MutableMapping[str, Any]]) -> list[MutableMapping[str, Any]]:
    return [log for log in logs if word in str(log["event"])]


async def test_a_long_name_that_differs_is_cut_before_it_is_logged() -> None:
    bus, name = MemoryBus(), "g" * 500
    await write(bus, PolicyRecord(f"group:{name}", 1, "other", replace(gold(1), name=name)))
    policies = table(bus, "one", PolicySnapshot({name: Group(name)}))
    with capture_logs() as logs:
        async with following(policies):
            await until(lambda: bool(logs_of("differs", logs)))
    assert len(str(logs_of("differs", logs))) < 450


class FallingStore(MemoryPolicyStore):
    """Goes down after some puts, and comes back when it is told to."""

    def __init__(self, bus: MemoryBus, puts: int) -> None:
        super().__init__(bus)
        self.puts_left = puts

    async def put(self, key: str, value: bytes) -> None:
        self.puts_left -= 1
        if self.puts_left < 0:
            raise ExchangeDown("Timeout")
        await super().put(key, value)


@pytest.mark.slow
async def test_a_seed_that_was_interrupted_reports_it_and_continues() -> None:
    bus = MemoryBus()
    store = FallingStore(bus, puts=10)
    policies = table(store, "broker-1", named(30), refill_s=0.001)
    async with following(policies):
        await until(lambda: policies.trouble is not None)
        assert "policies are not in the table yet: Timeout" in (policies.trouble or "")
        assert len(bus.table) == 10
        store.puts_left = MANY
        await until(lambda: policies.trouble is None)
        assert len(bus.table) == 31
