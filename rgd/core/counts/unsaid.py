"""Unsaid refusals: refused work whose callers do not mark it as new or as a retry.

Counts cannot distinguish a new flow that gives up from one that retries: if each refusal is
answered "in 10 ms", a hundred new requests a second look like one request that is retried again and
again. Law: in any slice as long as the wait in the answer to its first refusal, no caller that
respects the wait retries, so the work refused there is distinct. Further work is believed up to
a multiple of what was advertised before (`rgd.core.demand.bound`). A new flow is therefore known
after one or two reports, and retries cannot increase the demand faster than that
(docs/decisions/0011).
"""

from typing import Final

from rgd.core.units import NS_PER_MS, Nanos, Pair

#: The first slice while it is open.
_OPEN: Final = (float("nan"), float("nan"))

#: `UnsaidBound.numbers` where nothing was refused.
NO_SLICES: Final = (0.0,) * 8


class UnsaidBound:
    """The slices of one group's open window, and the first since the group was idle."""

    __slots__ = ("_end", "_first", "_first_ns", "_largest", "_slice")

    def __init__(self) -> None:
        #: Messages and bytes refused in the open slice, and its end; None before the first.
        self._slice = [0, 0]
        self._end: Nanos | None = None
        self._largest = [0, 0]
        #: The first slice: work refused in it, and its length; None while it is open.
        self._first: list[int] | None = None
        self._first_ns = 0

    def note(self, cost: Pair, retry_after_ms: int, now: Nanos) -> None:
        """Count refused work without an attempt."""
        if self._end is None or now >= self._end:
            if self._end is not None:
                self._first = self._first or self._slice
                self._largest = list(map(max, self._largest, self._slice))
                self._slice = [0, 0]
            length_ns = max(1, retry_after_ms) * NS_PER_MS
            self._first_ns = self._first_ns or length_ns
            self._end = Nanos(now + length_ns)
        self._slice[0] += cost.messages
        self._slice[1] += cost.bytes

    def open(self) -> None:
        """Begin another window; a slice may extend into it."""
        self._largest = [0, 0]

    def numbers(self) -> tuple[float, ...]:
        """Messages and bytes of the open slice, of the largest and of the first; the first one's length, the open one's end.

        Times are in ns. The first slice is NaN while it is open.
        """
        first = self._first or _OPEN
        return (*self._slice, *self._largest, *first, self._first_ns, self._end or 0)
