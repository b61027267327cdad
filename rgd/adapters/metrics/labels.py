"""Bounding labels: at most so many series of one label, the rest together as `other`.

Law: however many groups there are, a scrape has at most `BOUNDS` values of a label and `other`, or the few that rgd itself
gives a label that is not there; and
a counter never falls because of that, since Prometheus would take a fall for a restart.

A value keeps its own series while it is present, so series do not come and go. With the first scrape in which it is
missing, its series is freed; the next value in line gets one in the scrape after that.
When a group leaves `other` (deleted, or given its own series), its count stays in the total of `other`.
"""

from collections.abc import Hashable, Mapping
from typing import Final

OTHER: Final = "other"

#: Most values of each label that have series of their own. A group has up to 50 series, which a scrape writes out one
#: by one; the series of the others are added up.
BOUNDS: Final = {"group": 1000, "broker": 500, "cursor": 64}

#: The same of labels that name one topic or subscription together (`metric.Bound.TOPICS`). The settings
#: are `backlog.metrics_topics_max` and `.metrics_subscriptions_max`.
TOPIC_BOUNDS: Final = {"cluster": 1, "namespace": 10_000, "topic": 10_000, "subscription": 20_000}


def topic_bounds(topics_max: int, subscriptions_max: int) -> Mapping[str, int]:
    """`TOPIC_BOUNDS` as they are configured."""
    topics = dict.fromkeys(("namespace", "topic"), topics_max)
    return TOPIC_BOUNDS | topics | {"subscription": subscriptions_max}


class OwnSeries:
    """Which values of one label have series of their own."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._own: set[Hashable] = set()
        #: Those of them that this scrape has.
        self._present: set[Hashable] = set()

    def begin(self) -> None:
        """A scrape begins."""
        self._present = set()

    def shown(self, value: str, within: Hashable = None) -> str:
        """The value to show: itself, or `other`; the first in line gets a series that is free.

        Args:
            value: of the label.
            within: what it is counted with, if it is not counted by itself.
        """
        key = value if within is None else (within, value)
        if key not in self._own:
            # A group that is called `other` is counted with them.
            if value == OTHER or len(self._own) >= self._most:
                return OTHER
            self._own.add(key)
        self._present.add(key)
        return value

    def end(self) -> None:
        """The scrape is whole: free the series of values that were missing."""
        self._own = self._present


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
