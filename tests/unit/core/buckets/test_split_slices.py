"""Many divided groups: a round's end and a change touch a few of them in one piece of work.

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
from rgd.core.units import Kind, Nanos
from tests.unit.core.buckets.split_house import EVEN, PROPORTIONAL, A, B, gold
from tests.unit.core.values import BUCKETS, ms

SLICE: Final = 4
KEYS: Final = [GroupKey(f"g{at:02}", Kind.PUBLISH) for at in range(3 * SLICE)]


def groups_of(mode: TopicSplit) -> PolicySnapshot:
    groups: dict[str, Group] = {key.group: replace(gold(mode), name=key.group) for key in KEYS}
    return PolicySnapshot(groups)


def limiter_of(mode: TopicSplit, *, burst_ms: int) -> Limiter:
    """A limiter in which two topics of each group asked; its slices are small."""
    bounds = replace(BOUNDS.buckets, slice_levels=SLICE)
    settings = replace(BUCKETS, bounds=bounds)
    limiter = Limiter(settings, lambda group, kind, _now: group.rates(kind))
    limiter.set_group_burst(ms(burst_ms), Nanos(0))
    limiter.set_policies(groups_of(mode), Nanos(0), ALL_CHANGED)
    for key in KEYS:
        for topic in (A, B):
            assert ask(limiter, key, topic, 0) is (topic == A or burst_ms > 0)
    return limiter


def ask(limiter: Limiter, key: GroupKey, topic: str, now: int) -> bool:
    request = Request(messages=1, group=key.group, topic=topic)
    answer = limiter.acquire(request, Nanos(now))
    assert isinstance(answer, Decision)
    return answer.granted


def work(limiter: Limiter, now: int) -> None:
    while limiter.is_behind:
        limiter.work(Nanos(now))


def rounds(limiter: Limiter) -> list[int]:
    splits = [limiter.split_of(key) for key in KEYS]
    return [split.round for split in splits if split is not None]


def test_a_round_ends_for_all_groups_in_slices() -> None:
    limiter = limiter_of(PROPORTIONAL, burst_ms=250)
    limiter.end_round(ms(1000))
    assert sum(rounds(limiter)) <= SLICE
    work(limiter, 1000)
    assert rounds(limiter) == [1] * len(KEYS)


def test_a_round_that_ends_before_all_topics_are_weighed_is_weighed_with_the_next() -> None:
    limiter = limiter_of(PROPORTIONAL, burst_ms=250)
    for at in (1000, 2000):
        limiter.end_round(ms(at))
    work(limiter, 2000)
    assert rounds(limiter) == [1] * len(KEYS)


def test_a_slice_that_follows_new_policies_weighs_no_topics_besides() -> None:
    limiter = limiter_of(EVEN, burst_ms=250)
    splits = [limiter.split_of(key) for key in KEYS]
    limiter.set_policies(groups_of(PROPORTIONAL), Nanos(0), ALL_CHANGED)
    limiter.work(Nanos(0))
    assert [split.layout for split in splits if split is not None] == [0] * len(KEYS)
    work(limiter, 0)
    assert [split.layout for split in splits if split is not None] == [1] * len(KEYS)


def test_shares_that_paid_their_debt_are_divided_in_slices_or_when_they_are_used() -> None:
    limiter = limiter_of(EVEN, burst_ms=0)
    limiter.set_group_burst(ms(250), Nanos(0))
    for key in KEYS:
        ask(limiter, key, A, 0)
    work(limiter, 0)
    assert [limiter.split_of(key) for key in KEYS] == [None] * len(KEYS)
    limiter.end_round(ms(1000))
    assert [limiter.split_of(key) is not None for key in KEYS] == [
        at < SLICE for at in range(len(KEYS))
    ]
    assert ask(limiter, KEYS[-1], A, ms(1000))
    assert limiter.split_of(KEYS[-1]) is not None


def test_a_group_is_not_divided_while_a_chain_refers_to_it_undivided() -> None:
    limiter = limiter_of(EVEN, burst_ms=0)
    limiter.set_group_burst(ms(250), Nanos(0))
    for key in KEYS:
        ask(limiter, key, A, 0)
    assert ask(limiter, KEYS[-1], B, ms(1000))
    assert limiter.split_of(KEYS[-1]) is None
