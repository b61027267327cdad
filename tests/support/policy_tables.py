"""Tables in memory as daemons use them, with puts and news that take their time."""

import asyncio
import random
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

from rgd.app.policies.pauses import Pauses
from rgd.app.policies.table import TablePolicies
from rgd.core.policies.model import Group, Limit, Rates
from rgd.core.policies.records import PolicyRecord, Value
from rgd.core.policies.snapshot import EMPTY_SNAPSHOT, PolicySnapshot
from rgd.ports.exchange import PolicyStore
from rgd.ports.policies import PoliciesKept
from rgd.wire.policies import decode_policy, encode_policy
from tests.support.memory_bus import MemoryBus, MemoryPolicyStore

GOLD = "group:gold"
#: Far more than anything takes here; only a fault reaches it.
TIMEOUT_S = 60
#: Of a table under test.
PAUSES = Pauses(reach_s=0.001, reach_s_max=0.001, mend_s=0.001)


class TardyStore(MemoryPolicyStore):
    """Takes a while before a put is in the table, before it is acknowledged, and before news is told.

    A while is some turns of the event loop, as many as the dice say: so what several stores of one
    bus do mixes in every way that it may on a network.
    """

    def __init__(self, bus: MemoryBus, dice: random.Random) -> None:
        super().__init__(bus)
        self._dice = dice

    async def put(self, key: str, value: bytes) -> None:
        await self._wait()
        await super().put(key, value)
        await self._wait()

    async def changes(self) -> list[tuple[str, bytes]]:
        await self._wait()
        return await super().changes()

    async def _wait(self) -> None:
        for _ in range(self._dice.randint(0, 6)):
            await asyncio.sleep(0)


class NothingKept:
    """A disk that forgets what was stored."""

    trouble: str | None = None

    def load(self) -> None:
        """Nothing was stored."""

    def store(self, records: Iterable[tuple[str, bytes]]) -> None:
        """Store nothing."""


async def nothing_to_prepare() -> None:
    """A store in memory needs no namespace."""


def table(
    store: PolicyStore | MemoryBus,
    writer: str,
    seed: PolicySnapshot | None = EMPTY_SNAPSHOT,
    *,
    kept: PoliciesKept = NothingKept(),  # noqa: B008 -- it keeps nothing
    resumes: bool = False,
    **pauses: Any,
) -> TablePolicies:
    """A table that looks for what it should repair all the time, unless `pauses` say otherwise."""
    if isinstance(store, MemoryBus):
        store = MemoryPolicyStore(store)
    return TablePolicies(
        store,
        writer,
        seed,
        prepare=nothing_to_prepare,
        kept=kept,
        pauses=replace(PAUSES, **pauses),
        resumes=resumes,
    )


@asynccontextmanager
async def following(*policies: TablePolicies, timeout_s: float = TIMEOUT_S) -> AsyncIterator[None]:
    """Tables that are open and followed, as a daemon does it."""
    async with asyncio.timeout(timeout_s):
        async with asyncio.TaskGroup() as tasks:
            for each in policies:
                tasks.create_task(each.open())
        async with asyncio.TaskGroup() as tasks:
            running = [
                tasks.create_task(each.follow(lambda _snapshot, _hash: None)) for each in policies
            ]
            await asyncio.sleep(0)
            yield
            for task in running:
                task.cancel()
    for each in policies:
        await each.close()


async def until(condition: Callable[[], bool], *, timeout_s: float = TIMEOUT_S) -> None:
    """Return once something is so."""
    async with asyncio.timeout(timeout_s):
        while not condition():  # noqa: ASYNC110 - what is waited for tells no event
            await asyncio.sleep(0.001)


def gold(messages: int) -> Group:
    return Group("gold", Limit(Rates(messages)))


def one_more(known: Value) -> Group:
    """A change that shows whether anything got lost: it counts."""
    group = known if isinstance(known, Group) else Group("gold")
    publish = Rates(messages_of(group) + 1000)
    return replace(group, quota=replace(group.quota, publish=publish))


def messages_of(group: Group) -> int:
    return group.quota.publish.messages or 0


def last_record(bus: MemoryBus, key: str = GOLD) -> PolicyRecord:
    """What a compaction would leave of a key."""
    return decode_policy(key, bus.table[key])


async def write(bus: MemoryBus, *records: PolicyRecord) -> None:
    """Put records as daemons that are gone by now have put them."""
    store = MemoryPolicyStore(bus)
    await store.open()
    for record in records:
        await store.put(record.key, encode_policy(record))
    await store.close()


async def late_snapshot(bus: MemoryBus) -> PolicySnapshot:
    """What a daemon has in force that starts after a compaction."""
    bus.compact()
    late = table(bus, "late")
    await late.open()
    await late.close()
    return late.snapshot()
