"""The one bounded queue between a client's threads and the event loop.

Law: `put` is callable from any thread and never waits. One consumer on the loop takes the items in the
order of `put`. The waiting items are bounded, however long the loop stands still.
How: the items are in a deque under a lock, and the loop is only notified, once for many
items. So a stalled loop collects nothing in its own callback queue.
The classes differ in a full queue: `Inbox` drops the oldest item and counts it (a later
report carries the same state again), `ChangeInbox` drops only replaced values of a key.
"""

import asyncio
import contextlib
import threading
from collections import deque
from collections.abc import Iterable
from typing import Final, Generic, TypeVar

from typing_extensions import override

from rgd.ports.exchange import ExchangeClosed, ExchangeError, Received

#: Most bytes of waiting messages, because a stalled loop must not fill the memory.
WAITING_BYTES_MAX: Final = 128 << 20

Item = TypeVar("Item")


class Inbox(Generic[Item]):
    """A queue that any thread fills and the loop empties; when full, the oldest item goes."""

    def __init__(self, loop: asyncio.AbstractEventLoop, items_max: int) -> None:
        self._loop = loop
        self._items_max = items_max
        self._items: deque[Item] = deque()
        self._lock = threading.Lock()
        self._is_loop_told = False
        #: What `take` raises once the inbox is closed.
        self._closed: ExchangeError | None = None
        self._arrived = asyncio.Event()
        #: Bytes of the items, where they have any (`PayloadInbox`).
        self._bytes = 0
        self._bytes_max = 0
        #: Items dropped because the queue was full.
        self.dropped = 0

    def put(self, item: Item) -> None:
        """Append an item; from any thread. Nothing happens once the inbox is closed."""
        size = self._bytes_of(item)
        with self._lock:
            if self._closed is not None:
                return
            if len(self._items) >= self._items_max:
                self._make_room()
            while self._items and self._bytes + size > self._bytes_max:
                self._make_room()
            self._items.append(item)
            self._bytes += size
            must_tell = not self._is_loop_told
            self._is_loop_told = True
        if must_tell:
            # A closed loop has no consumer; an exception here would end the client's thread.
            with contextlib.suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._arrived.set)

    async def take(self) -> list[Item]:
        """Wait until there are items and return all of them, oldest first.

        Raises:
            ExchangeError: the inbox is closed, with the reason given to `close`; its items are lost.
        """
        while True:
            with self._lock:
                if self._closed is not None:
                    raise self._closed
                items = list(self._items)
                self._items.clear()
                self._bytes = 0
                self._is_loop_told = False
                self._arrived.clear()
            if items:
                return items
            await self._arrived.wait()

    @property
    def pending(self) -> int:
        """How many items wait."""
        return len(self._items)

    @property
    def is_closed(self) -> bool:
        """Whether the inbox is closed."""
        return self._closed is not None

    def close(self, error: ExchangeError | None = None) -> None:
        """End a waiting `take` and all later ones; on the loop. The last given error counts."""
        with self._lock:
            self._closed = error or ExchangeClosed("closed")
            self._items.clear()
        self._arrived.set()

    def _bytes_of(self, item: Item) -> int:
        del item
        return 0

    def _make_room(self) -> None:
        self._bytes -= self._bytes_of(self._items.popleft())
        self.dropped += 1


class PayloadInbox(Inbox[Received]):
    """Waiting messages; their number and their bytes are bounded."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, items_max: int, bytes_max: int = WAITING_BYTES_MAX
    ) -> None:
        super().__init__(loop, items_max)
        self._bytes_max = bytes_max

    @override
    def _bytes_of(self, item: Received) -> int:
        return len(item.payload)


class ChangeInbox(Inbox[tuple[str, bytes]]):
    """Changes of a table; when full, only the last change of each key stays.

    The last change of a key is never dropped, so the true limit is the larger of `items_max` and twice
    the number of the table's keys.
    """

    def _make_room(self) -> None:
        self._items = deque(last_changes(self._items).items())
        # Twice, because otherwise every single change would scan a table of many keys again.
        self._items_max = max(self._items_max, 2 * len(self._items))


def last_changes(changes: Iterable[tuple[str, bytes]]) -> dict[str, bytes]:
    """The last value of each key, in the order of the changes that stay."""
    last: dict[str, bytes] = {}
    for key, value in changes:
        last.pop(key, None)
        last[key] = value
    return last
