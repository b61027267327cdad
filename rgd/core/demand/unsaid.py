"""Unsaid refusals: refused work whose callers do not mark it as new or as a retry.

Counts cannot distinguish a new flow that gives up from one that retries: if each refusal is
answered "in 10 ms", a hundred new requests a second look like one request that is retried again and
again. Law: in any slice as long as the wait in the answer to its first refusal, no caller that
respects the wait retries, so the work refused there is distinct. Further work is believed up to
`GROWTH` times what was advertised before. A new flow is therefore known after one or two reports,
and retries cannot increase the demand faster than that (docs/decisions/0011).
"""

from typing import Final

from rgd.core.units import MILLI, NS_PER_MS, NS_PER_S, Nanos, Pair

#: Refused work is believed up to this multiple of what was advertised before.
GROWTH: Final = 4

_SCALE: Final = MILLI * NS_PER_S


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

    def most(
        self, advertised: tuple[float, float], period_ns: int, now: Nanos
    ) -> tuple[float, ...]:
        """The most refused work that counts in a period, messages and bytes.

        Args:
            advertised: the advertised demand, Milli per second; 0 for none.
            period_ns: the period's length.
            now: its end.
        """
        first = self._first
        if first is None and self._end is not None and now >= self._end:
            first = self._slice
        most: list[float] = []
        for dimension, rate in enumerate(advertised):
            largest = max(self._slice[dimension], self._largest[dimension])
            if rate:
                most.append(max(largest, GROWTH * rate * period_ns / _SCALE))
            elif first is None:
                # Within the first slice no caller can have retried.
                most.append(float("inf"))
            else:
                most.append(max(largest, first[dimension] * period_ns / self._first_ns))
        return tuple(most)
