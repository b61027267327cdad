"""Sub-divides a broker's share of a group over the topics it serves (PIP-82).

Laws: the parts of all active topics sum to the share exactly; however topics, shares and modes come
and go, a group grants at most the depth and the integral of its share + one request a topic.

A topic is active from its first request until `IDLE_ROUNDS` whole rounds without one (and without
debt). `even` gives each the same; `proportional` a floor and the rest by what was granted and
refused, so that one that is refused everything grows too. A newcomer has its part at once.

How: a topic owns an interval of whole weights (`rgd.core.buckets.intervals`). A part learns of
another share or topic when it is next asked, and has flowed at the least it was to have since. The
group's own buckets go on, charged with everything, refusing nothing: a new bucket lacks what they lack
(docs/decisions/0009). After a round the topics are weighed in slices, and the new intervals come into
force for all at once.
"""

from collections import deque
from copy import copy
from typing import Final

from rgd.core.buckets.decision import NOTHING, Level
from rgd.core.buckets.intervals import Steps, Stream
from rgd.core.buckets.level import BucketSettings, GroupState, LevelState
from rgd.core.buckets.recent_refusals import PartRefusals, RecentRefusals
from rgd.core.policies.model import Rate, Rates, TopicSplit, lower
from rgd.core.shares.model import PPM
from rgd.core.units import Nanos, Pair

#: Most parts of one group in one kind; further topics share one common part while that is active.
SPLIT_TOPICS_MAX: Final = 10_000
#: Whole rounds without a request after which a topic has no part.
IDLE_ROUNDS: Final = 2
#: Of the share, split evenly under `proportional` so that a new topic can start, like brokers' floors.
TOPIC_FLOOR_PPM: Final = PPM // 100

_NO_STEPS: Final = (Steps(0, 0), Steps(0, 0))


class TopicPart(LevelState):
    """A topic's part of its group's share, as a level in place of the group's own.

    `quota` is the group's, cluster-wide, so that what is too large, headers and reasons stay true.
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
        #: Its intervals of the weights (messages, bytes), in which layout, and in the next one.
        self.steps = self.next_steps = _NO_STEPS
        self.layout = split.layout
        #: The division that its buckets know of.
        self.generation = -1
        #: When its buckets were last up to date, and in which round it was last asked.
        self.seen_at = now
        self.asked_in = split.round
        #: What it is weighed by: wanted in the last two rounds, whole units.
        self.usage = NOTHING
        self._before: Pair | None = None
        self._attempt = 1
        self._held = NOTHING
        #: [messages, bytes] of the open round; new is what nobody said is a retry.
        self._admitted, self._new = [0, 0], [0, 0]

    def ask(self, attempt: int, held: Pair, now: Nanos) -> bool:
        """Note a request that is about to be decided; brings the buckets up to date.

        False where it went idle: a new part takes its place.
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
        """Charge what was granted here and to the group as a whole."""
        super().take(messages, size)
        self.charge_group(messages, size)

    def charge_group(self, messages: int, size: int) -> None:
        """Charge the group as a whole with what was granted here."""
        assert self._split is not None, "a part that went idle was charged"
        whole = self._split.whole
        # Refilled first, so that it is full before it is charged and not after.
        whole.refill(self.seen_at)
        whole.take(messages, size)
        _add(self._admitted, messages, size)
        if self._attempt <= 1:
            _add(self._new, messages, size)

    def refuse(self, messages: int, size: int) -> None:
        """Count work that only groups refused: more of the share would have helped."""
        if self._attempt <= 1:
            _add(self._new, messages, size)

    def count_shadow(self, messages: int, size: int) -> None:
        """Count on the group what its shadow would have refused."""
        assert self._split is not None, "a part that went idle was charged"
        self._split.whole.count_shadow(messages, size)

    def begin_refusals(self) -> RecentRefusals:
        """Begin to count what is cut here, which counts for the group as a whole too."""
        assert self._split is not None, "a part that went idle has cut"
        whole = self._split.whole
        self.refusals = refusals = PartRefusals(whole.refusals or whole.begin_refusals())
        return refusals

    def close_round(self) -> None:
        """Reckon what it is weighed by in the next round."""
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
        """Have no part any more."""
        self._split = None


class _Weighing:
    """How far the topics of a round have been weighed."""

    __slots__ = (
        "each",
        "generation",
        "has_left",
        "is_round",
        "joined",
        "mode",
        "staying",
        "streams",
        "to_look_at",
        "to_place",
        "used",
    )

    def __init__(self, parts: list[TopicPart], generation: int, *, is_round: bool) -> None:
        #: Whether a round ended, or only the mode changed.
        self.is_round = is_round
        #: First all are looked at, and then each is given its place in the next layout.
        self.to_look_at = deque(parts)
        self.to_place: deque[TopicPart] | None = None
        #: The division that they all know of, once they were looked at.
        self.generation = generation
        self.mode: TopicSplit | None = None
        self.staying: list[TopicPart] = []
        #: Those that came meanwhile.
        self.joined: list[TopicPart] = []
        self.has_left = False
        self.used = [0, 0]
        #: The next layout, and by dimension what a part weighs: so much, and so much for each unit used.
        self.streams = (Stream(), Stream())
        self.each = [(1, 0), (1, 0)]


class SplitShare:
    """One group in one kind, whose share is divided over topics."""

    __slots__ = (
        "_before",
        "_common",
        "_divided_at",
        "_laid_out",
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
        #: The group; its buckets say how much was granted in all, and refuse nothing.
        self.whole = whole
        self.mode = mode
        #: Counts divisions, layouts of intervals, and rounds.
        self.generation = self.layout = self.round = 0
        self._divided_at = now
        self._settings = settings
        self._streams = (Stream(), Stream())
        #: The layout before, and when and with which division the present one came into force.
        self._before = self._streams
        self._laid_out = (now, 0)
        self._parts: dict[str | None, TopicPart] = {}
        #: The part of all topics beyond `SPLIT_TOPICS_MAX`.
        self._common: TopicPart | None = None
        self._weighing: _Weighing | None = None

    @property
    def is_weighed(self) -> bool:
        """Whether `weigh` has nothing to do."""
        return self._weighing is None

    def part(self, topic: str | None, now: Nanos) -> TopicPart:
        """The part of a topic; requests without a topic are one more topic."""
        if (part := self._parts.get(topic)) is not None:
            return part
        if len(self._parts) < SPLIT_TOPICS_MAX:
            part = self._parts[topic] = self._join(topic, now)
            return part
        if self._common is None:
            self._common = self._join(None, now)
        return self._common

    def look(self, topic: str | None, now: Nanos) -> TopicPart | None:
        """The part of a topic as it is now, if it has one: a copy, for bringing it up to date shows."""
        part = self._parts.get(topic)
        if part is None and len(self._parts) >= SPLIT_TOPICS_MAX:
            part = self._common
        if part is None:
            return None
        seen = copy(part)
        seen.spilled = None
        if seen.generation != self.generation:
            self.catch_up(seen, now)
        return seen

    def parts(self, now: Nanos) -> list[TopicPart]:
        """Every active part, up to date."""
        parts = self._all_parts()
        for part in parts:
            if part.generation != self.generation:
                self.catch_up(part, now)
        return parts

    def redivide(self, now: Nanos) -> None:
        """Divide the group's share as it is from now on."""
        self.generation += 1
        self._divided_at = now
        for stream, share in zip(self._streams, self._share(), strict=True):
            stream.divide(share, self.generation)

    def set_mode(self, mode: TopicSplit) -> None:
        """Divide in another way as soon as it is weighed; buckets keep their tokens and debt."""
        if mode is not self.mode:
            self.mode = mode
            if self._weighing is None:
                self._weighing = _Weighing(self._all_parts(), self.generation, is_round=False)

    def end_round(self) -> None:
        """Begin to let idle topics go, and to weigh the others by what they wanted.

        A round of so many topics that the last one is not weighed yet is weighed with the next.
        """
        self.round += 1
        if self._weighing is None:
            self._weighing = _Weighing(self._all_parts(), self.generation, is_round=True)

    def weigh(self, count: int, now: Nanos) -> int:
        """Go on with at most so many parts; returns how many there were."""
        done = 0
        while done < count and (weighing := self._weighing) is not None:
            if weighing.to_look_at:
                self._look_at(weighing, weighing.to_look_at.popleft(), now)
            elif weighing.to_place is None:
                self._begin_layout(weighing)
            elif weighing.to_place:
                part = weighing.to_place.popleft()
                part.next_steps = _placed(weighing, part)
            else:
                self._lay_out(weighing, now)
            done += 1
        return done

    def catch_up(self, part: TopicPart, now: Nanos) -> None:
        """Bring a part's buckets up to date.

        From when they last were until the last division they flowed at the least that they were to
        have in between, and were as deep.
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
        """Have flowed at less than was known since it was last up to date."""
        if least != part.share:
            part.set_rates(self.whole.quota, least, part.seen_at)

    def _join(self, topic: str | None, now: Nanos) -> TopicPart:
        part, whole = TopicPart(self, topic, self._settings, now), self.whole
        part.steps = (self._streams[0].join(), self._streams[1].join())
        if self._weighing is not None:
            self._weighing.joined.append(part)
        self.redivide(now)
        part.generation = self.generation
        rates = self._rates(part)
        # A bucket without depth is made without tokens.
        part.burst_ns = 0
        part.set_rates(whole.quota, rates, now)
        part.burst_ns = whole.burst_ns
        part.set_rates(whole.quota, rates, now)
        # The other parts hold at most their depths, so all hold no more than the whole.
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

    def _look_at(self, weighing: _Weighing, part: TopicPart, now: Nanos) -> None:
        """Let one part go, or see what it used."""
        if part.generation != self.generation:
            self.catch_up(part, now)
        if weighing.is_round:
            part.close_round()
            if self.round - 1 - part.asked_in >= IDLE_ROUNDS and not part.owes(now):
                weighing.has_left = True
                self._release(part)
                return
        weighing.staying.append(part)
        weighing.used[0] += part.usage.messages
        weighing.used[1] += part.usage.bytes

    def _release(self, part: TopicPart) -> None:
        part.leave()
        if part is self._common:
            self._common = None
        else:
            del self._parts[part.topic]

    def _begin_layout(self, weighing: _Weighing) -> None:
        """All were looked at: see what each weighs."""
        for stream in self._streams:
            stream.forget(weighing.generation)
        is_proportional = self.mode is TopicSplit.PROPORTIONAL
        if weighing.is_round and not weighing.has_left and not is_proportional:
            self._weighing = None
            return
        weighing.mode = self.mode
        weighing.to_place = deque(weighing.staying)
        for place, used in enumerate(weighing.used):
            if is_proportional and used:
                # floor / count + (1 - floor) * usage / used, in whole numbers.
                each = (PPM - TOPIC_FLOOR_PPM) * len(weighing.staying)
                weighing.each[place] = (TOPIC_FLOOR_PPM * used, each)
        weighing.streams = (Stream(weighing.each[0][0]), Stream(weighing.each[1][0]))

    def _lay_out(self, weighing: _Weighing, now: Nanos) -> None:
        """Put the new intervals in force for all at once; each part learns of it when it is asked."""
        for part in weighing.joined:
            part.next_steps = (weighing.streams[0].join(), weighing.streams[1].join())
        self._before, self._streams = self._streams, weighing.streams
        self.layout += 1
        self.redivide(now)
        self._laid_out = (now, self.generation)
        self._weighing = None
        if weighing.mode is not self.mode:
            self._weighing = _Weighing(self._all_parts(), self.generation, is_round=False)

    def _share(self) -> tuple[Rate, Rate]:
        return self.whole.share.messages, self.whole.share.bytes

    def _rates(self, part: TopicPart) -> Rates:
        messages, size = part.steps
        return Rates(self._streams[0].part(messages), self._streams[1].part(size))


def _placed(weighing: _Weighing, part: TopicPart) -> tuple[Steps, Steps]:
    """The intervals of one part in the next layout."""
    (messages, of_messages), (size, of_bytes) = weighing.each
    return (
        weighing.streams[0].next(messages + of_messages * part.usage.messages),
        weighing.streams[1].next(size + of_bytes * part.usage.bytes),
    )


def _lowest(streams: tuple[Stream, Stream], part: TopicPart, generation: int) -> Rates:
    """The least that a part was to get after a division, where there was another."""
    return Rates(
        streams[0].lowest(part.steps[0], generation), streams[1].lowest(part.steps[1], generation)
    )


def _add(counts: list[int], messages: int, size: int) -> None:
    counts[0] += messages
    counts[1] += size
