"""Which topic gets which part of a share, from its first request until it is idle.

Not covered: that all parts together grant no more than the share (tests/property/test_topic_split.py).
"""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from rgd.core.bounds import BucketBounds
from rgd.core.buckets.decision import Level, Request, TooLarge
from rgd.core.buckets.split import IDLE_ROUNDS
from rgd.core.policies.model import (
    UNLIMITED,
    Group,
    Limit,
    Limits,
    LocalLimit,
    Rates,
    TopicSplit,
)
from rgd.core.units import Dimension, Kind, Nanos, Pair
from tests.support.limiter_alone import LimiterAlone, whole
from tests.support.meters import window_of
from tests.unit.core.buckets.split_house import (
    EVEN,
    PROPORTIONAL,
    SHARED,
    START,
    A,
    B,
    C,
    House,
    gold,
    parts_of,
)
from tests.unit.core.values import BUCKETS, NAMESPACE, key, ms, rates


class TestShared:
    def test_by_default_all_topics_take_from_one_bucket(self) -> None:
        house = House(gold(None))
        assert (house.drain(A), house.drain(B)) == (250, 0)
        assert house.limiter.split_of(key("gold")) is None

    def test_all_namespaces_of_a_tenant_take_from_one_bucket(self) -> None:
        house = House(replace(gold(None), name="house"))
        assert house.ask(A, 250).granted
        refused = house.ask(None, namespace="acme/other")
        assert (refused.granted, refused.group) == (False, "house")

    def test_a_group_that_says_nothing_does_as_the_daemon(self) -> None:
        house = House()
        house.limiter = LimiterAlone(BUCKETS, whole, topic_split=EVEN)
        house.put(gold(None), Group("trial", topic_split=SHARED))
        house.ask(A)
        house.ask(B)
        assert house.parts() == [500, 500]
        house.ask(A, group="trial", namespace=None)
        assert house.limiter.split_of(key("trial")) is None


class TestEven:
    def test_a_topic_alone_has_the_whole_share_and_its_whole_depth(self) -> None:
        house = House(gold(EVEN))
        assert house.drain(A) == 250
        assert house.parts() == [1000]

    def test_each_new_topic_has_its_even_part_at_once(self) -> None:
        house = House(gold(EVEN))
        for count, topic in enumerate([A, B, C, None], start=1):
            house.ask(topic)
            assert house.parts() == pytest.approx([1000 / count] * count, abs=0.001)

    def test_what_does_not_divide_is_given_out_too(self) -> None:
        house = House(gold(EVEN, 0.01))
        for topic in (A, B, C):
            house.ask(topic)
        assert sorted(house.parts()) == [0.004, 0.004, 0.004]

    def test_a_topic_that_wants_everything_leaves_the_others_their_parts(self) -> None:
        house = House(gold(EVEN))
        for topic in (A, B):
            house.drain(topic)
        house.pass_ms(100)
        assert (house.drain(A), house.drain(B)) == (50, 50)

    def test_topics_that_come_one_after_another_get_the_depth_once(self) -> None:
        house = House(gold(EVEN))
        got = [house.drain(f"{A}-{number}") for number in range(20)]
        assert got == [250] + [0] * 19

    def test_a_new_topics_bucket_lacks_what_the_whole_lacks(self) -> None:
        house = House(gold(EVEN))
        house.ask(A, 0)
        house.pass_ms(1000)
        house.ask(A, 100)
        # Half the depth is 125, and 100 are missing of it.
        assert house.drain(B) == 25

    def test_a_new_topic_waits_for_a_burst_at_most(self) -> None:
        house = House(gold(EVEN, 4))
        assert house.ask(A).granted
        refused = house.ask(B)
        assert not refused.granted
        # Its bucket is half a message deep: full after 250 ms.
        assert refused.retry_after_ms == 250
        house.pass_ms(250)
        assert house.ask(B).granted

    def test_a_topic_is_idle_after_two_whole_rounds_without_a_request(self) -> None:
        house = House(gold(EVEN))
        house.round(A, B)
        for _ in range(IDLE_ROUNDS - 1):
            house.round(A)
            assert house.parts() == [500, 500]
        house.round(A)
        assert house.parts() == [1000]

    def test_a_topic_that_only_asks_for_nothing_or_is_refused_by_others_is_active(self) -> None:
        house = House(gold(EVEN), limits=Limits(topics={B: LocalLimit(publish=Rates(1))}))
        house.round(A, B)
        for _ in range(4):
            house.round(messages=0)
            house.ask(A, 0)
            house.ask(B)
        assert house.parts() == [500, 500]

    def test_a_topic_in_debt_keeps_its_part_until_it_is_paid(self) -> None:
        house = House(gold(EVEN))
        house.ask(B, 0)
        house.ask(A, 3000)
        for _ in range(5):
            house.round(B)
            assert house.parts() == [500, 500]
        house.round(B)
        assert house.parts() == [1000]

    def test_one_that_comes_back_is_new(self) -> None:
        house = House(gold(EVEN))
        house.round(A, B)
        for _ in range(IDLE_ROUNDS):
            house.round(A)
        house.ask(B)
        assert house.parts() == [500, 500]
        assert house.drain(B) > 0

    def test_with_no_topic_left_the_share_is_whole_again(self) -> None:
        house = House(gold(EVEN))
        house.round(A, B)
        for _ in range(IDLE_ROUNDS):
            house.round()
        assert house.parts() == []
        assert house.drain(C) == 250

    def test_a_part_that_was_not_asked_flows_at_the_least_it_had(self) -> None:
        house = House(gold(EVEN))
        house.drain(A)
        house.pass_ms(100)
        house.drain(B)
        # 100 ms alone and 100 ms by two would be 150; it was not asked in between.
        house.pass_ms(100)
        assert house.drain(A) == 100

    def test_the_rates_of_the_last_use_and_of_the_last_change_count(self) -> None:
        house = House(gold(EVEN))
        house.drain(A)
        house.limiter.set_share(key("gold"), rates(10), Nanos(house.now))
        house.limiter.set_share(key("gold"), rates(1000), Nanos(house.now))
        house.pass_ms(100)
        house.limiter.set_share(key("gold"), rates(2000), Nanos(house.now))
        house.pass_ms(50)
        # 1000 a second until the last change, 2000 since.
        assert house.drain(A) == 200


class TestProportional:
    def test_parts_follow_what_was_used_above_a_floor(self) -> None:
        house = House(gold(PROPORTIONAL))
        for _ in range(3):
            house.ask(A, 30)
            house.round(B, messages=10)
        # 1 % evenly, and 99 % as 3 to 1.
        assert house.parts() == [5 + 742.5, 5 + 247.5]

    def test_a_newcomer_has_the_floors_part_and_then_what_it_wants(self) -> None:
        house = House(gold(PROPORTIONAL))
        for _ in range(3):
            house.round(A, messages=100)
        house.drain(A)
        for _ in range(100):
            house.ask(B)
        assert house.parts()[1] == pytest.approx(5, rel=0.02)
        house.pass_ms(1000)
        house.limiter.end_round(Nanos(house.now))
        assert house.parts()[1] > 100

    def test_one_that_is_refused_everything_grows_all_the_same(self) -> None:
        house = House(gold(PROPORTIONAL, 100))
        for _ in range(8):
            for _ in range(100):
                house.ask(A)
                house.ask(B)
            house.ask(C, 0)
            house.pass_ms(1000)
            house.limiter.end_round(Nanos(house.now))
        first, second, idle = house.parts()
        assert first == pytest.approx(second, rel=0.02)
        assert idle == pytest.approx(1 / 3, rel=0.01)

    def test_usage_is_the_mean_of_two_rounds(self) -> None:
        house = House(gold(PROPORTIONAL))
        for messages in (30, 10):
            house.ask(A, 20)
            house.round(B, messages=messages)
        assert house.parts() == [500, 500]

    def test_a_topics_first_round_counts_in_full(self) -> None:
        house = House(gold(PROPORTIONAL))
        for _ in range(2):
            house.round(A, messages=30)
        house.round(A, B, messages=30)
        assert house.parts() == [500, 500]

    def test_nothing_used_is_divided_evenly(self) -> None:
        house = House(gold(PROPORTIONAL))
        for _ in range(3):
            house.round(A, B, messages=0)
        assert house.parts() == [500, 500]

    def test_a_retry_is_no_new_want(self) -> None:
        house = House(gold(PROPORTIONAL, 100))
        for _ in range(3):
            for topic in (A, B):
                for _ in range(200):
                    house.ask(topic)
            for _ in range(2000):
                house.ask(A, attempt=2)
            house.pass_ms(1000)
            house.limiter.end_round(Nanos(house.now))
        assert house.parts() == pytest.approx([50, 50], rel=0.02)

    def test_what_is_refused_and_then_granted_counts_once(self) -> None:
        house = House(gold(PROPORTIONAL, 100))
        for topic in (A, B):
            house.ask(topic, 0)
        for _ in range(2):
            assert house.ask(A, 12).granted
            assert not house.ask(A, 5).granted
            house.pass_ms(200)
            assert house.ask(A, 5, attempt=2).granted
            house.round(B, messages=17)
        assert house.parts() == [50, 50]

    def test_what_is_held_back_counts_as_wanted_once_a_round(self) -> None:
        house = House(gold(PROPORTIONAL))
        for _ in range(2):
            house.ask(A, 10, held=Pair(30, 0))
            house.round(B, messages=40)
        assert house.parts() == [500, 500]
        for _ in range(2):
            house.ask(A, 10)
            house.round(B, messages=10)
        assert house.parts() == [500, 500]

    def test_what_a_topics_own_limit_refuses_is_not_wanted_of_the_share(self) -> None:
        slow = Limits(topics={A: LocalLimit(publish=rates(1))})
        house = House(gold(PROPORTIONAL), limits=slow)
        for _ in range(4):
            for _ in range(100):
                house.ask(A)
            house.round(B, messages=99)
        assert house.parts() == [5 + 9.9, 5 + 980.1]

    def test_nor_is_what_both_refuse(self) -> None:
        slow = Limits(topics={A: LocalLimit(publish=rates(4))})
        house = House(gold(PROPORTIONAL, 100), limits=slow)
        for topic in (A, B):
            house.ask(topic, 0)
        assert house.ask(A, 12).granted
        for _ in range(50):
            assert house.ask(A, 12).limited_by is Level.TOPIC
        house.round()
        # Its first round counts twice.
        assert parts_of(house.split(), house.now)[0].usage == Pair(24, 0)

    def test_a_part_that_is_cut_counts_what_it_did_not_get(self) -> None:
        house = House(gold(PROPORTIONAL, 100))
        for _ in range(4):
            for topic in (A, B):
                house.ask(topic, 90, partial=True)
            house.pass_ms(1000)
            house.limiter.end_round(Nanos(house.now))
        assert house.parts() == [50, 50]

    def test_the_dimensions_are_weighed_by_themselves(self) -> None:
        one = Group("gold", Limit(publish=rates(1000, 1000)), topic_split=PROPORTIONAL)
        house = House(one)
        for _ in range(2):
            house.ask(A, 30, bytes=0)
            house.ask(B, 10, bytes=10)
            house.round()
        parts = parts_of(house.split(), house.now)
        assert [part.share for part in parts] == [Rates(747_500, 5000), Rates(252_500, 995_000)]


class TestDecisions:
    def test_the_answer_speaks_of_the_group_and_its_whole_quota(self) -> None:
        house = House(gold(EVEN), part=0.5)
        house.drain(A)
        house.ask(B)
        refused = house.ask(A)
        assert (refused.limited_by, refused.group) == (Level.RESOURCE_GROUP, "gold")
        assert (refused.dimension, refused.quota) == (Dimension.MESSAGES, 1000)
        too_large = house.limiter.acquire(
            Request(messages=10_001, namespace=NAMESPACE, topic=A), START
        )
        assert too_large == TooLarge(Level.RESOURCE_GROUP, "gold", Dimension.MESSAGES, 10_000)

    def test_refusals_are_counted_on_the_group(self) -> None:
        house = House(gold(EVEN))
        house.drain(A)
        state = house.limiter.state(key("gold"))
        assert state is not None
        assert state.refused[Level.RESOURCE_GROUP, Dimension.MESSAGES] == 1
        demand = window_of(state.counters, ms(1000))
        assert demand is not None
        assert (demand.admitted.messages, demand.refused.messages) == (250_000, 1)

    def test_a_shadow_counts_on_the_group_and_refuses_nothing(self) -> None:
        house = House(gold(EVEN, 10))
        house.ask(A, 0)
        house.put(gold(EVEN, 10, shadow=True))
        for _ in range(10):
            assert house.ask(A).granted
        state = house.limiter.state(key("gold"))
        assert state is not None
        assert state.shadow_refused == Pair(8, 0)

    def test_a_group_within_a_group_is_divided_by_itself(self) -> None:
        house = House(gold(EVEN, 100), replace(gold(SHARED), name="house"))
        assert (house.drain(A), house.drain(B)) == (25, 0)
        state = house.limiter.state(key("house"))
        assert state is not None
        assert state.remaining(Dimension.MESSAGES, START) == 225

    def test_an_unmet_want_counts_for_the_group_that_refused(self) -> None:
        house = House(gold(PROPORTIONAL, 100), replace(gold(PROPORTIONAL), name="house"))
        for _ in range(3):
            for _ in range(500):
                house.ask(A)
            house.round(B, messages=25)
        of_house = [part.usage.messages for part in parts_of(house.split("house"), house.now)]
        of_gold = [part.usage.messages for part in parts_of(house.split("gold"), house.now)]
        # As much as the house would have let through: its depth in each round, and it let 25 through.
        assert of_gold[0] == 2 * 250
        assert of_house[0] < 300

    @pytest.mark.parametrize("mode", [EVEN, PROPORTIONAL])
    def test_an_unlimited_dimension_is_not_divided(self, mode: TopicSplit) -> None:
        house = House(gold(mode))
        for topic in (A, B):
            house.round(topic)
        assert house.ask(A, 1, bytes=10**12).granted
        assert [part.share.bytes for part in parts_of(house.split(), house.now)] == [None] * 2

    @pytest.mark.parametrize("mode", [EVEN, PROPORTIONAL])
    def test_an_unlimited_group_becomes_a_limited_one(self, mode: TopicSplit) -> None:
        house = House(Group("gold", topic_split=mode))
        house.ask(A, 10**9)
        house.ask(B)
        assert [part.share for part in parts_of(house.split(), START)] == [UNLIMITED] * 2
        house.put(gold(mode))
        assert house.parts() == [500, 500]
        assert (house.drain(A), house.drain(B)) == (125, 125)
        house.put(Group("gold", topic_split=mode))
        assert house.ask(A, 10**9).granted

    @pytest.mark.parametrize("mode", [EVEN, PROPORTIONAL])
    def test_a_blocked_group_grants_nothing_and_then_again(self, mode: TopicSplit) -> None:
        house = House(gold(mode))
        house.ask(A)
        house.put(replace(gold(mode), blocked=True))
        for topic in (A, B):
            assert house.ask(topic).retry_after_ms == BUCKETS.round_ms
        house.round()
        house.put(gold(mode))
        house.pass_ms(250)
        assert house.ask(A).granted


class TestLimits:
    def test_further_topics_have_one_part_together(self) -> None:
        house = House(gold(EVEN, 900), bounds=BucketBounds(split_topics_max=2))
        for topic in (A, B, C, None):
            house.ask(topic)
        assert house.parts() == [300, 300, 300]
        house.pass_ms(1000)
        assert (house.drain(A), house.drain(C), house.drain(None)) == (75, 75, 0)

    def test_the_common_part_goes_when_all_its_topics_are_idle(self) -> None:
        house = House(gold(EVEN, 900), bounds=BucketBounds(split_topics_max=2))
        house.round(A, B, C, None)
        for _ in range(IDLE_ROUNDS):
            house.round(A)
        assert house.parts() == [900]
        house.ask(C)
        house.ask(B)
        assert house.parts() == [300, 300, 300]


def test_subscriptions_of_a_topic_have_one_part() -> None:
    house = House(gold(EVEN))
    for name in ("one", "two"):
        house.ask(A, subscription=name)
    assert house.parts() == [1000]


def test_publishing_and_dispatching_are_divided_by_themselves() -> None:
    both: Sequence[Kind] = (Kind.PUBLISH, Kind.DISPATCH)
    house = House(replace(gold(EVEN), quota=Limit(rates(1000), rates(1000))))
    for kind in both:
        house.ask(A, kind=kind)
    house.ask(B, kind=Kind.DISPATCH)
    assert house.parts() == [1000]
