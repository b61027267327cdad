"""The rows whose windows the end of a round has to close, found a block at a time.

Law: these are the rows that did not rest when the end began, and those of the counters that were
touched until then. What is touched later waits for the next round, however long this one takes to
end.
"""

from collections.abc import Callable, Sequence

import numpy as np

from rgd.core.demand.counters import FREED, Counters
from rgd.core.demand.marks import Flags, Ints


class Ending:
    """One round's end; `rows` is complete once every touched row is awake."""

    def __init__(
        self, touched: Sequence[Counters], rests: Flags, wake: Callable[[Sequence[Counters]], Ints]
    ) -> None:
        """Nothing is woken yet.

        Args:
            touched: the counters that requests added to since the last tick.
            rests: [rows of the table] whether a row rests now.
            wake: wakes the rows of some counters, and returns them.
        """
        self._touched = touched
        self._at = 0
        self._is_awake = ~rests
        self._wake = wake
        self._woken: list[Ints] = []

    @property
    def is_complete(self) -> bool:
        """Whether every touched row is awake."""
        return self._at >= len(self._touched)

    def wake(self, count: int) -> None:
        """Wake the rows of the next `count` touched counters."""
        touched = self._touched[self._at : self._at + count]
        some = [one for one in touched if one.row != FREED]
        # Counted first, so that a fault does not come back with the same counters.
        self._at += count
        self._woken.append(self._wake(some))

    def rows(self) -> Ints:
        """The rows, in the order of the table."""
        woken = np.concatenate([np.zeros(0, np.int64), *self._woken])
        is_awake = np.zeros(max(len(self._is_awake), int(woken.max(initial=-1)) + 1), np.bool_)
        is_awake[: len(self._is_awake)] = self._is_awake
        is_awake[woken] = True
        return np.flatnonzero(is_awake)
