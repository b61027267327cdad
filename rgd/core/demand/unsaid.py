"""Bounds unsaid refusals: refused work whose callers do not mark it as new or as a retry.

Counts cannot distinguish a new flow that gives up from one that retries: if each refusal is
answered "in 10 ms", a hundred new requests a second look like one request that is retried again and
again. Law: in any slice as long as the wait in the answer to its first refusal, no caller that
respects the wait retries, so the work refused there is distinct. Further work is believed up to
`GROWTH` times what was advertised before. A new flow is therefore known after one or two reports.
Retries are a bounded multiple of refused work, and cannot increase the demand faster than that.
"""

from typing import Final

from rgd.core.units import MILLI, NS_PER_MS, NS_PER_S, Nanos, Pair

#: Refused work is believed up to this multiple of what was advertised before.
GROWTH: Final = 4

_SCALE: Final = MILLI * NS_PER_S


class UnsaidBound:
    """The slices of one group's open window, and the first since the group was idle."""

    __slots__ = ("_bytes", "_end", "_first", "_first_ns", "_largest", "_messages")

    def __init__(self) -> None:
        self._messages = self._bytes = 0
        #: End of the open slice; None before the first.
        self._end: Nanos | None = None
        self._largest = (0, 0)
        #: The first slice: work refused in it, and its length; None while it is open.
        self._first: tuple[int, int] | None = None
        self._first_ns = 0

    def note(self, cost: Pair, retry_after_ms: int, now: Nanos) -> None:
        """Count refused work without an attempt."""
        if self._end is None or now >= self._end:
            self._close()
            length_ns = max(1, retry_after_ms) * NS_PER_MS
            self._first_ns = self._first_ns or length_ns
            self._end = Nanos(now + length_ns)
        messages, size = cost
        self._messages += messages
        self._bytes += size

    def open(self) -> None:
        """Begin another window; a slice may extend into it."""
        self._largest = (0, 0)

    def most(self, told: tuple[float, float], period_ns: int, now: Nanos) -> tuple[float, float]:
        """The most refused work that counts in a period that ends now, whole units.

        Args:
            told: the advertised demand, Milli per second; 0 for none.
            period_ns: the period's length.
            now: its end.
        """
        first = self._first
        if first is None and self._end is not None and now >= self._end:
            first = (self._messages, self._bytes)
        slices = zip(
            told, (self._messages, self._bytes), self._largest, first or (None, None), strict=True
        )
        messages, size = (
            self._most(rate, max(slice_now, largest), beginning, period_ns)
            for rate, slice_now, largest, beginning in slices
        )
        return messages, size

    def _most(self, told: float, largest: int, first: int | None, period_ns: int) -> float:
        if told:
            return max(largest, GROWTH * told * period_ns / _SCALE)
        # Within the first slice no caller can have retried.
        return float("inf") if first is None else max(largest, first * period_ns / self._first_ns)

    def _close(self) -> None:
        if self._end is None:
            return
        slice_now = (self._messages, self._bytes)
        if self._first is None:
            self._first = slice_now
        self._largest = (
            max(self._largest[0], slice_now[0]),
            max(self._largest[1], slice_now[1]),
        )
        self._messages = self._bytes = 0
