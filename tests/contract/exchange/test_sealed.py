"""The embedded broker takes messages of anybody on the machine; members and tables take only their own.

A stranger here is a client of the same broker without the folder's secret, or with another one. Not
covered here: what a stranger can do to the broker itself (docs/security.md).
"""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from rgd.adapters.exchange.pulsar import PulsarExchange
from rgd.adapters.exchange.pulsar_table import PulsarPolicyStore
from rgd.adapters.exchange.seal import SECRET_BYTES, SealSettings
from rgd.ports.exchange import OVERFLOW, UNAUTHENTICATED
from tests.contract.exchange.backends import (
    TIMEOUT_S,
    EmbeddedBackend,
    MakeExchange,
    MakeStore,
    hear,
    learn,
    read,
)
from tests.support.policy_tables import until

pytestmark = [
    pytest.mark.embedded,
    pytest.mark.parametrize("broker_backend", ["embedded"], indirect=True),
]

Stranger = tuple[PulsarExchange, PulsarPolicyStore]


@pytest.fixture(params=["no secret", "another secret"])
async def stranger(
    request: pytest.FixtureRequest, broker_backend: EmbeddedBackend, tmp_path: Path
) -> AsyncIterator[Stranger]:
    seal = None
    if request.param == "another secret":
        assert broker_backend.settings.seal is not None
        file = tmp_path / "his.key"
        file.write_bytes(bytes(SECRET_BYTES))
        seal = SealSettings(file, broker_backend.settings.seal.clock)
    settings = replace(broker_backend.settings, seal=seal)
    exchange = PulsarExchange(broker_backend.url, broker_backend.usage, settings=settings)
    store = PulsarPolicyStore(broker_backend.url, broker_backend.policies, settings=settings)
    await exchange.open()
    await store.open()
    yield exchange, store
    await exchange.close()
    await store.close()


async def test_messages_of_a_stranger_are_dropped_and_counted(
    broker_backend: EmbeddedBackend, exchange: MakeExchange, stranger: Stranger
) -> None:
    member = exchange()
    await member.open()
    for payload in (b"", b"goodbye", bytes(24), bytes(100)):
        await stranger[0].publish(payload)
    await until(lambda: member.dropped[UNAUTHENTICATED] == 4)
    await member.publish(b"ours")
    assert await hear(member, 1) == [b"ours"]
    assert member.dropped[OVERFLOW] == 0


async def test_a_strangers_policies_are_neither_delivered_nor_read(
    broker_backend: EmbeddedBackend, store: MakeStore, stranger: Stranger
) -> None:
    table = store()
    await table.open()
    await table.put("group:gold", b"1")
    await stranger[1].put("group:gold", b"2")
    await stranger[1].put("group:gold", b"")
    await stranger[1].put("group:trial", b"2")
    await table.put("group:other", b"3")
    assert await learn(table, 2) == [("group:gold", b"1"), ("group:other", b"3")]
    assert await read(store()) == {"group:gold": b"1", "group:other": b"3"}


async def test_a_record_cannot_be_moved_to_another_key(
    broker_backend: EmbeddedBackend, store: MakeStore
) -> None:
    """A stranger can read what is sealed, and send it again."""
    table = store()
    await table.open()
    await table.put("group:gold", b"1")
    stranger = PulsarPolicyStore(
        broker_backend.url,
        broker_backend.policies,
        settings=replace(broker_backend.settings, seal=None),
    )
    async with asyncio.timeout(TIMEOUT_S):
        sealed = dict(await stranger.open())["group:gold"]
    assert sealed.endswith(b"1")
    await stranger.put("group:trial", sealed)
    await stranger.close()
    await table.put("group:other", b"3")
    assert await learn(table, 2) == [("group:gold", b"1"), ("group:other", b"3")]


async def test_a_tombstone_is_sealed_too(broker_backend: EmbeddedBackend, store: MakeStore) -> None:
    table = store()
    await table.open()
    await table.put("group:gold", b"1")
    await table.put("group:gold", b"")
    assert await learn(table, 2) == [("group:gold", b"1"), ("group:gold", b"")]
    assert await read(store()) == {}
