"""The queue between a client's threads and the loop: order, limits, no piling up, no waiting.

Real threads and a real loop. Not covered here: what the adapters put in (tests/contract/exchange).
"""

import asyncio
from collections import Counter

from rgd.adapters.exchange.inbox import ChangeInbox, PayloadInbox
from rgd.ports.exchange import OVERFLOW, Received


async def test_a_full_table_queue_forgets_only_superseded_values() -> None:
    changes = ChangeInbox(asyncio.get_running_loop(), 4)
    for change in [("a", b"1"), ("b", b"1"), ("a", b"2"), ("c", b"1"), ("b", b"")]:
        changes.put(change)
    assert await changes.take() == [("b", b"1"), ("a", b"2"), ("c", b"1"), ("b", b"")]


async def test_messages_that_wait_are_bounded_by_their_bytes() -> None:
    dropped: Counter[str] = Counter()
    inbox = PayloadInbox(asyncio.get_running_loop(), 100, dropped, bytes_max=1000)
    for number in range(5):
        inbox.put(Received(bytes([number]) * 300, 0))
    assert [received.payload[0] for received in await inbox.take()] == [2, 3, 4]
    assert dropped == {OVERFLOW: 2}
    inbox.put(Received(bytes(5000), 0))
    assert [len(received.payload) for received in await inbox.take()] == [5000], (
        "one is always taken"
    )
