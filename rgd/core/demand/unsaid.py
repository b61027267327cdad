"""Bounds refused work whose callers do not say whether it is new or a retry, and learns what it was.

Counting cannot tell a fresh flow that gives up from one that comes back: where each refusal says "in
10 ms", a hundred new requests a second look like one that is asked for again and again. Two rules:

*The bound.* In any slice as long as the wait that its first refusal was answered with, no caller who
waits as told comes back, so what is refused there is distinct work. All else is believed up to `GROWTH`
times what was advertised before: a fresh flow is known after one or two reports, and retries, which are a
bounded multiple of what is refused, cannot inflate demand faster than that.

*The credit.* Once a group refuses nothing, what is offered is what was new all along. So each time refusals
end, the part of them that has proved new is remembered, and as much of the next ones is believed. Without
this a flow close to its share flaps: a few refusals look like a multiple, the share grows, and falls again.
The belief grows back while refusals go on, because demand may have grown.
"""

from typing import TYPE_CHECKING, Final

import numpy as np

from rgd.core.units import MILLI, NS_PER_MS, NS_PER_S, Nanos, Pair

if TYPE_CHECKING:
    from rgd.core.demand.marks import Floats
    from rgd.core.demand.slots import Slots

#: Refused work is believed up to this multiple of what was advertised before.
GROWTH: Final = 4

#: Nobody retries more than this often before it is taken for new work, in the long run.
PART_LEAST: Final = 1 / 64

#: By how much the belief grows in each round that refuses from its begin to its end.
REGROWTH: Final = 1.25

#: Refusals of less than this part of what was admitted teach nothing: chance is larger.
TAUGHT_LEAST: Final = 0.1

_SCALE: Final = MILLI * NS_PER_S


class UnsaidBound:
    """The slices of one meter's open window, and the first since the group was idle."""

    __slots__ = ("_bytes", "_end", "_first", "_first_ns", "_largest", "_messages")

    def __init__(self) -> None:
        self._messages = self._bytes = 0
        #: When the open slice ends; None before the first.
        self._end: Nanos | None = None
        self._largest = (0, 0)
        #: The first slice: what was refused in it, and its length; None while it is open.
        self._first: tuple[int, int] | None = None
        self._first_ns = 0

    def note(self, cost: Pair, retry_after_ms: int, now: Nanos) -> None:
        """Count refused work of which nobody said whether it is new."""
        if self._end is None or now >= self._end:
            self._close()
            length_ns = max(1, retry_after_ms) * NS_PER_MS
            self._first_ns = self._first_ns or length_ns
            self._end = Nanos(now + length_ns)
        messages, size = cost
        self._messages += messages
        self._bytes += size

    def open(self) -> None:
        """Begin another window; a slice may reach into it."""
        self._largest = (0, 0)

    def most(self, told: tuple[float, float], period_ns: int, now: Nanos) -> tuple[float, float]:
        """The most that counts of what was refused in a period that ends now, whole units.

        Args:
            told: the demand that was advertised, Milli per second; 0 for none.
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
        # Within the first slice nobody can have come back.
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


def learn_credit(of: "Slots", admitted: "Floats", unsaid: "Floats", offered: "Floats") -> None:
    """Learn what part of unsaid refusals was new, from a round's end; `of.doubt` is the rest.

    Args:
        of: the rows.
        admitted: [rows, 2] rates in the window.
        unsaid: [rows, 2] rates of refused work that said no attempt.
        offered: [rows, 2] what was measured; 0 where nothing was asked.
    """
    part = 1 - of.doubt
    refused = unsaid > 0
    grows = refused & (of.last_unsaid > 0) & ~of.was_clear[:, None]
    taught = ~refused & (offered > 0) & (of.last_unsaid > TAUGHT_LEAST * of.last_admitted)
    proved = (offered - of.last_admitted) / np.where(taught, of.last_unsaid, 1)
    proved = np.clip(proved, PART_LEAST, 1)
    # A fall is believed at once, as it costs others; a rise by halves.
    learnt = np.where(proved < part, proved, (part + proved) / 2)
    part = np.where(grows, np.minimum(1, part * REGROWTH), np.where(taught, learnt, part))
    of.doubt[...] = 1 - part
    of.last_admitted[...] = np.where(refused, admitted, of.last_admitted)
    of.last_unsaid[...] = np.where(refused, unsaid, np.where(offered > 0, 0, of.last_unsaid))
