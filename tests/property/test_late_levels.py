"""A group that missed changes of its quota, as its share under them has not come, accrues no more than each gave."""

from typing import Final

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rgd.core.buckets.decision import Decision, Request
from rgd.core.buckets.level import BucketSettings
from rgd.core.buckets.limiter import Limiter
from rgd.core.policies.model import Group, GroupKey, Limit, Rates, TopicSplit
from rgd.core.policies.snapshot import ALL_CHANGED, PolicySnapshot
from rgd.core.units import NS_PER_MS, Kind, Nanos, to_milli
from tests.support.limiter_alone import numbered, whole

BURST_NS: Final = 250 * NS_PER_MS
SETTINGS: Final = BucketSettings(burst_ns=BURST_NS, request_max_ms=10_000, round_ms=1000)
KEY: Final = GroupKey("gold", Kind.PUBLISH)
TOPIC: Final = "persistent://acme/orders/a"
#: A new quota, messages a second.
QUOTAS: Final = st.sampled_from([0, 100, 1000, 2000])
GAPS: Final = st.sampled_from([0, 1, 10 * NS_PER_MS, 200 * NS_PER_MS])


class House:
    """A limiter with one group."""

    def __init__(self, split: TopicSplit) -> None:
        self.split = split
        self.limiter = Limiter(SETTINGS, numbered(whole))
        self.change(1000, Nanos(0))
        self.drain(100, Nanos(0))

    def change(self, quota: int, now: Nanos) -> None:
        """Change the policies, of which nobody says what changed in them."""
        group = Group("gold", Limit(Rates(to_milli(quota))), topic_split=self.split)
        self.limiter.set_policies(PolicySnapshot({"gold": group}), now, ALL_CHANGED)

    def follow(self, now: Nanos) -> None:
        """Let the share come."""
        group = self.limiter.snapshot.groups["gold"]
        self.limiter.set_share(0, whole(group, KEY.kind, now), now)

    def drain(self, most: int, now: Nanos) -> int:
        """Ask for one message after the other; how many were granted."""
        for granted in range(most):
            answer = self.limiter.acquire(Request(messages=1, group="gold", topic=TOPIC), now)
            assert isinstance(answer, Decision)
            if not answer.granted:
                return granted
        return most


@pytest.mark.parametrize("split", list(TopicSplit))
@given(changes=st.lists(st.tuples(GAPS, QUOTAS, st.booleans()), min_size=1, max_size=6), last=GAPS)
@example(changes=[(0, 0, False), (200 * NS_PER_MS, 1000, False)], last=NS_PER_MS)
@example(changes=[(0, 0, False), (0, 1000, False), (NS_PER_MS, 1000, False)], last=0)
@example(changes=[(0, 100, False), (200 * NS_PER_MS, 2000, True)], last=0)
def test_a_group_that_missed_changes_accrues_no_more_than_each_gave(
    split: TopicSplit, changes: list[tuple[int, int, bool]], last: int
) -> None:
    house, now, quota = House(split), 0, 1000
    #: Thousandths of a message: what is there, and a request by debt.
    allowed = to_milli(151)
    for gap_ns, changed, is_followed in changes:
        now += gap_ns
        allowed += gap_ns * quota // NS_PER_MS
        quota = changed
        house.change(quota, Nanos(now))
        if is_followed:
            house.follow(Nanos(now))
    now += last
    allowed += last * quota // NS_PER_MS
    assert to_milli(house.drain(1000, Nanos(now))) <= allowed
