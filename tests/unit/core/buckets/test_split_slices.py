"""Many divided groups: a round's end weighs a few of their topics in one piece of work.

How a share is divided is in test_split.py and test_split_changes.py.
"""

from dataclasses import replace
from typing import Final

from rgd.core.bounds import BOUNDS
from rgd.core.buckets.decision import Decision, Request
from rgd.core.buckets.level import GroupKey
from rgd.core.buckets.limiter import Limiter
from rgd.core.policies.model import Group, TopicSplit
from rgd.core.policies.snapshot import ALL_CHANGED, PolicySnapshot
from rgd.core.units import Kind, Nanos, Pair
from tests.unit.core.buckets.split_house import PROPORTIONAL, A, B, gold
from tests.unit.core.values import BUCKETS, ms

SLICE: Final = 4
KEYS: Final = [GroupKey(f"g{at:02}", Kind.PUBLISH) for at in range(3 * SLICE)]


def groups_of(mode: TopicSplit) -> PolicySnapshot:
    groups: dict[str, Group] = {key.group: replace(gold(mode), name=key.group) for key in KEYS}
    return PolicySnapshot(groups)


def limiter_of(mode: TopicSplit) -> Limiter:
    """A limiter in which two topics of each group asked; its slices are small."""
    bounds = replace(BOUNDS.buckets, slice_levels=SLICE)
    settings = replace(BUCKETS, bounds=bounds)
    limiter = Limiter(settings, lambda group, kind, _now: group.rates(kind))
    limiter.set_policies(groups_of(mode), Nanos(0), ALL_CHANGED)
    for key in KEYS:
        for topic in (A, B):
            assert ask(limiter, key, topic, 0)
    return limiter


def ask(limiter: Limiter, key: GroupKey, topic: str, now: int) -> bool:
    request = Request(messages=1, group=key.group, topic=topic)
    answer = limiter.acquire(request, Nanos(now))
    assert isinstance(answer, Decision)
    return answer.granted


def work(limiter: Limiter, now: int) -> None:
    while limiter.is_behind:
        limiter.work(Nanos(now))


def weighed(limiter: Limiter) -> list[Pair]:
    """The demand of each part that a round's end has weighed."""
    splits = [limiter.split_of(key) for key in KEYS]
    parts = [part for split in splits if split is not None for part in split.parts()]
    return [part.usage for part in parts if any(part.usage)]


def test_a_round_ends_for_all_groups_in_slices() -> None:
    limiter = limiter_of(PROPORTIONAL)
    limiter.end_round(ms(1000))
    assert len(weighed(limiter)) == SLICE
    work(limiter, 1000)
    assert len(weighed(limiter)) == 2 * len(KEYS)


def test_a_round_that_ends_before_all_topics_are_weighed_is_weighed_with_the_next() -> None:
    limiter = limiter_of(PROPORTIONAL)
    for at in (1000, 2000):
        limiter.end_round(ms(at))
    work(limiter, 2000)
    assert weighed(limiter) == [Pair(2, 0)] * (2 * len(KEYS))
