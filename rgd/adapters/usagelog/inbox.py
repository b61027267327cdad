"""What waits between the event loop and the thread that writes the usage log.

Law: neither side ever waits for a lock of the other, because a thread that the system suspends with a lock held
up the loop for milliseconds. Each counter is written by one side alone. What is offered beyond the limits is
dropped at once and counted; what is larger than the limits is kept where nothing else waits.

An offer does not wake the thread: waking one costs the loop a call of the system, and the thread then takes the
interpreter from it. The thread looks every `LOOK_S`; it is woken where somebody waits for it, and where half
of a limit waits to be written.
"""

import contextlib
import queue
from collections import deque
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Final

from rgd.adapters.usagelog.appender import TIMESTAMP_MAX, Pending
from rgd.adapters.usagelog.settings import UsageLogSettings
from rgd.core.exchange.messages import Loggable, RoundRecord

#: About what a row or a peer of a round takes while it waits.
ROW_BYTES: Final = 250

#: How long something waits at most until the thread sees it, in seconds.
LOOK_S: Final = 0.05


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
        look_s: how long something waits at most until the thread sees it.
    """

    def __init__(self, settings: UsageLogSettings, look_s: float = LOOK_S) -> None:
        self._look_s = look_s
        self._count_max = settings.queue_max
        self._bytes_max = settings.queue_bytes_max
        #: An offer is (item, its time, its ordinal): it becomes a `Pending` in the thread.
        self._items: deque[tuple[Loggable, int, int] | Waiter] = deque()
        #: Wakes the thread.
        self._bell: queue.SimpleQueue[None] = queue.SimpleQueue()
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
        self._items.append((item, timestamp_ms, ordinal))
        if 2 * waiting >= self._count_max or 2 * waiting_bytes >= self._bytes_max:
            self._bell.put(None)
        return True

    def put(self, waiter: Waiter) -> None:
        """Mark how far a caller waits."""
        self._items.append(waiter)
        self._bell.put(None)

    # The thread's side.

    def take(self, *, wait_s: float | None = 0) -> list[Pending | Waiter]:
        """All that is there; waits for some of it for so long (None: for ever), and at most `look_s`."""
        if not self._items and (wait_s is None or wait_s > 0):
            with contextlib.suppress(queue.Empty):
                self._bell.get(
                    timeout=self._look_s if wait_s is None else min(wait_s, self._look_s)
                )
        with contextlib.suppress(queue.Empty):
            while True:
                self._bell.get_nowait()
        items = self._items
        # Only what is there now: the loop may add as fast as this takes.
        taken = [items.popleft() for _ in range(len(items))]
        return [item if isinstance(item, Waiter) else _pending(*item) for item in taken]

    def left(self, pending: Pending) -> None:
        """It is written or lost, and makes room."""
        self._left += 1
        self._left_bytes += size_of(pending.item)


def _pending(item: Loggable, timestamp_ms: int, ordinal: int) -> Pending:
    return Pending(item, min(max(timestamp_ms, 0), TIMESTAMP_MAX), ordinal)


def size_of(item: Loggable) -> int:
    """About how much memory something takes that waits, in bytes."""
    if isinstance(item, bytes):
        return len(item)
    if isinstance(item, RoundRecord):
        return ROW_BYTES * (1 + len(item.rows) + len(item.peers))
    # The snapshot is in memory anyway.
    return ROW_BYTES
