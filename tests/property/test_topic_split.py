"""A share that is divided over topics grants no more than the share itself would.

Random requests on several topics, between them changes of the share, of the mode, of the burst and
ends of rounds. Not covered: which topic gets what (tests/unit/core/buckets/test_split.py).
"""

from dataclasses import dataclass, replace
from typing import Final

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rgd.core.buckets.bucket import PICO
from rgd.core.buckets.decision import Decision, Request
from rgd.core.buckets.level import BucketSettings
from rgd.core.buckets.split import SplitShare
from rgd.core.policies.model import Group, GroupKey, Limit, Rates, TopicSplit
from rgd.core.policies.snapshot import PolicySnapshot
from rgd.core.units import NS_PER_MS, Dimension, Kind, Nanos, to_milli
from tests.support.limiter_alone import LimiterAlone
from tests.support.there import there
from tests.unit.core.buckets.split_house import parts_of

pytestmark = pytest.mark.slow

BURST_NS: Final = 250 * NS_PER_MS
SETTINGS: Final = BucketSettings(burst_ns=BURST_NS, request_max_ms=10_000, round_ms=1000)
GOLD: Final = GroupKey("gold", Kind.PUBLISH)
TOPICS: Final = [None, *(f"persistent://acme/orders/{name}" for name in "ab")]
MODES: Final = [TopicSplit.EVEN, TopicSplit.PROPORTIONAL]
#: So that no request is too large, and the last share below is not low (docs/decisions/0162).
QUOTA: Final = Rates(to_milli(100), to_milli(100))


@dataclass(frozen=True)
class Ask:
    topic: str | None
    messages: int
    bytes: int
    partial: bool
    #: Ask again and again until it is refused.
    greedy: bool


@dataclass(frozen=True)
class Share:
    """A new share, in thousandths."""

    messages: int
    bytes: int


#: An ask, another share, another mode, or a round that ends (None).
Step = Ask | Share | TopicSplit | None
#: Some long enough to fill any bucket, some to change nothing, the rest in between.
GAPS: Final = st.integers(0, 400 * NS_PER_MS) | st.just(0) | st.integers(0, 30 * NS_PER_MS)
SHARES: Final = st.builds(
    Share,
    st.sampled_from([0, 1, 20_000, 200_000]) | st.integers(0, 200_000),
    st.sampled_from([0, 1, 999]) | st.integers(0, 200_000),
)
#: The most that is asked at once, greedily or not.
MOST: Final = 4
#: The most greedy requests in a row: more than any depth below holds.
GREEDY_MAX: Final = 200


def asks() -> st.SearchStrategy[Ask]:
    small = st.integers(0, MOST)
    return st.builds(Ask, st.sampled_from(TOPICS), small, small, st.booleans(), st.booleans())


def steps(modes: list[TopicSplit]) -> st.SearchStrategy[list[tuple[int, Step]]]:
    """Steps, each with the time that passes before it; rounds end often, so that topics go idle."""
    some: st.SearchStrategy[Step] = st.one_of(
        asks(), asks(), asks(), st.none(), st.none(), SHARES, st.sampled_from(modes)
    )
    return st.lists(st.tuples(GAPS, some), min_size=8, max_size=50)


class House:
    """A limiter with one group, its moment, and what it may have granted by now."""

    def __init__(self, mode: TopicSplit) -> None:
        self.now = 0
        self.share = Rates(to_milli(200), to_milli(300))
        self.group = Group("gold", Limit(QUOTA), topic_split=mode)
        self.limiter = LimiterAlone(SETTINGS, lambda _group, _kind, _now: self.share)
        self.set_policies()
        # The group's own buckets are made when it is first asked for.
        self.step(0, Ask(None, 0, 0, partial=False, greedy=False))

    def at(self) -> Nanos:
        return Nanos(self.now)

    def set_policies(self) -> None:
        self.limiter.set_policies(PolicySnapshot({"gold": self.group}), self.at())

    def step(self, gap_ns: int, step: Step) -> Decision | None:
        self.now += gap_ns
        match step:
            case Share(messages, size):
                self.share = Rates(messages, size)
                self.limiter.set_share(0, self.share, self.at())
            case TopicSplit():
                self.group = replace(self.group, topic_split=step)
                self.set_policies()
            case None:
                self.limiter.end_round(self.at())
            case Ask():
                answer = self.limiter.acquire(request_of(step), self.at())
                assert isinstance(answer, Decision)
                return answer
        return None

    def split(self) -> SplitShare | None:
        return self.limiter.split_of(GOLD)


def request_of(ask: Ask) -> Request:
    return Request(
        messages=ask.messages, bytes=ask.bytes, group="gold", topic=ask.topic, partial=ask.partial
    )


@given(mode=st.sampled_from(MODES), happened=steps([*TopicSplit]))
@example(mode=TopicSplit.EVEN, happened=[(0, Ask(one, 1, 0, False, True)) for one in TOPICS])
def test_no_interval_grants_more_than_depth_share_and_one_request(
    mode: TopicSplit, happened: list[tuple[int, Step]]
) -> None:
    house = House(mode)
    bounds = {dimension: Bound() for dimension in Dimension}
    for gap_ns, step in happened:
        for dimension, bound in bounds.items():
            bound.flow(house.share.of(dimension) or 0, gap_ns)
        answer = house.step(gap_ns, step)
        for _ in range(GREEDY_MAX if isinstance(step, Ask) and step.greedy else 1):
            if answer is None or not answer.granted:
                break
            bounds[Dimension.MESSAGES].grant(answer.messages)
            bounds[Dimension.BYTES].grant(answer.bytes)
            answer = house.step(0, step)


class Bound:
    """What any interval may have granted, in `PICO`, however it began."""

    def __init__(self) -> None:
        self._flowed = self._granted = 0
        #: The least of: the depth where an interval began, less what had flowed, plus what was granted.
        self._least: int | None = None

    def flow(self, rate: int, gap_ns: int) -> None:
        """An interval may begin here; then time passes."""
        began = rate * BURST_NS - self._flowed + self._granted
        self._least = began if self._least is None else min(self._least, began)
        self._flowed += rate * gap_ns

    def grant(self, units: int) -> None:
        """Check that so much more is within bounds."""
        assert self._least is not None
        self._granted += units * PICO
        assert self._granted <= self._least + self._flowed + MOST * PICO


@given(mode=st.sampled_from(MODES), happened=steps(MODES))
def test_parts_sum_to_the_share_and_a_thousandth_each(
    mode: TopicSplit, happened: list[tuple[int, Step]]
) -> None:
    house = House(mode)
    for gap_ns, step in happened:
        house.step(gap_ns, step)
        split = house.split()
        if split is not None and (parts := parts_of(split, house.at())):
            for dimension in Dimension:
                rates = sum(part.share.of(dimension) or 0 for part in parts)
                assert 0 <= rates - (house.share.of(dimension) or 0) < len(parts)


@given(mode=st.sampled_from(MODES), happened=steps(MODES), topic=st.sampled_from(TOPICS))
def test_asking_again_after_retry_after_succeeds_whatever_went_before(
    mode: TopicSplit, happened: list[tuple[int, Step]], topic: str | None
) -> None:
    house = House(mode)
    for gap_ns, step in happened:
        house.step(gap_ns, step)
    house.step(0, Share(5000, 5000))
    ask = Ask(topic, 2, 2, False, False)
    answer = there(house.step(0, ask))
    if not answer.granted:
        again = there(house.step(answer.retry_after_ms * NS_PER_MS, ask))
        assert again.granted


def test_the_sum_that_is_checked_is_not_empty() -> None:
    house = House(TopicSplit.EVEN)
    house.step(0, Ask(TOPICS[1], 1, 1, False, False))
    split = there(house.split())
    assert [part.share for part in parts_of(split, house.at())] == [Rates(100_000, 150_000)] * 2
