"""What a level refused lately: a ring of short slots that answers "why was this refused?".

Law: `total` covers the open slot and the `REFUSAL_SLOTS - 1` before it, and nothing older.
`window_ns` gives the length of this window, between 50 and 60 seconds.

Only refusals are counted, by the level that refused (the most stringent one), for all names
it governs; a grant costs nothing. A level that never refused has no ring. One that
refuses all the time keeps `REFUSAL_SLOTS` pairs of counts: about 1.5 KB.
"""

from collections import deque
from typing import Final, NamedTuple

from rgd.core.units import NS_PER_S, Dimension, Nanos

#: Length of a slot, and number of slots kept: together the last minute.
REFUSAL_SLOT_NS: Final = 10 * NS_PER_S
REFUSAL_SLOTS: Final = 6

_MESSAGES: Final = Dimension.MESSAGES
_NEVER: Final = -(1 << 63)


class Refusals(NamedTuple):
    """What was refused: whole requests or parts of them, in whole units."""

    requests: int = 0
    #: Requests among them whose attempt was above 1.
    retries: int = 0
    messages: int = 0
    bytes: int = 0


def window_ns(now: Nanos) -> int:
    """Nanoseconds that `RecentRefusals.total` covers now."""
    return now - (_slot_of(now) - REFUSAL_SLOTS + 1) * REFUSAL_SLOT_NS


class RecentRefusals:
    """What one level refused in the last minute, by the dimension that was short."""

    __slots__ = (
        "_bytes_before",
        "_messages_before",
        "_slots",
        "by_bytes",
        "by_messages",
        "ends_at",
    )

    def __init__(self) -> None:
        #: End of the open slot, and its counts by the dimension that was short.
        self.ends_at = _NEVER
        self.by_messages = self.by_bytes = _Counts()
        #: The last slot is the open one.
        self._slots: deque[_Slot] = deque()
        #: Totals of all slots before the open one, since the start.
        self._messages_before = self._bytes_before = 0

    def count(
        self, messages: int, size: int, dimension: Dimension, attempt: int, now: Nanos
    ) -> None:
        """Count units that were requested and not granted because one dimension was short."""
        if now >= self.ends_at:
            self.open(now)
        counts = self.by_messages if dimension is _MESSAGES else self.by_bytes
        counts.requests += 1
        counts.messages += messages
        counts.bytes += size
        if attempt > 1:
            counts.retries += 1

    def total(self, dimension: Dimension, now: Nanos) -> Refusals:
        """What was refused in the window because one dimension was short."""
        oldest = _slot_of(now) - REFUSAL_SLOTS + 1
        recent = [slot for slot in self._slots if slot.number >= oldest]
        is_messages = dimension is _MESSAGES
        found = [slot.by_messages if is_messages else slot.by_bytes for slot in recent]
        return Refusals(
            sum(counts.requests for counts in found),
            sum(counts.retries for counts in found),
            sum(counts.messages for counts in found),
            sum(counts.bytes for counts in found),
        )

    def since_start(self) -> tuple[int, int]:
        """Messages and bytes refused since the start, in whole units."""
        by_messages, by_bytes = self.by_messages, self.by_bytes
        return (
            self._messages_before + by_messages.messages + by_bytes.messages,
            self._bytes_before + by_messages.bytes + by_bytes.bytes,
        )

    def open(self, now: Nanos) -> None:
        """Open the slot that contains `now`."""
        number = _slot_of(now)
        self._messages_before, self._bytes_before = self.since_start()
        self.by_messages, self.by_bytes = _Counts(), _Counts()
        self._slots.append(_Slot(number, self.by_messages, self.by_bytes))
        if len(self._slots) > REFUSAL_SLOTS:
            self._slots.popleft()
        self.ends_at = (number + 1) * REFUSAL_SLOT_NS


class _Counts:
    """Mutable counts for `Refusals`."""

    __slots__ = ("bytes", "messages", "requests", "retries")

    def __init__(self) -> None:
        self.requests = self.retries = self.messages = self.bytes = 0


class _Slot(NamedTuple):
    """What was refused in one slot of time, by the dimension that was short."""

    number: int
    by_messages: _Counts
    by_bytes: _Counts


def _slot_of(now: Nanos) -> int:
    return now // REFUSAL_SLOT_NS
