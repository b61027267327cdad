"""Counts what one group's callers wanted and got, one meter for each kind.

Law: a retry is not new demand. Wanted is what was admitted, or the new work
(attempt 1) that arrived if that is more, plus what callers say they hold back;
so a refused request that comes back three times counts once.

The short road calls `admit` and `refuse`; the round drains.
"""

from dataclasses import dataclass
from typing import Final

from rgd.core.units import MILLI, NS_PER_S, Nanos, Pair

#: Most topics (and callers that hold work back) told apart in one window; more are not counted.
WINDOW_TOPICS_MAX: Final = 100_000


@dataclass(frozen=True, slots=True)
class Demand:
    """What one window showed: rates in Milli per second, totals in whole units."""

    #: Topics that were active in the window.
    topics: int
    admitted: Pair
    wanted: Pair
    #: Refused in the window, retries too, whole units.
    refused: Pair
    #: Totals since the daemon started.
    admitted_total: Pair
    wanted_total: Pair


class DemandMeter:
    """Counters of one (group, kind) in the open window and since the start."""

    __slots__ = (
        "_admitted",
        "_admitted_total",
        "_first_at",
        "_held",
        "_new",
        "_opened_at",
        "_refused",
        "_topics",
        "_wanted_total",
    )

    def __init__(self, now: Nanos) -> None:
        self._admitted_total = self._wanted_total = Pair()
        self._held: dict[str | None, Pair] = {}
        self._topics: set[str | None] = set()
        #: When the open window began, and its first request came.
        self._opened_at = now
        self._first_at: Nanos | None = None
        #: [messages, bytes] of the open window; new is what came with attempt 1.
        self._admitted, self._refused, self._new = [0, 0], [0, 0], [0, 0]

    @property
    def opened_at(self) -> Nanos:
        """When the open window began."""
        return self._opened_at

    def admit(self, cost: Pair, *, attempt: int, topic: str | None, now: Nanos) -> None:
        """Count granted work."""
        self._note(self._admitted, cost, attempt, topic, now)

    def refuse(self, cost: Pair, *, attempt: int, topic: str | None, now: Nanos) -> None:
        """Count refused work (or the part of it that was not granted)."""
        self._note(self._refused, cost, attempt, topic, now)

    def hold(self, held: Pair, topic: str | None) -> None:
        """Note what a caller holds back; the last word of a topic in the window counts."""
        if topic in self._held or len(self._held) < WINDOW_TOPICS_MAX:
            self._held[topic] = held

    def drain(self, now: Nanos, *, fresh: bool = False, period_min_ns: int = 1) -> Demand | None:
        """Close the window and open the next; None when nothing was asked in it.

        Args:
            now: the end of the window.
            fresh: the group was idle before: reckon rates from its first request on.
            period_min_ns: never reckon a rate over less than this.
        """
        if self._first_at is None:
            self._open(now)
            return None
        began = self._first_at if fresh else self._opened_at
        period_ns = max(period_min_ns, now - began)
        admitted, refused = Pair(*self._admitted), Pair(*self._refused)
        held = Pair(
            sum(pair.messages for pair in self._held.values()),
            sum(pair.bytes for pair in self._held.values()),
        )
        wanted = Pair(
            max(admitted.messages, self._new[0]) + held.messages,
            max(admitted.bytes, self._new[1]) + held.bytes,
        )
        self._admitted_total = _plus(self._admitted_total, admitted)
        self._wanted_total = _plus(self._wanted_total, wanted)
        demand = Demand(
            topics=len(self._topics),
            admitted=_rate(admitted, period_ns),
            wanted=_rate(wanted, period_ns),
            refused=refused,
            admitted_total=self._admitted_total,
            wanted_total=self._wanted_total,
        )
        self._open(now)
        return demand

    def totals(self) -> tuple[Pair, Pair]:
        """Admitted and wanted since the start, the open window's admitted included."""
        return _plus(self._admitted_total, Pair(*self._admitted)), self._wanted_total

    def _note(
        self, counted: list[int], cost: Pair, attempt: int, topic: str | None, now: Nanos
    ) -> None:
        messages, size = cost
        counted[0] += messages
        counted[1] += size
        if self._first_at is None:
            self._first_at = now
        if attempt <= 1:
            self._new[0] += messages
            self._new[1] += size
        if len(self._topics) < WINDOW_TOPICS_MAX:
            self._topics.add(topic)

    def _open(self, now: Nanos) -> None:
        self._opened_at = now
        self._first_at = None
        self._admitted, self._refused, self._new = [0, 0], [0, 0], [0, 0]
        self._held.clear()
        self._topics.clear()


def _plus(left: Pair, right: Pair) -> Pair:
    return Pair(left.messages + right.messages, left.bytes + right.bytes)


def _rate(count: Pair, period_ns: int) -> Pair:
    scale = MILLI * NS_PER_S
    return Pair(count.messages * scale // period_ns, count.bytes * scale // period_ns)
