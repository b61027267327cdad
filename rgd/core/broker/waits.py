"""How long marked groups waited here until their shares were recomputed.

Many marked groups are processed in slices with rests, so a share may be recomputed some time after
the report that changed it. A peer applies the decrease that makes room for this broker's increase
equally late. Peers do not report their waits. This broker's own recent waits estimate them, because
all brokers receive the same reports.
"""

from typing import Final

from rgd.core.units import Nanos

#: A wait is remembered for at least so many rounds, and for at most twice as many.
ROUNDS_REMEMBERED: Final = 10


class Waits:
    """The longest wait of the last rounds."""

    def __init__(self, round_ns: int) -> None:
        self._span_ns = ROUNDS_REMEMBERED * round_ns
        self._span_end = Nanos(0)
        self._longest_now = self._longest_before = 0

    def note(self, wait_ns: int, now: Nanos) -> None:
        """Note that a group was recomputed after a wait, in nanoseconds."""
        if now >= self._span_end:
            self._longest_now, self._longest_before = 0, self._longest_now
            self._span_end = Nanos(now + self._span_ns)
        self._longest_now = max(self._longest_now, wait_ns)

    @property
    def longest_ns(self) -> int:
        """The longest remembered wait, in nanoseconds."""
        return max(self._longest_now, self._longest_before)
