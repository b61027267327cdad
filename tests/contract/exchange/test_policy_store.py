"""How every policies table behaves, from an empty one on: in memory, embedded, on Apache Pulsar.

Not covered here: brokers that go away (test_faults.py), compaction (test_apache_pulsar.py), which of
two records wins (the core: revisions), and how a record is written (rgd.wire).
"""

import asyncio

import pytest

from rgd.ports.exchange import PAYLOAD_BYTES_MAX, ExchangeClosed, ExchangeDown, PayloadTooLarge
from tests.contract.exchange.backends import TIMEOUT_S, Backend, MakeStore, begun, learn, lost, read
from tests.support.exchanges import opened

pytestmark = pytest.mark.usefixtures("backend")


async def test_of_each_key_an_opener_reads_every_record_until_a_compaction_and_the_last_wins(
    store: MakeStore,
) -> None:
    writer = store()
    assert await read(writer) == {}
    put = [("group:gold", b"1"), ("group:trial", b"1"), ("group:gold", b"2"), ("group:gold", b"3")]
    for key, value in put:
        await writer.put(key, value)
    assert await store().open() == put
    assert await read(store()) == {"group:gold": b"3", "group:trial": b"1"}


async def test_a_large_table_is_read_whole(store: MakeStore) -> None:
    writer, late = store(), store()
    await writer.open()
    value = bytes(32 << 10)
    for first in range(0, 300, 50):
        await asyncio.gather(*(writer.put(f"key {first + n}", value) for n in range(50)))
    assert set(await read(late)) == {f"key {number}" for number in range(300)}


async def test_changes_are_reported_to_all_in_order_to_the_writer_too(store: MakeStore) -> None:
    writer, reader = store(), store()
    await writer.open()
    await reader.open()
    put = [(f"group:{number % 3}", b"%d" % number) for number in range(30)]
    for key, value in put:
        await writer.put(key, value)
    assert await learn(reader, 30) == put
    assert await learn(writer, 30) == put


async def test_opening_delivers_nothing_and_what_it_read_is_not_delivered_again(
    store: MakeStore,
) -> None:
    first, second = store(), store()
    await first.open()
    await first.put("a", b"1")
    assert await learn(first, 1) == [("a", b"1")]
    assert await read(second) == {"a": b"1"}
    await first.put("b", b"2")
    assert await learn(second, 1) == [("b", b"2")]
    assert await learn(first, 1) == [("b", b"2")]


async def test_two_writers_see_the_same_changes_in_the_same_order(store: MakeStore) -> None:
    left, right = store(), store()
    await left.open()
    await right.open()
    await asyncio.gather(
        *(left.put("key", b"left %d" % number) for number in range(20)),
        *(right.put("key", b"right %d" % number) for number in range(20)),
    )
    seen_left, seen_right = await learn(left, 40), await learn(right, 40)
    assert seen_left == seen_right
    assert len(seen_left) == 40
    assert await read(store()) == {"key": seen_left[-1][1]}


async def test_snapshot_and_changes_leave_no_gap_and_no_overlap_while_others_write(
    store: MakeStore,
) -> None:
    writer, reader = store(), store()
    await writer.open()
    is_open = asyncio.Event()

    async def write() -> int:
        number = 0
        while not is_open.is_set() or number < 50:
            await writer.put("counter", b"%d" % number)
            await writer.put(f"key {number}", b"x")
            number += 1
        return number

    async with asyncio.timeout(TIMEOUT_S):
        writing = asyncio.create_task(write())
        table = await read(reader)
        is_open.set()
        count = await writing
    of_counter = [int(table["counter"])] if "counter" in table else []
    known = {key for key in table if key != "counter"}
    while len(known) < count:
        for key, value in await learn(reader, 1):
            if key == "counter":
                of_counter.append(int(value))
            else:
                assert key not in known
                known.add(key)
    assert of_counter == list(range(of_counter[0], count))


async def test_an_empty_value_takes_the_key_out_of_the_table(store: MakeStore) -> None:
    writer, reader = store(), store()
    await writer.open()
    await reader.open()
    await writer.put("gone", b"1")
    await writer.put("stays", b"1")
    await writer.put("gone", b"")
    assert await learn(reader, 3) == [("gone", b"1"), ("stays", b"1"), ("gone", b"")]
    assert await read(store()) == {"stays": b"1"}


async def test_the_table_outlives_all_who_opened_it(store: MakeStore) -> None:
    for number in range(3):
        each = store()
        assert len(await read(each)) == number
        await each.put(f"group:{number}", b"1")
        await each.close()
    assert set(await read(store())) == {"group:0", "group:1", "group:2"}


@pytest.mark.parametrize("key", ["topic:persistent://acme/orders/eu", "group:größe | Ω", "k" * 500])
async def test_keys_and_large_values_arrive_unchanged(store: MakeStore, key: str) -> None:
    writer, reader = store(), store()
    await writer.open()
    await reader.open()
    value = bytes(number % 251 for number in range(PAYLOAD_BYTES_MAX))
    await writer.put(key, value)
    assert await learn(reader, 1) == [(key, value)]
    assert await read(store()) == {key: value}


async def test_a_value_that_is_too_large_is_refused(store: MakeStore) -> None:
    writer = store()
    await writer.open()
    with pytest.raises(PayloadTooLarge):
        await writer.put("key", bytes(PAYLOAD_BYTES_MAX + 1))
    assert await read(store()) == {}


async def test_closing_wakes_a_waiting_reader_is_idempotent_and_final(store: MakeStore) -> None:
    each = store()
    await each.open()
    waiting = await begun(each.changes())
    await asyncio.gather(each.close(), each.close())
    with pytest.raises(ExchangeClosed):
        async with asyncio.timeout(TIMEOUT_S):
            await waiting
    for use in (each.put("key", b"late"), each.changes(), each.open()):
        with pytest.raises(ExchangeClosed):
            await use


async def test_a_table_that_is_replaced_is_lost_and_read_from_its_start_when_it_is_opened_again(
    backend: Backend, store: MakeStore
) -> None:
    old, fresh = store(), store()
    await old.open()
    # Positions of the next table begin below these.
    for number in range(20):
        await old.put("group:gold", b"%d" % number)
    assert len(await learn(old, 20)) == 20
    await backend.wipe()
    await opened(fresh.open)
    await fresh.put("group:gold", b"new")
    await lost(old)
    with pytest.raises(ExchangeDown):
        await old.put("group:trial", b"1")
    assert await opened(old.open) == [("group:gold", b"new")]
    await old.put("group:trial", b"1")
    assert await learn(old, 1) == [("group:trial", b"1")]
    assert ("group:trial", b"1") in await learn(fresh, 2)
