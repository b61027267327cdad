"""A group that missed changes of its depth has no more than one that followed each.

Two limiters hear of the same changes at the same times. One brings every level up to date after each
change, the other none or some, until the group is used again. Not covered: rates in between
(tests/unit/core/buckets/test_levels.py).
"""

from typing import Final

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rgd.core.buckets.decision import Decision, Request
from rgd.core.buckets.level import BucketSettings
from rgd.core.buckets.limiter import Limiter
from rgd.core.policies.model import Group, Limit, Rates, TopicSplit
from rgd.core.policies.snapshot import ALL_CHANGED, PolicySnapshot
from rgd.core.units import NS_PER_MS, Nanos, to_milli

BURST_NS: Final = 250 * NS_PER_MS
SETTINGS: Final = BucketSettings(burst_ns=BURST_NS, request_max_ms=10_000, round_ms=1000)
TOPIC: Final = "persistent://acme/orders/a"
#: A new depth; None: policies, of which this group's stays the same.
CHANGES: Final = st.sampled_from([None, 0, 50 * NS_PER_MS, BURST_NS])
GAPS: Final = st.sampled_from([0, 1, 10 * NS_PER_MS, 200 * NS_PER_MS])


class House:
    """A limiter with one group."""

    def __init__(self, split: TopicSplit, *, follows: bool) -> None:
        self.split, self.follows = split, follows
        self.limiter = Limiter(SETTINGS, lambda group, kind, _now: group.rates(kind))
        self.change(None, Nanos(0))
        self.drain(100, Nanos(0))

    def change(self, depth_ns: int | None, now: Nanos) -> None:
        """Change the depth or the policies, and follow at once or not at all."""
        if depth_ns is None:
            group = Group("gold", Limit(Rates(to_milli(1000))), topic_split=self.split)
            self.limiter.set_policies(PolicySnapshot({"gold": group}), now, ALL_CHANGED)
        else:
            self.limiter.set_group_burst(depth_ns, now)
        if self.follows:
            self.work(now)

    def work(self, now: Nanos) -> None:
        while self.limiter.is_behind:
            self.limiter.work(now)

    def drain(self, most: int, now: Nanos) -> int:
        """Ask for one message after the other; how many were granted."""
        for granted in range(most):
            answer = self.limiter.acquire(Request(messages=1, group="gold", topic=TOPIC), now)
            assert isinstance(answer, Decision)
            if not answer.granted:
                return granted
        return most


@pytest.mark.parametrize("split", list(TopicSplit))
@given(changes=st.lists(st.tuples(GAPS, CHANGES, st.booleans()), min_size=1, max_size=6), last=GAPS)
@example(changes=[(0, 0, False), (NS_PER_MS, BURST_NS, False)], last=NS_PER_MS)
@example(changes=[(0, 0, False), (0, None, False), (NS_PER_MS, BURST_NS, False)], last=0)
def test_who_missed_changes_is_granted_no_more_than_who_followed_each(
    split: TopicSplit, changes: list[tuple[int, int | None, bool]], last: int
) -> None:
    now, early, late = 0, House(TopicSplit.SHARED, follows=True), House(split, follows=False)
    for gap_ns, change, worked in changes:
        now += gap_ns
        for house in (early, late):
            house.change(change, Nanos(now))
        if worked:
            late.work(Nanos(now))
    now += last
    granted = early.drain(1000, Nanos(now)), late.drain(1000, Nanos(now))
    assert granted[1] <= granted[0]
    if split is TopicSplit.SHARED and all(worked for _, _, worked in changes[:-1]):
        # It missed one change at most, which is applied as of its own time.
        assert granted[1] == granted[0]
