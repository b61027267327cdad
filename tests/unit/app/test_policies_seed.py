"""A groups file that seeds a policies table: what it writes, what it leaves, and how fast.

Not covered here: what a groups file may say (rgd.config), and a seed over a broker
(tests/integration/exchange/test_policies_over_a_broker.py).
"""

from collections.abc import MutableMapping
from dataclasses import replace
from typing import Any

import pytest
from structlog.testing import capture_logs

from rgd.core.policies.model import Attachments, Group
from rgd.core.policies.records import PolicyRecord
from rgd.core.policies.snapshot import PolicySnapshot
from rgd.ports.exchange import ExchangeDown
from tests.support.memory_bus import MemoryBus, MemoryPolicyStore
from tests.support.policy_tables import following, gold, table, until, write

#: As many as one groups file must be able to name.
MANY = 100_000


def named(count: int) -> PolicySnapshot:
    attached = {f"tenant-{n % 100}/namespace-{n}": "gold" for n in range(count)}
    return PolicySnapshot({"gold": gold(1000)}, Attachments(namespaces=attached))


def logs_of(word: str, logs: list[MutableMapping[str, Any]]) -> list[MutableMapping[str, Any]]:
    return [log for log in logs if word in str(log["event"])]


@pytest.mark.parametrize("resumes", [False, True])
async def test_what_differs_is_logged_cut_and_by_the_first_plane_alone(resumes: bool) -> None:
    bus, name = MemoryBus(), "g" * 500
    await write(bus, PolicyRecord(f"group:{name}", 1, "other", replace(gold(1), name=name)))
    policies = table(bus, "one", PolicySnapshot({name: Group(name)}), resumes=resumes)
    with capture_logs() as logs:
        await policies.open()
        policies._tell_differing()
    assert bool(logs_of("differs", logs)) is not resumes
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
    policies = table(store, "broker-1", named(30))
    async with following(policies):
        await until(lambda: policies.trouble is not None)
        assert "policies are not in the table yet: Timeout" in (policies.trouble or "")
        assert len(bus.table) == 10
        store.puts_left = MANY
        await until(lambda: policies.trouble is None)
        assert len(bus.table) == 31
