"""The one bounded queue between a client's threads and the event loop.

Law: `put` is callable from any thread and never waits. One consumer on the loop takes the items in the
order of `put`. The waiting items are bounded, however long the loop stands still.
How: the items are in a deque under a lock, and the loop is only notified, once for many
items. So a stalled loop collects nothing in its own callback queue.
The classes differ in a full queue: `PayloadInbox` drops the oldest item and counts it (a later
report carries the same state again), `ChangeInbox` drops only replaced values of a key.
"""

import asyncio
import contextlib
import threading
from abc import ABC, abstractmethod
from collections import Counter, deque
from typing import Final, Generic, TypeVar

from typing_extensions import override

from rgd.ports.exchange import OVERFLOW, ExchangeClosed, ExchangeError, Received

#: Most bytes of waiting messages, because a stalled loop must not fill the memory.
WAITING_BYTES_MAX: Final = 128 << 20

Item = TypeVar("Item")


class _Inbox(ABC, Generic[Item]):
    """A queue that any thread fills and the loop empties."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, items_max: int, bytes_max: int = WAITING_BYTES_MAX
    ) -> None:
        self._loop = loop
        self._items_max = items_max
        self._bytes_max = bytes_max
        self._items: deque[Item] = deque()
        self._lock = threading.Lock()
        self._is_loop_told = False
        #: What `take` raises once the inbox is closed.
        self._closed: ExchangeError | None = None
        self._arrived = asyncio.Event()
        #: Of the items.
        self.bytes = 0

    def put(self, item: Item) -> None:
        """Append an item; from any thread. Nothing happens once the inbox is closed."""
        size = self._bytes_of(item)
        with self._lock:
            if self._closed is not None:
                return
            while self._items and (
                len(self._items) >= self._items_max or self.bytes + size > self._bytes_max
            ):
                self._make_room(size)
            self._items.append(item)
            self.bytes += size
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
        while not (items := self.drain()):
            await self._arrived.wait()
        return items

    def drain(self) -> list[Item]:
        """All items, oldest first; on the loop.

        Raises:
            ExchangeError: as `take`.
        """
        with self._lock:
            if self._closed is not None:
                raise self._closed
            items = list(self._items)
            self._items.clear()
            self.bytes = 0
            self._is_loop_told = False
            self._arrived.clear()
        return items

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

    @abstractmethod
    def _bytes_of(self, item: Item) -> int: ...

    @abstractmethod
    def _make_room(self, size: int) -> None: ...


class PayloadInbox(_Inbox[Received]):
    """Waiting messages; when full, the oldest one goes, and is counted."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        items_max: int,
        dropped: Counter[str],
        bytes_max: int = WAITING_BYTES_MAX,
    ) -> None:
        super().__init__(loop, items_max, bytes_max)
        self._dropped = dropped

    @override
    def _bytes_of(self, item: Received) -> int:
        return len(item.payload)

    @override
    def _make_room(self, size: int) -> None:
        self.bytes -= self._bytes_of(self._items.popleft())
        self._dropped[OVERFLOW] += 1


class ChangeInbox(_Inbox[tuple[str, bytes]]):
    """Changes of a table; when full, only the last change of each key stays.

    The last change of a key is never dropped, so the true limits are the larger of those given and twice
    what all keys of the table take.
    """

    @override
    def _bytes_of(self, item: tuple[str, bytes]) -> int:
        return len(item[0]) + len(item[1])

    @override
    def _make_room(self, size: int) -> None:
        last: dict[str, bytes] = {}
        for key, value in self._items:
            last.pop(key, None)
            last[key] = value
        self._items = deque(last.items())
        self.bytes = sum(map(self._bytes_of, self._items))
        # Twice, because otherwise every single change would scan a table of many keys again.
        self._items_max = max(self._items_max, 2 * len(self._items))
        self._bytes_max = max(self._bytes_max, 2 * self.bytes + size)
