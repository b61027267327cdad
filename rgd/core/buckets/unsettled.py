"""What a name was granted lately and has not given back: the most that it may give back.

Law: it is at most what was granted in the last `2 * RECENT_NS`, and at least what was granted in the last
`RECENT_NS`, less what was given back.
"""

from typing import Final

from rgd.core.units import NS_PER_S, Nanos, Pair

#: A grant may be given back for so long, and for at most twice as long.
RECENT_NS: Final = 10 * NS_PER_S


class Unsettled:
    """Whole units granted and not given back, in two slots of time."""

    __slots__ = ("_before", "_bytes", "_ends_at", "_messages")

    def __init__(self, granted: Pair, now: Nanos) -> None:
        #: In the slot before, and in the open one, which is added to on the fast path.
        self._before = Pair()
        self._messages, self._bytes = granted
        self._ends_at = now + RECENT_NS

    def add(self, messages: int, size: int, now: Nanos) -> None:
        """Count a grant."""
        if now >= self._ends_at:
            self._turn(now)
        self._messages += messages
        self._bytes += size

    def take(self, messages: int, size: int, now: Nanos) -> Pair:
        """Give back so much, or as much of it as there is; returns what was given back."""
        if now >= self._ends_at:
            self._turn(now)
        older = self._before
        back = Pair(
            min(messages, older.messages + self._messages), min(size, older.bytes + self._bytes)
        )
        from_older = Pair(min(back.messages, older.messages), min(back.bytes, older.bytes))
        self._before = Pair(older.messages - from_older.messages, older.bytes - from_older.bytes)
        self._messages -= back.messages - from_older.messages
        self._bytes -= back.bytes - from_older.bytes
        return back

    def _turn(self, now: Nanos) -> None:
        # A silence as long as a slot makes both too old.
        is_recent = now < self._ends_at + RECENT_NS
        self._before = Pair(self._messages, self._bytes) if is_recent else Pair()
        self._messages = self._bytes = 0
        self._ends_at = now + RECENT_NS
