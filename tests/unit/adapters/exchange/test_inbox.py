"""The queue between a client's threads and the loop: order, limits, no piling up, no waiting.

Real threads and a real loop. Not covered here: what the adapters put in (tests/contract/exchange).
"""

import asyncio
import threading

from rgd.adapters.exchange.inbox import ChangeInbox, Inbox, PayloadInbox
from rgd.ports.exchange import Received

TIMEOUT_S = 60


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


async def test_put_after_the_loop_is_gone_harms_nobody() -> None:
    gone = asyncio.new_event_loop()
    gone.close()
    inbox: Inbox[int] = Inbox(gone, 10)
    inbox.put(1)


async def test_a_full_table_queue_forgets_only_superseded_values() -> None:
    changes = ChangeInbox(asyncio.get_running_loop(), 4)
    for change in [("a", b"1"), ("b", b"1"), ("a", b"2"), ("c", b"1"), ("b", b"")]:
        changes.put(change)
    assert await changes.take() == [("b", b"1"), ("a", b"2"), ("c", b"1"), ("b", b"")]


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
