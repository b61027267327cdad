"""The queue between a client's threads and the loop: order, limits, no piling up, no waiting.

Real threads and a real loop. Not covered here: what the adapters put in (tests/contract/exchange).
"""

import asyncio
import threading
from collections.abc import Callable
from typing import cast

import pytest

from rgd.adapters.exchange.inbox import ChangeInbox, Inbox, PayloadInbox
from rgd.ports.exchange import ExchangeClosed, Received

TIMEOUT_S = 60


async def _in_thread(work: Callable[[], None]) -> None:
    """Run it in a thread while the loop stands still, as a stalled loop does."""
    thread = threading.Thread(target=work)
    thread.start()
    thread.join(TIMEOUT_S)
    assert not thread.is_alive()


async def test_items_of_many_threads_all_arrive_each_threads_in_its_order() -> None:
    inbox: Inbox[tuple[int, int]] = Inbox(asyncio.get_running_loop(), 10_000)

    def put(name: int) -> None:
        for number in range(1000):
            inbox.put((name, number))

    threads = [threading.Thread(target=put, args=(name,)) for name in range(4)]
    for thread in threads:
        thread.start()
    taken: list[tuple[int, int]] = []
    async with asyncio.timeout(TIMEOUT_S):
        while len(taken) < 4000:
            taken += await inbox.take()
    for thread in threads:
        thread.join()
    for name in range(4):
        assert [number for who, number in taken if who == name] == list(range(1000))


async def test_a_stalled_loop_has_one_callback_to_run_however_much_was_put() -> None:
    loop = asyncio.get_running_loop()
    told = 0

    class CountingLoop:
        def call_soon_threadsafe(self, callback: Callable[[], None]) -> None:
            nonlocal told
            told += 1
            loop.call_soon_threadsafe(callback)

    # It is all that an inbox uses of a loop.
    inbox: Inbox[int] = Inbox(cast("asyncio.AbstractEventLoop", CountingLoop()), 10)

    def put_many() -> None:
        for number in range(100):
            inbox.put(number)

    await _in_thread(put_many)
    assert told == 1
    assert await inbox.take() == list(range(90, 100))
    assert inbox.dropped == 90
    await _in_thread(lambda: inbox.put(100))
    assert told == 2
    assert await inbox.take() == [100]


async def test_put_after_the_loop_is_gone_harms_nobody() -> None:
    gone = asyncio.new_event_loop()
    gone.close()
    inbox: Inbox[int] = Inbox(gone, 10)
    inbox.put(1)


async def test_a_closed_inbox_takes_nothing_and_gives_nothing() -> None:
    inbox: Inbox[int] = Inbox(asyncio.get_running_loop(), 10)
    inbox.put(1)
    inbox.close()
    inbox.close()
    inbox.put(2)
    with pytest.raises(ExchangeClosed):
        await inbox.take()
    assert inbox.dropped == 0


async def test_a_full_table_queue_forgets_only_superseded_values() -> None:
    changes = ChangeInbox(asyncio.get_running_loop(), 4)
    for change in [("a", b"1"), ("b", b"1"), ("a", b"2"), ("c", b"1"), ("b", b"")]:
        changes.put(change)
    assert await changes.take() == [("b", b"1"), ("a", b"2"), ("c", b"1"), ("b", b"")]


async def test_no_keys_last_change_is_lost_even_with_more_keys_than_the_queue_holds() -> None:
    changes = ChangeInbox(asyncio.get_running_loop(), 10)
    for number in range(300):
        changes.put((f"key {number % 100}", b"%d" % number))
    taken = await changes.take()
    assert dict(taken) == {f"key {number % 100}": b"%d" % number for number in range(200, 300)}
    assert len(taken) <= 200
    numbers = [int(value) for _, value in taken]
    assert numbers == sorted(numbers)


async def test_messages_that_wait_are_bounded_by_their_bytes() -> None:
    inbox = PayloadInbox(asyncio.get_running_loop(), 100, bytes_max=1000)
    for number in range(5):
        inbox.put(Received(bytes([number]) * 300, 0))
    assert [received.payload[0] for received in await inbox.take()] == [2, 3, 4]
    assert inbox.dropped == 2
    inbox.put(Received(bytes(5000), 0))
    assert [len(received.payload) for received in await inbox.take()] == [5000], (
        "one is always taken"
    )
