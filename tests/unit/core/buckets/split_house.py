"""One limiter and its clock, for tests that say which topic asks and what it gets."""

from dataclasses import replace

from rgd.core.bounds import BOUNDS, BucketBounds
from rgd.core.buckets.decision import Decision, Request
from rgd.core.buckets.split import SplitShare, TopicPart
from rgd.core.policies.model import Attachments, Group, Limit, TopicSplit
from rgd.core.policies.snapshot import PolicySnapshot
from rgd.core.units import MILLI, Nanos
from tests.support.limiter_alone import LimiterAlone, whole
from tests.unit.core.values import BUCKETS, NAMESPACE, key, ms, rates

EVEN, PROPORTIONAL, SHARED = TopicSplit.EVEN, TopicSplit.PROPORTIONAL, TopicSplit.SHARED
A, B, C = (f"persistent://{NAMESPACE}/{name}" for name in "abc")


def gold(mode: TopicSplit | None, units: float | None = 1000, *, shadow: bool = False) -> Group:
    return Group("gold", Limit(publish=rates(units)), topic_split=mode, shadow=shadow)


def parts_of(split: SplitShare, now: int) -> list[TopicPart]:
    """Every active part, up to date."""
    parts = split.parts()
    for part in parts:
        part.follow(split, Nanos(now))
    return parts


class House:
    """A limiter; a broker's share is its group's quota."""

    def __init__(self, *groups: Group, bounds: BucketBounds = BOUNDS.buckets) -> None:
        self.now = 0
        self.limiter = LimiterAlone(replace(BUCKETS, bounds=bounds), whole, topic_split=SHARED)
        self.put(*groups)

    def put(self, *groups: Group, namespace: str = "gold") -> None:
        named = {one.name: one for one in groups}
        attached = Attachments(
            {"acme": "house"} if "house" in named else {}, {NAMESPACE: namespace}
        )
        self.limiter.set_policies(PolicySnapshot(named, attached), Nanos(self.now))

    def pass_ms(self, passed: int) -> None:
        self.now += ms(passed)

    def round(self, *topics: str | None, messages: int = 1) -> None:
        """A round in which each topic asks once, at its beginning."""
        for topic in topics:
            self.ask(topic, messages)
        self.pass_ms(1000)
        self.limiter.end_round(Nanos(self.now))

    def ask(self, topic: str | None, messages: int = 1, **more: object) -> Decision:
        request = Request(messages=messages, namespace=NAMESPACE, topic=topic)
        answer = self.limiter.acquire(request._replace(**more), Nanos(self.now))  # type: ignore[arg-type]
        assert isinstance(answer, Decision)
        return answer

    def drain(self, topic: str | None, most: int = 10_000) -> int:
        """How many messages a topic gets, one by one, before it is refused."""
        return next((count for count in range(most) if not self.ask(topic).granted), most)

    def split(self, group: str = "gold") -> SplitShare:
        split = self.limiter.split_of(key(group))
        assert split is not None
        return split

    def parts(self) -> list[float]:
        """Each active topic's messages a second, in the order in which they came."""
        return [(part.share.messages or 0) / MILLI for part in parts_of(self.split(), self.now)]
