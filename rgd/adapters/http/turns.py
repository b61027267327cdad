"""Long work in slices: one slice for each turn of the event loop, whoever it belongs to.

Laws: however much long work there is at once, the loop carries out one slice of it, then everything else
that is ready, then the next slice. So the longest stall is one slice, and callers with long work share
the loop in equal parts. Only so many may wait; more are answered 503.

How much a slice holds is counted in work by whoever does it, never in time.
"""

import asyncio
from collections import deque
from typing import Final

from rgd.adapters.http.errors import Overloaded

#: Points of work in a slice, of which an item of an array costs one, and what costs more says so: about 1 ms.
SLICE_WORK: Final = 128

#: Slices that may wait beside each other; who comes then is answered 503. Only what is short does without a turn.
WAITING_MAX: Final = 256
SHORT_BYTES: Final = 4 << 10


class Turns:
    """Gives slices of work their turns."""

    def __init__(self) -> None:
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._is_scheduled = False

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

    async def next(self) -> None:
        """End a slice; returns when the next may begin."""
        turn = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        if not self._is_scheduled:
            self._schedule()
        await turn

    def _schedule(self) -> None:
        self._is_scheduled = True
        asyncio.get_running_loop().call_soon(self._give)

    def _give(self) -> None:
        self._is_scheduled = False
        while self._waiting:
            turn = self._waiting.popleft()
            # Whoever was cancelled meanwhile needs no turn.
            if not turn.done():
                turn.set_result(None)
                break
        if self._waiting:
            self._schedule()
