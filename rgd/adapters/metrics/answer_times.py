"""Counts of what happens a hundred thousand times a second: answers, by route, status and duration.

Law: the figures are those of `prometheus_client.Histogram` (`times` writes them); only counting is cheaper, because one
thread does it (the event loop), without a lock. What only answers loads nothing else of the metrics.
"""

from bisect import bisect_left
from collections.abc import Mapping, Sequence

#: By route and status: how many were in each bucket, and last the sum of all, in seconds.
Counts = Mapping[tuple[str, int], Sequence[float]]


class AnswerTimes:
    """Counts durations by route and status.

    Args:
        bounds: the largest duration of each bucket but the last, in seconds, rising.
    """

    def __init__(self, bounds: Sequence[float]) -> None:
        self._bounds = bounds
        self.counts: dict[tuple[str, int], list[float]] = {}

    def observe_answer(self, route: str, status: int, seconds: float) -> None:
        """Count an answer of the HTTP server."""
        counts = self.counts.get((route, status))
        if counts is None:
            counts = self.counts[route, status] = [0.0] * (len(self._bounds) + 2)
        counts[bisect_left(self._bounds, seconds)] += 1
        counts[-1] += seconds
