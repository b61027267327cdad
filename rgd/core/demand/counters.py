"""The counters of one group and kind, which requests only add to.

The fast path of a request adds to one `Counters` and notes once that it did (`touch`). The tick, every
`exchange.min_interval_ms`, reads all touched counters at once and closes their slots as of each one's
last request (`Counters.at`). So no request closes a slot, and evenly spaced callers are measured exactly.

Counts are whole units since the start and never reset, so the difference of two readings counts
everything once. Only `topics` and `held` belong to the open window: closing it replaces them.
"""

from collections.abc import Callable
from typing import Final

from rgd.core.demand.unsaid import UnsaidBound
from rgd.core.units import COUNT_MAX, Nanos, Pair

#: Most topics (and callers that hold work back) told apart in one window; more are not counted.
WINDOW_TOPICS_MAX: Final = 100_000

#: What `Counters.row` is where there is none: never was, and was taken back.
NO_ROW: Final = -1
FREED: Final = -2


class Touched(list["Counters"]):
    """The counters that requests added to since the last tick, one list for the limiter."""

    def __init__(self) -> None:
        super().__init__()
        #: Called at the first of them, so that whoever keeps the time wakes the core for a tick.
        self.on_first: Callable[[], None] = _nobody_listens


class Counters:
    """Plain integers; `admit` and `refuse` are what the fast path may write inline."""

    __slots__ = (
        "at",
        "bytes",
        "held",
        "is_touched",
        "messages",
        "refusals",
        "refused_bytes",
        "refused_messages",
        "refused_new_bytes",
        "refused_new_messages",
        "requests",
        "retried_bytes",
        "retried_messages",
        "retries",
        "row",
        "state",
        "topics",
        "touched",
        "touched_at",
        "unsaid",
        "unsaid_bytes",
        "unsaid_messages",
    )

    def __init__(self, now: Nanos, touched: Touched, state: object = None) -> None:
        #: The group that they belong to, for the tick.
        self.state = state
        #: Its row in the table of demand; `NO_ROW` before it has one, `FREED` after.
        self.row = NO_ROW
        #: When the last request came.
        self.at = now
        #: All requests; those that said they are retries; the refused ones that count for the group.
        self.requests = self.retries = self.refusals = 0
        #: Admitted, and that part of it which said it is a retry.
        self.messages = self.bytes = 0
        self.retried_messages = self.retried_bytes = 0
        #: Refused, retries too; refused with attempt 1; refused with attempt 0.
        self.refused_messages = self.refused_bytes = 0
        self.refused_new_messages = self.refused_new_bytes = 0
        self.unsaid_messages = self.unsaid_bytes = 0
        #: Bounds refused work with attempt 0; None until there is some.
        self.unsaid: UnsaidBound | None = None
        #: Topics that were active in the open window, and what each of them holds back.
        self.topics: set[str | None] = set()
        self.held: dict[str | None, Pair] = {}
        #: Whether it stands in `touched`.
        self.is_touched = False
        self.touched = touched
        #: When it was put there: the first request since the last tick.
        self.touched_at = now

    def admit(self, cost: Pair, attempt: int, topic: str | None, now: Nanos) -> None:
        """Count granted work."""
        messages, size = cost
        self.at = now
        self.requests += 1
        self.messages += messages
        self.bytes += size
        if attempt > 1:
            self.retries += 1
            self.retried_messages += messages
            self.retried_bytes += size
        if topic not in self.topics:
            self.note_topic(topic)
        if not self.is_touched:
            self.touch()

    def refuse(
        self, cost: Pair, attempt: int, topic: str | None, retry_after_ms: int, now: Nanos
    ) -> None:
        """Count refused work, or the part of it that was not granted."""
        messages, size = cost
        self.at = now
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
        if topic not in self.topics:
            self.note_topic(topic)
        if not self.is_touched:
            self.touch()

    @property
    def admitted(self) -> Pair:
        """Admitted since the start, as the wire and columns can have it."""
        return Pair(min(self.messages, COUNT_MAX), min(self.bytes, COUNT_MAX))

    def hold(self, held: Pair, topic: str | None) -> None:
        """Note what a caller holds back; a topic's last message in the window counts."""
        if topic in self.held or len(self.held) < WINDOW_TOPICS_MAX:
            self.held[topic] = held

    def note_topic(self, topic: str | None) -> None:
        """Note a topic that is active for the first time in the open window."""
        if len(self.topics) < WINDOW_TOPICS_MAX:
            self.topics.add(topic)

    def touch(self) -> None:
        """Have the next tick look at it."""
        self.is_touched = True
        self.touched_at = self.at
        touched = self.touched
        touched.append(self)
        if len(touched) == 1:
            touched.on_first()


def _nobody_listens() -> None:
    """The default of `Touched.on_first`."""
