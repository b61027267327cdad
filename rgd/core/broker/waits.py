"""How long marked groups waited here until their shares were recomputed.

Many marked groups are shared out in slices with rests, so a share may be recomputed some time after the
report that changed it. A peer waits as long with the decrease that our increase is taken from. Nobody
says how long; what we waited lately stands for it, because all brokers hear the same reports.
"""

from typing import Final

from rgd.core.units import Nanos

#: A wait is remembered for so many rounds, and for up to as many again.
ROUNDS_REMEMBERED: Final = 10


class Waits:
    """The longest wait of the last rounds."""

    def __init__(self, round_ns: int) -> None:
        self._span_ns = ROUNDS_REMEMBERED * round_ns
        self._span_end = Nanos(0)
        self._longest_now = self._longest_before = 0

    def note(self, wait_ns: int, now: Nanos) -> None:
        """A group that waited for so long is shared out."""
        if now >= self._span_end:
            self._longest_now, self._longest_before = 0, self._longest_now
            self._span_end = Nanos(now + self._span_ns)
        self._longest_now = max(self._longest_now, wait_ns)

    @property
    def longest_ns(self) -> int:
        """The longest of them."""
        return max(self._longest_now, self._longest_before)
