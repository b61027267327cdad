"""Decisions: parts, shadows, what counts as wanted, and what a refusal says.

Not covered: all-or-nothing under any load, and each level's bound (tests/property/test_limiter.py).
"""

from dataclasses import replace

from rgd.core.bounds import BOUNDS, BucketBounds
from rgd.core.buckets.decision import Answer, Decision, Level, Request, TooLarge
from rgd.core.buckets.level import GroupState, LevelState
from rgd.core.buckets.limiter import Limiter
from rgd.core.policies.model import Attachments, Group, Limit, Limits, LocalLimit
from rgd.core.policies.snapshot import PolicySnapshot
from rgd.core.units import COUNT_MAX, Dimension, Nanos, Pair
from tests.support.cases import cases
from tests.support.limiter_alone import numbered
from tests.support.meters import window_of
from tests.support.there import there
from tests.unit.core.values import BUCKETS, NAMESPACE, TOPIC, key, ms, rates

START = Nanos(0)
MESSAGES, BYTES = Dimension.MESSAGES, Dimension.BYTES


def quota(messages: float | None = None, size: float | None = None) -> Limit:
    return Limit(publish=rates(messages, size))


def limit(messages: float | None = None, size: float | None = None) -> LocalLimit:
    return LocalLimit(publish=rates(messages, size))


def gold(messages: float | None = None, size: float | None = None) -> Group:
    return Group("gold", quota(messages, size))


def limiter(
    of_namespace: Group | None = None,
    of_tenant: Group | None = None,
    *,
    limits: Limits | None = None,
    bounds: BucketBounds = BOUNDS.buckets,
) -> Limiter:
    """One whose share is the whole quota."""
    settings = replace(BUCKETS, bounds=bounds)
    made = Limiter(settings, numbered(lambda one, kind, _: one.rates(kind)))
    attach = Attachments(
        {"acme": of_tenant.name} if of_tenant else {},
        {NAMESPACE: of_namespace.name} if of_namespace else {},
    )
    groups = {one.name: one for one in (of_namespace, of_tenant) if one}
    made.set_policies(PolicySnapshot(groups, attach, limits or Limits()), START)
    return made


def ask(one: Limiter, messages: int = 1, *, partial: bool = False, held: Pair = Pair()) -> Decision:
    request = Request(
        messages=messages, namespace=NAMESPACE, topic=TOPIC, partial=partial, held=held
    )
    answer: Answer = one.acquire(request, START)
    assert isinstance(answer, Decision)
    return answer


def state(one: Limiter, group: str = "gold") -> GroupState:
    return there(one.state(key(group)))


def wanted(one: Limiter, group: str = "gold") -> Pair:
    """Wanted in the second that ends now, whole units."""
    demand = there(window_of(state(one, group).counters, ms(1000)))
    return Pair(demand.wanted.messages // 1000, demand.wanted.bytes // 1000)


# Whole requests.


def test_too_much_for_a_later_level_is_reported_before_an_earlier_one_refuses() -> None:
    one = limiter(gold(1000), limits=Limits(topics={TOPIC: limit(10)}))
    ask(one, 100)
    request = Request(messages=251, namespace=NAMESPACE, topic=TOPIC)
    assert one.acquire(request, START) == TooLarge(Level.TOPIC, None, MESSAGES, 100)
    assert not dict(state(one).refused())


@cases(
    "cost, too_large",
    {
        "just-not": (Pair(1000, 10_000), None),
        "messages-first": (Pair(1001, 10_001), TooLarge(Level.TOPIC, None, MESSAGES, 1000)),
        "bytes": (Pair(1, 10_001), TooLarge(Level.TOPIC, None, BYTES, 10_000)),
    },
)
def test_ten_seconds_of_the_whole_quota_is_the_most(cost: Pair, too_large: TooLarge | None) -> None:
    level = LevelState(Level.TOPIC, BUCKETS)
    # The share, which is a tenth of the quota, has no say in it.
    level.set_rates(rates(100, 1000), rates(10, 100), START)
    assert level.too_large(*cost) == too_large


# What counts as wanted.


def test_what_a_limit_of_this_broker_refuses_is_wanted_of_no_group() -> None:
    one = limiter(gold(100), limits=Limits(topics={TOPIC: limit(10)}))
    ask(one, 100)
    ask(one, 7)
    assert wanted(one) == Pair(100)
    assert dict(state(one).refused()) == {(Level.TOPIC, MESSAGES): 7, (Level.TOPIC, BYTES): 0}


def test_a_part_that_a_limit_of_this_broker_cut_is_not_wanted() -> None:
    one = limiter(gold(100), limits=Limits(topics={TOPIC: limit(20)}))
    ask(one, 40, partial=True)
    assert wanted(one) == Pair(5)
    assert dict(state(one).refused())[Level.TOPIC, MESSAGES] == 35


def test_what_a_caller_holds_back_is_wanted_of_each_group() -> None:
    one = limiter(gold(100), Group("t", quota(100)))
    ask(one, 10, held=Pair(50, 500))
    assert wanted(one) == wanted(one, "t") == Pair(60, 500)


def test_a_level_keeps_only_so_many_groups_counterfactual_buckets() -> None:
    one = limiter(gold(100), bounds=BucketBounds(counterfactuals_max=1))
    ask(one, 0)
    level = state(one)
    assert level.would_grant("a", 1, START) == (COUNT_MAX, COUNT_MAX)
    level.forgo("a", 1, 0)
    assert level.would_grant("a", 1, START) == (24, COUNT_MAX)
    level.would_grant("b", 1, START)
    assert level.would_grant("a", 1, START) == (COUNT_MAX, COUNT_MAX)
