"""What waits between the event loop and the thread that writes the usage log.

Law: neither side ever waits for a lock of the other, because a thread that the system suspends with a lock held
up the loop for milliseconds. Each counter is written by one side alone. What is offered beyond the limits is
dropped at once and counted; what is larger than the limits is kept where nothing else waits.
"""

import contextlib
import queue
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Final

from rgd.adapters.usagelog.appender import Pending
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


@dataclass(slots=True)
class _Amount:
    """Payloads and their bytes, since the start."""

    count: int = 0
    bytes: int = 0

    def add(self, size: int) -> None:
        self.count += 1
        self.bytes += size


class Inbox:
    """Payloads and, between them, the marks of those who wait."""

    def __init__(self, settings: UsageLogSettings) -> None:
        self._count_max = settings.queue_max
        self._bytes_max = settings.queue_bytes_max
        self._items: queue.SimpleQueue[Pending | Waiter] = queue.SimpleQueue()
        # Written by the loop alone.
        self._offered = 0
        self._kept = _Amount()
        self.dropped = 0
        # Written by the thread alone.
        self._left = _Amount()

    # The loop's side.

    def offer(self, item: Loggable, timestamp_ms: int, *, is_closed: bool) -> bool:
        """Keep an item, or count it as dropped."""
        size = size_of(item)
        ordinal = self._offered
        self._offered += 1
        waiting = self._kept.count - self._left.count
        waiting_bytes = self._kept.bytes - self._left.bytes
        has_room = not waiting or (
            waiting < self._count_max and waiting_bytes + size <= self._bytes_max
        )
        if is_closed or not has_room:
            self.dropped += 1
            return False
        self._kept.add(size)
        self._items.put(Pending(item, timestamp_ms, ordinal))
        return True

    def put(self, waiter: Waiter) -> None:
        """Mark how far a caller waits."""
        self._items.put(waiter)

    # The thread's side.

    def take(self, *, wait_s: float | None = 0) -> list[Pending | Waiter]:
        """All that is there; waits for the first for so long, or for ever."""
        taken: list[Pending | Waiter] = []
        with contextlib.suppress(queue.Empty):
            if wait_s is None or wait_s > 0:
                taken.append(self._items.get(timeout=wait_s))
            while True:
                taken.append(self._items.get_nowait())
        return taken

    def left(self, pending: Pending) -> None:
        """It is written or lost, and makes room."""
        self._left.add(size_of(pending.item))


def size_of(item: Loggable) -> int:
    """About how much memory something takes that waits, in bytes."""
    if isinstance(item, bytes):
        return len(item)
    if isinstance(item, RoundRecord):
        return ROW_BYTES * (1 + len(item.rows) + len(item.peers))
    # The snapshot is in memory anyway.
    return ROW_BYTES
