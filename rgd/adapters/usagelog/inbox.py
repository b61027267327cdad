"""What waits between the event loop and the thread that writes the usage log.

Law: nothing here waits for the disk. What is offered beyond the limits is dropped at once and counted; what is larger
than the limits is kept where nothing else waits. An item stays until it is written or lost. Once the inbox has ended,
nothing is kept any more, and nobody waits.
"""

import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Final

from rgd.adapters.usagelog.appender import TIMESTAMP_MAX, Pending
from rgd.adapters.usagelog.settings import UsageLogSettings
from rgd.core.exchange.messages import Loggable, RoundRecord

#: About what a row or a peer of a round takes while it waits.
ROW_BYTES: Final = 250


@dataclass(frozen=True, slots=True)
class Waiter:
    """A caller that waits until all earlier items are written or lost."""

    settled: Future[None]
    #: Whether the thread ends here.
    is_end: bool = False


class Inbox:
    """Payloads and, between them, the marks of those who wait.

    Args:
        settings: has the limits.
    """

    def __init__(self, settings: UsageLogSettings) -> None:
        self._count_max = settings.queue_max
        self._bytes_max = settings.queue_bytes_max
        self._changed = threading.Condition()
        self._items: deque[Pending | Waiter] = deque()
        self._offered = self._bytes = 0
        #: How many payloads wait.
        self.pending = 0
        #: Payloads that were not written.
        self.lost = 0
        self.is_closed = False
        self._ended: Future[None] = Future()

    @property
    def has_waiters(self) -> bool:
        """Whether a caller waits."""
        return len(self._items) > self.pending

    # The loop's side.

    def offer(self, item: Loggable, timestamp_ms: int) -> None:
        """Keep an item, or count it as lost."""
        size = size_of(item)
        with self._changed:
            ordinal = self._offered
            self._offered += 1
            has_room = not self.pending or (
                self.pending < self._count_max and self._bytes + size <= self._bytes_max
            )
            if self.is_closed or not has_room:
                self.lost += 1
                return
            self.pending += 1
            self._bytes += size
            self._put(Pending(item, min(max(timestamp_ms, 0), TIMESTAMP_MAX), ordinal))

    def mark(self) -> Future[None]:
        """Done once all that was offered so far is written or lost."""
        with self._changed:
            if self.is_closed:
                return self._ended
            waiter = Waiter(Future())
            self._put(waiter)
        return waiter.settled

    def close(self) -> Future[None]:
        """Take nothing more, and have the thread end behind what waits; done then. Idempotent."""
        with self._changed:
            if not self.is_closed:
                self.is_closed = True
                self._put(Waiter(self._ended, is_end=True))
        return self._ended

    # The thread's side.

    def wait(self, idle_s: Callable[[], float | None]) -> None:
        """Wait until work is due: for so long (None: for ever), asked again when something was put."""
        with self._changed:
            while (left_s := idle_s()) is None or left_s > 0:
                self._changed.wait(left_s)

    def first(self, count_max: int, bytes_max: int) -> tuple[list[Pending], Waiter | None]:
        """The first payloads, or the waiter that is first."""
        batch: list[Pending] = []
        size = 0
        with self._changed:
            for item in self._items:
                if isinstance(item, Waiter):
                    return batch, item
                if len(batch) == count_max or size >= bytes_max:
                    break
                batch.append(item)
                size += size_of(item.item)
        return batch, None

    def written(self, count: int) -> None:
        """Remove the first payloads: they are in the log, or given up."""
        with self._changed:
            for _ in range(count):
                self._take()

    def lose_pending(self) -> None:
        """Count the payloads before the first waiter as lost."""
        with self._changed:
            while isinstance(self._items[0], Pending):
                self._take()
                self.lost += 1

    def release(self) -> None:
        """Wake the waiter that is first."""
        with self._changed:
            waiter = self._items.popleft()
        assert isinstance(waiter, Waiter)
        waiter.settled.set_result(None)

    def end(self) -> None:
        """Count the rest as lost, and wake all waiters. Idempotent."""
        with self._changed:
            self.is_closed = True
            self.lost += self.pending
            waiting = [item.settled for item in self._items if isinstance(item, Waiter)]
            self._items.clear()
            self.pending = self._bytes = 0
        for settled in {*waiting, self._ended}:
            if not settled.done():
                settled.set_result(None)

    def _put(self, item: Pending | Waiter) -> None:
        self._items.append(item)
        self._changed.notify()

    def _take(self) -> None:
        item = self._items.popleft()
        assert isinstance(item, Pending)
        self.pending -= 1
        self._bytes -= size_of(item.item)


def size_of(item: Loggable) -> int:
    """About how much memory something takes that waits, in bytes."""
    if isinstance(item, bytes):
        return len(item)
    if isinstance(item, RoundRecord):
        return ROW_BYTES * (1 + len(item.rows) + len(item.peers))
    # The snapshot is in memory anyway.
    return ROW_BYTES
