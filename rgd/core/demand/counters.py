"""The counters of one group and kind, which requests only add to.

The fast path of a request adds to one `Counters` and marks it once as touched (`touch`). The tick,
every `exchange.min_interval_ms`, reads all touched counters at once and closes their slots as of
each one's last request (`Counters.at`). No request closes a slot, and evenly spaced callers are
measured exactly.

Counts are whole units since the start and are never reset, so the difference of two readings counts
everything once. Only `topics` and `held` belong to the open window: closing it empties them.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from rgd.core.bounds import BOUNDS
from rgd.core.demand.unsaid import UnsaidBound
from rgd.core.units import COUNT_MAX, Nanos, Pair

#: Values of `Counters.row` and `slot` without one: not assigned, and freed for ever.
NO_ROW: Final = -1
FREED: Final = -2


class News:
    """What the gate, which answers requests, keeps for the plane, which agrees with the peers, until it is collected."""

    def __init__(self) -> None:
        #: The counters that requests added to since they were collected, each once.
        self.touched: deque[Counters] = deque()
        #: The counters of groups that refused work and that no report has shown.
        self.unreported: list[Counters] = []
        #: The counters of groups that no longer exist; nothing adds to them any more.
        self.dropped: list[Counters] = []
        #: Called when there is something again, so that the plane's next wake is planned.
        self.on_news: Callable[[], None] = _nobody_listens

    def collect(self, count: int) -> list["Counters"]:
        """Take the first counters that were touched, at most `count`."""
        collected = [self.touched.popleft() for _ in range(min(count, len(self.touched)))]
        for one in collected:
            one.is_touched = False
        return collected

    def call_out(self, counters: "Counters") -> None:
        """Ask for an early report of a group."""
        self.unreported.append(counters)
        self.on_news()


@dataclass(slots=True, eq=False, repr=False)
class Counters:
    """Plain integers; the fast path may inline `admit` and `refuse`."""

    #: Time of the last request.
    at: Nanos
    news: News
    #: The group of these counters, for the tick.
    state: object = None
    #: The row in the table of demand; `NO_ROW` before it has one, `FREED` once its group was dropped.
    row: int = NO_ROW
    #: The slot id of the group; `NO_ROW` while it has none.
    slot: int = NO_ROW
    #: All requests; those marked as retries; refused ones that count for the group.
    requests: int = 0
    retries: int = 0
    refusals: int = 0
    #: Admitted units, and the part of them that was marked as retries.
    messages: int = 0
    bytes: int = 0
    retried_messages: int = 0
    retried_bytes: int = 0
    #: Admitted units that were given back, and the part of them that readings leave out. A unit is
    #: given back after its grant, perhaps after a round with that grant was reported. Then a later
    #: grant is left out instead, so that no reading is below an earlier one.
    returned_messages: int = 0
    returned_bytes: int = 0
    netted_messages: int = 0
    netted_bytes: int = 0
    has_unnetted: bool = False
    #: Refused units including retries; refused with attempt 1; refused with attempt 0.
    refused_messages: int = 0
    refused_bytes: int = 0
    refused_new_messages: int = 0
    refused_new_bytes: int = 0
    unsaid_messages: int = 0
    unsaid_bytes: int = 0
    #: How long the last refused caller was told to wait.
    wait_ms: int = 0
    #: Bounds refused work with attempt 0; None until there is some.
    unsaid: UnsaidBound | None = None
    #: Topics active in the open window, and what each of them holds back.
    topics: set[str | None] = field(default_factory=set)
    held: dict[str | None, Pair] = field(default_factory=dict)
    #: Most entries of each of the two.
    topics_max: int = BOUNDS.buckets.window_topics_max
    #: Whether it is in `News.touched`, and when it was added there: the first request since it was
    #: collected.
    is_touched: bool = False
    touched_at: Nanos = field(init=False)

    def __post_init__(self) -> None:
        self.touched_at = self.at

    def admit(  # noqa: PLR0917 -- on the fast path of arrays an object around them costs a tenth
        self,
        messages: int,
        size: int,
        attempt: int,
        topic: str | None,
        now: Nanos,
        requests: int = 1,
    ) -> None:
        """Count granted work; `Limiter.decide` does the same inline for a first attempt."""
        self.at = now
        self.requests += requests
        self.messages += messages
        self.bytes += size
        if attempt > 1:
            self.retries += requests
            self.retried_messages += messages
            self.retried_bytes += size
        self.note(topic)

    def refuse(
        self, cost: Pair, attempt: int, topic: str | None, retry_after_ms: int, now: Nanos
    ) -> None:
        """Count refused work, or the part of it that was not granted."""
        messages, size = cost
        self.at, self.wait_ms = now, retry_after_ms
        self.requests += 1
        self.refusals += 1
        self.refused_messages += messages
        self.refused_bytes += size
        if attempt == 1:
            self.refused_new_messages += messages
            self.refused_new_bytes += size
        elif attempt == 0:
            self.unsaid_messages += messages
            self.unsaid_bytes += size
            if self.unsaid is None:
                self.unsaid = UnsaidBound()
            self.unsaid.note(cost, retry_after_ms, now)
        else:
            self.retries += 1
        self.note(topic)

    def give_back(self, messages: int, size: int) -> None:
        """Count admitted work that was given back."""
        self.returned_messages += messages
        self.returned_bytes += size
        self.has_unnetted = True

    def retract(self, messages: int, size: int, attempt: int) -> None:
        """Take back what `refuse` counted: it turned out that it was not needed."""
        self.refused_messages -= messages
        self.refused_bytes -= size
        if attempt == 1:
            self.refused_new_messages -= messages
            self.refused_new_bytes -= size
        elif attempt == 0:
            self.unsaid_messages -= messages
            self.unsaid_bytes -= size
        self.has_unnetted = True

    def net(self, floor_messages: float, floor_bytes: float) -> None:
        """Leave out of readings what was given back, as far as they stay at or above a floor."""
        room = self.messages - self.netted_messages - int(floor_messages)
        self.netted_messages += max(0, min(room, self.returned_messages - self.netted_messages))
        room = self.bytes - self.netted_bytes - int(floor_bytes)
        self.netted_bytes += max(0, min(room, self.returned_bytes - self.netted_bytes))
        self.has_unnetted = (self.netted_messages, self.netted_bytes) != (
            self.returned_messages,
            self.returned_bytes,
        )

    @property
    def returned(self) -> Pair:
        """Units given back since the start, bounded as `admitted`."""
        return Pair(min(self.returned_messages, COUNT_MAX), min(self.returned_bytes, COUNT_MAX))

    @property
    def admitted(self) -> Pair:
        """Admitted units since the start, bounded to the int64 of messages and columns."""
        return Pair(min(self.messages, COUNT_MAX), min(self.bytes, COUNT_MAX))

    def hold(self, held: Pair, topic: str | None) -> None:
        """Record what a caller holds back; the last value of a topic in the window counts."""
        if topic in self.held or len(self.held) < self.topics_max:
            self.held[topic] = held

    def note(self, topic: str | None) -> None:
        """Record a request's topic, and have the next tick read these counters."""
        if topic not in self.topics and len(self.topics) < self.topics_max:
            self.topics.add(topic)
        if not self.is_touched:
            self.is_touched = True
            self.touched_at = self.at
            touched = self.news.touched
            touched.append(self)
            if len(touched) == 1:
                self.news.on_news()


def _nobody_listens() -> None:
    """The default of `News.on_news`."""
