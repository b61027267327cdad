"""Sub-divides a broker's share of a group over the topics it serves (PIP-82).

Laws: the parts of all active topics sum to the share exactly; however topics, shares and modes come
and go, a group grants at most the depth and the integral of its share + one request a topic.

A topic is active from its first request until `IDLE_ROUNDS` whole rounds without one (and without
debt). `even` gives each the same; `proportional` a floor and the rest by what was granted and
refused, so that one that is refused everything grows too. A newcomer has its part at once.

How: a topic owns an interval of whole weights, so that another topic or share costs the same for
10,000 topics as for one. A part learns of it when it is next asked, and has flowed at the least it
was to have since. The group's own buckets go on, charged with everything, refusing nothing: a new
bucket lacks what they lack (docs/decisions/0009).
"""

from bisect import bisect_right
from typing import Final, NamedTuple

from rgd.core.buckets.bucket import TokenBucket
from rgd.core.buckets.decision import Level, Request
from rgd.core.buckets.level import BucketSettings, GroupState, LevelState
from rgd.core.policies.model import Rate, Rates, TopicSplit
from rgd.core.shares.model import PPM
from rgd.core.units import Dimension, Nanos, Pair

#: Most parts of one group in one kind; further topics share one common part while that is active.
SPLIT_TOPICS_MAX: Final = 10_000
#: Whole rounds without a request after which a topic has no part.
IDLE_ROUNDS: Final = 2
#: Of the share, split evenly under `proportional` so that a new topic can start, like brokers' floors.
TOPIC_FLOOR_PPM: Final = PPM // 100

_NOTHING: Final = Pair()


class Steps(NamedTuple):
    """The interval of all weights, one after the other, that belongs to one part."""

    low: int
    high: int


class _Cut(NamedTuple):
    """A share and the weight that it is divided by."""

    share: Rate
    weight: int

    def part(self, steps: Steps) -> Rate:
        """What an interval gets: all intervals together get the share, to the last thousandth."""
        if self.share is None:
            return None
        low, high = self.share * steps.low // self.weight, self.share * steps.high // self.weight
        return high - low

    def is_above(self, other: "_Cut") -> bool:
        """Whether a weight gets as much here as there, or more."""
        if self.share is None or other.share is None:
            return self.share is None
        return self.share * other.weight >= other.share * self.weight


class _Stream:
    """The share in one dimension, as it was divided since the last round ended."""

    __slots__ = ("_cuts", "_epochs", "newcomer", "weight")

    def __init__(self) -> None:
        self.weight = 0
        #: The weight of whoever joins next.
        self.newcomer = 1
        #: The division now and, before it, each that gave less than all later ones.
        self._cuts: list[_Cut] = []
        self._epochs: list[int] = []

    def join(self) -> Steps:
        """The interval of a newcomer."""
        return self._next(self.newcomer)

    def divide(self, share: Rate, epoch: int) -> None:
        """Divide a share from now on."""
        cut = _Cut(share, self.weight)
        while self._cuts and self._cuts[-1].is_above(cut):
            self._cuts.pop()
            self._epochs.pop()
        self._cuts.append(cut)
        self._epochs.append(epoch)

    def weigh(self, weights: list[int], newcomer: int) -> list[Steps]:
        """Give out all intervals anew; nobody may be behind."""
        self._cuts.clear()
        self._epochs.clear()
        self.weight, self.newcomer = 0, newcomer
        return [self._next(weight) for weight in weights]

    def forget(self) -> None:
        """Forget all divisions but the last; nobody may be behind."""
        del self._cuts[:-1], self._epochs[:-1]

    def part(self, steps: Steps) -> Rate:
        """What an interval gets now."""
        return self._cuts[-1].part(steps)

    def lowest(self, steps: Steps, epoch: int) -> Rate:
        """The least that an interval was to get after an epoch."""
        return self._cuts[bisect_right(self._epochs, epoch)].part(steps)

    def _next(self, weight: int) -> Steps:
        low, self.weight = self.weight, self.weight + weight
        return Steps(low, self.weight)


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
        "epoch",
        "seen_at",
        "steps",
        "usage",
    )

    def __init__(self, split: "SplitShare", settings: BucketSettings, now: Nanos) -> None:
        super().__init__(Level.RESOURCE_GROUP, settings, split.whole.group)
        self._split: SplitShare | None = split
        #: Its intervals of the weights: messages, bytes.
        self.steps = (Steps(0, 0), Steps(0, 0))
        #: The division that its buckets know of.
        self.epoch = -1
        #: When its buckets were last up to date, and in which round it was last asked.
        self.seen_at = now
        self.asked_in = split.round
        #: What it is weighed by: wanted in the last two rounds, whole units.
        self.usage = _NOTHING
        self._before: Pair | None = None
        self._attempt = 1
        self._held = _NOTHING
        #: [messages, bytes] of the open round; new is what nobody said is a retry.
        self._admitted, self._new = [0, 0], [0, 0]

    def ask(self, request: Request, now: Nanos) -> bool:
        """Note a request that is about to be decided; brings the buckets up to date.

        False where it went idle: it is made anew, not woken.
        """
        split = self._split
        if split is None:
            return False
        if self.epoch != split.epoch:
            split.catch_up(self, now)
        self.seen_at = now
        self.asked_in = split.round
        self.shadow = split.whole.shadow
        self._attempt = request.attempt
        if request.held != _NOTHING:
            self._held = request.held
        return True

    def take(self, cost: Pair) -> None:
        """Charge what was granted here and to the group as a whole."""
        super().take(cost)
        assert self._split is not None, "a part that went idle was charged"
        whole = self._split.whole
        for bucket in (whole.messages, whole.bytes):
            if bucket is not None:
                # Refills it, so that it is full before it is charged and not after.
                bucket.tokens(self.seen_at)
        LevelState.take(whole, cost)
        _add(self._admitted, cost)
        if self._attempt <= 1:
            _add(self._new, cost)

    def refuse(self, unmet: Pair) -> None:
        """Count work that only groups refused: more of the share would have helped."""
        if self._attempt <= 1:
            _add(self._new, unmet)

    def count_shadow(self, cost: Pair) -> None:
        """Count on the group what its shadow would have refused."""
        assert self._split is not None, "a part that went idle was charged"
        self._split.whole.count_shadow(cost)

    def owes(self, now: Nanos) -> bool:
        """Whether a bucket is in debt."""
        return owes(self, now)

    def close_round(self) -> None:
        """Reckon what it is weighed by in the next round."""
        held, admitted, new = self._held, self._admitted, self._new
        wanted = Pair(
            max(admitted[0], new[0]) + held.messages, max(admitted[1], new[1]) + held.bytes
        )
        before = wanted if self._before is None else self._before
        self.usage = Pair(wanted.messages + before.messages, wanted.bytes + before.bytes)
        self._before = wanted
        self._held = _NOTHING
        self._admitted, self._new = [0, 0], [0, 0]

    def leave(self) -> None:
        """Have no part any more."""
        self._split = None


class SplitShare:
    """One group in one kind, whose share is divided over topics."""

    __slots__ = (
        "_common",
        "_divided_at",
        "_parts",
        "_settings",
        "_streams",
        "epoch",
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
        #: Counts divisions, and rounds.
        self.epoch = self.round = 0
        self._divided_at = now
        self._settings = settings
        self._streams = (_Stream(), _Stream())
        self._parts: dict[str | None, TopicPart] = {}
        #: The part of all topics beyond `SPLIT_TOPICS_MAX`.
        self._common: TopicPart | None = None

    def part(self, topic: str | None, now: Nanos) -> TopicPart:
        """The part of a topic; requests without a topic are one more topic."""
        if (part := self._parts.get(topic)) is not None:
            return part
        if len(self._parts) < SPLIT_TOPICS_MAX:
            part = self._parts[topic] = self._join(now)
            return part
        if self._common is None:
            self._common = self._join(now)
        return self._common

    def parts(self, now: Nanos) -> list[TopicPart]:
        """Every active part, up to date."""
        parts = [*self._parts.values()]
        if self._common is not None:
            parts.append(self._common)
        for part in parts:
            if part.epoch != self.epoch:
                self.catch_up(part, now)
        return parts

    def redivide(self, now: Nanos) -> None:
        """Divide the group's share as it is from now on."""
        self.epoch += 1
        self._divided_at = now
        for stream, share in zip(self._streams, self._share(), strict=True):
            stream.divide(share, self.epoch)

    def set_mode(self, mode: TopicSplit, now: Nanos) -> None:
        """Divide in another way from now on; buckets keep their tokens and debt."""
        if mode is not self.mode:
            parts = self.parts(now)
            self.mode = mode
            self._weigh(parts, now)

    def end_round(self, now: Nanos) -> None:
        """Let idle topics go, and weigh the others by what they wanted."""
        parts = self.parts(now)
        for stream in self._streams:
            stream.forget()
        for part in parts:
            part.close_round()
        staying = [part for part in parts if self._stays(part, now)]
        self.round += 1
        if len(staying) < len(parts):
            self._release(set(parts).difference(staying))
        if len(staying) < len(parts) or self.mode is TopicSplit.PROPORTIONAL:
            self._weigh(staying, now)

    def catch_up(self, part: TopicPart, now: Nanos) -> None:
        """Bring a part's buckets up to date.

        From when they last were until the last division they flowed at the least that they were to
        have in between, and were as deep.
        """
        whole = self.whole
        part.burst_ns = whole.burst_ns
        of_messages, of_bytes = self._streams
        least = Rates(
            _lower(part.share.messages, of_messages.lowest(part.steps[0], part.epoch)),
            _lower(part.share.bytes, of_bytes.lowest(part.steps[1], part.epoch)),
        )
        if least != part.share:
            part.set_rates(whole.quota, least, part.seen_at)
        part.set_rates(whole.quota, self._rates(part), self._divided_at)
        part.seen_at = now
        part.epoch = self.epoch

    def _join(self, now: Nanos) -> TopicPart:
        part, whole = TopicPart(self, self._settings, now), self.whole
        part.steps = (self._streams[0].join(), self._streams[1].join())
        self.redivide(now)
        part.epoch = self.epoch
        rates = self._rates(part)
        # A bucket without depth is made without tokens.
        part.burst_ns = 0
        part.set_rates(whole.quota, rates, now)
        part.burst_ns = whole.burst_ns
        part.set_rates(whole.quota, rates, now)
        for dimension in Dimension:
            bucket, all_of_it = _bucket(part, dimension), _bucket(whole, dimension)
            share, rate = whole.share.of(dimension), rates.of(dimension)
            if bucket and all_of_it and share is not None and rate is not None:
                # The other parts hold at most their depths, so all hold no more than the whole.
                lacking = share * whole.burst_ns - all_of_it.tokens(now)
                bucket.take(-max(0, rate * whole.burst_ns - lacking))
        return part

    def _stays(self, part: TopicPart, now: Nanos) -> bool:
        return self.round - part.asked_in < IDLE_ROUNDS or part.owes(now)

    def _release(self, idle: set[TopicPart]) -> None:
        for part in idle:
            part.leave()
        self._parts = {topic: part for topic, part in self._parts.items() if part not in idle}
        if self._common in idle:
            self._common = None

    def _weigh(self, parts: list[TopicPart], now: Nanos) -> None:
        """Give every part (none of them behind) its interval anew."""
        steps = [
            stream.weigh(*self._weights([part.usage[place] for part in parts]))
            for place, stream in enumerate(self._streams)
        ]
        for part, messages, size in zip(parts, *steps, strict=True):
            part.steps = (messages, size)
        self.redivide(now)

    def _weights(self, usages: list[int]) -> tuple[list[int], int]:
        """The weight of each part, and of one that joins."""
        used = sum(usages)
        if self.mode is not TopicSplit.PROPORTIONAL or not used:
            return [1] * len(usages), 1
        # floor / count + (1 - floor) * usage / used, in whole numbers.
        floor = TOPIC_FLOOR_PPM * used
        each = (PPM - TOPIC_FLOOR_PPM) * len(usages)
        return [floor + each * usage for usage in usages], floor

    def _share(self) -> tuple[Rate, Rate]:
        return self.whole.share.messages, self.whole.share.bytes

    def _rates(self, part: TopicPart) -> Rates:
        messages, size = part.steps
        return Rates(self._streams[0].part(messages), self._streams[1].part(size))


def owes(level: LevelState, now: Nanos) -> bool:
    """Whether a level's bucket is in debt."""
    return any(
        bucket is not None and bucket.tokens(now) < 0 for bucket in (level.messages, level.bytes)
    )


def _bucket(level: LevelState, dimension: Dimension) -> TokenBucket | None:
    return level.messages if dimension is Dimension.MESSAGES else level.bytes


def _lower(had: Rate, least: Rate) -> Rate:
    if had is None or least is None:
        return had if least is None else least
    return min(had, least)


def _add(counts: list[int], cost: Pair) -> None:
    counts[0] += cost.messages
    counts[1] += cost.bytes
