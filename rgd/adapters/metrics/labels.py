"""Bounding labels: at most so many series of one label, the rest together as `other`.

Law: however many groups there are, a scrape has at most `BOUNDS` values of a label and `other`; and
a counter never falls because of that, since Prometheus would take a fall for a restart.

Places are sticky: who has one keeps it while it is there, so series do not jump about. A place comes
free with the first scrape in which its owner is missing, and the next in line gets it in the next one.
When a group leaves `other` (deleted, or given a place), what it had counted stays in `other`'s total.
"""

from typing import Final

OTHER: Final = "other"

#: A group has up to 50 series, which a scrape writes out one by one; the series of the others are added up.
GROUPS_MAX: Final = 1000
BROKERS_MAX: Final = 500

#: Most values of each label that have series of their own.
BOUNDS: Final = {
    "group": GROUPS_MAX,
    "broker": BROKERS_MAX,
    # These are closed lists in the code; the bound catches a list that is not.
    "kind": 4,
    "dimension": 4,
    "limited_by": 16,
    "reason": 32,
    "where": 64,
}


class Places:
    """Who has series of their own, for one label."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._owners: set[str] = set()
        self._present: set[str] = set()

    def begin(self) -> None:
        """A scrape begins."""
        self._present.clear()

    def shown(self, value: str) -> str:
        """The value to show: itself, or `other`; the first in line gets a place that is free."""
        if value in self._owners:
            self._present.add(value)
            return value
        # A group that is called `other` is counted with them.
        if value == OTHER or len(self._owners) >= self._most:
            return OTHER
        self._owners.add(value)
        self._present.add(value)
        return value

    def end(self) -> None:
        """The scrape is whole: free the places of those who are gone."""
        self._owners &= self._present


class Carried:
    """Keeps one folded counter from falling when a part of it leaves."""

    def __init__(self) -> None:
        self._last = 0.0
        self._left = 0.0

    def total(self, present: float) -> float:
        """The total to show, from the sum over those who are folded now."""
        if present < self._last:
            self._left += self._last - present
        self._last = present
        return self._left + present
