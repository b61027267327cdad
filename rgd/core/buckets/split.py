"""Divides a broker's share of a group over the topics it serves (PIP-82).

Laws: the parts of all active topics sum to the share exactly. However topics, shares and modes
change, a group grants at most the depth and the integral of its share + one request per topic.

A topic is active from its first request until `IDLE_ROUNDS` whole rounds without one (and without
debt). `even` gives each topic the same. `proportional` gives a floor, and the rest in proportion to
granted and refused work, so that a topic whose requests are all refused grows too. A new topic gets
its part at once.

A topic owns an interval of whole weights (`rgd.core.buckets.intervals`). A part applies a new share
or layout when it is next used, and accrues the lowest rate it had since then. The group's own
buckets stay in use: they are charged with everything and refuse nothing, and a new topic's bucket
starts short of what they are short of (docs/decisions/0009). After a round the topics are weighed
in slices, and the new intervals take effect for all topics at once.
"""

from collections.abc import Iterator
from copy import copy
from typing import Final

from rgd.core.buckets.decision import NOTHING, Level
from rgd.core.buckets.intervals import Steps, Stream
from rgd.core.buckets.level import BucketSettings, GroupState, LevelState
from rgd.core.buckets.recent_refusals import PartRefusals, RecentRefusals
from rgd.core.policies.model import Rate, Rates, TopicSplit, lower
from rgd.core.shares.model import PPM
from rgd.core.units import Nanos, Pair

#: Whole rounds without a request after which a topic loses its part.
IDLE_ROUNDS: Final = 2
#: Part of the share split evenly under `proportional`, so that a new topic can start.
TOPIC_FLOOR_PPM: Final = PPM // 100

#: The end of a weighing.
_DONE: Final = object()

_NO_STEPS: Final = (Steps(0, 0), Steps(0, 0))


class TopicPart(LevelState):
    """A topic's part of its group's share, as a level that replaces the group's own.

    `quota` is the group's, cluster-wide, so size limits, headers and reasons stay correct.
    """

    __slots__ = (
        "_admitted",
        "_attempt",
        "_before",
        "_held",
        "_new",
        "_split",
        "asked_in",
        "generation",
        "layout",
        "next_steps",
        "seen_at",
        "steps",
        "topic",
        "usage",
    )

    def __init__(
        self, split: "SplitShare", topic: str | None, settings: BucketSettings, now: Nanos
    ) -> None:
        super().__init__(Level.RESOURCE_GROUP, settings, split.whole.group)
        self._split: SplitShare | None = split
        self.topic = topic
        #: Its intervals of the weights (messages, bytes) in `layout`, and in the next layout.
        self.steps = self.next_steps = _NO_STEPS
        self.layout = split.layout
        #: The division that its buckets have applied.
        self.generation = -1
        #: When its buckets were last updated, and the round of its last request.
        self.seen_at = now
        self.asked_in = split.round
        #: Its demand in the last two rounds, whole units; its weight depends on it.
        self.usage = NOTHING
        self._before: Pair | None = None
        self._attempt = 1
        self._held = NOTHING
        #: [messages, bytes] of the open round; `_new` leaves out marked retries.
        self._admitted, self._new = [0, 0], [0, 0]

    def ask(self, attempt: int, held: Pair, now: Nanos) -> bool:
        """Update the buckets for a request that is about to be decided.

        False if the part went idle: the caller must create a new one.
        """
        split = self._split
        if split is None:
            return False
        if self.generation != split.generation:
            split.catch_up(self, now)
        self.seen_at = now
        self.asked_in = split.round
        self.shadow = split.whole.shadow
        self._attempt = attempt
        if held != NOTHING:
            self._held = held
        return True

    def take(self, messages: int, size: int) -> None:
        """Charge the part and the whole group."""
        super().take(messages, size)
        self.charge_group(messages, size)

    def charge_group(self, messages: int, size: int) -> None:
        """Charge the whole group with what this part granted."""
        assert self._split is not None, "a part that went idle was charged"
        whole = self._split.whole
        # Refilled before the charge, so that tokens above the depth are spilled first.
        whole.refill(self.seen_at)
        whole.take(messages, size)
        _add(self._admitted, messages, size)
        if self._attempt <= 1:
            _add(self._new, messages, size)

    def give(self, messages: int, size: int, now: Nanos) -> None:
        """Put units back into the part and the whole group."""
        assert self._split is not None, "a part that went idle was given back to"
        super().give(messages, size, now)
        self._split.whole.give(messages, size, now)
        for counted in (self._admitted, self._new):
            counted[0] = max(0, counted[0] - messages)
            counted[1] = max(0, counted[1] - size)

    def refuse(self, messages: int, size: int) -> None:
        """Count work that only groups refused: a larger share would have helped."""
        if self._attempt <= 1:
            _add(self._new, messages, size)

    def retract(self, messages: int, size: int) -> None:
        """Take back what `refuse` counted in this round."""
        if self._attempt <= 1:
            self._new[0] = max(0, self._new[0] - messages)
            self._new[1] = max(0, self._new[1] - size)

    def count_shadow(self, messages: int, size: int) -> None:
        """Count on the group what this part, as a shadow, would have refused."""
        assert self._split is not None, "a part that went idle was charged"
        self._split.whole.count_shadow(messages, size)

    def begin_refusals(self) -> RecentRefusals:
        """Create the counter of refusals, which also counts for the whole group."""
        assert self._split is not None, "a part that went idle has cut"
        whole = self._split.whole
        self.refusals = refusals = PartRefusals(whole.refusals or whole.begin_refusals())
        return refusals

    def close_round(self) -> None:
        """Compute the demand that determines its weight in the next round."""
        held, admitted, new = self._held, self._admitted, self._new
        wanted = Pair(
            max(admitted[0], new[0]) + held.messages, max(admitted[1], new[1]) + held.bytes
        )
        before = wanted if self._before is None else self._before
        self.usage = Pair(wanted.messages + before.messages, wanted.bytes + before.bytes)
        self._before = wanted
        self._held = NOTHING
        self._admitted, self._new = [0, 0], [0, 0]

    def leave(self) -> None:
        """Detach the part from its group, because it went idle."""
        self._split = None


class SplitShare:
    """The division over topics of one group's share in one kind."""

    __slots__ = (
        "_before",
        "_common",
        "_divided_at",
        "_joined",
        "_laid_out",
        "_laid_out_for",
        "_now",
        "_parts",
        "_settings",
        "_streams",
        "_weighing",
        "generation",
        "layout",
        "mode",
        "round",
        "whole",
    )

    def __init__(
        self, whole: GroupState, mode: TopicSplit, settings: BucketSettings, now: Nanos
    ) -> None:
        #: The group; its buckets count everything granted, and refuse nothing.
        self.whole = whole
        self.mode = mode
        #: Numbers of divisions, of layouts of intervals, and of rounds.
        self.generation = self.layout = self.round = 0
        self._divided_at = now
        self._settings = settings
        self._streams = (Stream(), Stream())
        #: The previous layout, and the time and the division at which the present one took effect.
        self._before = self._streams
        self._laid_out = (now, 0)
        self._parts: dict[str | None, TopicPart] = {}
        #: The shared part of all topics beyond `BucketBounds.split_topics_max`.
        self._common: TopicPart | None = None
        #: The mode that the present layout is for; the first topics join with equal weights.
        self._laid_out_for = TopicSplit.EVEN
        #: The weighing in progress, the parts that joined during it, and the time of its slice.
        self._weighing: Iterator[None] | None = None
        self._joined: list[TopicPart] = []
        self._now = now

    @property
    def is_weighed(self) -> bool:
        """Whether `weigh` has nothing left to do."""
        return self._weighing is None

    def part(self, topic: str | None, now: Nanos) -> TopicPart:
        """The part of a topic, created if needed; requests without a topic count as one topic."""
        if (part := self._parts.get(topic)) is not None:
            return part
        if len(self._parts) < self._settings.bounds.split_topics_max:
            part = self._parts[topic] = self._join(topic, now)
            return part
        if self._common is None:
            self._common = self._join(None, now)
        return self._common

    def look(self, topic: str | None, now: Nanos) -> TopicPart | None:
        """A copy of a topic's part, updated to `now`, if it exists; the part stays unchanged."""
        part = self._parts.get(topic)
        if part is None and len(self._parts) >= self._settings.bounds.split_topics_max:
            part = self._common
        if part is None:
            return None
        seen = copy(part)
        seen.spilled = None
        if seen.generation != self.generation:
            self.catch_up(seen, now)
        return seen

    def parts(self, now: Nanos) -> list[TopicPart]:
        """Every active part, updated to `now`."""
        parts = self._all_parts()
        for part in parts:
            if part.generation != self.generation:
                self.catch_up(part, now)
        return parts

    def redivide(self, now: Nanos) -> None:
        """Divide the group's present share from `now` on."""
        self.generation += 1
        self._divided_at = now
        for stream, share in zip(self._streams, self._share(), strict=True):
            stream.divide(share, self.generation)

    def set_mode(self, mode: TopicSplit) -> None:
        """Change the mode once the topics are weighed; buckets keep their tokens and debt."""
        if mode is not self.mode:
            self.mode = mode
            if self._weighing is None:
                self._begin_weighing(is_round=False)

    def end_round(self) -> None:
        """Begin to free idle topics, and to weigh the others by their demand.

        If the topics of an earlier round are still being weighed, this round is weighed with the
        next.
        """
        self.round += 1
        if self._weighing is None:
            self._begin_weighing(is_round=True)

    def weigh(self, count: int, now: Nanos) -> int:
        """Process at most `count` parts; returns how many were processed."""
        self._now = now
        for done in range(count):
            if self._weighing is None:
                return done
            if next(self._weighing, _DONE) is _DONE:
                self._weighing = None
                if self._laid_out_for is not self.mode:
                    # The mode changed during the weighing.
                    self._begin_weighing(is_round=False)
        return count

    def catch_up(self, part: TopicPart, now: Nanos) -> None:
        """Update a part's buckets.

        Between their last update and the last division they accrue at the lowest rate that applied
        in that time, with the same depth.
        """
        whole = self.whole
        part.burst_ns = whole.burst_ns
        known = part.generation
        if part.layout != self.layout:
            self._flow(part, lower(part.share, _lowest(self._before, part, known)))
            laid_out_at, first = self._laid_out
            part.steps, part.layout, known = part.next_steps, self.layout, first - 1
            part.set_rates(whole.quota, _lowest(self._streams, part, known), laid_out_at)
        else:
            self._flow(part, lower(part.share, _lowest(self._streams, part, known)))
        part.set_rates(whole.quota, self._rates(part), self._divided_at)
        part.seen_at = now
        part.generation = self.generation

    def _flow(self, part: TopicPart, least: Rates) -> None:
        """Accrue at a lower rate since the last update, if it was lower."""
        if least != part.share:
            part.set_rates(self.whole.quota, least, part.seen_at)

    def _join(self, topic: str | None, now: Nanos) -> TopicPart:
        part, whole = TopicPart(self, topic, self._settings, now), self.whole
        part.steps = (self._streams[0].join(), self._streams[1].join())
        if self._weighing is not None:
            self._joined.append(part)
        self.redivide(now)
        part.generation = self.generation
        rates = self._rates(part)
        # A bucket without depth starts without tokens.
        part.burst_ns = 0
        part.set_rates(whole.quota, rates, now)
        part.burst_ns = whole.burst_ns
        part.set_rates(whole.quota, rates, now)
        # The other parts hold at most their depths, so all parts together hold no more than the
        # group.
        whole.refill(now)
        if rates.messages is not None:
            lacking = whole.messages_depth - whole.messages_tokens
            part.messages_tokens = max(0, part.messages_depth - lacking)
        if rates.bytes is not None:
            lacking = whole.bytes_depth - whole.bytes_tokens
            part.bytes_tokens = max(0, part.bytes_depth - lacking)
        return part

    def _all_parts(self) -> list[TopicPart]:
        parts = [*self._parts.values()]
        return parts if self._common is None else [*parts, self._common]

    def _begin_weighing(self, *, is_round: bool) -> None:
        self._joined = []
        self._weighing = self._weigh_all(self._all_parts(), self.generation, is_round=is_round)

    def _weigh_all(
        self, parts: list[TopicPart], generation: int, *, is_round: bool
    ) -> Iterator[None]:
        """Measure each part, then give each its interval in the next layout; one part a slice.

        Args:
            parts: all parts.
            generation: the present division.
            is_round: True if a round ended, False if only the mode changed.
        """
        staying, messages, size = list[TopicPart](), 0, 0
        for part in parts:
            if self._is_staying(part, is_round=is_round):
                staying.append(part)
                messages += part.usage.messages
                size += part.usage.bytes
            yield
        for stream in self._streams:
            stream.forget(generation)
        mode = self.mode
        is_even = mode is not TopicSplit.PROPORTIONAL
        if is_even and self._laid_out_for is mode and len(staying) == len(parts):
            return
        # A part's weight in each dimension is a constant, and a factor of its usage.
        (each, of_messages), (each_size, of_bytes) = (
            _weight(0 if is_even else used, len(staying)) for used in (messages, size)
        )
        streams = (Stream(each), Stream(each_size))
        yield
        for part in staying:
            part.next_steps = (
                streams[0].next(each + of_messages * part.usage.messages),
                streams[1].next(each_size + of_bytes * part.usage.bytes),
            )
            yield
        self._lay_out(streams, mode)

    def _is_staying(self, part: TopicPart, *, is_round: bool) -> bool:
        """Bring one part up to date, and close its round; frees it if it is idle."""
        if part.generation != self.generation:
            self.catch_up(part, self._now)
        if is_round:
            part.close_round()
            if self.round - 1 - part.asked_in >= IDLE_ROUNDS and not part.owes(self._now):
                self._release(part)
                return False
        return True

    def _release(self, part: TopicPart) -> None:
        part.leave()
        if part is self._common:
            self._common = None
        else:
            del self._parts[part.topic]

    def _lay_out(self, streams: tuple[Stream, Stream], mode: TopicSplit) -> None:
        """Put the new intervals in force; each part applies them when it is next used."""
        for part in self._joined:
            part.next_steps = (streams[0].join(), streams[1].join())
        self._before, self._streams = self._streams, streams
        self._laid_out_for = mode
        self.layout += 1
        self.redivide(self._now)
        self._laid_out = (self._now, self.generation)

    def _share(self) -> tuple[Rate, Rate]:
        return self.whole.share.messages, self.whole.share.bytes

    def _rates(self, part: TopicPart) -> Rates:
        messages, size = part.steps
        return Rates(self._streams[0].part(messages), self._streams[1].part(size))


def _weight(used: int, count: int) -> tuple[int, int]:
    """Floor / count + (1 - floor) * usage / used, in whole numbers: a constant, a factor of usage."""
    return (TOPIC_FLOOR_PPM * used, (PPM - TOPIC_FLOOR_PPM) * count) if used else (1, 0)


def _lowest(streams: tuple[Stream, Stream], part: TopicPart, generation: int) -> Rates:
    """The lowest rates of a part after a division; None where no other division followed."""
    return Rates(
        streams[0].lowest(part.steps[0], generation), streams[1].lowest(part.steps[1], generation)
    )


def _add(counts: list[int], messages: int, size: int) -> None:
    counts[0] += messages
    counts[1] += size
