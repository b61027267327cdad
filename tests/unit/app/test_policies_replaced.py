"""A policies table that is lost, emptied or replaced while daemons follow it.

Over the store in memory. Not covered: how a store notices it (tests/contract/exchange), and brokers whose
data is gone (tests/integration/exchange/test_policies_over_a_broker.py).
"""

import asyncio
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from structlog.testing import capture_logs

from rgd.adapters.policies.kept import PoliciesFile
from rgd.app.policies import table as table_module
from rgd.app.policies.keeping import Keeping
from rgd.app.policies.ledger import Ledger, Taken
from rgd.app.policies.mending import Mending
from rgd.core.policies.model import Group
from rgd.core.policies.records import PolicyRecord
from rgd.core.policies.snapshot import PolicySnapshot
from rgd.ports.exchange import ExchangeDown
from rgd.wire.policies import decode_policy
from tests.support.memory_bus import AwayStore, MemoryBus, MemoryPolicyStore
from tests.support.policy_tables import (
    GOLD,
    TIMEOUT_S,
    TardyStore,
    following,
    gold,
    late_snapshot,
    one_more,
    table,
    until,
    write,
)


async def test_an_emptied_table_gets_everything_back_as_it_was() -> None:
    bus = MemoryBus()
    one, other = table(bus, "one"), table(bus, "other")
    async with following(one, other):
        await one.change(GOLD, one_more)
        await other.change(GOLD, one_more)
        await one.change("group:trial", lambda _known: Group("trial"))
        await one.change("group:trial", lambda _known: None)
        before = {key: decode_policy(key, value) for key, value in bus.table.items()}
        with capture_logs() as logs:
            bus.wipe_table()
            await until(lambda: len(bus.table) == 2)
            await until(lambda: one.trouble is None and other.trouble is None)
        # Revisions, writers and deletions too; whoever writes them.
        after = {key: decode_policy(key, value) for key, value in bus.table.items()}
        assert after == before
        assert one.snapshot().groups == other.snapshot().groups == {"gold": gold(2000)}
        assert one.figures().lost == 1
        assert one.figures().written_back + other.figures().written_back >= 2
        events = [log["event"] for log in logs]
        assert "lost the policies table" in events
        assert any("lacks what it had" in event for event in events)
        # Those who have everything again go on as before.
        await one.change(GOLD, one_more)
        await until(lambda: other.snapshot().groups == {"gold": gold(3000)})
    late = await late_snapshot(bus)
    assert late.groups == {"gold": gold(3000)}


async def test_only_what_the_table_took_counts_as_written_back() -> None:
    class Refusing(MemoryPolicyStore):
        refusals_left = 0

        async def put(self, key: str, value: bytes) -> None:
            if self.refusals_left:
                self.refusals_left -= 1
                raise ExchangeDown("refused")
            await super().put(key, value)

    bus = MemoryBus()
    policies = table(store := Refusing(bus), "one", read_back_s=1)
    async with following(policies):
        await policies.change(GOLD, one_more)
        store.refusals_left = 1
        bus.wipe_table()
        await until(lambda: bool(bus.table) and policies.trouble is None)
        assert policies.figures().written_back == 1


async def test_what_is_in_force_counts_as_old_until_the_table_was_read_again() -> None:
    bus = MemoryBus()
    store = AwayStore(bus, is_away=False)
    policies = table(store, "one")
    async with following(policies):
        await policies.change(GOLD, one_more)
        store.is_away = True
        bus.cut_table("no answer within 3 s")
        await until(lambda: "refused" in (policies.trouble or ""))
        assert policies.figures().is_old
        assert policies.snapshot().groups == {"gold": gold(1000)}
        with pytest.raises(ExchangeDown, match="refused; try again"):
            await policies.change(GOLD, one_more)
        written = len(bus.records)
        store.is_away = False
        await until(lambda: policies.trouble is None)
        assert not policies.figures().is_old
        # Nothing was kept to be written later.
        assert len(bus.records) == written


async def test_a_change_in_progress_when_the_table_is_lost_gets_that_error() -> None:
    class Deaf(MemoryPolicyStore):
        async def put(self, key: str, value: bytes) -> None:
            bus.cut_table()
            await super().put(key, value)

    bus = MemoryBus()
    policies = table(Deaf(bus), "one")
    async with following(policies):
        with pytest.raises(ExchangeDown, match="may still come into force"):
            await policies.change(GOLD, one_more)


class Faulty:
    """Raises once in one place of a table, while a batch that was taken from the store is read."""

    def __init__(self, where: str, patch: pytest.MonkeyPatch) -> None:
        self.is_raised = False
        self._is_read = asyncio.Event()
        self._where = where
        patch.setattr(table_module, "decode_policy", self._decode)
        if where == "taking in":
            patch.setattr(Ledger, "take", self._taking_in(Ledger.take))
        beside = {"mending": Mending, "keeping": Keeping}
        if where in beside:
            patch.setattr(beside[where], "run", self._run)

    def _raise(self, where: str) -> None:
        if where == self._where and not self.is_raised:
            self.is_raised = True
            raise ZeroDivisionError("injected")

    def _decode(self, key: str, value: bytes) -> PolicyRecord:
        self._is_read.set()
        self._raise("reading")
        return decode_policy(key, value)

    def _taking_in(self, take: Callable[..., Taken]) -> Callable[..., Taken]:
        def taking(*given: Any) -> Taken:
            taken = take(*given)
            self._raise("taking in")
            return taken

        return taking

    async def _run(self, _on_filled: object = None) -> None:
        await self._is_read.wait()
        self._raise(self._where)
        await asyncio.Event().wait()


@pytest.mark.parametrize("where", ["reading", "taking in", "mending", "keeping"])
async def test_an_internal_error_loses_no_record_and_the_table_is_read_again(
    where: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    bus = MemoryBus()
    policies = table(bus, "one", kept=PoliciesFile(tmp_path / "kept", "one"))
    told: list[PolicySnapshot] = []
    await policies.open()
    Faulty(where, monkeypatch)

    async def follow() -> None:
        await policies.follow(lambda snapshot, _hash: told.append(snapshot))

    following_it = asyncio.create_task(follow())
    await until(lambda: bool(told))
    await write(bus, PolicyRecord(GOLD, 1, "other", gold(50)))
    with pytest.raises(ExceptionGroup):
        await asyncio.wait_for(following_it, TIMEOUT_S)
    assert "internal error" in (policies.trouble or "")
    assert policies.figures().lost == 1
    # As the daemon does after a task raised.
    following_it = asyncio.create_task(follow())
    await until(lambda: policies.trouble is None)
    assert told[-1].groups == policies.snapshot().groups == {"gold": gold(50)}
    await policies.change(GOLD, one_more)
    following_it.cancel()
    await policies.close()


async def test_what_only_a_later_rgd_can_read_is_not_written_over() -> None:
    bus = MemoryBus()
    policies = table(bus, "one")
    async with following(policies):
        await policies.change(GOLD, one_more)
        bus.wipe_table()
        later = b'{"version":99}'
        bus.records.append((GOLD, later))
        await until(lambda: policies.figures().refused == 1)
        await policies.change("tenant:acme", lambda _known: "gold")
        assert bus.table[GOLD] == later
        assert policies.snapshot().groups == {"gold": gold(1000)}


@pytest.mark.slow
@settings(max_examples=25)
@given(seed=st.integers(0, 2**32), daemons=st.integers(2, 4), wipes=st.integers(1, 3))
def test_however_often_a_table_is_replaced_all_agree_in_the_end(
    seed: int, daemons: int, wipes: int
) -> None:
    asyncio.run(replace_often(seed, daemons, wipes))


async def replace_often(seed: int, daemons: int, wipes: int) -> None:
    dice, bus = random.Random(seed), MemoryBus()
    tables = [table(TardyStore(bus, dice), f"broker-{n}") for n in range(daemons)]
    keys = [GOLD, *(f"tenant:t{n}" for n in range(5))]

    async def change_some(name: int) -> None:
        for _ in range(6):
            key = dice.choice(keys)
            try:
                if key == GOLD:
                    await tables[name].change(key, one_more)
                else:
                    await tables[name].change(key, lambda known: None if known else "gold")
            except ExchangeDown:
                await asyncio.sleep(0)

    async def wipe_some() -> None:
        for _ in range(wipes):
            for _ in range(dice.randint(1, 60)):
                await asyncio.sleep(0)
            bus.wipe_table()

    async with following(*tables):
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(wipe_some())
            for name in range(daemons):
                tasks.create_task(change_some(name))
        first = tables[0]
        await until(
            lambda: all(
                each.snapshot() == first.snapshot()
                and each.trouble is None
                and not each.figures().misplaced
                and not each.figures().lacking
                for each in tables
            )
        )
        assert len({each.hash for each in tables}) == 1
        # An older write may still be on its way into the table, which is put right as soon as that is read.
        async with asyncio.timeout(TIMEOUT_S):
            while (await late_snapshot(bus)).groups != first.snapshot().groups:  # noqa: ASYNC110 -- nothing tells
                await asyncio.sleep(0)
