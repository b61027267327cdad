"""What waits between the event loop and the thread that writes the usage log.

Law: each counter is written by one side alone. What is offered beyond the limits is
dropped at once and counted; what is larger than the limits is kept where nothing else waits.
"""

import contextlib
import queue
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
        self._items: queue.SimpleQueue[Pending | Waiter] = queue.SimpleQueue()
        # Written by the loop alone, since the start.
        self._offered = self._kept = self._kept_bytes = 0
        self.dropped = 0
        # Written by the thread alone.
        self._left = self._left_bytes = 0

    # The loop's side.

    def offer(self, item: Loggable, timestamp_ms: int, *, is_closed: bool) -> bool:
        """Keep an item, or count it as dropped."""
        size = size_of(item)
        ordinal = self._offered
        self._offered = ordinal + 1
        waiting, waiting_bytes = self._kept - self._left, self._kept_bytes - self._left_bytes
        has_room = not waiting or (
            waiting < self._count_max and waiting_bytes + size <= self._bytes_max
        )
        if is_closed or not has_room:
            self.dropped += 1
            return False
        self._kept += 1
        self._kept_bytes += size
        self._items.put(Pending(item, min(max(timestamp_ms, 0), TIMESTAMP_MAX), ordinal))
        return True

    def put(self, waiter: Waiter) -> None:
        """Mark how far a caller waits."""
        self._items.put(waiter)

    # The thread's side.

    def take(self, *, wait_s: float | None = 0) -> list[Pending | Waiter]:
        """All that is there; waits for some of it for so long (None: for ever)."""
        taken: list[Pending | Waiter] = []
        with contextlib.suppress(queue.Empty):
            taken.append(self._items.get(block=wait_s != 0, timeout=wait_s or None))
            # Only what is there now: the loop may add as fast as this takes.
            taken += [self._items.get_nowait() for _ in range(self._items.qsize())]
        return taken

    def left(self, pending: Pending) -> None:
        """It is written or lost, and makes room."""
        self._left += 1
        self._left_bytes += size_of(pending.item)


def size_of(item: Loggable) -> int:
    """About how much memory something takes that waits, in bytes."""
    if isinstance(item, bytes):
        return len(item)
    if isinstance(item, RoundRecord):
        return ROW_BYTES * (1 + len(item.rows) + len(item.peers))
    # The snapshot is in memory anyway.
    return ROW_BYTES
