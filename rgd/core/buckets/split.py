"""Divides a broker's share of a group over the topics it serves (PIP-82).

Laws: a divided group grants no more than an undivided one, because its own buckets stay in the
chain and refuse as ever. The parts of all active topics sum to the share, and to at most a
thousandth of a unit per topic above it.

A topic is active from its first request until `IDLE_ROUNDS` whole rounds without one (and without
debt). `even` gives each topic the same. `proportional` gives a floor, and the rest in proportion to
granted and refused work, so that a topic whose requests are all refused grows too. A new topic gets
its part at once.

A part is one more level of the chain, behind its group's. It applies a new share or new weights
when it is next used. After a round the topics are weighed one by one (`TopicPart.close_round`).
"""

from copy import copy
from dataclasses import dataclass, field
from typing import Final

from rgd.core.buckets.bucket import PICO
from rgd.core.buckets.decision import NOTHING, Level
from rgd.core.buckets.level import BucketSettings, GroupState, LevelState
from rgd.core.buckets.recent_refusals import RecentRefusals
from rgd.core.policies.model import Rate, Rates, TopicSplit, lower
from rgd.core.shares.model import PPM
from rgd.core.units import Nanos, Pair

#: Whole rounds without a request after which a topic loses its part.
IDLE_ROUNDS: Final = 2
#: Part of the share split evenly under `proportional`, so that a new topic can start.
TOPIC_FLOOR_PPM: Final = PPM // 100
#: Stands for all topics beyond `BucketBounds.split_topics_max`; no topic is called so.
_FURTHER: Final = ""


class TopicPart(LevelState):
    """A topic's part of its group's share.

    `quota` is the group's, cluster-wide, so size limits, headers and reasons stay correct.
    """

    __slots__ = (
        "_admitted",
        "_asked_in",
        "_attempt",
        "_before",
        "_held",
        "_new",
        "_split",
        "_topic",
        "_version",
        "usage",
    )

    def __init__(self, split: "SplitShare", topic: str | None, settings: BucketSettings) -> None:
        super().__init__(Level.RESOURCE_GROUP, settings, split.whole.group)
        #: None once the part went idle.
        self._split: SplitShare | None = split
        self._topic = topic
        #: The version of the division that its buckets have applied, and the round of its last
        #: request.
        self._version = -1
        self._asked_in = split.round
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
        self.follow(split, now)
        self._asked_in = split.round
        self._attempt = attempt
        if held != NOTHING:
            self._held = held
        return True

    def follow(self, split: "SplitShare", now: Nanos) -> None:
        """Apply the present division and refill.

        From the last use to the division the lower rate of both applied.
        """
        if self._version == split.version:
            return
        whole = split.whole
        self.shadow, self.burst_ns = whole.shadow, whole.burst_ns
        rates = split.rates(self.usage)
        self.set_rates(whole.quota, lower(self.share, rates), self.at)
        self.set_rates(whole.quota, rates, split.at)
        self.refill(now)
        self._version = split.version

    def count(self, messages: int, size: int) -> None:
        """Count what was granted."""
        _add(self._admitted, messages, size)
        self.refuse(messages, size)

    def give(self, messages: int, size: int, now: Nanos) -> None:
        """Put back units that were granted and not used."""
        super().give(messages, size, now)
        for counted in (self._admitted, self._new):
            _add(counted, -messages, -size)

    def refuse(self, messages: int, size: int) -> None:
        """Count work that only groups refused: a larger share would have helped."""
        if self._attempt <= 1:
            _add(self._new, messages, size)

    def retract(self, messages: int, size: int) -> None:
        """Take back what `refuse` counted in this round."""
        self.refuse(-messages, -size)

    def charge_shadow(self, messages: int, size: int, now: Nanos) -> None:
        """Charge the part and the group, or count on the group what one of them would refuse."""
        assert self._split is not None, "a part that went idle was charged"
        whole, cost = self._split.whole, (messages * PICO, size * PICO)
        if self.admits(*cost, now) and whole.admits(*cost, now):
            self.take(messages, size)
            whole.take(messages, size)
        else:
            whole.count_shadow(messages, size)

    def begin_refusals(self) -> RecentRefusals:
        """Refusals are counted on the group."""
        assert self._split is not None, "a part that went idle has refused"
        whole = self._split.whole
        self.refusals = whole.refusals or whole.begin_refusals()
        return self.refusals

    def close_round(self, now: Nanos) -> None:
        """Compute the demand that determines its weight in the next round; an idle part goes."""
        split = self._split
        assert split is not None, "a part that went idle was weighed"
        self.follow(split, now)
        if split.round - 1 - self._asked_in >= IDLE_ROUNDS and not self.owes(now):
            self._split = None
            split.release(self._topic, self.usage, now)
            return
        wanted = Pair(
            *(
                max(admitted, new) + held
                for admitted, new, held in zip(self._admitted, self._new, self._held, strict=True)
            )
        )
        before = wanted if self._before is None else self._before
        usage = Pair(wanted.messages + before.messages, wanted.bytes + before.bytes)
        split.weigh(self.usage, usage, now)
        self.usage, self._before = usage, wanted
        self._held, self._admitted, self._new = NOTHING, [0, 0], [0, 0]


@dataclass(slots=True, eq=False)
class SplitShare:
    """The division over topics of one group's share in one kind."""

    whole: GroupState
    mode: TopicSplit
    settings: BucketSettings
    #: Time of the last division, and numbers of divisions and of rounds.
    at: Nanos
    version: int = 0
    round: int = 0
    _parts: dict[str | None, TopicPart] = field(default_factory=dict)
    #: [messages, bytes] of all parts' usage.
    _used: list[int] = field(default_factory=lambda: [0, 0])

    def part(self, topic: str | None, now: Nanos) -> TopicPart:
        """The part of a topic, created if needed; requests without a topic count as one topic."""
        key = self._key(topic)
        part = self._parts.get(key)
        if part is None:
            part = self._parts[key] = TopicPart(self, key, self.settings)
            self.redivide(now)
            self._start(part, now)
        return part

    def look(self, topic: str | None, now: Nanos) -> TopicPart | None:
        """A copy of a topic's part, updated to `now`, if it exists; the part stays unchanged."""
        part = self._parts.get(self._key(topic))
        if part is None:
            return None
        seen = copy(part)
        seen.spilled = None
        seen.follow(self, now)
        return seen

    def parts(self) -> list[TopicPart]:
        """Every active part, as it was last used."""
        return [*self._parts.values()]

    def rates(self, usage: Pair) -> Rates:
        """The rates of a part that had this demand."""
        share, used = self.whole.share, self._used
        return Rates(
            self._rate(share.messages, usage.messages, used[0]),
            self._rate(share.bytes, usage.bytes, used[1]),
        )

    def redivide(self, now: Nanos) -> None:
        """Divide the group's present share from `now` on; buckets keep their tokens and debt."""
        self.at = now
        self.version += 1

    def weigh(self, before: Pair, usage: Pair, now: Nanos) -> None:
        """Replace the demand of a part."""
        if before != usage:
            self.redivide(now)
            _add(self._used, usage.messages - before.messages, usage.bytes - before.bytes)

    def release(self, key: str | None, usage: Pair, now: Nanos) -> None:
        """Forget a part that went idle."""
        del self._parts[key]
        self.weigh(usage, NOTHING, now)
        self.redivide(now)

    def _key(self, topic: str | None) -> str | None:
        is_further = len(self._parts) >= self.settings.bounds.split_topics_max
        return _FURTHER if is_further and topic not in self._parts else topic

    def _start(self, part: TopicPart, now: Nanos) -> None:
        """Start a part short of what the group is short of, so that it takes no other's tokens."""
        part.follow(self, now)
        whole = self.whole
        whole.refill(now)
        lacking = whole.messages_depth - whole.messages_tokens
        part.messages_tokens = max(0, part.messages_depth - lacking)
        lacking = whole.bytes_depth - whole.bytes_tokens
        part.bytes_tokens = max(0, part.bytes_depth - lacking)

    def _rate(self, share: Rate, usage: int, used: int) -> Rate:
        if share is None:
            return None
        weight, weights = 1, len(self._parts)
        if self.mode is TopicSplit.PROPORTIONAL and used:
            # Floor / count + (1 - floor) * usage / used.
            weight = TOPIC_FLOOR_PPM * used + (PPM - TOPIC_FLOOR_PPM) * usage * weights
            weights *= PPM * used
        # Rounded up, so that no part of the share is lost.
        return -(-share * weight // weights)


def _add(counts: list[int], messages: int, size: int) -> None:
    counts[0] = max(0, counts[0] + messages)
    counts[1] = max(0, counts[1] + size)
