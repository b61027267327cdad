"""How a reader's deliveries become a snapshot and changes, whatever the threads do.

The deliveries are made here, the loop is real. Not covered here: that a broker delivers like this
(tests/contract/exchange).
"""

import asyncio

import pytest

from rgd.adapters.exchange.inbox import ChangeInbox
from rgd.adapters.exchange.pulsar_session import Delivery
from rgd.adapters.exchange.pulsar_table import _Table
from rgd.ports.exchange import KEY_CHARS_MAX, ExchangeDown

TIMEOUT_S = 60


def none_skipped() -> int:
    return 0


def _delivery(entry: int, key: str, value: bytes = b"1") -> Delivery:
    return Delivery((3, entry, -1), key, value)


async def test_a_table_that_stands_still_is_given_up() -> None:
    table = _Table(asyncio.get_running_loop(), ChangeInbox(asyncio.get_running_loop(), 10))
    table.on_delivery(_delivery(0, "a"))
    async with asyncio.timeout(TIMEOUT_S):
        with pytest.raises(TimeoutError):
            await table.snapshot((3, 4, -1), stall_s_max=0.05, skipped=none_skipped)


async def test_keys_and_values_larger_than_any_of_ours_are_left_out_and_counted() -> None:
    changes = ChangeInbox(asyncio.get_running_loop(), 10)
    table = _Table(asyncio.get_running_loop(), changes, 100)
    table.on_delivery(_delivery(0, "k" * (KEY_CHARS_MAX + 1)))
    table.on_delivery(_delivery(1, "a", bytes(101)))
    table.on_delivery(_delivery(2, "b", bytes(100)))
    assert await table.snapshot((3, 2, -1), stall_s_max=TIMEOUT_S, skipped=none_skipped) == [
        ("b", bytes(100))
    ]
    table.on_delivery(_delivery(3, "a", bytes(101)))
    table.on_delivery(_delivery(4, "c"))
    assert await changes.take() == [("c", b"1")]
    assert table.dropped == 3


async def test_a_snapshot_takes_only_so_many_bytes() -> None:
    loop = asyncio.get_running_loop()
    table = _Table(loop, ChangeInbox(loop, 10), snapshot_bytes_max=1000)
    for entry in range(100):
        table.on_delivery(_delivery(entry, f"key {entry}", bytes(100)))
    records = await table.snapshot((3, 99, -1), stall_s_max=TIMEOUT_S, skipped=none_skipped)
    assert sum(len(key) + len(value) for key, value in records) <= 1200
    assert table.dropped == 100 - len(records)


async def test_a_caller_that_waits_for_a_lost_table_gets_an_error() -> None:
    changes = ChangeInbox(asyncio.get_running_loop(), 10)
    table = _Table(asyncio.get_running_loop(), changes)
    opening = asyncio.create_task(
        table.snapshot((3, 2, -1), stall_s_max=TIMEOUT_S, skipped=none_skipped)
    )
    await asyncio.sleep(0)
    table.lose(ExchangeDown("the connection broke"))
    for waiting in (opening, changes.take()):
        with pytest.raises(ExchangeDown, match="the connection broke"):
            await waiting
