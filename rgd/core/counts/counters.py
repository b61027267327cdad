"""The counters of one group and kind, which requests only add to.

The fast path of a request adds to one `Counters` and marks it once as touched (`note`). The tick,
every `exchange.min_interval_ms`, collects all touched counters and closes their slots as of
each one's last request (`Counters.at`). No request closes a slot, and evenly spaced callers are
measured exactly.

Counts are whole units since the start and are never reset, so the difference of two readings counts
everything once. Only `topics`, `held` and `unsaid` belong to the open window (`open_window`).
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol

from rgd.core.bounds import BOUNDS
from rgd.core.counts.unsaid import UnsaidBound
from rgd.core.units import COUNT_MAX, RATE_MAX, Nanos, Pair

#: The slot id of a group that has none.
NO_SLOT: Final = -1

_NOTHING_HELD: Final = (0, 0, 0, 0)


class Listener(Protocol):
    """Where counters say that they were touched (`rgd.core.counts.news`)."""

    touched: deque["Counters"]
    backlogged: set[int]

    def on_news(self) -> None:
        """Plan a wake, because there is something again."""
        ...


@dataclass(slots=True, eq=False, repr=False)
class Counters:
    """Plain integers; the fast path may inline `admit` and `refuse`."""

    #: Time of the last request.
    at: Nanos
    news: Listener
    #: The slot id of the group; `NO_SLOT` while it has none, and once it was dropped.
    slot: int = NO_SLOT
    #: All requests; those marked as retries; refused ones that count for the group.
    requests: int = 0
    retries: int = 0
    refusals: int = 0
    #: Admitted units, and the part of them that was marked as retries.
    messages: int = 0
    bytes: int = 0
    retried_messages: int = 0
    retried_bytes: int = 0
    #: Admitted units that were given back.
    returned_messages: int = 0
    returned_bytes: int = 0
    #: Refused units including retries; refused with attempt 1; refused with attempt 0.
    refused_messages: int = 0
    refused_bytes: int = 0
    refused_new_messages: int = 0
    refused_new_bytes: int = 0
    unsaid_messages: int = 0
    unsaid_bytes: int = 0
    #: Demand since the start as the plane counted it, of messages and bytes: another plane goes on from it.
    wanted: Sequence[int] = (0, 0)
    #: How long the last refused caller was told to wait.
    wait_ms: int = 0
    #: Bounds refused work with attempt 0; None until there is some.
    unsaid: UnsaidBound | None = None
    #: Topics active in the open window, what each of them holds back, and what each did in the window before.
    topics: set[str | None] = field(default_factory=set)
    held: dict[str | None, Pair] = field(default_factory=dict)
    held_before: dict[str | None, Pair] = field(default_factory=dict)
    #: Most entries of each of the three.
    topics_max: int = BOUNDS.buckets.window_topics_max
    #: Whether it is in `News.touched`, and when it was added there: the first request since it was
    #: collected.
    is_touched: bool = False
    touched_at: Nanos = field(init=False)
    #: Whether it changed otherwise since it was in a page, and whether it ever did.
    is_changed: bool = False
    has_besides: bool = False

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
                self.unsaid, self.has_besides = UnsaidBound(), True
            self.unsaid.note(cost, retry_after_ms, now)
        else:
            self.retries += 1
        self.note(topic)

    def give_back(self, messages: int, size: int) -> None:
        """Count admitted work that was given back."""
        self.returned_messages += messages
        self.returned_bytes += size
        self.is_changed = self.has_besides = True

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
        self.is_changed = True

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
            self.is_changed = self.has_besides = True

    def held_back(self) -> tuple[int, int, int, int]:
        """Messages and bytes held back in the open window, and by those that spoke in it or in the one before."""
        if not (self.held or self.held_before):
            return _NOTHING_HELD
        return (*_total(self.held), *_total(self.held_before | self.held))

    def open_window(self, *, is_idle: bool) -> None:
        """Begin what belongs to a window anew."""
        self.topics.clear()
        if self.held or self.held_before:
            self.held_before, self.held = self.held, {}
        if is_idle:
            self.unsaid = None
        elif self.unsaid is not None:
            self.unsaid.open()

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


def _total(held: dict[str | None, Pair]) -> tuple[int, int]:
    """The sum of what callers hold back."""
    messages, size = map(sum, zip(*held.values(), strict=True)) if held else (0, 0)
    return min(messages, RATE_MAX), min(size, RATE_MAX)
