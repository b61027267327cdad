"""The policies table as daemons change it, several at a time, over the store in memory.

Not covered here: stores with a broker (tests/contract/exchange, tests/integration/exchange), seeding
(test_policies_seed.py), and what a record may hold (rgd.wire).
"""

import asyncio
import random
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rgd.app.policies.admin import delete_group
from rgd.app.policies.table import TRIES_MAX, TablePolicies
from rgd.core.policies.model import Group
from rgd.core.policies.records import PolicyRecord, Value
from rgd.ports.exchange import ExchangeDown
from rgd.wire.policies import decode_policy, encode_policy
from tests.support.memory_bus import MemoryBus, MemoryPolicyStore
from tests.support.policy_tables import (
    GOLD,
    TardyStore,
    following,
    gold,
    late_snapshot,
    messages_of,
    one_more,
    table,
    until,
)


def rival(revision: int, messages: int, writer: str = "rival") -> PolicyRecord:
    return PolicyRecord(GOLD, revision, writer, gold(messages))


# --- several writers ---------------------------------------------------------------------------------


@pytest.mark.slow
@given(seed=st.integers(0, 2**32), daemons=st.integers(2, 4), changes=st.integers(1, 6))
def test_of_changes_made_at_several_daemons_at_once_none_is_lost(
    seed: int, daemons: int, changes: int
) -> None:
    asyncio.run(count_at_several(seed, daemons, changes))


async def count_at_several(seed: int, daemons: int, changes: int) -> None:
    dice, bus = random.Random(seed), MemoryBus()
    tables = [table(TardyStore(bus, dice), f"broker-{n}", mend_s=60) for n in range(daemons)]
    acknowledged: list[int] = []

    async def count(policies: TablePolicies) -> None:
        for _ in range(changes):
            made: list[Group] = []
            await policies.change(GOLD, partial(keep, made))
            # In force here when it returns; a faster one may have come on top.
            assert messages_of(policies.snapshot().groups["gold"]) >= messages_of(made[-1])
            acknowledged.append(messages_of(made[-1]))

    async with following(*tables):
        async with asyncio.TaskGroup() as tasks:
            for each in tables:
                tasks.create_task(count(each))
        await until(lambda: all(each.snapshot() == tables[0].snapshot() for each in tables))
    total = daemons * changes * 1000
    # Each was made on top of all before it.
    assert sorted(acknowledged) == list(range(1000, total + 1, 1000))
    assert tables[0].snapshot().groups == {"gold": gold(total)}


def keep(made: list[Group], known: Value) -> Group:
    made.append(one_more(known))
    return made[-1]


class CrowdedStore(MemoryPolicyStore):
    """Before each put somebody else writes a record with the same revision."""

    async def put(self, key: str, value: bytes) -> None:
        mine = decode_policy(key, value)
        await super().put(key, encode_policy(rival(mine.revision, mine.revision)))
        await super().put(key, value)


async def test_a_writer_that_never_wins_is_asked_to_try_again() -> None:
    bus = MemoryBus()
    policies = table(CrowdedStore(bus), "broker-1", mend_s=60)
    tries: list[Value] = []
    async with following(policies):
        with pytest.raises(ExchangeDown, match="try again") as raised:
            await policies.change(GOLD, lambda known: keep_value(known, tries))
        assert raised.value.transient
        # Each time it was made on what the others wrote meanwhile.
        assert tries == [None, *(gold(number) for number in range(1, TRIES_MAX))]
        assert policies.snapshot().groups == {"gold": gold(TRIES_MAX)}


def keep_value(known: Value, tries: list[Value]) -> Group:
    tries.append(known)
    return gold(5)


# --- while it is not followed, or not read back ------------------------------------------------------


async def test_a_table_that_is_not_followed_takes_no_changes() -> None:
    bus = MemoryBus()
    policies = table(bus, "broker-1")
    with pytest.raises(ExchangeDown, match="try again"):
        await policies.change(GOLD, one_more)
    await policies.open()
    with pytest.raises(ExchangeDown, match="try again"):
        await policies.change(GOLD, one_more)
    async with following(policies):
        await policies.change(GOLD, one_more)
    with pytest.raises(ExchangeDown, match="try again"):
        await policies.change(GOLD, one_more)


class DeafStore(MemoryPolicyStore):
    """Takes everything and tells nothing."""

    async def changes(self) -> list[tuple[str, bytes]]:
        await super().changes()
        await asyncio.Event().wait()
        return []


async def test_a_record_that_is_not_read_back_may_still_come_and_that_is_reported() -> None:
    policies = table(DeafStore(MemoryBus()), "broker-1", read_back_s=0.01)
    async with following(policies):
        with pytest.raises(ExchangeDown, match="may still come into force"):
            await policies.change(GOLD, one_more)
        assert policies.snapshot().groups == {}


async def test_a_waiting_writer_gets_an_error_when_the_daemon_stops() -> None:
    policies = table(DeafStore(MemoryBus()), "broker-1")
    async with following(policies):
        waiting = asyncio.create_task(policies.change(GOLD, one_more))
        await asyncio.sleep(0)
    with pytest.raises(ExchangeDown, match="may still come into force"):
        await waiting


class UnacknowledgingStore(MemoryPolicyStore):
    """Takes a record, and then the broker is gone."""

    async def put(self, key: str, value: bytes) -> None:
        await super().put(key, value)
        await until(lambda: not self.untold)
        raise ExchangeDown("Timeout")

    @property
    def untold(self) -> bool:
        return self._changes is not None and self._changes.bytes > 0


async def test_a_record_that_is_read_back_needs_no_acknowledgement() -> None:
    policies = table(UnacknowledgingStore(MemoryBus()), "broker-1")
    async with following(policies):
        await policies.change(GOLD, one_more)
        assert policies.snapshot().groups == {"gold": gold(1000)}


# --- changes that look at more than one policy -------------------------------------------------------


async def test_a_deleted_group_stays_deleted_for_a_daemon_that_starts_later() -> None:
    bus = MemoryBus()
    policies = table(bus, "broker-1")
    async with following(policies):
        await policies.change(GOLD, one_more)
        await delete_group(policies, "gold")
    assert (await late_snapshot(bus)).groups == {}
