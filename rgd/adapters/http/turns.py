"""Long work in slices: one slice for each turn of the event loop, whoever it belongs to.

Laws: however much long work there is at once, the loop carries out one slice of it, then everything else
that is ready, then the next slice. So the longest stall is one slice, and callers with long work share
the loop in equal parts. Only so many arrays and reads are at work at once and may wait; more are
answered 503.

How much a slice holds is counted in work by whoever does it, never in time: `SLICE_WORK` points, of which
an item of an array or a row of the usage map costs one, and what costs more says so.

Arrays and reads have turns of their own, so a caller who may only read keeps no array waiting.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from rgd.adapters.http.errors import Overloaded

#: Points of work in a slice: about 1 ms.
SLICE_WORK: Final = 128

#: Calls of the scope `read` in work at once, and those that may wait; the next one is answered 503.
READS_MAX: Final = 8
READS_WAITING_MAX: Final = 128

#: Slices that may wait beside each other; who comes then is answered 503. Only what is short does without a turn.
WAITING_MAX: Final = 256
SHORT_BYTES: Final = 4 << 10

#: A request takes so many turns of the event loop, from its arrival to its answer: so it waits for one
#: slice of a read, not for one in each of its turns.
READS_APART: Final = 4


class Turns:
    """Gives slices of work their turns.

    Args:
        apart: turns of the event loop from one slice to the next.
    """

    def __init__(self, apart: int = 1) -> None:
        self._apart = apart
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._is_scheduled = False
        #: Slices that were begun so far, and the most points that one of them had.
        self.given = 0
        self.largest = 0

    def take(self) -> bool:
        """Begin with the first slice of some work if nobody has this turn; else it has to wait for the `next`.

        Raises:
            Overloaded: too many wait already.
        """
        if self._is_scheduled:
            if len(self._waiting) >= WAITING_MAX:
                raise Overloaded(f"{WAITING_MAX} arrays are in work already; come back")
            return False
        self._schedule()
        return True

    async def next(self, work: int = 0) -> None:
        """End a slice of so many points; returns when the next may begin."""
        self.largest = max(self.largest, work)
        turn = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        if not self._is_scheduled:
            self._schedule()
        await turn

    def _schedule(self) -> None:
        self._is_scheduled = True
        asyncio.get_running_loop().call_soon(self._give, self._apart)

    def _give(self, turns_left: int) -> None:
        if turns_left > 1:
            asyncio.get_running_loop().call_soon(self._give, turns_left - 1)
            return
        while self._waiting:
            turn = self._waiting.popleft()
            # Whoever was cancelled meanwhile needs no turn.
            if not turn.done():
                turn.set_result(None)
                self.given += 1
                break
        self._is_scheduled = False
        if self._waiting:
            self._schedule()


class ReadTurns(Turns):
    """The turns of everybody who reads: each call is work of one slice or more."""

    def __init__(self, at_once: int = READS_MAX, waiting: int = READS_WAITING_MAX) -> None:
        super().__init__(READS_APART)
        self._at_work = asyncio.Semaphore(at_once)
        self._at_once, self._waiting_max = at_once, waiting
        #: In work or waiting.
        self.calls = 0

    @asynccontextmanager
    async def taken(self) -> AsyncIterator[None]:
        """A read, from its first turn to its answer.

        Raises:
            Overloaded: too many wait already.
        """
        at_once, waiting = self._at_once, self._waiting_max
        if self.calls >= at_once + waiting:
            raise Overloaded(f"{at_once} reads are in work and {waiting} wait already; come back")
        self.calls += 1
        try:
            async with self._at_work:
                await self.next()
                yield
        finally:
            self.calls -= 1
