"""Decisions: parts, shadows, what counts as wanted, and what a refusal says.

Not covered: all-or-nothing under any load, and each level's bound (tests/property/test_limiter.py).
"""

from dataclasses import replace

import pytest

from rgd.core.bounds import BOUNDS, BucketBounds
from rgd.core.buckets.decision import Answer, Decision, Level, Request, TooLarge
from rgd.core.buckets.level import GroupState
from rgd.core.buckets.limiter import Limiter
from rgd.core.errors import UnknownGroup
from rgd.core.policies.model import Attachments, Group, Limit, Limits, LocalLimit, Rates
from rgd.core.policies.snapshot import PolicySnapshot
from rgd.core.units import COUNT_MAX, Dimension, Nanos, Pair
from tests.support.meters import window_of
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
    share: Rates | None = None,
    bounds: BucketBounds = BOUNDS.buckets,
) -> Limiter:
    """One whose share is the whole quota unless told."""
    settings = replace(BUCKETS, bounds=bounds)
    made = Limiter(settings, lambda one, kind, _: one.rates(kind) if share is None else share)
    attach = Attachments(
        {"acme": of_tenant.name} if of_tenant else {},
        {NAMESPACE: of_namespace.name} if of_namespace else {},
    )
    groups = {one.name: one for one in (of_namespace, of_tenant) if one}
    made.set_policies(PolicySnapshot(groups, attach, limits or Limits()), START)
    return made


def ask(
    one: Limiter,
    messages: int = 1,
    size: int = 0,
    *,
    now: Nanos = START,
    partial: bool = False,
    attempt: int = 1,
    held: Pair = Pair(),
    subscription: str | None = None,
) -> Decision:
    request = Request(
        messages=messages,
        bytes=size,
        namespace=NAMESPACE,
        topic=TOPIC,
        subscription=subscription,
        partial=partial,
        attempt=attempt,
        held=held,
    )
    answer: Answer = one.acquire(request, now)
    assert isinstance(answer, Decision)
    return answer


def state(one: Limiter, group: str = "gold") -> GroupState:
    found = one.state(key(group))
    assert found is not None
    return found


def wanted(one: Limiter, group: str = "gold") -> Pair:
    """Wanted in the second that ends now, whole units."""
    demand = window_of(state(one, group).counters, ms(1000))
    assert demand is not None
    return Pair(demand.wanted.messages // 1000, demand.wanted.bytes // 1000)


def left(one: Limiter, group: str = "gold") -> tuple[int, int]:
    return state(one, group).remaining(MESSAGES, START), state(one, group).remaining(BYTES, START)


# Whole requests.


def test_a_refusal_says_what_refused_and_what_is_left_there() -> None:
    one = limiter(gold(100.5, 1000))
    assert ask(one, 20) == Decision(granted=True, messages=20, bytes=0)
    assert ask(one, 10) == Decision(
        granted=False,
        messages=0,
        bytes=0,
        limited_by=Level.RESOURCE_GROUP,
        group="gold",
        dimension=MESSAGES,
        retry_after_ms=49,
        quota=100,
        remaining=5,
    )


def test_of_two_levels_that_refuse_the_longer_wait_is_told() -> None:
    one = limiter(gold(100), limits=Limits(topics={TOPIC: limit(50)}))
    ask(one, 100)
    answer = ask(one)
    assert (answer.limited_by, answer.group, answer.retry_after_ms) == (Level.TOPIC, None, 1770)
    assert answer.quota == 50


def test_of_two_levels_with_the_same_wait_the_first_is_told() -> None:
    one = limiter(gold(100), Group("t", quota(100)), limits=Limits(limit(100)))
    ask(one, 100)
    assert ask(one).limited_by is Level.BROKER


def test_too_much_for_a_later_level_is_told_before_an_earlier_one_refuses() -> None:
    one = limiter(gold(1000), limits=Limits(topics={TOPIC: limit(10)}))
    ask(one, 100)
    request = Request(messages=251, namespace=NAMESPACE, topic=TOPIC)
    assert one.acquire(request, START) == TooLarge(Level.TOPIC, None, MESSAGES, 100)
    assert state(one).refused.total() == 0


def test_an_unknown_group_is_the_callers_fault() -> None:
    with pytest.raises(UnknownGroup):
        limiter().acquire(Request(group="gold"), START)


# Parts.


def test_a_part_is_what_every_level_has_and_every_level_is_charged_for_it() -> None:
    one = limiter(gold(100), Group("t", quota(60)), limits=Limits(topics={TOPIC: limit(80)}))
    answer = ask(one, 100, partial=True)
    assert (answer.granted, answer.messages) == (True, 15)
    assert (answer.limited_by, answer.group, answer.dimension) == (
        Level.RESOURCE_GROUP,
        "t",
        MESSAGES,
    )
    assert (left(one), left(one, "t")) == ((10, 0), (0, 0))


def test_the_last_level_that_lowers_a_part_is_named() -> None:
    one = limiter(gold(80), limits=Limits(limit(100), {TOPIC: limit(80)}))
    # The topic's 20 do not lower the group's 20 any further.
    assert ask(one, 100, partial=True).limited_by is Level.RESOURCE_GROUP
    one = limiter(gold(None, 80), limits=Limits(topics={TOPIC: limit(None, 80)}))
    assert ask(one, 1, 100, partial=True).limited_by is Level.RESOURCE_GROUP


def test_a_part_is_cut_in_each_dimension_by_itself() -> None:
    one = limiter(gold(100, 1000))
    answer = ask(one, 10, 500, partial=True)
    assert (answer.messages, answer.bytes, answer.dimension) == (10, 250, BYTES)
    assert left(one) == (15, 0)
    assert state(one).refused[Level.RESOURCE_GROUP, BYTES] == 250


def test_the_whole_is_a_part_too() -> None:
    one = limiter(gold(100))
    assert ask(one, 25, partial=True) == Decision(granted=True, messages=25, bytes=0)
    assert left(one) == (0, 0)


@pytest.mark.parametrize("spent", [Pair(25, 0), Pair(0, 250)], ids=["messages", "bytes"])
def test_a_part_without_a_unit_of_each_that_is_needed_is_refused_whole(spent: Pair) -> None:
    one = limiter(gold(100, 1000))
    ask(one, *spent)
    before = left(one)
    answer = ask(one, 5, 50, partial=True)
    assert not answer.granted
    assert (answer.messages, answer.bytes) == (0, 0)
    assert answer.dimension is (MESSAGES if spent.messages else BYTES)
    assert answer.retry_after_ms == (10 if spent.messages else 1)
    assert left(one) == before


def test_a_part_of_nothing_but_messages_needs_no_bytes() -> None:
    one = limiter(gold(100, 1000))
    ask(one, 0, 300)
    assert ask(one, 5, 0, partial=True).granted


def test_the_wait_after_a_part_is_for_one_more() -> None:
    one = limiter(gold(100))
    answer = ask(one, 40, partial=True)
    assert (answer.messages, answer.retry_after_ms) == (25, 10)
    assert ask(one, 40, now=ms(10), partial=True).messages == 1


# Shadows.


def test_a_shadow_refuses_no_part_and_is_not_named() -> None:
    shadow = Group("gold", quota(10), shadow=True)
    one = limiter(shadow, Group("t", quota(100)))
    answer = ask(one, 40, partial=True)
    assert (answer.messages, answer.group) == (25, "t")
    # From its full bucket the shadow would have granted it, on debt; not so the next.
    ask(one, 5, now=ms(50))
    assert state(one).shadow_refused == Pair(5)


def test_a_shadow_finds_nothing_too_large_and_never_makes_a_caller_wait() -> None:
    one = limiter(Group("gold", quota(1), shadow=True), Group("t", quota(100)))
    ask(one, 1000)
    for partial in (False, True):
        answer = ask(one, partial=partial)
        assert (answer.group, answer.retry_after_ms) == ("t", 9760)


def test_a_shadow_counts_what_passes_as_wanted() -> None:
    one = limiter(Group("gold", quota(1), shadow=True))
    ask(one, 30)
    ask(one, 30)
    assert wanted(one) == Pair(60)


# What counts as wanted.


def test_what_a_group_refuses_is_wanted_of_it() -> None:
    one = limiter(gold(100), Group("t", quota(1000)))
    ask(one, 100)
    ask(one, 7)
    assert wanted(one) == Pair(107)
    # Of the tenant's group too little was never the matter.
    assert wanted(one, "t") == Pair(100)


def test_what_a_limit_of_this_broker_refuses_is_wanted_of_no_group() -> None:
    one = limiter(gold(100), limits=Limits(topics={TOPIC: limit(10)}))
    ask(one, 100)
    ask(one, 7)
    assert wanted(one) == Pair(100)
    assert state(one).refused == {(Level.TOPIC, MESSAGES): 7, (Level.TOPIC, BYTES): 0}


def test_the_missing_part_is_wanted() -> None:
    one = limiter(gold(100))
    ask(one, 40, partial=True)
    assert wanted(one) == Pair(40)
    assert state(one).refused[Level.RESOURCE_GROUP, MESSAGES] == 15


def test_a_part_that_a_limit_of_this_broker_cut_is_not_wanted() -> None:
    one = limiter(gold(100), limits=Limits(topics={TOPIC: limit(20)}))
    ask(one, 40, partial=True)
    assert wanted(one) == Pair(5)
    assert state(one).refused[Level.TOPIC, MESSAGES] == 35


def test_a_retry_is_not_wanted_once_more() -> None:
    one = limiter(gold(100))
    ask(one, 100)
    ask(one, 7)
    ask(one, 7, attempt=2)
    ask(one, 7, attempt=3, partial=True)
    assert wanted(one) == Pair(107)


def test_a_retry_is_counted_as_refused_by_the_group_that_refused_it_and_by_no_other() -> None:
    one = limiter(gold(100), Group("t", quota(1000)))
    ask(one, 100)
    ask(one, 7, attempt=2)
    for group, refused in (("gold", 7), ("t", 0)):
        demand = window_of(state(one, group).counters, ms(1000))
        assert demand is not None
        assert demand.refused == Pair(refused)


def test_what_a_caller_holds_back_is_wanted_of_each_group() -> None:
    one = limiter(gold(100), Group("t", quota(100)))
    ask(one, 10, held=Pair(50, 500))
    assert wanted(one) == wanted(one, "t") == Pair(60, 500)


def ask_evenly(
    one: Limiter, rate: int, *, seconds: int = 1, partial: bool = False, attempt: int = 1
) -> None:
    """One message at a time (or a hundred, of which a part is welcome), over so many seconds."""
    for order in range(1, rate * seconds + 1):
        ask(
            one,
            100 if partial else 1,
            now=ms(order * 1000 / rate),
            partial=partial,
            attempt=attempt,
        )


def wanted_later(one: Limiter, group: str = "gold", *, seconds: int) -> float:
    """Wanted over the seconds since the start, messages a second."""
    demand = window_of(state(one, group).counters, ms(seconds * 1000))
    assert demand is not None
    return demand.wanted.messages / 1000


@pytest.mark.parametrize("attempt", [0, 1])
def test_a_topic_limit_bounds_what_is_wanted_of_the_group_that_refuses(attempt: int) -> None:
    one = limiter(gold(100), limits=Limits(topics={TOPIC: limit(20)}), share=rates(5))
    ask_evenly(one, 200, seconds=20, attempt=attempt)
    # The topic's bucket starts with a quarter of a second.
    assert wanted_later(one, seconds=20) == pytest.approx(20.25, abs=0.5)


def test_a_topic_that_asks_for_less_than_its_limit_is_counted_whole() -> None:
    one = limiter(gold(100), limits=Limits(topics={TOPIC: limit(300)}), share=rates(5))
    ask_evenly(one, 200, seconds=5)
    assert wanted_later(one, seconds=5) == pytest.approx(200, rel=0.001)


def test_a_greedy_group_takes_nothing_from_what_a_limit_would_grant_another() -> None:
    one = limiter(gold(100), share=rates(5))
    calm = Group("calm", quota(100))
    snapshot = PolicySnapshot(
        {"gold": gold(100), "calm": calm},
        Attachments(namespaces={NAMESPACE: "gold", "acme/calm": "calm"}),
        Limits(broker=limit(50)),
    )
    one.set_policies(snapshot, START)
    for order in range(1, 4001):
        now = ms(order * 2.5)
        ask(one, now=now)
        if order % 20 == 0:
            one.acquire(Request(namespace="acme/calm"), now)
    assert wanted_later(one, "calm", seconds=10) == pytest.approx(20, abs=0.5)
    assert wanted_later(one, seconds=10) == pytest.approx(45, abs=2)


def test_two_groups_of_a_chain_do_not_wait_for_each_other() -> None:
    one = limiter(gold(100), Group("t", quota(100)), share=rates(5))
    one.live_brokers = 2
    ask_evenly(one, 80, seconds=10)
    # Each would have been granted the other's even part.
    for group in ("gold", "t"):
        assert wanted_later(one, group, seconds=10) == pytest.approx(50, abs=1)


def test_parts_count_for_what_all_others_would_have_granted() -> None:
    one = limiter(gold(100), limits=Limits(topics={TOPIC: limit(20)}), share=rates(5))
    ask_evenly(one, 10, seconds=20, partial=True)
    assert wanted_later(one, seconds=20) == pytest.approx(20.25, abs=1)


def test_a_shadow_bounds_nothing() -> None:
    shadow = Group("t", quota(1), shadow=True)
    one = limiter(gold(100), shadow, share=rates(5))
    ask_evenly(one, 50, seconds=4)
    assert wanted_later(one, seconds=4) == pytest.approx(50, rel=0.01)


def test_a_level_keeps_only_so_many_groups_counterfactual_buckets() -> None:
    one = limiter(gold(100), bounds=BucketBounds(counterfactuals_max=1))
    ask(one, 0)
    level = state(one)
    assert level.would_grant("a", 1, START) == (COUNT_MAX, COUNT_MAX)
    level.forgo("a", 1, 0)
    assert level.would_grant("a", 1, START) == (24, COUNT_MAX)
    level.would_grant("b", 1, START)
    assert level.would_grant("a", 1, START) == (COUNT_MAX, COUNT_MAX)


# Telling the peers.


def test_the_first_refusal_of_an_unreported_group_is_called_out_once() -> None:
    one, calls = limiter(gold(100)), []
    ask(one, 100)
    one.news.on_news = lambda: calls.append("called")
    ask(one)
    ask(one)
    assert calls == ["called"]
    assert state(one).reported
    assert one.news.unreported == [state(one).counters]


def test_the_first_request_since_counts_were_collected_calls_for_the_next_collection() -> None:
    one, calls = limiter(gold(100)), []
    one.news.on_news = lambda: calls.append("called")
    for _ in range(2):
        calls.clear()
        ask(one)
        ask(one)
        assert calls == ["called"]
        assert one.news.collect(9) == [state(one).counters]
        assert one.news.collect(9) == []


def test_a_refusal_of_a_group_that_the_peers_know_is_not_called_out() -> None:
    one, calls = limiter(gold(100)), []
    ask(one, 100)
    one.news.on_news = lambda: calls.append("called")
    state(one).reported = True
    ask(one)
    assert calls == []


# Shares.


def test_a_share_below_the_quota_is_what_flows() -> None:
    one = limiter(gold(1000), share=rates(10))
    answer = ask(one, 3, partial=True)
    assert (answer.messages, answer.quota) == (2, 1000)


def test_a_share_is_set_where_the_group_is_in_use() -> None:
    one = limiter(gold(100))
    one.set_share(key(), rates(40), START)
    assert one.state(key()) is None
    ask(one, 0)
    one.set_share(key(), rates(40), START)
    assert state(one).share == rates(40)
    assert left(one) == (10, 0)
    assert list(one.states()) == [state(one)]


def test_a_floor_of_nothing_refuses_for_a_round_and_that_is_a_want() -> None:
    one = limiter(gold(100), share=rates(0))
    answer = ask(one, 3)
    assert (answer.granted, answer.retry_after_ms) == (False, 1000)
    assert wanted(one) == Pair(3)
