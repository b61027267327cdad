"""Long work in slices: one slice for each turn of the event loop, whoever it belongs to.

Law: however many long arrays and lists are in work at once, the loop carries out one slice of one of
them, then everything else that is ready, then a slice of the next. So the longest stall is one
slice, and callers with long work share the loop in equal parts.

How much a slice holds is counted in work by whoever does it, never in time: `SLICE_WORK` points, of which
an item of an array costs one, and what costs more says so.
"""

import asyncio
from collections import deque
from typing import Final

#: Points of work in a slice: about 1 ms.
SLICE_WORK: Final = 128

#: Long arrays and lists in work at once; the others wait in the order in which they came. What such
#: work makes is held until it is whole, so this bounds memory: some 3 MB for the largest answer.
LONG_WORK_MAX: Final = 16


class Turns:
    """Gives slices of work their turns."""

    def __init__(self) -> None:
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._is_scheduled = False
        #: Held by whoever has work of many slices, from its first to its last.
        self.long_work = asyncio.Semaphore(LONG_WORK_MAX)
        #: Slices that were begun so far.
        self.given = 0

    async def next(self) -> None:
        """End a slice; returns when the next may begin."""
        loop = asyncio.get_running_loop()
        turn = loop.create_future()
        self._waiting.append(turn)
        if not self._is_scheduled:
            self._is_scheduled = True
            loop.call_soon(self._give)
        await turn

    def _give(self) -> None:
        while self._waiting:
            turn = self._waiting.popleft()
            # Whoever was cancelled meanwhile needs no turn.
            if not turn.done():
                turn.set_result(None)
                self.given += 1
                break
        self._is_scheduled = bool(self._waiting)
        if self._is_scheduled:
            asyncio.get_running_loop().call_soon(self._give)
