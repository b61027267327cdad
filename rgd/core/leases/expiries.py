"""When to look whether a lease has expired: a queue in which every operation is a few steps.

Laws: an id is returned once, at most `TICK_NS` after its time, and never before it. A removed id is not
returned. There are at most as many ticks as the longest lifetime has, and no work is left for later: a heap
of expiries would need a pass over all of them whenever many leases have been released.
"""

from heapq import heappop, heappush
from typing import Final

from rgd.core.units import NS_PER_MS, Nanos

#: Expiries within so long are one entry of the queue.
TICK_NS: Final = 10 * NS_PER_MS


class Expiries:
    """Ids by time."""

    def __init__(self) -> None:
        #: The ids of each tick; dictionaries, because they keep their order.
        self._ids: dict[int, dict[str, None]] = {}
        self._tick_of: dict[str, int] = {}
        #: The keys of `_ids`, as a heap.
        self._ticks: list[int] = []

    def __len__(self) -> int:
        return len(self._tick_of)

    def put(self, lease_id: str, at: Nanos) -> None:
        """Add an id that is not there."""
        tick = -(-at // TICK_NS)
        self._tick_of[lease_id] = tick
        ids = self._ids.get(tick)
        if ids is None:
            ids = self._ids[tick] = {}
            heappush(self._ticks, tick)
        ids[lease_id] = None

    def remove(self, lease_id: str) -> None:
        """Remove an id, if it is there."""
        tick = self._tick_of.pop(lease_id, None)
        if tick is not None:
            del self._ids[tick][lease_id]

    def pop(self, now: Nanos) -> str | None:
        """Remove an id whose time has come; None: there is none."""
        while self._ticks and self._ticks[0] * TICK_NS <= now:
            ids = self._ids[self._ticks[0]]
            if ids:
                # The last one: to take the first one, others that were there have to be stepped over.
                lease_id, _ = ids.popitem()
                del self._tick_of[lease_id]
                return lease_id
            del self._ids[heappop(self._ticks)]
        return None
