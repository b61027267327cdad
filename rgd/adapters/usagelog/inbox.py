"""What waits between the event loop and the thread that writes the usage log.

Law: nothing here waits for the disk. What is offered beyond the limits is dropped at once and counted, but for
policies, which are offered again; what is larger than the limits is kept where nothing else waits. An item stays
until it is written or lost. Once the inbox has ended, nothing is kept any more.
"""

import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from typing import Final

from rgd.adapters.usagelog.appender import TIMESTAMP_MAX, Pending
from rgd.adapters.usagelog.settings import UsageLogSettings
from rgd.core.exchange.messages import Loggable, PoliciesInForce, RoundRecord

#: About what a row or a peer of a round takes while it waits.
ROW_BYTES: Final = 250


class Inbox:
    """What waits to be written.

    Args:
        settings: has the limits.
    """

    def __init__(self, settings: UsageLogSettings) -> None:
        self._count_max = settings.queue_max
        self._bytes_max = settings.queue_bytes_max
        self._changed = threading.Condition()
        self._items: deque[Pending] = deque()
        self._offered = self._bytes = 0
        #: Payloads that were not written.
        self.lost = 0
        #: Nothing more is taken, and the thread ends behind what waits.
        self.is_closed = False
        #: Done once the thread has ended.
        self.ended: Future[None] = Future()

    @property
    def pending(self) -> int:
        """How many payloads wait."""
        return len(self._items)

    # The loop's side.

    def offer(self, item: Loggable, timestamp_ms: int) -> bool:
        """Keep an item, or count it as lost and return False; policies, which are offered again, are not counted."""
        size = size_of(item)
        with self._changed:
            is_kept = not self.is_closed and (
                not self.pending
                or (self.pending < self._count_max and self._bytes + size <= self._bytes_max)
            )
            if is_kept:
                time = min(max(timestamp_ms, 0), TIMESTAMP_MAX)
                self._bytes += size
                self._items.append(Pending(item, time, self._offered))
                self._changed.notify()
            elif isinstance(item, PoliciesInForce):
                return False
            else:
                self.lost += 1
            self._offered += 1
            return is_kept

    def close(self) -> Future[None]:
        """Take nothing more, and have the thread end behind what waits; done then. Idempotent."""
        with self._changed:
            self.is_closed = True
            self._changed.notify()
        return self.ended

    # The thread's side.

    def wait(self, idle_s: Callable[[], float]) -> None:
        """Wait until work is due: for so long, asked again when something was put."""
        with self._changed:
            while (left_s := idle_s()) > 0:
                self._changed.wait(left_s)

    def first(self, count_max: int, bytes_max: int) -> list[Pending]:
        """The first payloads."""
        batch: list[Pending] = []
        size = 0
        with self._changed:
            for item in self._items:
                if len(batch) == count_max or size >= bytes_max:
                    break
                batch.append(item)
                size += size_of(item.item)
        return batch

    def written(self, count: int) -> None:
        """Remove the first payloads: they are in the log, or given up."""
        with self._changed:
            for _ in range(count):
                self._bytes -= size_of(self._items.popleft().item)

    def end(self) -> None:
        """Count the rest as lost, and wake whoever waits for the end. Idempotent."""
        with self._changed:
            self.is_closed = True
            self.lost += self.pending
            self._items.clear()
            self._bytes = 0
        if not self.ended.done():
            self.ended.set_result(None)


def size_of(item: Loggable) -> int:
    """About how much memory something takes that waits, in bytes."""
    if isinstance(item, bytes):
        return len(item)
    if isinstance(item, RoundRecord):
        return ROW_BYTES * (1 + len(item.rows) + len(item.peers))
    # The snapshot is in memory anyway.
    return ROW_BYTES
